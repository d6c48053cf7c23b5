"""Task files read with libyaml are what the host makes of them; where that cannot be, the host reads them itself."""

import random
from pathlib import Path

import lmms_eval
import pytest
import yaml
from lmms_eval import utils

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
        assert task_files._read(path) is not None, path
        assert told(utils.load_yaml_config, path) == told(HOST, path), path


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A folder whose files count as shipped."""
    monkeypatch.setattr(task_files, "_folders", lambda: (f"{tmp_path}/",))
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


@pytest.mark.parametrize("why", ["no libyaml", "a file of a user", "functions are imported"])
def test_the_host_reads_what_is_not_for_libyaml(shipped, tmp_path_factory, monkeypatch, why):
    monkeypatch.setattr(task_files, "_read", lambda path: pytest.fail("read with libyaml"))
    monkeypatch.setattr(task_files, "_Loader", None if why == "no libyaml" else task_files._Loader)
    path = (tmp_path_factory.mktemp("mine") if why == "a file of a user" else shipped) / "task.yaml"
    path.write_text("a: 1\n")
    assert utils.load_yaml_config(str(path), mode="full" if why == "functions are imported" else "simple") == {"a": 1}
