"""Curves are drawn where there are any: every number with its interval, at its place, and nothing where an index may not be read."""

import re
from html import unescape

import pytest

from lmms_patch.ask.kinds import OF_IMAGES
from lmms_patch.present import draw
from lmms_patch.present.page import figures
from lmms_patch.present.page.rows import labelled
from lmms_patch.runs.run import find
from tests.making.reports import entry
from tests.making.runs import never_looks, views_run, world_run, write_run

GRIDS = (2, 3, 5)


def held(stream, gold):
    """Right on the full image in 9 of 10 docs.

    In a cell of 2 × 2 in 6, of 3 × 3 in 3, of 5 × 5 never: the sizes of what must be seen whole.
    """
    size = stream.random()
    shares = dict(zip(GRIDS, (0.6, 0.3, 0.0), strict=True))
    cells = [gold if size < shares[n] and place == 0 else "none" for n in GRIDS for place in range(n * n)]
    return [gold if size < 0.9 else "none", *cells], ["none"] * (1 + len(cells))


def easy_where_small():
    """Docs with an image that is too small for 1/8 are right in every view.

    The others in half of the docs, whatever the detail.
    """
    spec, records, extra = views_run("lowres", [1.0] * 4, n=80, grids=(2, 4, 8), base="small", short=range(0, 80, 2))
    for record in records:
        score = {"acc": float(record["doc_id"] % 4 != 3)}
        for view in record["views"]:
            view |= {"scores": score, "items": score}
    return spec, records, extra


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("curves")
    for model, known in (("a", [0.9, 0.8, 0.5, 0.3]), ("b", [0.7, 0.6, 0.2, 0.1])):
        tasks = {
            "sheet_lowres": views_run("lowres", known, n=60, grids=(2, 4, 8), base="sheet"),
            "small_lowres": easy_where_small(),
            "film_frames": views_run("frames", known, n=60, grids=(1, 2, 4, 8), base="film"),
            "sheet_grids": world_run(held, n=60, grid=GRIDS, base="sheet", answers=ord(model)),
            "dice_grids": world_run(
                lambda stream, gold: tuple(some * 5 for some in never_looks(stream, gold)),
                n=60,
                grid=GRIDS,
                base="dice",
            ),
            "two_rci": world_run(held, n=60, grid=(2, 3), base="two"),
        }
        write_run(folder / model, tasks, model_name=f"org/{model}")
    entries = labelled(one for run in find([folder]) for one in run.results)
    return {one.name: one for one in figures.curves(entries, OF_IMAGES, "")}


def tips(one):
    """What the marks of a figure tell, once each: in the drawing as in the text below it."""
    told = dict.fromkeys(unescape(tip) for tip in re.findall(r"<title>([^<]*)</title>", draw.svg(one.chart())))
    assert set(told) == set(one.tips)
    return one.tips


def test_every_score_of_less_detail_stands_in_its_figure(made):
    figure = made["curve-lowres"]
    told = tips(figure)
    of_b = [tip for tip in told if tip.startswith("sheet with org/b, ") and "full image of" not in tip]
    assert [tip.partition(": ")[2].split(" ")[0] for tip in of_b] == ["0.700", "0.600", "0.200", "0.100"]
    assert [tip.partition(": ")[0].rpartition(", ")[2] for tip in of_b] == ["full", "1/2", "1/4", "1/8"]
    assert all("[" in tip for tip in told if "full image of" not in tip)
    assert "Lines: intervals" in figure.caption


def test_less_detail_stands_beside_the_full_image_of_the_same_docs(made):
    """Planted: what a doc answers does not depend on detail, but the 40 docs whose image is too small for 1/8 are all right, of the others 20 of 40.

    So FIP is 0.75, and at 1/8 both the score and the full image of its docs are 0.5.
    """
    figure = made["curve-lowres"]
    told = tips(figure)
    values = {
        tip.partition("org/a, ")[2].partition(": ")[0]: float(tip.partition(": ")[2].split(" ")[0])
        for tip in told
        if "small with org/a, " in tip
    }
    full = "full image of the same docs"
    assert values == {
        "full": 0.75,
        "1/2": 0.75,
        "1/4": 0.75,
        "1/8": 0.5,
        f"{full}, 1/2": 0.75,
        f"{full}, 1/4": 0.75,
        f"{full}, 1/8": 0.5,
    }
    assert "beside it the full image of the same docs" in figure.caption


def test_frames_have_a_curve_without_a_full_clip(made):
    figure = made["curve-frames"]
    told = tips(figure)
    assert [tip.partition(": ")[0].rpartition(", ")[2] for tip in told if "org/a" in tip] == ["1", "2", "4", "8"]
    assert "image" not in figure.caption
    assert "Docs whose clip has fewer frames are left out there" in figure.caption


def test_the_index_rises_as_cells_shrink_and_is_not_drawn_where_nobody_looks(made):
    """MPP over FIP is near 6/9, 3/9 and 0 by construction; in two grids there is no curve."""
    figure = made["curve-grids"]
    told = tips(figure)
    values = [
        float(tip.partition(": ")[2].split(" ")[0].replace("−", "-")) for tip in told if "sheet with org/a" in tip
    ]
    assert values == sorted(values)
    assert values == pytest.approx([1 / 3, 2 / 3, 1], abs=0.2)
    assert not any("dice with" in tip or "two with" in tip for tip in told)
    assert "Not drawn, no number may be read: dice." in figure.caption
    assert "the best of many cells also wins by luck, the more the finer the grid" in figure.caption


@pytest.mark.parametrize("all_again", [True, False])
def test_a_curve_is_of_the_steady_index_where_docs_were_asked_again_at_each_grid(all_again):
    again = entry("b", grids=GRIDS, indices=(0.1, 0.3, 0.6), steady=(0.2, 0.4, 0.7 if all_again else None))
    (one,) = figures.curves([again], OF_IMAGES, "")
    values = [tip.partition(": ")[2].split(" ")[0] for tip in tips(one)]
    assert values == (["+0.200", "+0.400", "+0.700"] if all_again else ["+0.100", "+0.300", "+0.600"])
    assert one.caption.startswith("Steady where docs were asked again at each grid; else of one pass")
