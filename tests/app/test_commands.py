"""The commands from Python: the numbers that they print, as data, and nothing printed."""

import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lmms_patch import commands
from lmms_patch.app.cli import built, paths
from lmms_patch.errors import OptionError, RecordError
from tests.making.edited import edit
from tests.making.runs import mc_run, write_run
from tests.making.tst import write_tst


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("run"), {"toy_rci2": mc_run(n=60)})


def test_show_gives_the_tasks_of_a_run(run, tmp_path, capsys):
    found = commands.show(str(run.parent))
    assert (found.path, found.taken.aside, found.tested) == (run, 0, [])
    (task,) = found.shown
    assert task.label == "toy_rci2"
    assert task.result.measures["acc"].value == sum(r["views"][0]["scores"]["acc"] for r in mc_run(n=60)[1]) / 60
    both = commands.show(write_tst(tmp_path, with_rci=True))
    assert ([s.label for s in both.shown], [t.task for t in both.tested]) == (["toy_rci2"], ["toy_tst5"])
    with pytest.raises(RecordError, match="no such run"):
        commands.show(tmp_path / "nowhere")
    assert capsys.readouterr().out == ""


def test_analyze_gives_the_numbers_of_each_run(run, tmp_path):
    again = shutil.copytree(run.parent, tmp_path / "again") / run.name
    edit(again, run="another with the same answers")
    found = commands.analyze([str(run), again], level=0.9)
    (one,), (other,) = found.runs
    assert one.metrics == other.metrics
    assert one.analysis.fip.level == 0.9
    assert found.averaged[0].metrics["rci2"] == pytest.approx(one.metrics["rci2"])
    assert found.to_json()["runs"][0]["tasks"][0]["task"] == "toy_rci2"
    assert "average" not in commands.analyze([run]).to_json()


@pytest.mark.parametrize("kind", [str, Path])
def test_one_path_is_a_path(run, tmp_path, kind):
    """A text alone was taken for its characters, and "/" for the first folder."""
    assert run.is_absolute()
    (one,), (other,) = (commands.analyze(given).runs[0] for given in (kind(run), [run]))
    assert one.metrics == other.metrics
    if kind is str:  # a report takes seconds, and other tests write theirs of paths
        made = commands.report(str(run.parent), str(tmp_path / "report"), from_csv=str(published(tmp_path)))
        assert (tmp_path / "report" / "index.html").is_file()
        assert [entry.result.task for entry in made.entries] == ["toy_rci2"]
    board = commands.leaderboard(kind(run), kind(tmp_path / "board"), over=["toy"], ignore=["limit"])
    assert len(board.models) == 1


def published(folder):
    path = folder / "published.csv"
    path.write_text("dataset,model,n,rci\ntoy,some-7B,2,0.1\n")
    return path


def test_looking_tasks_up_leaves_the_harness_its_log(tmp_path, capfd):
    """While the tasks are looked up the harness is silent; what it logs afterwards, in the same process, is logged."""
    import datasets
    from loguru import logger

    (tmp_path / "one.yaml").write_text(
        "task: one_task\ndataset_path: x\ntest_split: test\noutput_type: generate_until\n"
    )
    found = commands.tasks("one_task", include_path=tmp_path)
    assert [entry.name for entry in found.entries] == ["one_task"]
    assert capfd.readouterr() == ("", "")
    told = []
    sink = logger.add(told.append, level="INFO", format="{message}")
    eval("logger.info('still here')", {"__name__": "lmms_eval.tasks", "logger": logger})
    logger.remove(sink)
    assert told == ["still here\n"]
    assert not datasets.are_progress_bars_disabled()


@pytest.mark.parametrize("changes", [{"draws": 10}, {"level": 95}, {"chance": "high"}, {"chance": float("nan")}])
def test_settings_out_of_range_are_refused(run, changes):
    with pytest.raises(OptionError, match="must be"):
        commands.analyze([run], **changes)


def test_importing_it_is_cheap():
    code = "import sys, lmms_patch.commands; print(sorted({'numpy', 'torch', 'lmms_eval', 'typer', 'sklearn', 'pydantic'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("words", paths(), ids=" ".join)
def test_each_command_is_a_function_with_the_options_of_its_command(words):
    """Those that change what is printed are the command line's alone."""
    function = getattr(commands, "_".join(words))
    typed = {one.name: max(one.opts, key=len) for one in built(*words).params}
    named = {name: typed[name].lstrip("-").replace("-", "_") for name in inspect.signature(function).parameters}
    odd = {"kind": "as", "every": "all", "scores_of": "from", "copy_docs": "copy", "json_file": "json"}
    assert {name: word for name, word in named.items() if name != word and odd.get(name) != word} == {}
    assert not hasattr(commands, "comparre")
    assert "_".join(words) in dir(commands)


def test_two_runs_compared_judged_and_put_on_a_board(tmp_path):
    """The same numbers by every way: the FIP of the file, of the comparison, of the verdict and of the board."""
    for name in "ab":
        made = {"toy_rci2": mc_run(n=120, seed=1, know_full=0.8 if name == "a" else 0.6)}
        write_run(tmp_path / name, made, model_name=name, config={"model": "hf"})
    compared = commands.compare(tmp_path / "a", tmp_path / "b")
    number = next(one for one in compared.tasks[0].numbers if one.name == "fip")
    judged = commands.gate(tmp_path / "b", {"schema": 1, "rules": [{"name": "score", "metric": "fip", "min": 0.99}]})
    assert judged.status == 1
    board = commands.leaderboard([tmp_path], tmp_path / "board")
    assert len(board.models) == 2
    records = {
        name: json.loads(next((tmp_path / name).glob("*_results.json")).read_text())["results"]["toy_rci2"]["acc,none"]
        for name in "ab"
    }
    assert number.first == pytest.approx(records["a"])
    assert number.second == pytest.approx(records["b"])
    assert judged.verdicts[0].value.value == pytest.approx(records["b"])
