"""A run of a task with boxes as views: its numbers by name, and reports and boards that take it."""

import json

import pytest

from lmms_patch.ask.spec import parse
from lmms_patch.present.board import build as boards
from lmms_patch.present.report import build as reports
from lmms_patch.runs import numbers as outcome
from lmms_patch.runs import run as runs
from tests.making.boxes import numbers, planted
from tests.making.recordings import METRIC


@pytest.fixture
def run(tmp_path):
    records, spec = planted(), parse("toy_regions")
    analysis = numbers(records, chance=0.0)
    flat = outcome.metrics(analysis, "rci")
    patch = {
        "records": len(records),
        **flat,
        "made": {},
        "settings": {"level": 0.95},
        "higher_is_better": {METRIC: True},
        "analysis": outcome.to_json(analysis),
    }
    values = {METRIC: analysis.fip.value, f"{METRIC}_mpp_relevant": 0.75, f"{METRIC}_mpp_adversarial": 0.75, **flat, "patch": patch}
    data = {
        "results": {spec.name: {f"{key},none": value for key, value in values.items()}},
        "configs": {spec.name: {"lmms_patch": {"schema": 2, "pixels": 1, **spec.described(), "metric": METRIC}}},
        "model_name": "m",
    }
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "20260101_000000_results.json"
    path.write_text(json.dumps(data))
    path.with_name("20260101_000000_samples_toy_regions.jsonl").write_text("".join(json.dumps({"patch": one}) + "\n" for one in records))
    return path


def test_each_number_once_with_its_interval(run):
    """By hand (test_regions.test_numbers_by_hand): MPP 0.75 each, the best relevant box less the best adversarial one 0 over docs with both."""
    found = runs.read(run).results[0].measures
    assert [found[name].value for name in ("fip", "mpp_relevant", "mpp_adversarial", "rci_adversarial", "regions_best")] == pytest.approx(
        [0.8, 0.75, 0.75, 0.25, 0]
    )
    assert found["regions_best"].n == 120
    assert found["mpp_relevant"].low is not None
    assert not [name for name in found if name.endswith(("_low", "_high")) or name.startswith(("n_", f"{METRIC}_mpp"))]


def test_reports_and_boards_take_it(run):
    report = reports.build([run.parent], run.parents[1] / "report")
    assert report.entries[0].whole.measures["regions_best"].n == 120
    assert "regions_best" in (run.parents[1] / "report" / "index.html").read_text()
    board = boards.leaderboard([run.parent], run.parents[1] / "board").board
    assert [group.kind for group in board.groups] == ["regions"]
