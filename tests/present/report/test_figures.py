"""Figures: the right number in the right place, SVG that a page can hold, and names that mean no harm."""

import itertools
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest

from lmms_patch.errors import RecordError
from lmms_patch.present.report import across
from lmms_patch.present.report.figures import canvas, figures, heatmaps, indices, scores
from lmms_patch.present.report.points import Point
from tests.making.reports import entry, estimate, tst_entry

HOSTILE = '<script>alert(1)</script> & "$x^2$ \\frac{1} id="p" url(#a) #010203 \x00\x1b\n]]>'


def draw(made):
    """The axes of a figure, laid out."""
    drawing = made[0]
    drawing.draw_without_rendering()
    return drawing.axes


@pytest.fixture(autouse=True)
def _styled():
    with canvas.style():
        yield


def texts(axes):
    """What is written inside axes: text -> (x, y) in the axes' data coordinates."""
    return {text.get_text(): text.get_position() for text in axes.texts if text.get_text()}


def placed(axes, x, y):
    """Where data coordinates come to lie: 0..1 from the left, and from the bottom."""
    return axes.transAxes.inverted().transform(axes.transData.transform((x, y)))


# --- heatmaps -------------------------------------------------------------------------------------


def test_row_1_column_3_is_the_top_right():
    one = entry(grids=(3,), indices=(-0.1,))
    found = {
        "score": [0.05, 0.06, 0.40, 0.07, 0.08, 0.09, 0.10, 0.11, 0.04],
        "win": [0.02] * 2 + [0.86] + [0.02] * 5 + [0.0],
        "p_cells": [1.0] * 2 + [0.01] + [1.0] * 6,
    }
    one.whole.analysis["grids"]["3"]["shares"].update({**found, "p": 0.001, "docs": 77})
    left, right, *_ = draw(heatmaps.heatmap(one))
    for axes, text in ((left, "40.0*"), (right, "86.0")):
        across_, up = placed(axes, *texts(axes)[text])
        assert (across_, up) == pytest.approx((5 / 6, 5 / 6), abs=0.01)
    drawn = left.collections[0].get_array().reshape(3, 3)
    assert drawn[0, 2] == pytest.approx(40)
    assert placed(left, *texts(left)["10.0"]) == pytest.approx((1 / 6, 1 / 6), abs=0.01)  # row 3 column 1
    assert [tick.get_text() for tick in left.get_yticklabels()] == ["1", "2", "3"]
    assert left.yaxis_inverted()
    assert "77 docs; even spread: p = 0.001" in left.get_title()
    assert [text for text in texts(left) if "*" in text] == ["40.0*"]
    assert not any("*" in text for text in texts(right))
    assert "%" in left.figure.axes[-1].get_ylabel()


def test_the_mean_of_cells_is_drawn_in_its_place():
    weights = [0.05] * 9
    weights[5] = 0.95  # row 2, column 3
    entries = [entry(b, grids=(3,), indices=(-0.1,), weights=weights, seed=i) for i, b in enumerate("abc")]
    mean, _, spread = draw(next(heatmaps.boxes(entries)))[:3]
    mean = mean.collections[0].get_array().reshape(3, 3)
    assert np.unravel_index(mean.argmax(), mean.shape) == (1, 2)
    truth = np.mean([e.shares(3)["score"] for e in entries], axis=0)
    assert mean.ravel().tolist() == pytest.approx((100 * truth).tolist())
    axes = next(one for one in spread.figure.axes if one.get_xlabel().startswith("cell"))
    assert [tick.get_text() for tick in axes.get_xticklabels()][5] == "6\nr2 c3"


def test_results_near_chance_are_marked_and_in_no_overview():
    bad, good, more = entry("bad", gate=0), entry("good"), entry("more")
    assert "near chance" in heatmaps.heatmap(bad)[2]
    titles = [axes.get_title() for axes in next(heatmaps.overview([bad, good, more]))[0].axes]
    assert "good" in titles
    assert "bad" not in titles


def test_no_shares_no_heatmap():
    one = entry(grids=(2,), indices=(0.1,))
    one.whole.analysis["grids"]["2"]["shares"]["score"] = None
    assert heatmaps.heatmap(one) is None
    assert heatmaps.heatmap(tst_entry()) is None
    assert list(heatmaps.overview([one])) == []


# --- indices and scores ---------------------------------------------------------------------------


def test_the_forest_has_points_intervals_and_reasons():
    points = across.points_of(
        [entry("a", grids=(3,), indices=(-0.2,)), entry("b", grids=(3,), indices=(0.4,)), entry("c", grids=(3,), indices=(0.0,), gate=0)]
    )
    points.append(Point("d", "model", 3, -2.31, None, None, None, "", True, ""))
    made = next(indices.forests(points))
    (axes,) = draw(made)
    rows = [tick.get_text() for tick in axes.get_yticklabels()]
    assert rows == ["d", "a", "b", "c"]
    marks = {tuple(np.ravel(line.get_ydata())): np.ravel(line.get_xdata()) for line in axes.lines if line.get_marker() == "o"}
    assert {rows[round(y)]: float(x[0]) for (y, *_), x in marks.items()} == {"a": -0.2, "b": 0.4}
    ends = [np.ravel(line.get_xdata()).tolist() for line in axes.lines if len(np.ravel(line.get_xdata())) == 2]
    assert pytest.approx([-0.25, -0.15]) in ends
    assert texts(axes)["N/A"][1] == pytest.approx(3)
    assert texts(axes)["◂ -2.31"][1] == pytest.approx(0)
    low, high = axes.get_xlim()
    assert low == -high
    assert "c with model" in made[3]
    assert "95 % interval" in made[3]


def test_many_models_become_a_map_with_each_number_in_its_cell():
    stream = np.random.default_rng(0)
    points = [
        Point(b, f"m{j}", 2, float(stream.normal() / 3), None, None, None, "", True, "", source="t.csv")
        for b, j in itertools.product("abc", range(8))
    ]
    points.append(Point("a", "m8", 2, None, None, None, None, "", False, "no number", source="t.csv"))
    assert list(indices.forests(points)) == []
    axes = draw(next(indices.maps(points)))[0]
    rows, columns = ([tick.get_text() for tick in ticks] for ticks in (axes.get_yticklabels(), axes.get_xticklabels()))
    values = axes.collections[0].get_array().reshape(3, 9)
    for p in points[:-1]:
        assert values[rows.index(p.benchmark), columns.index(p.model)] == p.value
    assert texts(axes)["N/A"] == (8.5, rows.index("a") + 0.5)


def test_the_correlation_matrix_is_drawn_as_it_is():
    stream = np.random.default_rng(0)
    points = [Point(f"b{i}", m, 3, float(stream.normal()), None, None, None, "", True, "") for i in range(6) for m in "xyz"]
    axes = draw(next(indices.matrices(points)))[0]
    columns = [[p.value for p in points if p.model == m] for m in "xyz"]
    assert axes.collections[0].get_array().ravel().tolist() == pytest.approx(np.corrcoef(columns).ravel().tolist())
    assert next(indices.matrices(points[:9]), None) is None


def test_fip_is_across_and_mpp_is_up():
    one = entry("a", grids=(2,), indices=(0.5,), fip=0.8)
    (axes,) = draw(next(scores.whole_and_best([one])))
    (point,) = [line for line in axes.lines if line.get_marker() == "o"]
    assert (point.get_xdata()[0], point.get_ydata()[0]) == pytest.approx((0.8, 0.4))
    one.whole.analysis["grids"]["2"]["fip"] = 0.7  # docs are left out: FIP over those that MPP uses
    assert scores.both(one, 2).full.value == 0.7
    assert scores.both(one, 2).full.low is None


def test_metrics_of_other_scales_have_axes_of_their_own():
    percent = entry("p")
    percent.whole.measures["ceiling"] = estimate(100.0)
    cider = replace(entry("c"), metric="CIDEr")
    cider.whole.measures["ceiling"] = estimate(3.7)
    found = scores.scales([entry("a"), percent, cider])
    assert {name: [e.base for e in some] for name, some in found.items()} == {"0 to 1": ["a"], "0 to 100": ["p"], "CIDEr of c": ["c"]}


# --- the whole set --------------------------------------------------------------------------------


def check_svg(svg):
    root = ElementTree.fromstring(svg)
    assert "viewBox" in root.attrib
    assert "width" not in root.attrib
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"]
    tags = {element.tag.split("}")[1] for element in root.iter()}
    assert not tags & {"script", "style", "image", "foreignObject", "metadata", "a"}
    for element in root.iter():
        for name, value in element.attrib.items():
            assert not name.lower().startswith("on")
            assert name != "href" or value.startswith("#")
    assert "http" not in re.sub(r'\sxmlns="[^"]*"', "", svg)
    return [element.attrib["id"] for element in root.iter() if "id" in element.attrib]


def test_the_set_of_two_models_and_text_only(tmp_path):
    pairs = enumerate(itertools.product("abcd", ("m1", "m2")))
    made = [entry(b, m, seed=i, indices=(0.1 * i - 0.3, 0.02 * i**2 - 0.3), blind=estimate(0.3, 0.05)) for i, (b, m) in pairs]
    entries = [*made, tst_entry("a")]
    points = across.points_of(entries)
    told = []
    found = figures(entries, points, tmp_path, told.append)
    assert told
    names = [one.name for one in found]
    assert len(set(names)) == len(names)
    assert {"fip-mpp", "cells-e-a-m1", "index2", "index3", "correlation", "cells3-all", "spread3", "ranking", "by-type", "without-image"} <= set(
        names
    )
    ids = [one for figure in found for one in check_svg(figure.svg)]
    assert len(set(ids)) == len(ids)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{name}.{end}" for name in names for end in ("svg", "png"))
    for figure in found:
        assert figure.caption
        assert figure.section in ("runs", "benchmarks", "models", "tst")
        assert canvas.INK not in figure.svg
        assert "currentColor" in figure.svg
        file = (tmp_path / f"{figure.name}.svg").read_text()
        assert 'fill="#ffffff"' in file
        assert "currentColor" not in file
        ElementTree.fromstring(file)
    again = figures(entries[:1], points[:2], tmp_path)
    assert [one.svg for one in again] == [one.svg for one in figures(entries[:1], points[:2], tmp_path)]


def test_hostile_names_stay_text(tmp_path):
    entries = [entry(HOSTILE + b, HOSTILE, id=f"e-{b}", blind=estimate(0.2)) for b in "ab"]
    for figure in figures(entries, across.points_of(entries), tmp_path):
        check_svg(figure.svg)
        assert "<script" not in figure.svg
    drawing, _ = canvas.new(8, 2)
    shown = canvas.write(drawing, tmp_path, "x", HOSTILE, "", HOSTILE, "runs")
    words = "".join(ElementTree.fromstring(shown.svg).itertext())
    assert "alert(1)" in words
    assert "$x^2$" in words
    assert 'id="p" url(#a)' in words
    assert canvas.INK in words


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [entry("a", grids=(3,), indices=(-0.2,))],
        [entry("a", gate=0), entry("b", gate=0)],
        [entry("a", half=None)],
        [tst_entry("a")],
        [replace(entry("a"), grids=())],
        [entry("a", grids=(9,), indices=(1.0,))],
    ],
)
def test_little_to_draw(tmp_path, entries):
    for figure in figures(entries, across.points_of(entries), tmp_path):
        check_svg(figure.svg)


def test_settings_of_the_process_come_back(tmp_path):
    import matplotlib

    before = dict(matplotlib.rcParams)
    figures([entry("a", grids=(2,), indices=(0.1,))], [], tmp_path)
    assert dict(matplotlib.rcParams) == before


def test_a_folder_that_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RecordError, match="cannot be written: Not a directory"):
        figures([entry("a")], [], tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_long_names_are_cut_in_the_middle():
    assert canvas.name("x" * 20 + "y" * 20, 11) == "xxxxx…yyyyy"
    assert canvas.name("Qwen/Qwen2.5-VL-7B-Instruct", 24) != canvas.name("Qwen/Qwen2.5-VL-72B-Instruct", 24)
    assert canvas.name("a\u202eb\ud800") == "a\ufffdb\ufffd"


@pytest.mark.parametrize(("colour", "ink"), [((0.0, 0.13, 0.3), "#ffffff"), ((1.0, 0.91, 0.2), "#000000")])
def test_numbers_can_be_read_on_their_colour(colour, ink):
    assert canvas.in_cells(colour) == ink
