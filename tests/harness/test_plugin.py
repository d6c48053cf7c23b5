"""How the plugin enters: cheap where only models are asked for, and there as soon as tasks are."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
from lmms_eval.tasks import TaskManager

from lmms_patch.harness import plugin

HEAVY = ["lmms_eval.tasks", "torch", "numpy", "PIL", "datasets", "transformers", "lmms_patch.ask.spec"]


def test_the_models_of_the_host_are_imported_without_its_tasks():
    """234 modules without the plugin; before the patches waited for the tasks it was 4,400, and 6 s."""
    code = (
        "import sys, json, lmms_eval.models as m; before = set(sys.modules)\n"
        "from lmms_patch.harness import plugin; ours = [n for n in before if n.startswith('lmms_patch')]\n"
        f"print(json.dumps([len(before), sorted(before & set({HEAVY!r})), ours, 'mosaic_vlm' in m.list_available_models()]))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    ).stdout
    count, heavy, ours, there = json.loads(printed)
    assert heavy == []
    assert count < 350
    assert len(ours) <= 9
    assert there, "the entry point was loaded"


def test_the_host_of_these_tests_was_patched_when_its_tasks_came():
    """conftest.py imports the models first, and the tasks after them."""
    assert all(hasattr(getattr(TaskManager, name), "__wrapped__") for name in plugin.compat.PATCHED["TaskManager"])
    assert not any(isinstance(finder, plugin._OnceImported) for finder in sys.meta_path)


@pytest.fixture
def tasks(tmp_path, monkeypatch):
    """A module in place of ``lmms_eval.tasks``; what is installed is noted as what the module held by then."""
    (tmp_path / "toy_tasks.py").write_text(
        "import builtins\nclass Manager: pass\nif getattr(builtins, 'toy_fails', False): raise OSError('no')\n"
    )
    installed = []
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(plugin, "_TASKS", "toy_tasks")
    monkeypatch.setattr(plugin, "install_exit_status", lambda: None)
    monkeypatch.setattr(plugin, "install", lambda: installed.append(hasattr(sys.modules["toy_tasks"], "Manager")))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield installed
    sys.modules.pop("toy_tasks", None)


def hooks():
    return [finder for finder in sys.meta_path if isinstance(finder, plugin._OnceImported)]


def test_the_patches_wait_for_the_tasks_and_the_hook_goes(tasks):
    plugin.register()
    plugin.register()
    assert len(hooks()) == 1
    assert tasks == []
    from toy_tasks import Manager

    assert tasks == [True]
    assert hooks() == []
    module = sys.modules["toy_tasks"]
    assert Manager is module.Manager
    assert "exec_module" not in vars(module.__spec__.loader), "the loader is left as it was"


def test_a_first_import_that_fails_is_not_the_last(tasks, monkeypatch):
    plugin.register()
    with monkeypatch.context() as broken:
        broken.setattr("builtins.toy_fails", True, raising=False)
        with pytest.raises(OSError, match="no"):
            import toy_tasks
    assert tasks == []
    import toy_tasks  # noqa: F401

    assert tasks == [True]


def test_patches_that_fail_do_not_take_the_host_with_them(tasks, monkeypatch, capfd):
    def broken():
        raise ValueError("not as expected")

    told = []
    monkeypatch.setattr(plugin, "install", broken)
    monkeypatch.setattr(plugin, "log", lambda: SimpleNamespace(warning=told.append))
    plugin.register()
    import toy_tasks

    assert toy_tasks.Manager
    assert told == ["lmms-patch could not be installed, so its tasks are not found: ValueError: not as expected"]
