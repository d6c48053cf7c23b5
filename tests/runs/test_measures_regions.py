"""A run of a task with boxes as views: its numbers by name, and reports and boards that take it."""

import pytest

from lmms_patch.present.board import build as boards
from lmms_patch.present.report import build as reports
from lmms_patch.runs import run as runs
from tests.making.boxes import write_boxes
from tests.making.recordings import METRIC


@pytest.fixture
def run(tmp_path):
    return write_boxes(tmp_path / "run")


def test_each_number_once_with_its_interval(run):
    """By hand (test_regions.test_numbers_by_hand): MPP 0.75 each, the best relevant box less the best adversarial one 0 over docs with both."""
    found = runs.read(run).results[0].measures
    assert [
        found[name].value for name in ("fip", "mpp_relevant", "mpp_adversarial", "rci_adversarial", "regions_best")
    ] == pytest.approx([0.8, 0.75, 0.75, 0.25, 0])
    assert found["regions_best"].n == 120
    assert found["mpp_relevant"].low is not None
    assert not [name for name in found if name.endswith(("_low", "_high")) or name.startswith(("n_", f"{METRIC}_mpp"))]


def test_reports_and_boards_take_it(run):
    report = reports.build([run.parent], run.parents[1] / "report")
    assert report.entries[0].whole.measures["regions_best"].n == 120
    assert "regions_best" in (run.parents[1] / "report" / "index.html").read_text()
    board = boards.leaderboard([run.parent], run.parents[1] / "board").board
    assert [group.kind for group in board.groups] == ["regions"]
