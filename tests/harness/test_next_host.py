"""The host's next version: it is asked for what we need, not for its number. Mutants of the installed host show it."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

from lmms_patch.errors import HostError
from lmms_patch.harness import compat, plugin
from lmms_patch.harness.names import host as source

NEEDED = [(owner, name) for owner in compat.HOMES for name in compat.wanted_of(owner)]
CLASSES = [owner for owner, module in compat.HOMES.items() if owner != module]


class Mutant(ast.NodeTransformer):
    """Changes one function of a source, or the name of one class."""

    def __init__(self, owner, name, how):
        self.owner, self.name, self.how = owner, name, how
        self.within = owner not in CLASSES

    def visit_ClassDef(self, node):
        if node.name == self.owner:
            self.within = True
            node.name += "V2" * (self.how == "class renamed")
            self.generic_visit(node)
            self.within = False
        return node

    def visit_FunctionDef(self, node):
        if not self.within or node.name != self.name:
            return node
        if self.how == "gone":
            return None
        if self.how == "another first":
            node.args.args.insert(0, ast.arg("novel"))
        else:
            node.args.kwonlyargs.append(ast.arg("novel"))
            node.args.kw_defaults.append(ast.Constant(None))
        return node


def mutate(folder, monkeypatch, owner, how, name=""):
    """Let the host's source be read with one change."""
    found, module = source.file_of, compat.HOMES[owner]
    if owner not in CLASSES:  # the module may only import the function
        module = inspect.unwrap(getattr(importlib.import_module(module), name)).__module__
    home = Path(found(module))
    tree = Mutant(owner, name, how).visit(ast.parse(home.read_text(encoding="utf-8")))
    file = folder / f"{owner}_{name}_{how}.py"
    file.write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")
    monkeypatch.setattr(source, "file_of", lambda one: file if one == module else found(one))


def test_the_installed_host_has_all():
    assert len(NEEDED) >= 14
    assert source.at_odds() == []
    assert None not in compat.check_host(*compat.HOMES)


@pytest.mark.parametrize(("owner", "name"), NEEDED, ids=str)
@pytest.mark.parametrize(
    ("how", "said"), [("gone", ["is missing"]), ("another first", ["has other parameters"]), ("one more", [])]
)
def test_a_mutant_is_known_from_its_source(tmp_path, monkeypatch, owner, name, how, said):
    """A function that is gone, or takes another argument first, is named; one more argument at the end does no harm."""
    mutate(tmp_path, monkeypatch, owner, how, name)
    assert source.at_odds() == [f"{owner}.{name} {words}" for words in said]


@pytest.mark.parametrize("owner", CLASSES)
def test_a_renamed_class_is_known_from_its_source(tmp_path, monkeypatch, owner):
    mutate(tmp_path, monkeypatch, owner, "class renamed")
    assert source.at_odds() == [f"{owner}.{name} is missing" for name in compat.wanted_of(owner)]


@pytest.mark.parametrize("owner", CLASSES)
def test_a_renamed_class_is_one_line_where_it_is_imported(monkeypatch, owner):
    monkeypatch.delattr(importlib.import_module(compat.HOMES[owner]), owner)
    with pytest.raises(HostError, match=rf": {owner} is missing; type: pip install"):
        compat.check_host(owner)


def test_a_wrapped_name_is_refused_before_a_model_is_loaded(tmp_path, monkeypatch):
    """Native names are matched as ever."""
    from lmms_eval.tasks import TaskManager

    monkeypatch.setattr(compat, "host_version", lambda: "0.9.0")
    mutate(tmp_path, monkeypatch, "EvaluationTracker", "class renamed")
    manager = TaskManager(verbosity="ERROR")
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
