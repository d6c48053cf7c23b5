"""What loading a task waits for; and a dataset that cannot be loaded: one line that names it, wherever a task of ours asks for it."""

import sys
from argparse import Namespace
from importlib.abc import MetaPathFinder

import pytest
import tenacity
import yaml
from lmms_eval.api.task import ConfigurableTask
from lmms_eval.tasks import TaskManager

from lmms_patch.errors import CannotWrapError
from tests.harness.toys import Model, rows, run, write_task

ON_THE_HUB = "nobody-at-all/not-a-dataset"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    """The host waits 2 s before each of five attempts."""
    monkeypatch.setattr(ConfigurableTask.download.retry, "wait", tenacity.wait_none())


@pytest.fixture
def folder(tmp_path):
    """A task whose dataset is on a hub that is out of reach, one whose file is gone, a whole one, and a group of the first and the last."""
    write_task(tmp_path, "far", rows(2), dataset_path=ON_THE_HUB, dataset_kwargs=None)
    write_task(tmp_path, "gone", rows(2))
    (tmp_path / "gone.parquet").unlink()
    write_task(tmp_path, "here", rows(2))
    (tmp_path / "both.yaml").write_text(yaml.safe_dump({"group": "both", "task": ["here", "far"]}))
    return tmp_path


def loading(folder, name):
    with pytest.raises(CannotWrapError) as caught:
        run(Model(), name, folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_line_names_the_dataset_the_cause_and_what_helps(folder):
    said = loading(folder, "far_rci2")
    assert said.startswith(f"far: its dataset {ON_THE_HUB} could not be loaded: ConnectionError: Couldn't reach")
    assert said.endswith("; type 'lmms-eval --tasks far ...' to see where")
    assert "RetryError" not in said


def test_a_file_that_is_gone(folder):
    said = loading(folder, "gone_blind")
    assert said.startswith("gone: its dataset parquet could not be loaded: FileNotFoundError")
    assert "gone.parquet" in said
    assert said.endswith("to see where")


def test_a_member_of_a_group_is_named(folder):
    assert loading(folder, "both_rci2").startswith(f"far: its dataset {ON_THE_HUB}")


def test_a_run_without_a_task_of_ours_fails_as_it_always_did(folder):
    with pytest.raises(tenacity.RetryError):
        TaskManager("ERROR", include_path=str(folder)).load_task_or_group(["far"])


def test_a_mistake_in_the_code_of_a_task_is_no_matter_of_the_network(tmp_path):
    """The host reads a dataset and runs ``process_docs`` in the same five attempts."""
    write_task(tmp_path, "odd", rows(2), process_docs="!function utils.process")
    (tmp_path / "utils.py").write_text("def process(docs):\n    raise ZeroDivisionError('mine')\n")
    said = loading(tmp_path, "odd_rci2")
    assert (
        said
        == "odd: its dataset parquet could not be loaded: ZeroDivisionError: mine; type 'lmms-eval --tasks odd ...' to see where"
    )


def test_a_run_of_a_wrapped_task_waits_for_nothing_of_magic(folder, tmp_path, monkeypatch):
    """Its patterns alone take two seconds to compile."""
    parts = ("lmms_patch.magic", "lmms_patch.harness.magic")

    class Refusing(MetaPathFinder):
        def find_spec(self, fullname, path=None, target=None):
            assert not fullname.startswith(parts)

    for name in [name for name in sys.modules if name.startswith(parts)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Refusing(), *sys.meta_path])
    found = run(Model(), "here_rci2", folder, cli_args=Namespace(output_path=str(tmp_path), process_with_media=False))
    assert found["results"]["here_rci2"]["exact_match,none"] == 0.0
