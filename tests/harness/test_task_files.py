"""Task files read with libyaml are what the host makes of them; where that cannot be, the host reads them itself."""

import random
import subprocess
import sys
from pathlib import Path

import lmms_eval
import pytest
import yaml
from lmms_eval import utils
from lmms_eval.tasks import TaskManager

from lmms_patch import resources
from lmms_patch.harness import task_files
from lmms_patch.harness.plugin import install
from tests.sizes import size

install()
HOST = utils.load_yaml_config.__wrapped__  # the host's own function, which ``install`` has replaced


def plain(value):
    """Return a config with all that readers use of an unread node: its tag, its text, and where it stands."""
    if isinstance(value, yaml.Node):
        inside = [[plain(part) for part in pair] if isinstance(pair, tuple) else plain(pair) for pair in value.value]
        mark = value.start_mark
        return (
            type(value),
            value.tag,
            value.value if isinstance(value, yaml.ScalarNode) else inside,
            mark.name,
            mark.line,
            mark.column,
        )
    if isinstance(value, dict):
        return [(plain(key), plain(inner)) for key, inner in value.items()]  # the order counts
    if isinstance(value, list | tuple):
        return [type(value), *map(plain, value)]
    return type(value), repr(value)


def told(read, path):
    try:
        return plain(read(path, mode="simple"))
    except Exception as error:
        return type(error), str(error)


def test_every_file_of_the_host_and_of_ours_reads_the_same():
    folders = [Path(lmms_eval.__file__).parent / "tasks", resources.folder("tasks")]
    files = sorted(str(path) for folder in folders for path in folder.rglob("*.yaml"))
    assert len(files) > 1700
    for path in random.Random(0).sample(files, size(200, len(files))):
        assert plain(task_files.read(path)) == told(utils.load_yaml_config, path) == told(HOST, path), path


def test_the_index_is_that_of_the_host(tmp_path):
    """Of all its files and of a user's: names, kinds, places, the order of a tag's tasks, and which of two files of a name wins."""
    (tmp_path / "gqa.yaml").write_text("task: gqa\ntag: mine\n")
    (tmp_path / "two.yaml").write_text("task: two\ngroup: [mine, gqa]\n")
    (tmp_path / "both.yaml").write_text("group: both\ntask: [gqa, two]\n")
    (tmp_path / "wrapped.yaml").write_text("task: wrapped\nclass: !function lmms_patch.Wrap\n")
    host, ours = TaskManager(verbosity="ERROR", include_path=str(tmp_path)), task_files.Index(tmp_path)
    assert ours.task_index == host.task_index
    assert ours.all_tasks == host.all_tasks


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A folder whose files count as shipped."""
    monkeypatch.setattr(task_files, "_shipped", lambda: (f"{tmp_path}/",))
    return tmp_path


@pytest.mark.parametrize(
    "text",
    [
        "task: a\nn: [1, 0x1f, 1_000, 1:30, .5, 1e3, yes, ~, 2001-01-01, 'x']\n? !!set {a, b}\n: !!python/tuple [1, 2]\n",
        "a: &x {b: 1}\nc: *x\nd: {<<: *x, e: |\n    two\n    lines\n  }\n",
        "f: !function utils.f\ng: !function [a, b]\n",
        "f: !unknown x\n",
        "a: [1\nb: 2\n",
        "a: 1\n---\nb: 2\n",
        "a: \x07\n",
        "",
        "- a\n- b\n",
        "include: other.yaml\nb: 2\n",
    ],
)
def test_what_libyaml_makes_of_a_file_is_what_the_host_makes_of_it(shipped, text):
    (shipped / "other.yaml").write_text("a: 1\nf: !function here.f\n")
    (shipped / "task.yaml").write_text(text)
    assert told(utils.load_yaml_config, str(shipped / "task.yaml")) == told(HOST, str(shipped / "task.yaml"))


@pytest.mark.parametrize("why", ["a file of a user", "functions are imported"])
def test_the_host_reads_what_is_not_for_libyaml(shipped, tmp_path_factory, monkeypatch, why):
    monkeypatch.setattr(task_files, "read", lambda path: pytest.fail("read with libyaml"))
    path = (tmp_path_factory.mktemp("mine") if why == "a file of a user" else shipped) / "task.yaml"
    path.write_text("a: 1\n")
    assert utils.load_yaml_config(str(path), mode="full" if why == "functions are imported" else "simple") == {"a": 1}


def test_listing_the_names_does_not_wait_for_lmms_eval():
    """To import its tasks takes seven seconds."""
    code = "from lmms_patch.commands import tasks; tasks('gqa*'); import sys; print([x for x in sys.modules if x in ('torch', 'datasets', 'lmms_eval')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
