"""Docs that are asked again, from their rows to the steady index: what was planted is found, or the run says why not."""

import pytest

from lmms_patch import commands
from lmms_patch.rci.analysis import analyse
from lmms_patch.runs import run
from lmms_patch.runs.details import Settings
from tests.making.recordings import FakeNative, table
from tests.making.runs import again_run, failing, quick, write_run

MIX = ("text", "text", "cell", "cell", "whole", "whole", "whole", "unsolved")
"""Of the docs that need their image, 3 of 5 need all of it."""


def numbers(records, grid=2, **settings):
    return analyse(table(records), FakeNative(records), Settings(draws=200, **settings), (grid,))


def shares(found):
    (need,) = found.necessity
    return {name: one.value for name, one in need.shares.items()}


def test_without_guesses_the_shares_are_those_of_the_docs():
    """A view that does not show what a doc needs names nothing, so that no luck is left: 2, 2, 3 and 1 of 8."""
    _, records, _ = again_run(MIX, guesses=False)
    found = numbers(records)
    assert shares(found) == pytest.approx({"text": 0.25, "one cell": 0.25, "whole image": 0.375, "unsolved": 0.125})
    (need,) = found.necessity
    assert (need.index.value, need.whole.value) == pytest.approx((0.6, 3 / 7))
    assert (need.docs, need.again) == (240, 240)
    # with no luck to tell from knowledge, one pass says the same of all that is answered
    assert found.grids[2].index.value == pytest.approx(3 / 7)
    assert found.grids[2].mark == ""


def test_an_index_that_is_mostly_luck_is_marked():
    """Four cells that guess answer 1 - (3/4)^4 of the docs: FIP 7/8 + 1/32, MPP 1/2 + 0.684/2, index 0.07; and 3 of 5 need the whole."""
    _, records, _ = again_run(MIX)
    found = numbers(records)
    grid, (need,) = found.grids[2], found.necessity
    assert grid.index.value == pytest.approx(1 - (0.5 + 0.5 * (1 - 0.75**4)) / (7 / 8 + 1 / 32), abs=0.06)
    assert need.index.low < 0.6 < need.index.high
    assert (
        grid.mark
        == f"from one pass {grid.index.value:.3f} (balanced), steady {need.index.value:.3f} (strong global): the first is mostly luck"
    )


@pytest.mark.parametrize(("needs", "truth"), [(("cell",), 0.0), (("cell", "whole", "whole", "whole"), 0.75)])
def test_the_steady_index_is_the_share_that_needs_the_whole_whatever_luck_adds(needs, truth):
    _, records, _ = again_run(needs)
    (need,) = numbers(records).necessity
    assert need.index.low <= truth <= need.index.high
    assert need.index.value == pytest.approx(truth, abs=0.08)


def test_an_index_that_asking_again_confirms_is_not_marked():
    """One cell knows all: 0 in one pass, and 0 asked again."""
    _, records, _ = again_run(("cell",))
    found = numbers(records)
    assert found.grids[2].index.value == pytest.approx(0)
    assert found.necessity[0].index.value == pytest.approx(0)
    assert found.grids[2].mark == ""


def test_docs_that_windows_answer_are_counted_with_those_that_cells_answer():
    """Of 8 docs 2 need a cell, 3 a window between the cells, 2 the whole image, 1 is unsolved; no view guesses."""
    needs = ("cell", "cell", "window", "window", "window", "whole", "whole", "unsolved")
    _, records, _ = again_run(needs, kind="shift", guesses=False)
    found = numbers(records)
    assert shares(found)["one cell"] == pytest.approx(2 / 8)
    assert shares(found)["whole image"] == pytest.approx(5 / 8)
    assert found.lines[2].one.value == pytest.approx(5 / 8)
    assert found.lines[2].mpp.value == pytest.approx(5 / 8)


def test_guesses_on_windows_are_no_answers(tmp_path):
    """Nine views that guess answer nearly all docs in one pass, but name the gold again and again in hardly any."""
    needs = ("cell", "window", "window", "whole")
    path = write_run(tmp_path, {"toy_shift2": again_run(needs, kind="shift")})
    found = run.read(path).results[0].measures
    assert found["mpp_windows2"].value > 0.95
    for name, truth in (("one2", 1 / 4), ("one_windows2", 3 / 4)):
        assert found[name].low <= truth <= found[name].high
        assert found[name].value == pytest.approx(truth, abs=0.05)


def test_a_model_that_does_not_look_has_no_steady_index_but_shares(tmp_path):
    path = write_run(tmp_path, {"toy_rci2": again_run(("text", "text", "unsolved"), guesses=False)})
    found = run.read(path).results[0].measures
    assert found["rci2_steady"].value is None
    assert found["rci2_steady"].reason == found["rci2"].reason
    assert found["rci2_steady"].reason.startswith("the answers do not depend on the image")
    assert (found["text2"].value, found["unsolved2"].value) == pytest.approx((2 / 3, 1 / 3))


def test_near_chance_there_is_no_steady_index():
    """FIP is at least 7/8, and the floor is set above it."""
    _, records, _ = again_run(MIX)
    found = numbers(records, chance=0.9)
    assert found.necessity[0].index.value is None
    assert found.necessity[0].index.reason == found.gate.reason
    assert found.gate.reason.startswith("near chance")
    assert found.grids[2].mark == ""


def test_where_the_docs_of_a_grid_are_near_chance_it_has_no_steady_index():
    """All docs pass the gate; of those that the grid can cut, hardly any is right."""
    needs = ("unsolved", *("whole",) * 3)
    _, records, _ = again_run(needs, n=400, out=range(1, 400, 2))
    records = [one for i, one in enumerate(records) if i % 4 != 2]  # of the even docs those that are unsolved
    found = numbers(records)
    assert found.gate.valid is True
    assert found.grids[2].index.value is None
    assert found.necessity[0].index.reason == found.grids[2].reason
    assert found.necessity[0].index.reason.startswith("of the 100 docs that grid 2 uses: ")


def test_a_scorer_that_does_not_compare_with_the_golds_leaves_no_steady_index():
    _, records, _ = again_run(MIX)
    for one in records:
        for baseline in one["baselines"]:
            baseline["scores"]["acc"] = 0.0
    found = numbers(records)
    assert found.necessity[0].index.value is None
    assert found.necessity[0].index.reason == found.grids[2].index.reason
    assert found.necessity[0].index.reason.startswith("the gold answers score 0")
    documented = numbers(records, chance=0.25, scale=1.0)
    assert documented.necessity[0].index.low < 0.6 < documented.necessity[0].index.high


def test_too_many_failed_calls_leave_no_steady_index(tmp_path):
    """A server that gives up on 20 of 240 full images."""
    spec, records, made = again_run(MIX)
    path = write_run(tmp_path, {"toy_rci2": (spec, failing(records, range(20)), made)})
    found = run.read(path).results[0].measures["rci2_steady"]
    assert found.value is None
    assert found.reason.startswith("20 of 240 calls for the full image failed")


def test_without_wrong_images_luck_cannot_be_told():
    _, records, _ = again_run(MIX, wrong=False)
    found = numbers(records)
    assert found.grids[2].index.value is not None
    (need,) = found.necessity
    assert (need.index.value, need.shares["text"].value) == (None, None)
    assert need.index.reason == "0 docs were asked again on their own and on wrong images; 30 or more are needed"


def test_the_interval_takes_the_clusters_of_the_docs_that_the_grid_uses():
    """Four docs an image; two of four docs of the first 30 images are too small: 180 docs of 60 images."""
    out = [i for i in range(120) if i % 4 < 2]
    _, records, _ = again_run(MIX, cluster=lambda i: i // 4, out=out)
    (need,) = numbers(records).necessity
    assert (need.docs, need.again) == (180, 180)
    assert (need.index.n, need.index.clusters) == (180, 60)


def test_a_finished_run_gives_the_same_numbers_again(tmp_path):
    path = write_run(tmp_path, {"toy_rci2": again_run(MIX)})
    found = run.read(path).results[0].measures
    [[task]] = commands.analyze([path.parent]).runs
    (need,) = task.analysis.necessity
    assert need.index.value == found["rci2_steady"].value
    assert (need.index.low, need.index.high) == (found["rci2_steady"].low, found["rci2_steady"].high)
    assert task.analysis.grids[2].mark != ""


def lost(records, share, which, flag):
    """Records in which some views lose their marks, in a share of the docs: they are cut, or in another form."""
    out = []
    for i, one in enumerate(records):
        views = [
            {**view, "scores": {"acc": 0.0}, "items": {"acc": 0.0}, flag: True}
            if place in which and i % 20 < 20 * share and not view.get("repeat")
            else view
            for place, view in enumerate(one["views"])
        ]
        out.append({**one, "views": views})
    return out


@pytest.mark.parametrize(
    ("share", "which", "flag", "told"),
    [
        (0.4, (0,), "unfinished", "96 of 240 and 0 of 960 answers are cut by the token limit"),
        (0.4, (1,), "denied", "0 of 240 and 96 of 960 answers name the gold without its marks"),
        (0.05, (0,), "unfinished", ""),
        (0.4, (0, 1, 2, 3, 4), "unfinished", ""),  # on both sides alike: the index is that of the others
    ],
)
def test_answers_that_are_lost_on_one_side_alone_leave_no_number(share, which, flag, told):
    """One cell knows all, so the index is 0; 2 of 5 answers lost on the full image make it -0.67, on the cell +0.40 less luck."""
    _, records, _ = again_run(("cell",), guesses=False)
    found = numbers(lost(records, share, which, flag))
    (need,), grid = found.necessity, found.grids[2]
    assert told in grid.reason
    assert (grid.index.value is None) == bool(told)
    assert [one.reason == grid.reason for one in (*need.shares.values(), need.index)] == [bool(told)] * 5 or not told


def test_a_quick_run_counts_lost_answers_of_the_docs_that_it_asks_whole(tmp_path):
    """A hundred docs are asked whole, of which two in five lose the full image: as in a run of these alone."""
    spec, records, made = again_run(("cell",), guesses=False)
    left = quick(lost(records, 0.4, (0,), "denied"), range(100), range(100, 150))
    write_run(tmp_path, {"toy_rci2": (spec, left, made)})
    (result,) = run.find([tmp_path])[0].results
    told = "(40 of 100 and 0 of 400 answers name the gold without its marks): taken as right these make the index +0.00 in place of -0.67"
    assert told in result.grid(2).reason


def test_windows_are_no_answers_either_where_the_form_differs():
    _, records, _ = again_run(("window",), kind="shift", guesses=False)
    found = numbers(lost(records, 0.4, (0,), "denied"))
    assert (found.lines[2].one.value is None) == bool(found.grids[2].reason)


def test_what_is_the_same_in_all_docs_is_told():
    """One gold, and one prompt, in all of 240 docs; of other docs nothing is told, and of nine neither."""
    _, records, _ = again_run(("cell",), guesses=False)
    same = [{**one, "question": "Which?", "target": "A", "answer": {**one["answer"], "gold": "A"}} for one in records]
    gold, prompt = numbers(same).same
    assert gold == "the gold is option A in 240 of 240 docs"
    assert prompt == "all docs have one prompt: a cell may hide the question itself"
    apart = [{**one, "question": f"Which of {i}?"} for i, one in enumerate(records)]
    for docs in (apart, same[:9]):
        assert numbers(docs).same == ()
