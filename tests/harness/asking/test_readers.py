"""What each command says of a run that left docs out: estimates, marked as such, and nothing read from what was not asked."""

import json
import math
import re
import shutil
from argparse import Namespace

import pytest

from lmms_patch.app.cli import main
from lmms_patch.harness.asking import portions
from lmms_patch.rci.grids import NO_ENDS
from lmms_patch.runs.logs import read_lines
from lmms_patch.runs.reading import asked_in_words
from tests.harness import toys
from tests.harness.askers import PerRequestK, written
from tests.harness.toys import rows, write_task
from tests.making.analyses import analysis

DOCS = 150
RULES = """
schema: 1
rules:
  - {name: holds, task: toy_rci3_quick, metric: rci3, min: 0.0}
  - {name: fails, task: toy_rci3_quick, metric: rci3, max: 0.0}
  - {name: fip, task: toy_rci3_quick, metric: fip, min: 0.99}
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder of each: a full run, a quick run, and a run with early exit."""
    folder, out = tmp_path_factory.mktemp("tasks"), tmp_path_factory.mktemp("runs")
    options = {"null": 20, "pilot": 30, "precision": 0.12, "category": "part", "seed": 1}
    write_task(folder, "toy", rows(DOCS, part=lambda i: "even" if i % 2 else "odd"), metadata={"lmms_patch": options})
    (folder / "toy_exit.yaml").write_text(
        "task: toy_exit\nbase: toy\ngrids: [3]\nexit: true\nclass: !function lmms_patch.Wrap\n"
    )
    patch = pytest.MonkeyPatch()
    patch.setattr(portions, "SECONDS", 1e9)
    cli = Namespace(
        output_path=None, process_with_media=False, reasoning_tags=None, model="m", model_args="", batch_size=1
    )
    for name in ("toy_rci3", "toy_rci3_quick", "toy_exit"):
        written(toys.run(PerRequestK(), name, folder, cli_args=cli), out / name, name)
    patch.undo()
    return out


def log_of(runs, name):
    return [line.record for line in read_lines(next((runs / name).glob("*_samples_*.jsonl")), 0)]


def details(runs, name):
    return json.loads(next((runs / name).glob("*_results.json")).read_text())["results"][name]["patch,none"]


def said(capsys, *command, status=0):
    assert main([str(part) for part in command]) == status
    return capsys.readouterr().out


def test_the_numbers_are_those_of_the_formulas_in_the_docs(runs):
    """docs/records.md, by hand: each doc stands for as many as its probability says."""
    metric, whole, best = "exact_match", [], []
    for record in log_of(runs, "toy_rci3_quick"):
        how = record.asked
        first, second = how.p
        expected = how.full or 0.0
        full = expected
        cells = how.before.get("3", 0.0)
        if how.steps >= 1:
            score = record.views[0].scores[metric]
            full += (score - expected) / first
            cells += (how.after.get("3", 0.0) - how.before.get("3", 0.0)) / first
        if how.steps == 2:
            cells += (max(view.scores[metric] for view in record.views[1:]) - how.after.get("3", 0.0)) / second
        whole.append(full)
        best.append(cells)
    found = details(runs, "toy_rci3_quick")["analysis"]
    assert len(whole) == DOCS
    assert found["fip"]["value"] == pytest.approx(sum(whole) / DOCS)
    assert found["grids"]["3"]["mpp"]["value"] == pytest.approx(sum(best) / DOCS)
    assert found["grids"]["3"]["index"]["value"] == pytest.approx(1 - sum(best) / sum(whole))
    shares = found["grids"]["3"]["shares"]
    assert shares["docs"] == sum(record.asked.block == 0 for record in log_of(runs, "toy_rci3_quick")) == 30


def test_show_says_what_was_asked(runs, capsys):
    told = " ".join(said(capsys, "show", runs / "toy_rci3_quick").split())  # lines are broken at 80 columns
    asked = details(runs, "toy_rci3_quick")["analysis"]["asked"]
    assert ", sampled" in told
    assert f"estimated from {asked['calls']} of the 1,500 calls of a full pass" in told
    assert "a full pass over these docs would print an index between" in told
    assert "sampled" not in said(capsys, "show", runs / "toy_rci3")
    early = " ".join(said(capsys, "show", runs / "toy_exit").split())
    assert "cells that could not change a number were left out; heat maps are from the 30 docs asked whole" in early
    assert "sampled" not in early


@pytest.mark.parametrize("name", ["toy_rci3_quick", "toy_exit"])
def test_analyze_gives_the_run_s_own_numbers_again(runs, name, capsys, tmp_path):
    said(capsys, "analyze", runs / name, "--by-category", "--json", tmp_path / "out.json")
    (task,) = json.loads((tmp_path / "out.json").read_text())["runs"][0]["tasks"]
    stored = details(runs, name)
    assert task["analysis"] == stored["analysis"]
    parts = task["categories"]
    assert set(parts) == {"even", "odd"}
    own = [(parts[part]["fip"]["value"], parts[part]["n_docs"]) for part in parts]
    assert sum(value * docs for value, docs in own) / DOCS == pytest.approx(
        stored["analysis"]["fip"]["value"], abs=0.02
    )


def test_early_exit_is_analyzed_as_the_full_run(runs, capsys, tmp_path):
    for name in ("toy_rci3", "toy_exit"):
        said(capsys, "analyze", runs / name, "--json", tmp_path / f"{name}.json")
    full, part = (
        json.loads((tmp_path / f"{name}.json").read_text())["runs"][0]["tasks"][0]["metrics"]
        for name in ("toy_rci3", "toy_exit")
    )
    assert full == part


def test_compare_finds_no_difference_to_the_full_run(runs, capsys, tmp_path):
    told = said(capsys, "compare", runs / "toy_rci3", runs / "toy_rci3_quick", "--json", tmp_path / "out.json")
    assert "No difference is shown" in told
    (task,) = json.loads((tmp_path / "out.json").read_text())["tasks"]
    found = {number["name"]: number["difference"] for number in task["numbers"]}
    for name in ("fip", "mpp3", "rci3"):
        one = found[name]
        assert one["low"] <= 0 <= one["high"]
        assert one["high"] - one["low"] > 0.02, "docs that were not asked are not known"


def test_a_gate_judges_by_the_interval_of_the_population(runs, capsys, tmp_path):
    (tmp_path / "rules.yaml").write_text(RULES)
    told = said(capsys, "gate", runs / "toy_rci3_quick", "--config", tmp_path / "rules.yaml", "--all", status=1)
    lines = dict(re.findall(r"^(?:pass|fail): (\w+)\n  (.*)", told, re.M))
    assert sorted(re.findall(r"^(pass|fail): (\w+)$", told, re.M)) == [
        ("fail", "fails"),
        ("fail", "fip"),
        ("pass", "holds"),
    ]
    index = details(runs, "toy_rci3_quick")["analysis"]["grids"]["3"]["index"]
    assert f", sampled (95 % {index['low']:.3f} to {index['high']:.3f}; at least 0)" in lines["holds"].replace("−", "-")


def test_a_board_sets_quick_and_full_runs_side_by_side_by_their_intervals(runs, capsys, tmp_path):
    other = shutil.copytree(runs / "toy_rci3_quick", tmp_path / "other")
    results = next(other.glob("*_results.json"))
    results.write_text(results.read_text().replace('"model": "toy"', '"model": "other"'))
    told = said(capsys, "leaderboard", runs, other, "--output", tmp_path / "board")
    assert "stands apart" not in told
    page = (tmp_path / "board" / "leaderboard.md").read_text()
    line = {row.split("|")[2].strip(): row for row in page.splitlines() if re.match(r"\| \d", row)}
    assert "sampled" in line["other"]
    assert "sampled" not in line["toy"], "a whole run of the same model goes before one that left docs out"
    assert "1 estimated from a part of them" in page


def test_a_report_says_how_many_calls_it_took_and_picks_no_doc_that_was_not_asked_whole(runs, capsys, tmp_path):
    said(capsys, "report", runs / "toy_rci3_quick", "--output", tmp_path / "report")
    page = (tmp_path / "report" / "index.html").read_text()
    asked = details(runs, "toy_rci3_quick")["analysis"]["asked"]
    assert f"estimated from {asked['calls']} of the 1,500 calls of a full pass" in page
    found = json.loads((tmp_path / "report" / "report.json").read_text())
    whole = {record.doc_id for record in log_of(runs, "toy_rci3_quick") if not record.asked.unasked}
    assert {one["doc_id"] for one in found["examples"]} <= whole


def test_a_log_whose_scores_are_weighted_otherwise_is_found(runs, capsys, tmp_path):
    folder = shutil.copytree(runs / "toy_rci3_quick", tmp_path / "run")
    log = next(folder.glob("*_samples_*.jsonl"))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    next(line["patch"]["asked"] for line in lines if line["patch"]["asked"]["steps"] == 2).update(p=[1.0, 1.0])
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "rules.yaml").write_text(RULES)
    assert main(["gate", str(folder), "--config", str(tmp_path / "rules.yaml")]) == 2
    assert "was changed" in capsys.readouterr().err


def test_what_needs_every_cell_of_every_doc_is_refused(runs, capsys, tmp_path):
    again = shutil.copytree(runs / "toy_rci3_quick", tmp_path / "again")
    results = next(again.glob("*_results.json"))
    results.write_text(results.read_text().replace("20260101_000000", "20260102_000000"))
    assert main(["analyze", str(runs / "toy_rci3_quick"), str(again)]) == 2
    assert "a run that left views out cannot be taken together with others" in capsys.readouterr().err


def test_no_interval_is_sharper_than_that_of_the_docs_asked(runs):
    """FIP of a quick run against that of as many docs as were asked: its interval is no narrower than theirs would be at best."""
    found = details(runs, "toy_rci3_quick")["analysis"]
    fip, asked = found["fip"], sum(record.asked.steps > 0 for record in log_of(runs, "toy_rci3_quick"))
    least = 2 * 1.96 * math.sqrt(fip["value"] * (1 - fip["value"]) / DOCS)
    assert fip["high"] - fip["low"] > least
    assert asked < DOCS


def test_a_quick_run_without_an_interval_of_the_full_pass_says_why_and_what_to_type():
    asked = {"calls": 500, "of": 1000, "docs": 80, "whole": 30, "estimated": True}
    lines = asked_in_words(
        analysis({"asked": asked, "grids": {3: {"n": 3, "full_pass": {"level": 0.95, "reason": NO_ENDS}}}})
    )
    assert (
        "no interval of what a full pass over these docs would print (grid 3): the few docs that are right decide"
        in lines
    )
    assert "without _quick" in lines
    assert "between" not in lines
