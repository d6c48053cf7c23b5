"""The Python API: the numbers of the commands, as data, and nothing printed."""

import functools
import json
import keyword
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from lmms_patch.app import api
from lmms_patch.errors import OptionError, RecordError, UnknownNameError
from lmms_patch.rci.recompute import Changes
from tests.making.runs import mc_run, write_run
from tests.making.tst import write_tst


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("run"), {"toy_rci2": mc_run(n=60)})


def test_show_gives_the_tasks_of_a_run(run, tmp_path, capsys):
    found = api.show(str(run.parent))
    assert (found.path, found.taken.aside, found.tested) == (run, 0, [])
    (task,) = found.shown
    assert task.label == "toy_rci2"
    assert task.result.metrics["acc"] == sum(r["views"][0]["scores"]["acc"] for r in mc_run(n=60)[1]) / 60
    both = api.show(write_tst(tmp_path, with_rci=True))
    assert ([s.label for s in both.shown], [t.task for t in both.tested]) == (["toy_rci2"], ["toy_tst5"])
    with pytest.raises(RecordError, match=r"no \*_results\.json here"):
        api.show(tmp_path / "nowhere")
    assert capsys.readouterr().out == ""


def test_analyze_gives_the_numbers_of_each_run(run, tmp_path):
    watched = []

    def watch(runs, label):
        watched.append((len(runs), label))
        return runs

    again = shutil.copytree(run.parent, tmp_path / "again") / run.name
    again.write_text(
        json.dumps({**json.loads(again.read_text()), "start_time": -1.0})
    )  # another run with the same answers
    found = api.analyze([str(run), again], Changes(level=0.9), watch=watch)
    assert watched == [(1, str(run)), (1, str(again))]
    (one,), (other,) = found.runs
    assert one.metrics == other.metrics
    assert one.analysis.fip.level == 0.9
    assert found.averaged[0].metrics["rci2"] == pytest.approx(one.metrics["rci2"])
    assert found.to_json()["runs"][0]["tasks"][0]["task"] == "toy_rci2"
    assert "average" not in api.analyze([run]).to_json()


@pytest.mark.parametrize("kind", [str, Path])
def test_one_path_is_a_path(run, tmp_path, kind):
    """A text alone was taken for its characters, and "/" for the first folder."""
    assert run.is_absolute()
    (one,), (other,) = (api.analyze(given).runs[0] for given in (kind(run), [run]))
    assert one.metrics == other.metrics
    if kind is str:  # a report takes seconds, and other tests write theirs of paths
        made = api.report(str(run.parent), str(tmp_path / "report"), from_csv=str(published(tmp_path)))
        assert (tmp_path / "report" / "index.html").is_file()
        assert [entry.result.task for entry in made.entries] == ["toy_rci2"]
    board = api.leaderboard(kind(run), kind(tmp_path / "board"), over="toy", ignore="limit")
    assert len(board.board.models) == 1


def published(folder):
    path = folder / "published.csv"
    path.write_text("dataset,model,n,rci\ntoy,some-7B,2,0.1\n")
    return path


def test_options_that_are_paths_may_be_texts(tmp_path, monkeypatch):
    from lmms_patch.app import pruning, stress

    asked = []
    monkeypatch.setattr(
        stress, "run", lambda arguments, quiet, watch: asked.append((arguments, quiet)) or write_tst(tmp_path)
    )
    assert api.tst("toy", output="out/here", include_path=tmp_path).tested
    ((arguments, quiet),) = asked
    assert arguments.output == Path("out/here")
    assert quiet, "the functions print nothing unless they are asked to"
    assert str(tmp_path) in stress.command_of(arguments, tmp_path)
    made = pruning.Arguments(task="toy", output="out/here", scores_of="out/there")
    assert (made.folder, made.scores_of) == (Path("out/here"), Path("out/there"))


def test_looking_tasks_up_leaves_the_harness_its_log(tmp_path, capfd):
    """While the tasks are looked up the harness is silent; what it logs afterwards, in the same process, is logged."""
    import datasets
    from loguru import logger

    (tmp_path / "one.yaml").write_text(
        "task: one_task\ndataset_path: x\ntest_split: test\noutput_type: generate_until\n"
    )
    found = api.tasks("one_task", include_path=tmp_path)
    assert [entry.name for entry in found.entries] == ["one_task"]
    assert capfd.readouterr() == ("", "")
    told = []
    sink = logger.add(told.append, level="INFO", format="{message}")
    eval("logger.info('still here')", {"__name__": "lmms_eval.tasks", "logger": logger})
    logger.remove(sink)
    assert told == ["still here\n"]
    assert not datasets.are_progress_bars_disabled()


@pytest.mark.parametrize("look", [functools.partial(api.tasks, "?"), api.coverage])
def test_what_the_harness_logs_is_told_where_that_is_asked_for_and_names_are_watched(look, monkeypatch):
    from loguru import logger

    from lmms_patch.harness.names import catalog

    def task_manager(include_path=None):
        eval("logger.info('reading')", {"__name__": "lmms_eval.tasks", "logger": logger})
        return SimpleNamespace(
            all_tasks=["a", "b"], task_index={name: {"type": "task", "yaml_path": "/x"} for name in "ab"}
        )

    def watch(names, label):
        for name in names:
            seen.append((name, label))
            yield name

    monkeypatch.setattr(catalog, "task_manager", task_manager)
    monkeypatch.setattr(catalog, "entry", lambda manager, name, spec: SimpleNamespace(name=name))
    logged, seen = [], []
    sink = logger.add(logged.append, level="INFO", format="{message}")
    try:
        look()
        assert logged == []
        found = look(quiet=False, watch=watch)
    finally:
        logger.remove(sink)
    assert logged == ["reading\n"]
    assert [entry.name for entry in getattr(found, "entries", found)] == ["a", "b"]
    assert seen == [("a", "looking at tasks"), ("b", "looking at tasks")]


@pytest.mark.parametrize(
    "changes", [{"draws": 10}, {"level": 95}, {"seed": -1}, {"chance": "high"}, {"chance": float("nan")}]
)
def test_settings_out_of_range_are_refused(run, changes):
    with pytest.raises(OptionError, match="must be"):
        api.analyze([run], Changes(**changes))


def test_schema_gives_one_or_all():
    assert api.schema()["patch"] == api.schema("patch")
    with pytest.raises(UnknownNameError, match="did you mean patch"):
        api.schema("patsh")


def test_importing_it_is_cheap():
    code = "import sys, lmms_patch.app.api; print(sorted({'numpy', 'torch', 'lmms_eval', 'typer', 'sklearn', 'pydantic'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_what_it_hands_on_is_the_function_itself():
    import lmms_patch.api
    from lmms_patch.compare.tasks import compare
    from lmms_patch.gate.judge import gate

    for module in (api, lmms_patch.api):
        assert (module.compare, module.gate) == (compare, gate)
        assert not hasattr(module, "comparre")
        assert {"compare", "gate", "show", "magic"} <= set(dir(module))
    assert lmms_patch.api.show is api.show


def test_each_command_has_a_function_of_its_name():
    from lmms_patch.app.cli import paths

    def at(place, name):
        return getattr(place, f"{name}_" if keyword.iskeyword(name) else name, None)

    assert [words for words in paths() if not callable(functools.reduce(at, words, api))] == []


def test_two_runs_compared_judged_and_put_on_a_board(tmp_path):
    """The same numbers by every way: the FIP of the file, of the comparison, of the verdict and of the board."""
    for name in "ab":
        path = write_run(tmp_path / name, {"toy_rci2": mc_run(n=120, seed=1, know_full=0.8 if name == "a" else 0.6)})
        path.write_text(json.dumps({**json.loads(path.read_text()), "model_name": name, "config": {"model": "hf"}}))
    compared = api.compare(tmp_path / "a", tmp_path / "b")
    number = next(one for one in compared.tasks[0].numbers if one.name == "fip")
    judged = api.gate(tmp_path / "b", {"schema": 1, "rules": [{"name": "score", "metric": "fip", "min": 0.99}]})
    assert judged.status == 1
    board = api.leaderboard([tmp_path], tmp_path / "board")
    assert len(board.board.models) == 2
    records = {
        name: json.loads(next((tmp_path / name).glob("*_results.json")).read_text())["results"]["toy_rci2"]["acc,none"]
        for name in "ab"
    }
    assert number.first == pytest.approx(records["a"])
    assert number.second == pytest.approx(records["b"])
    assert judged.verdicts[0].value.value == pytest.approx(records["b"])
