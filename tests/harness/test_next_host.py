"""The host's next version: it is asked for what we need, not for its number. Mutants of the installed host show it."""

import importlib
import re

import pytest

from lmms_patch.errors import HostError
from lmms_patch.harness import compat, plugin

NEEDED = [(owner, name) for owner in compat.HOMES for name in compat.wanted_of(owner)]
CLASSES = [owner for owner, module in compat.HOMES.items() if owner != module]


def mutate(monkeypatch, owner, name, how):
    """Change one function of the loaded host: ``gone``, another argument first, or one more at the end."""
    home = compat.owner_of(owner)
    if how == "gone":
        monkeypatch.delattr(home, name)
        return
    wanted = list(compat.wanted_of(owner)[name])
    arguments = ["novel", *wanted] if how == "another first" else [*wanted, "*, novel=None"]
    found = {}
    exec(f"def function({', '.join(arguments)}): ...", found)
    monkeypatch.setattr(home, name, found["function"])


def test_the_installed_host_has_all():
    assert len(NEEDED) >= 13
    assert None not in compat.check_host(*compat.HOMES)


@pytest.mark.parametrize(("owner", "name"), NEEDED, ids=str)
@pytest.mark.parametrize(
    ("how", "said"), [("gone", "is missing"), ("another first", "has other parameters"), ("one more", "")]
)
def test_a_mutant_is_known(monkeypatch, owner, name, how, said):
    """A function that is gone, or takes another argument first, is named; one more argument at the end does no harm."""
    mutate(monkeypatch, owner, name, how)
    if not said:
        compat.check_host(*compat.HOMES)
        return
    with pytest.raises(HostError, match=rf": {re.escape(owner)}\.{name} {said}; type: pip install"):
        compat.check_host(*compat.HOMES)


@pytest.mark.parametrize("owner", CLASSES)
def test_a_renamed_class_is_one_line(monkeypatch, owner):
    monkeypatch.delattr(importlib.import_module(compat.HOMES[owner]), owner)
    with pytest.raises(HostError, match=rf": {owner} is missing; type: pip install"):
        compat.check_host(owner)


def test_a_wrapped_name_is_refused_before_a_model_is_loaded(monkeypatch):
    """Native names are matched as ever."""
    from lmms_eval.tasks import TaskManager

    monkeypatch.setattr(compat, "host_version", lambda: "0.9.0")
    manager = TaskManager(verbosity="ERROR")
    mutate(monkeypatch, "EvaluationTracker", "save_results_aggregated", "gone")
    assert manager.match_tasks(["gqa"]) == ["gqa"]
    with pytest.raises(
        HostError, match=r"installed 0\.9\.0: its version is not known; EvaluationTracker\.save_results_agg"
    ):
        manager.match_tasks(["mosaic_rci3"])


class Next:
    """A class of the next host: its method takes two arguments more than we know."""

    def match_tasks(self, task_list, strict=False, *, novel=None):
        return task_list, strict, novel


@pytest.mark.parametrize(
    ("args", "kwargs", "wanted"),
    [
        ((["a"],), {}, (["a"], False, None)),
        ((["a"], True), {"novel": 7}, (["a"], True, 7)),
        ((), {"task_list": ["a"], "strict": True}, (["a"], True, None)),
    ],
)
def test_arguments_that_we_do_not_know_are_handed_on(monkeypatch, args, kwargs, wanted):
    one = type("TaskManager", (Next,), {})
    seen = []

    def replacement(original, manager, task_list):
        seen.append(task_list)
        return original(manager, task_list)

    plugin._patch(one, "match_tasks", replacement)
    assert one().match_tasks(*args, **kwargs) == wanted
    assert seen == [["a"]]
