"""``lmms-patch prune --from`` and ``lmms-patch gap``: what reads finished runs."""

# ruff: noqa: F401, F811 - fixtures are imported
import json
import shutil
from collections import Counter

import pytest

from lmms_patch.app.cli import main
from tests.harness.tst.pruning import (
    DOCS,
    KINDS,
    command,
    guess,
    ids,
    kind_of,
    knows,
    log_of,
    pruned,
    records,
    refused,
    runs,
    tasks,
)

# --- by the scores of a finished run ------------------------------------------------------------


def with_records(runs, tmp_path, run, task, change):
    """A copy of a run in which every record is changed."""
    out = tmp_path / f"{run}_changed"
    shutil.copytree(runs / run, out)
    lines = [json.loads(line) for line in log_of(out, task).read_text().splitlines()]
    for line in lines:
        change(line["patch"])
    log_of(out, task).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return out


@pytest.mark.parametrize("by", ["s_minus_chance", "s"])
def test_a_finished_cross_validation_gives_the_order(runs, tasks, tmp_path, knows, by):
    """The 30 highest scores of its log, in one pass; there is nothing to cross-validate but for the judge."""
    scores = {r["doc_id"]: r["tst"][by] for r in records(runs / "tst", "toy_tst3")}
    assert len(scores) == 120
    run = runs / "tst" if by == "s" else next((runs / "tst").rglob("*_results.json"))
    assert command(tasks, tmp_path, "--from", run, "--by", by, "--budget", "30") == 0
    gone = [one["doc_id"] for one in pruned(tmp_path)["removed"]]
    assert len(gone) == 30
    assert [scores[i] for i in gone] == sorted(scores.values(), reverse=True)[:30]
    assert [len(done["removed"]) for done in json.loads((tmp_path / "history.json").read_text())["rounds"]] == [30]
    assert knows.docs == [120, 90, 90, 90], "the judge: all, the kept, a matched and an unmatched control"
    assert {KINDS[i % 3] for i in gone} == {"planted"}


def test_of_several_runs_the_newest_of_the_task_gives_the_scores(runs, tasks, tmp_path, knows, capsys):
    shutil.copytree(runs / "tst", tmp_path / "all" / "tst")
    for end in ("results", "patch"):
        shutil.copyfile(next((runs / "rci").rglob(f"*_{end}.json")), tmp_path / "all" / f"2099_{end}.json")
    assert command(tasks, tmp_path / "out", "--from", tmp_path / "all", "--budget", "30") == 0
    (own,) = (tmp_path / "all" / "tst").rglob("*_results.json")
    assert f"{own}: taken as the newest with a tst task of toy of 2 runs here (1 left aside)" in capsys.readouterr().err
    scores = {r["doc_id"]: r["tst"]["s_minus_chance"] for r in records(runs / "tst", "toy_tst3")}
    assert [scores[one["doc_id"]] for one in pruned(tmp_path / "out")["removed"]] == sorted(
        scores.values(), reverse=True
    )[:30]


def test_unscored_docs_never_go(runs, tasks, tmp_path, knows):
    """Docs 0..19 without a score: of 120 docs 100 can go, as the budget of 110 would have more."""

    def unscored(record):
        if record["doc_id"] < 20:
            record["tst"]["s_minus_chance"] = None

    run = with_records(runs, tmp_path, "tst", "toy_tst3", unscored)
    assert command(tasks, tmp_path / "out", "--from", run, "--budget", "110") == 0
    assert ids(tmp_path / "out", "kept") == [f"doc-{i:03}" for i in range(20)]


def test_a_run_of_another_version_of_the_docs_is_refused(runs, tasks, tmp_path, knows, capsys):
    def older(record):
        if record["doc_id"] == 7:
            record["answer"]["gold"] = "something else"

    assert command(tasks, tmp_path / "out", "--from", with_records(runs, tmp_path, "tst", "toy_tst3", older)) == 2
    assert "doc 7 has the gold 'something else' in this run" in refused(capsys)


def test_by_delta_goes_by_what_training_added(runs, tasks, tmp_path, knows):
    """Written into the log as a language model's run has it: the size docs gained most."""

    def trained(record):
        record["tst"]["delta"] = 0.5 if record["doc_id"] % 3 == 2 else 0.0

    run = with_records(runs, tmp_path, "tst", "toy_tst3", trained)
    assert command(tasks, tmp_path / "out", "--from", run, "--by", "delta", "--budget", "40") == 0
    assert Counter(map(kind_of, ids(tmp_path / "out", "removed"))) == {"size": 40}


@pytest.mark.parametrize(
    ("run", "arguments", "says"),
    [
        ("tst", ("--by", "delta"), "no doc has a score 'delta'"),
        ("rci", (), "no toy_tst5 in this run"),
        ("other", (), "no toy_tst5 in this run"),
        ("nowhere", (), "no *_results.json here"),
    ],
)
def test_a_run_without_such_scores_is_one_line(runs, tasks, tmp_path, capsys, run, arguments, says):
    assert command(tasks, tmp_path / "out", "--from", runs / run, *arguments) == 2
    assert says in refused(capsys)
    assert not (tmp_path / "out").exists()


def test_a_damaged_log_is_one_line_and_leaves_nothing(runs, tasks, tmp_path, knows, capsys):
    shutil.copytree(runs / "tst", tmp_path / "run")
    log = log_of(tmp_path / "run", "toy_tst3")
    log.write_text(log.read_text()[:-20])
    assert command(tasks, tmp_path / "out", "--from", tmp_path / "run") == 2
    assert "line 120: cut or not JSON; the run did not finish writing this file" in refused(capsys)
    assert not (tmp_path / "out").exists()


# --- the gap ------------------------------------------------------------------------------------


def by_hand(places):
    """Docs, and the mean scores with and without images: all but every tenth doc are right.

    A guess says yes to lamps and chairs.
    """
    full = [i % 10 != 0 for i in places]
    blind = [guess(DOCS[i]["question"]) == DOCS[i]["answer"] for i in places]
    return len(places), sum(full) / len(full), sum(blind) / len(blind)


def row_of(n, full, blind):
    return [str(n), *(f"{value:.3f}" for value in (full, blind, full - blind))]


def test_the_gap_before_and_after(runs, tasks, tmp_path, knows, capsys):
    """All 30 removed docs are planted, which a blind guess solves: the gap grows from 108 - 80 of 120 to that of the other 90.

    Of the planted docs any 30 may go for that: random removals, which keep the counts of each category, have gaps as wide.
    """
    assert command(tasks, tmp_path, "--budget", "30", "--batch", "10") == 0
    kept = [int(key.removeprefix("doc-")) for key in ids(tmp_path, "kept")]
    assert by_hand(range(120)) == (120, 108 / 120, 80 / 120)
    capsys.readouterr()
    assert main(["gap", str(runs / "both"), str(runs / "both"), "--subset", str(tmp_path)]) == 0
    header, _, original, after, random, verdict, *more = capsys.readouterr().out.splitlines()
    assert header.split() == ["docs", "n", "full", "blind", "gap", "interval"]
    assert original.split()[:5] == ["original", *row_of(*by_hand(range(120)))]
    assert after.split()[:5] == ["pruned", *row_of(*by_hand(kept))]
    assert random.split()[:3] == ["random", "(200)", "90"]
    _, _, blind = by_hand(kept)
    assert [float(cell) for cell in random.split()[3:6]] == pytest.approx([0.9, blind, 0.9 - blind], abs=0.01)
    assert verdict.startswith("no widening is shown (random subsets have gaps as wide): ")
    assert more == [
        "not recorded in both runs, so not compared: docs, prompts, lmms-eval version"
    ]  # the full side is a plain task


def test_within_categories_only_selection_counts(runs, tasks, tmp_path, knows, capsys):
    """A blind guess solves all planted docs alike: which of them went is no matter."""
    assert command(tasks, tmp_path, "--budget", "30", "--batch", "10") == 0
    capsys.readouterr()
    for subset in (tmp_path, tmp_path / "pruned.json", tmp_path / "kept_ids.txt"):
        assert main(["gap", str(runs / "both"), str(runs / "both"), "--subset", str(subset)]) == 0
        assert "\nno widening is shown (" in capsys.readouterr().out


def test_runs_and_subsets_of_other_tasks_have_no_gap(runs, tasks, tmp_path, knows, capsys):
    assert main(["gap", str(runs / "both"), str(runs / "other")]) == 2
    assert "no two tasks of one benchmark" in refused(capsys)
    assert command(tasks, tmp_path, "--budget", "6") == 0
    capsys.readouterr()
    assert main(["gap", str(runs / "other"), str(runs / "other"), "--subset", str(tmp_path)]) == 2
    assert "a pruning of toy, but the runs are of other" in refused(capsys)
