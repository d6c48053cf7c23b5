"""The curve of less detail: the score at 1/k of the size, and how far it lies below the full image.

By hand, or by formula.
"""

import numpy as np
import pytest

from lmms_patch import commands
from lmms_patch.app.commands.show import text
from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.spec import parse
from lmms_patch.compare.tasks import compare
from lmms_patch.errors import RecordError, UnknownNameError
from lmms_patch.rci.analysis import analyse
from lmms_patch.runs.catalogue import columns
from lmms_patch.runs.details import Settings
from lmms_patch.runs.numbers import sentences
from lmms_patch.runs.record import record_of
from lmms_patch.runs.run import read
from tests.making.recordings import FakeNative, table
from tests.making.runs import views_run, write_run

KNOWN = [0.9, 0.8, 0.5, 0.3]
"""Planted shares of right answers on the full image and at 1/2, 1/4 and 1/8: whoever is right with less detail is right with more."""


def docs(n=200, **more):
    return views_run("lowres", KNOWN, n=n, grids=(2, 4, 8), **more)[1]


def test_the_curve_and_the_drops_by_hand():
    """A drop of nested right answers is the share of docs that fall, p, so its standard error is that of a share."""
    found = analyse(table(docs()), FakeNative(docs()), Settings(draws=2000))
    assert (found.fip.value, found.fip.n) == (0.9, 200)
    assert [found.curve[k].value for k in (2, 4, 8)] == pytest.approx([0.8, 0.5, 0.3])
    assert [found.drops[k].value for k in (2, 4, 8)] == pytest.approx([0.1, 0.4, 0.6])
    for one in found.drops.values():
        assert one.se == pytest.approx(np.sqrt(one.value * (1 - one.value) / 200), rel=0.1)
        assert one.low < one.value < one.high
    assert found.grids == {}


def test_an_image_too_small_for_a_reduction_is_left_out_of_both_sides():
    """Docs 3 and 7 have no view at 1/8: score and drop there are of the other 198, and so is the full image that they are compared with."""
    records = docs(short=(3, 7))
    found = analyse(table(records), FakeNative(records), Settings(draws=200))
    right = np.array(
        [[view["scores"]["acc"] for view in one["views"]] for one in records if one["doc_id"] not in (3, 7)]
    )
    assert (found.curve[8].value, found.curve[8].n) == (pytest.approx(right[:, 3].mean()), 198)
    assert (found.drops[8].value, found.drops[8].n) == (pytest.approx((right[:, 0] - right[:, 3]).mean()), 198)
    assert found.curve[4].n == 200
    flat = columns(found, KINDS["lowres"])
    assert [flat[f"n_excluded{k}"] for k in (2, 4, 8)] == [0, 0, 2]
    assert flat["drop8"] == found.drops[8].value
    told, mind = sentences(found, KINDS["lowres"])
    assert told[2].startswith("lowres4 0.500 [")
    assert ", 0.400 [" in told[2]
    assert told[2].endswith("] less than the full image")
    assert not mind


def test_no_image_is_large_enough():
    _, records, _ = views_run("lowres", [0.9, 0.5], n=20, grids=(64,), short=range(20))
    found = analyse(table(records), FakeNative(records), Settings(draws=50))
    assert (found.curve[64].value, found.drops[64].value, found.curve[64].reason) == (
        None,
        None,
        "no image is large enough",
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [("gqa_lowres1", "reduction 1"), ("gqa_lowres65", "allowed: 2 to 64"), ("gqa_lowres04", "without leading")],
)
def test_a_reduction_that_is_not_possible(name, said):
    with pytest.raises(UnknownNameError, match=said):
        parse(name)


def test_a_view_of_another_reduction_is_refused():
    _, (one, *_), _ = views_run("lowres", KNOWN, n=8, grids=(2, 4, 8))
    one["views"][1]["n"] = 1
    with pytest.raises(RecordError, match="n must be a whole number >= 2, not 1"):
        record_of(one)


# --- a finished run -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two models; the second needs more detail: at 1/4 it is right on 0.2 of the docs, not 0.5."""
    folder = tmp_path_factory.mktemp("detail")
    for name, known in (("a", KNOWN), ("b", [0.9, 0.8, 0.2, 0.1])):
        write_run(
            folder / name,
            {"sheet_lowres": views_run("lowres", known, n=80, grids=(2, 4, 8), base="sheet")},
            model_name=f"org/{name}",
        )
    return folder


def test_the_numbers_of_a_finished_run_are_measures(runs):
    (result,) = read(next((runs / "a").glob("*_results.json"))).results
    names = ["lowres2", "lowres4", "lowres8", "drop2", "drop4", "drop8"]
    assert [name for name in result.measures if name[-1] in "248"] == names
    assert [round(result.measures[name].value, 6) for name in names] == [0.8, 0.5, 0.3, 0.1, 0.4, 0.6]


def test_people_see_the_scores_and_what_is_lost(runs):
    shown = commands.show(runs / "a")
    (said,) = (one.text for one in shown.findings)
    assert said == "Shown otherwise: sheet (full image 0.900, 1/2 0.800, 1/4 0.500, 1/8 0.300, chance 0.250)."
    said = text(shown, chance=True)
    rows = [line.split() for line in said.splitlines() if line.startswith("sheet_lowres")]
    assert [row[1:6] for row in rows[:3]] == [
        [size, "80", "0.250", "0.900", score] for size, score in (("1/2", "0.800"), ("1/4", "0.500"), ("1/8", "0.300"))
    ]
    assert [row[8] for row in rows[:3]] == ["+0.100", "+0.400", "+0.600"]


def test_fewer_docs_are_held_against_the_full_image_of_the_same_docs(tmp_path):
    """Docs 0 to 39 are too small for 1/8 and right in every view; of the other 40 half are, whatever the detail.

    Nothing is lost at 1/8.
    """
    spec, records, extra = views_run("lowres", KNOWN, n=80, grids=(2, 4, 8), base="sheet", short=range(40))
    for record in records:
        score = {"acc": float(record["doc_id"] < 40 or record["doc_id"] % 2)}
        for view in record["views"]:
            view |= {"scores": score, "items": score}
    write_run(tmp_path, {"sheet_lowres": (spec, records, extra)})
    (said,) = (one.text for one in commands.show(tmp_path).findings)
    assert (
        "(full image 0.750, 1/2 0.750, 1/4 0.750, 1/8 0.500 (full image of the same docs 0.500), chance 0.250)" in said
    )


def fails(records, docs, view):
    """The records with the call for one view failed, of some docs."""
    for doc in docs:
        records[doc]["views"][view] |= {"scores": {}, "items": {}, "failed": "no answer"}
    return records


@pytest.mark.parametrize(("lost", "refused"), [(16, False), (17, True)])
def test_many_failed_calls_at_one_size_leave_no_score_there(lost, refused):
    """By hand, of 200 calls: 5 % are 10, and two standard errors 2 · √(0.05 · 0.95 · 200) = 6.16 more."""
    records = fails(docs(), range(lost), 3)
    found = analyse(table(records), FakeNative(records), Settings(draws=50))
    assert (
        [found.curve[k].value is None for k in (2, 4, 8)]
        == [found.drops[k].value is None for k in (2, 4, 8)]
        == [False, False, refused]
    )
    assert found.fip.value == pytest.approx(0.9)
    if refused:
        why = "17 of 200 calls for the image at 1/8 failed (8%, more than 5%); run again with the same --use_cache: only the failed calls are asked"
        assert found.curve[8].reason == found.drops[8].reason == why
        assert f"no lowres8: {why}" in found.warnings
        assert columns(found, KINDS["lowres"])["drop8"] is None
        assert sentences(found, KINDS["lowres"])[0][-1] == f"lowres8 n/a ({why})"
    else:
        assert found.curve[8].n == 184
        assert not any("no lowres" in line for line in found.warnings)


def test_many_failed_calls_for_the_full_image_leave_no_score_at_any_size():
    records = fails(docs(), range(40), 0)
    found = analyse(table(records), FakeNative(records[40:]), Settings(draws=50))
    assert {one.value for one in (*found.curve.values(), *found.drops.values())} == {None}
    told = [line for line in found.warnings if line.startswith("no ")]
    assert len(told) == 1
    assert told[0].startswith(
        "no lowres2, lowres4, lowres8: 40 of 200 calls for the full image failed (20%, more than 5%)"
    )


@pytest.mark.parametrize(("view", "without", "said"), [(0, (1, 2, 4, 8), "the first view"), (3, (8,), "8 frames")])
def test_many_failed_calls_on_frames(view, without, said):
    records = fails(views_run("frames", KNOWN, n=100, grids=(1, 2, 4, 8))[1], range(30), view)
    found = analyse(
        table(records), FakeNative([one for one in records if view or one["doc_id"] >= 30]), Settings(draws=50)
    )
    assert [n for n, one in found.curve.items() if one.value is None] == list(without)
    assert found.curve[8].reason.startswith(f"30 of 100 calls for {said} failed (30%, more than 5%)")


def test_a_refused_score_is_refused_where_people_look_and_in_comparisons(tmp_path):
    for name, lost in (("a", 0), ("b", 30)):
        spec, records, extra = views_run("lowres", KNOWN, n=80, grids=(2, 4, 8), base="sheet")
        write_run(
            tmp_path / name, {"sheet_lowres": (spec, fails(records, range(lost), 3), extra)}, model_name=f"org/{name}"
        )
    (said,) = (one.text for one in commands.show(tmp_path / "b").findings)
    assert "1/4 0.500, 1/8 not known: 30 of 80 calls for the image at 1/8 failed (38%, more than 5%); " in said
    one, two = (next((tmp_path / name).glob("*_results.json")) for name in "ab")
    (task,) = compare(one, two).tasks
    for name in ("lowres8", "drop8"):
        change = task.by_name[name]
        assert (change.first is None, change.second, change.difference.value) == (False, None, None)
        assert change.difference.reason.startswith("in the second run: 30 of 80 calls for the image at 1/8 failed")
    assert task.by_name["lowres4"].difference.value is not None


def test_scores_on_frames_name_their_docs_where_these_are_fewer(tmp_path):
    write_run(
        tmp_path,
        {"film_frames": views_run("frames", [0.5] * 4, n=40, grids=(1, 2, 4, 8), base="film", short=range(30))},
    )
    (said,) = (one.text for one in commands.show(tmp_path).findings)
    assert "1 frame " in said
    assert " (10 of 40 docs)" in said


def test_two_models_are_compared_at_each_reduction(runs):
    one, two = (read(next((runs / name).glob("*_results.json"))) for name in "ab")
    (task,) = compare(one.path, two.path).tasks
    assert task.by_name["lowres4"].difference.value == pytest.approx(-0.3)
    assert task.by_name["drop4"].difference.value == pytest.approx(0.3)
    assert task.by_name["lowres2"].difference.value == pytest.approx(0)
