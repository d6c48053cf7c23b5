"""The curve of less detail: the score at 1/k of the size, and how far it lies below the full image.

By hand, or by formula.
"""

import numpy as np
import pytest

from lmms_patch import commands
from lmms_patch.app.commands.show import text
from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.spec import parse
from lmms_patch.errors import UnknownNameError
from lmms_patch.rci.analysis import analyse
from lmms_patch.runs.catalogue import columns
from lmms_patch.runs.details import Settings
from lmms_patch.runs.numbers import to_mind
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
    assert not to_mind(found, KINDS["lowres"])


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


def test_people_see_the_scores_and_what_is_lost(runs):
    shown = commands.show(runs / "a")
    (said,) = (one.text for one in shown.findings)
    assert said == "Shown otherwise: sheet (full image 0.900, 1/2 0.800, 1/4 0.500, 1/8 0.300, chance 0.250)."
    said = text(shown, chance=True)
    rows = [line.split() for line in said.splitlines() if line.startswith("sheet_lowres")]
    assert [(row[1], row[2], row[4]) for row in rows[:3]] == [
        (size, "0.900", score) for size, score in (("1/2", "0.800"), ("1/4", "0.500"), ("1/8", "0.300"))
    ]
    lost = [cell for row in rows[:3] for cell in row if cell in ("+0.100", "+0.400", "+0.600")]
    assert lost == ["+0.100", "+0.400", "+0.600"]


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
        why = "17 of 200 calls for the image at 1/8 failed (more than 5.0%); type the same command again: with --output_path or --use_cache only the failed calls are asked"
        assert found.curve[8].reason == found.drops[8].reason == why
        assert f"no lowres8: {why}" in found.warnings
        assert columns(found, KINDS["lowres"])["drop8"] is None
    else:
        assert found.curve[8].n == 184
        assert not any("no lowres" in line for line in found.warnings)
