"""Boards of MAGIC tasks: their numbers, ranked by the primary metric, never mixed with others.

Judges, seeds and data apart.
"""

import csv
import io

import pytest

from lmms_patch.present.board import build
from tests.making.boards import document, write
from tests.making.runs import magic_doc, write_magic


def docs(good, n=40, **more):
    return [magic_doc(f"d{k:02}", (1,) if k < good else (2,), right=k < good, **more) for k in range(n)]


def boards(folder, **more):
    found = build.leaderboard([folder], folder.parent / "board", **more).board
    return {(group.base, group.number): group for group in found.of("magic")}


def test_ranked_by_the_primary_metric_with_every_number(tmp_path):
    """F1 38/40, 20/40, 4/40: intervals apart. The files have each number; the card has them too."""
    for name, good in (("middle", 20), ("best", 38), ("last", 4)):
        write_magic(tmp_path / "runs" / name, {"all": docs(good), "selfheal": docs(40)}, model=name)
    found = boards(tmp_path / "runs")
    assert [(entry.model, str(place)) for place, entry in found["toy_magic", 1].ranked] == [
        ("best", "1"),
        ("middle", "2"),
        ("last", "3"),
    ]
    assert [str(place) for place, _ in found["toy_magic_selfheal", 1].ranked] == [
        "1–3"
    ] * 3  # all 1: nobody is before the others
    rows = {
        (row["task"], row["model"]): row
        for row in csv.DictReader(io.StringIO((tmp_path / "board" / "leaderboard.csv").read_text()))
    }
    assert float(rows["toy_magic", "middle"]["magiscore_f1_micro"]) == 0.5
    assert float(rows["toy_magic", "best"]["acc_synonym"]) == pytest.approx(38 / 40)
    assert rows["toy_magic", "best"]["rank_first"] == "1"
    card = (tmp_path / "board" / "model-index" / "middle.md").read_text()
    assert "type: magiscore_f1_macro" in card.replace('"', "")
    assert "F1 macro" in (tmp_path / "board" / "index.html").read_text()
    text = (tmp_path / "board" / "leaderboard.md").read_text()
    assert "## Region focus, answers and self-correction (MAGIC)" in text
    assert "40 docs of toy" in text


@pytest.mark.parametrize(
    ("one", "other", "differs"),
    [
        ({"judge": "x"}, {"judge": "y"}, "judge"),
        ({"judge": "x"}, {}, "judge"),
        ({}, {"seed": 1}, "boxes shown"),
        ({}, {"docs": "e"}, "docs"),
    ],
)
def test_what_is_not_comparable_stands_apart(tmp_path, one, other, differs):
    judged = {"short": True, "full": True}
    for name, told in (("a", one), ("b", other)):
        write_magic(
            tmp_path / "runs" / name, {"all": docs(20, **(judged if told.get("judge") else {}))}, model=name, **told
        )
    found = boards(tmp_path / "runs")
    assert [len(group.entries) for group in found.values()] == [1, 1]
    assert any(line.startswith(differs) for line in found["toy_magic", 2].differs)


def test_an_ignored_judge_is_said(tmp_path):
    for name in ("x", "y"):
        write_magic(tmp_path / "runs" / name, {"all": docs(20, short=True, full=True)}, model=name, judge=name)
    (group,) = boards(tmp_path / "runs", ignore=["judge"]).values()
    assert len(group.entries) == 2
    assert any(line.startswith("judge (") for line in group.merged)


def test_beside_boards_of_other_kinds(tmp_path):
    """The index's own boards and means are as without it; the columns of MAGIC come last."""
    write(tmp_path / "runs", document())
    alone = build.leaderboard([tmp_path / "runs"], tmp_path / "alone")
    write_magic(tmp_path / "runs" / "magic", {"all": docs(20)}, model="another")
    both = build.leaderboard([tmp_path / "runs"], tmp_path / "both")
    assert both.board.of("index") == alone.board.of("index")
    assert both.overall == alone.overall
    heads = [
        [
            name
            for name in next(csv.reader((tmp_path / one / "leaderboard.csv").read_text().splitlines()))
            if not name.endswith(("_low", "_high"))
        ]
        for one in ("alone", "both")
    ]
    assert heads[1][: len(heads[0])] == heads[0]
    assert heads[1][len(heads[0])] == "acc_exact"
    assert "MAGIC" not in (tmp_path / "alone" / "leaderboard.md").read_text()
