"""Figures: the right number in the right place, nothing hidden or cut, SVG that a page can hold, and names that mean no harm."""

import itertools
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.errors import RecordError
from lmms_patch.present.report import across, safe
from lmms_patch.present.report.figures import (
    canvas,
    figures,
    forests,
    heatmaps,
    indices,
    labels,
    lettering,
    regions,
    scores,
    sketches,
)
from lmms_patch.present.report.points import Point
from lmms_patch.stats.spatial import CellShares
from tests.making.drawings import marks_outside, outside, overlapping, painted
from tests.making.reports import MODELS, NAMES, entry, estimate, region_entries, situations, tst_entry
from tests.making.results import with_grid
from tests.sizes import each, examples, size

HOSTILE = '<script>alert(1)</script> & "$x^2$ \\frac{1} id="p" url(#a) #010203 \x00\x1b\n]]>'


@pytest.fixture(autouse=True)
def _styled():
    with canvas.style():
        yield


quickly = pytest.mark.usefixtures("without_pdfs")


def svg(sketch, width=canvas.TWO):
    return ElementTree.fromstring(canvas._svg(sketch.draw(width)))


def titles(sketch, width=canvas.TWO):
    """What a figure tells who points at it."""
    return [element.text for element in svg(sketch, width).iter() if element.tag.endswith("}title")]


def words(sketch, width=canvas.TWO):
    """The texts of a figure, with their places in inches from the lower left."""
    drawing = sketch.draw(width)
    found, (_, tall) = painted(drawing)
    return {
        s: ((points[0][0] + points[2][0]) / 2 / drawing.dpi, (tall - (points[0][1] + points[2][1]) / 2) / drawing.dpi)
        for s, points in found
    }


def signed(value, digits=3):
    """A number as people read it, made here: with its sign, a true minus, and no sign where all digits are 0."""
    text = f"{value:+.{digits}f}"
    return (text if float(text) else text[1:]).replace("-", "−")


# --- heatmaps -------------------------------------------------------------------------------------


def test_row_1_column_3_is_the_top_right():
    score = np.array([0.05, 0.06, 0.40, 0.07, 0.08, 0.09, 0.10, 0.11, 0.04])
    win, p_cells = np.array([0.02] * 2 + [0.86] + [0.02] * 5 + [0.0]), np.array([1.0] * 2 + [0.01] + [1.0] * 6)
    sketch = heatmaps.heatmap(
        with_grid(entry(grids=(3,), indices=(-0.1,)), 3, shares=CellShares(score, win, 1.0, 0.001, p_cells, 77))
    )
    at = words(sketch)
    assert at["40.0"][0] > at["6.0"][0] > at["5.0"][0]
    assert at["40.0"][1] == pytest.approx(at["5.0"][1], abs=0.01)
    assert at["10.0"][0] == pytest.approx(at["5.0"][0], abs=0.03)
    assert at["10.0"][1] < at["7.0"][1] < at["5.0"][1]
    assert at["86.0"][0] > at["40.0"][0]
    assert "77 docs; even: p = 0.001" in at
    told = titles(sketch)
    # The cell, its outline, and its number, and no other cell has an outline.
    assert told.count("toy with model, share of the score, 3×3, row 1, column 3: 40.0 % (even: 11.1 %), p = 0.010") == 3
    assert told.count("toy with model, share of the score, 3×3, row 3, column 1: 10.0 % (even: 11.1 %), p = 1.000") == 2
    assert told.count("toy with model, share of best cells, 3×3, row 1, column 3: 86.0 % (even: 11.1 %)") == 2
    assert "40.0 %, in row 1, column 3" in sketch.alt


def test_the_mean_of_cells_and_each_result_are_drawn():
    weights = [0.05] * 9
    weights[5] = 0.95  # row 2, column 3
    entries = [entry(b, grids=(3,), indices=(-0.1,), weights=weights, seed=i) for i, b in enumerate("abc")]
    sketch = next(heatmaps.boxes(entries))
    truth = 100 * np.mean([e.whole.shares(3).score for e in entries], axis=0)
    assert truth.argmax() == 5
    assert f"mean over 3 results, 3×3, row 2, column 3: {truth[5]:.1f} % (even: 11.1 %)" in titles(sketch)
    for one in entries:
        assert f"{one.base} with model, row 2, column 3: {100 * one.whole.shares(3).score[5]:.1f} %" in titles(sketch)
    (axes,) = sketch.draw(canvas.TWO).axes
    assert [tick.get_text() for tick in axes.get_xticklabels()][5] == "2,3"


def test_results_near_chance_are_marked_and_in_no_overview():
    bad, good, more = entry("bad", gate=0), entry("good"), entry("more")
    assert "near chance" in heatmaps.heatmap(bad).title
    shown = words(next(heatmaps.overview([bad, good, more])))
    assert "good" in shown
    assert "bad" not in shown


# --- the headline and the forests -----------------------------------------------------------------


def drawn_marks(sketch, width=canvas.TWO):
    """What each mark of a forest tells -> its place on the axis of the index."""
    out = {}
    for axes in sketch.draw(width).axes:
        for line in axes.lines:
            if (line.get_gid() or "").startswith("tip:") and len(line.get_xdata()) == 1:
                out[canvas.told(line.get_gid())] = float(line.get_xdata()[0])
    return out


@pytest.mark.parametrize(
    ("many", "width"), each([(1, 1), (20, 1), (5, 5), *size([], [(5, 1), (20, 5)])], [canvas.ONE, canvas.TWO])
)
def test_the_headline_has_each_number_of_the_measures_in_its_place(many, width):
    entries = situations(*many)
    sketch = next(forests.drawings(across.points_of(entries)))
    assert sketch.name == sketch.section == "headline"
    marks, told = drawn_marks(sketch, width), titles(sketch, width)
    for one in entries:
        who = f"{one.base}, {one.model}, 3×3"
        index, steady = one.whole.measures["rci3"], one.whole.measures.get("rci3_steady")
        if index.value is None:
            assert any(text.startswith(f"{who}: N/A, ") and index.reason in text for text in told)
            continue
        raw = [
            place
            for text, place in marks.items()
            if text.startswith(f"{who}, RCI: {signed(index.value)} [{signed(index.low)}, ")
        ]
        assert raw == [pytest.approx(index.value)]
        lead = [place for text, place in marks.items() if text.startswith(f"{who}, steady RCI: ")]
        assert lead == ([] if steady is None else [pytest.approx(steady.value)])
        assert steady is None or any(
            text.startswith(f"{who}, steady RCI: {signed(steady.value)} [{signed(steady.low)}, {signed(steady.high)}]")
            for text in told
        )


def test_the_headline_says_what_stands_beside_an_index():
    entries = situations(9, 1)
    sketch = next(forests.drawings(across.points_of(entries)))
    shown = words(sketch)
    for one, beside in ((1, "marginal"), (3, "RCI contradicted"), (6, "sampled")):
        steady = entries[one].whole.measures["rci3_steady"]
        assert f"{signed(steady.value, 2)} [{signed(steady.low, 2)}, {signed(steady.high, 2)}], {beside}" in shown
    assert {"N/A: near chance", "N/A: does not look", "steady RCI", "RCI", "RCI, not asked again"} <= set(shown)
    narrow = words(sketch, canvas.ONE)
    steady = entries[1].whole.measures["rci3_steady"]
    assert f"{signed(steady.value, 2)}  m" in narrow
    assert "In one column: m marginal" in sketch.caption
    plain = entry("a", grids=(3,), indices=(-0.2,))
    assert {"RCI"} <= set(words(next(forests.drawings(across.points_of([plain])))))


def test_rows_run_from_local_to_global_and_refused_ones_stand_last():
    entries = [entry("b", indices=(0.0, 0.4)), entry("c", gate=0), entry("a", indices=(0.0, -0.2))]
    shown = words(next(forests.drawings(across.points_of(entries))))
    assert shown["a"][1] > shown["b"][1] > shown["c"][1]


def test_the_headline_tells_what_it_leaves_out():
    models = [entry("a", f"m{i}", indices=(0.0, 0.1 * i)) for i in range(8)]
    sketch = next(forests.drawings(across.points_of(models)))
    assert "Not drawn: 2 of 8 models; all are in the tables." in sketch.caption
    assert "Not drawn: 2 of 8 models; all are in the tables." in words(sketch)
    rows = [entry(f"b{i:03}", indices=(0.0, i / 300)) for i in range(125)]
    sketch = next(forests.drawings(across.points_of(rows)))
    assert "Not drawn: 5 of 125 benchmarks, from the middle of the order" in sketch.caption
    shown = words(sketch)
    assert {"b000", "b124", "b059", "b065"} <= set(shown)
    assert not {"b060", "b064"} & set(shown)
    assert [one.name for one in forests.drawings(across.points_of(rows))][:2] == ["headline", "index2-1"]


def test_each_grid_is_drawn_once():
    entries = [entry("a"), entry("b")]
    assert [one.name for one in forests.drawings(across.points_of(entries))] == ["headline", "index2"]
    odd = [*entries, entry("c", grids=(2,), indices=(0.1,))]
    sketch = next(forests.drawings(across.points_of(odd)))
    assert "c (2×2)" in words(sketch)
    assert list(forests.drawings([])) == []


def test_an_index_far_out_is_written_at_the_edge():
    points = [
        Point("d", "model", 3, -2.31, None, None, None, "", True, ""),
        Point("e", "model", 3, 0.1, 0.0, 1.4, 20, "", True, ""),
    ]
    sketch = next(forests.drawings(points))
    assert "◂ −2.31" in words(sketch)
    assert "d, model, 3×3, RCI: −2.310" in titles(sketch)
    low, high = sketch.draw(canvas.TWO).axes[0].get_xlim()
    assert (low, high) == (-forests.LEAST, forests.LEAST)
    # The interval goes on beyond the axis: an arrow at its end.
    assert [line.get_marker() for line in sketch.draw(canvas.TWO).axes[0].lines if len(line.get_xdata()) == 1] == [
        ">",
        "o",
    ]


# --- maps and agreement ---------------------------------------------------------------------------


def test_many_models_become_a_map_with_each_number_in_its_cell():
    stream = np.random.default_rng(0)
    points = [
        Point(b, f"m{j}", 2, float(stream.normal() / 3), None, None, None, "", True, "", source="t.csv")
        for b, j in itertools.product("abc", range(8))
    ]
    points.append(Point("a", "m8", 2, None, None, None, None, "", False, "no number", source="t.csv"))
    assert [one.name for one in forests.drawings(points)] == ["headline"]
    sketch = next(indices.maps(points))
    told = titles(sketch)
    for p in points[:-1]:
        assert told.count(f"{p.benchmark}, {p.model}, 2×2: {signed(p.value)}") == 2  # the cell, and its number
    assert "a, m8, 2×2: N/A, no number" in told
    drawing, at = sketch.draw(canvas.TWO), words(sketch)
    for box in drawing.artists + drawing.patches:
        who, (left, bottom) = canvas.told(box.get_gid() or ""), box.get_xy()
        if who:
            benchmark, model, *_ = who.split(", ")
            assert bottom < at[benchmark][1] < bottom + box.get_height()
            # The names of columns are slanted, and begin above the middle of theirs.
            assert left < at[model][0] < left + box.get_width()


def test_the_correlation_matrix_is_drawn_as_it_is():
    stream = np.random.default_rng(0)
    points = [
        Point(f"b{i}", m, 3, float(stream.normal()), None, None, None, "", True, "") for i in range(6) for m in "xyz"
    ]
    told = titles(next(indices.matrices(points)))
    truth = np.corrcoef([[p.value for p in points if p.model == m] for m in "xyz"])
    for (a, x), (b, y) in itertools.permutations(enumerate("xyz"), 2):
        r = f"{truth[a, b]:.3f}".replace("-", "−")
        assert any(text.startswith(f"{x}, 3×3 and {y}, 3×3: r = {r} [") for text in told)
    assert next(indices.matrices(points[:9]), None) is None


# --- scores ---------------------------------------------------------------------------------------


def test_fip_is_across_and_mpp_is_up():
    one = entry("a", grids=(2,), indices=(0.5,), fip=0.8)
    sketch = next(scores.whole_and_best([one]))
    (axes,) = sketch.draw(canvas.TWO).axes
    (point,) = [line for line in axes.lines if line.get_marker() == "D"]
    assert (point.get_xdata()[0], point.get_ydata()[0]) == pytest.approx((0.8, 0.4))
    assert "a with model, 2×2: FIP 0.800 [0.760, 0.840], MPP 0.400 [0.360, 0.440]" in titles(sketch)
    one = with_grid(one, 2, fip=0.7)  # docs are left out: FIP over those that MPP uses
    assert scores.both(one, 2).full.value == 0.7
    assert scores.both(one, 2).full.low is None


def test_metrics_of_other_scales_have_axes_of_their_own():
    percent = entry("p")
    percent.whole.measures["ceiling"] = estimate(100.0)
    cider = entry("c", metric="CIDEr")
    cider.whole.measures["ceiling"] = estimate(3.7)
    found = scores.scales([entry("a"), percent, cider])
    assert {name: [e.base for e in some] for name, some, _ in found} == {
        "0 to 1": ["a"],
        "0 to 100": ["p"],
        "CIDEr of c": ["c"],
    }


def test_models_and_scores_tell_their_numbers():
    pairs = itertools.product((("a", -0.4), ("b", 0.1), ("c", 0.3)), (("m", 0.0), ("n", 0.02)))
    entries = [entry(b, m, grids=(3,), indices=(i + j,), blind=estimate(0.31, 0.05)) for (b, i), (m, j) in pairs]
    made = {one.name: one for one in sketches(entries, across.points_of(entries))}
    ranking = titles(made["ranking"])
    assert any(text.startswith("m, mean |PCRI| at 3×3: 0.267 [") for text in ranking)  # (0.4 + 0.1 + 0.3) / 3
    assert any(text.startswith("n, mean |PCRI| at 3×3: 0.273 [") for text in ranking)  # (0.38 + 0.12 + 0.32) / 3
    scores_ = titles(made["without-image"])
    assert "a with m, without the image (blind): 0.310 [0.260, 0.360]" in scores_
    assert "a with m, full image: 0.800 [0.760, 0.840]" in scores_
    assert "a with m, chance: 0.250 [0.220, 0.280]" in scores_
    assert "text only (TsT)" not in words(made["without-image"])


def test_names_that_find_no_room_are_told():
    many = [entry(f"bench {i}", grids=(3,), indices=(0.1,)) for i in range(40)]  # all in one place
    shown = words(next(scores.whole_and_best(many)))
    written = {name for name in shown if re.fullmatch(r"bench \d+", name)}
    assert 3 < len(written) < 40
    assert any(f"and {40 - len(written) - 6} more" in name for name in shown)


# --- names ----------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.floats(0.1, 2.9), st.floats(0.1, 2.9)), min_size=1, max_size=25), st.floats(0.2, 1.0))
@examples(40)
def test_names_beside_points_hide_nothing(points, wide):
    frame, size = (0.0, 0.0, 3.0, 3.0), (wide, 0.11)
    found = [one for one in labels.place(points, [size] * len(points), frame, points) if one is not None]
    for one in found:
        left, bottom, right, top = one.box
        assert (right - left, top - bottom) == pytest.approx(size)
        assert min(left, bottom) >= 0
        assert max(right, top) <= 3
        assert not any(left < x < right and bottom < y < top for x, y in points)
    for one, other in itertools.combinations(found, 2):
        assert min(one.box[2], other.box[2]) <= max(one.box[0], other.box[0]) or min(one.box[3], other.box[3]) <= max(
            one.box[1], other.box[1]
        )
        for leader, box in ((one.leader, other.box), (other.leader, one.box)):
            for t in np.linspace(0, 1, 50) if leader else ():
                x, y = (a + t * (b - a) for a, b in zip(*leader, strict=True))
                assert not (box[0] < x < box[2] and box[1] < y < box[3])


@pytest.mark.parametrize(
    ("name", "room", "lines"),
    each([*NAMES, *MODELS, "x" * 300, "no.separator" * 9, "أ" * 70, "名" * 70], [0.5, 1.0, 2.0], [1, 2]),
)
def test_long_names_are_wrapped_then_shortened(name, room, lines):
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.font_manager import FontProperties

    fitted = lettering.fit(name, room, 8.0, lines).split("\n")
    assert len(fitted) <= lines
    renderer = RendererAgg(100, 100, 720)
    for line in fitted:  # matplotlib's own measure, in tenths of a point
        assert renderer.get_text_width_height_descent(line, FontProperties(size=8.0), False)[0] / 720 <= room * 1.03
    joined = re.sub(r"\s", "", "".join(fitted))
    if "…" not in joined:
        assert joined == re.sub(r"\s", "", name)
    else:
        head, tail = joined.split("…")
        bare = re.sub(r"\s", "", name)
        assert bare.startswith(head)
        assert bare.endswith(tail)
        assert len(joined) >= 2


def test_names_that_fit_stay_whole_and_are_broken_at_separators():
    assert lettering.fit("GQA", 1.0) == "GQA"
    assert lettering.fit("hallusion_bench_image", 0.9).replace("\n", "|") in (
        "hallusion_|bench_image",
        "hallusion_bench_|image",
    )
    assert lettering.fit("a\u202eb\ud800", 1.0) == "a\ufffdb\ufffd"


def test_short_names_stay_different_and_the_caption_gives_the_whole():
    short = lettering.short(["Qwen/Qwen2.5-VL-7B-Instruct", "Qwen/Qwen2.5-VL-7B", "b/x", "c/x", "gpt-4o (a/b)"])
    assert list(short.values()) == ["Qwen2.5-VL-7B-Instruct", "Qwen2.5-VL-7B", "b/x", "c/x", "gpt-4o (a/b)"]
    assert lettering.explained(lettering.short(["a/b-chat", "c"])) == " Short names: b is a/b-chat."
    entries = [entry("a", "Qwen/Qwen2.5-VL-7B-Instruct"), entry("a", "c")]
    assert "Qwen2.5-VL-7B is Qwen/Qwen2.5-VL-7B-Instruct" in next(forests.drawings(across.points_of(entries))).caption


# --- the whole set --------------------------------------------------------------------------------


GRID = size([(1, 1), (9, 2)], [(1, 1), (5, 1), (20, 1), (1, 5), (5, 5), (20, 5)])


@pytest.mark.parametrize(("benchmarks", "models"), GRID)
def test_no_text_hides_another_and_nothing_leaves_the_figure(benchmarks, models):
    entries = situations(benchmarks, models)
    for sketch in sketches(entries, across.points_of(entries)):
        if re.search(r"-[2-9]$", sketch.name) or (
            sketch.name.startswith("cells-") and sketch.entries[0] != entries[0].label
        ):
            continue  # one stands for all
        for width in sketch.papers if canvas.TWO in sketch.papers else (canvas.ONE, canvas.TWO):
            drawing = sketch.draw(width)
            found, size = painted(drawing)
            assert found
            assert overlapping(found) == [], (sketch.name, width)
            assert outside(found, size) == [], (sketch.name, width)
            assert marks_outside(drawing) == [], (sketch.name, width)
            assert size[0] == pytest.approx(width * drawing.dpi, abs=1)
            assert drawing.get_figheight() <= canvas.PAGE or width == canvas.ONE  # of which there is no file then


@pytest.mark.parametrize(("models", "width"), each([1, 12, 5], [canvas.ONE, canvas.TWO]))
def test_regions_hide_nothing_and_tell_their_numbers(models, width):
    entries = region_entries(models)
    precision, focus = regions.drawings(entries)
    for sketch in (precision, focus):
        drawing = sketch.draw(width)
        found, size = painted(drawing)
        assert overlapping(found) == []
        assert outside(found, size) == []
        assert marks_outside(drawing) == []
    told = titles(precision, width)
    for one in entries:
        recall, share = (one.whole.measures[f"magiscore_{what}_micro"].value for what in ("recall", "precision"))
        assert any(
            text.startswith(f"{one.model}, magic_magic: recall {recall:.3f} [") and f"precision {share:.3f} [" in text
            for text in told
        )


def test_the_measure_of_overlaps_finds_some():
    drawing = canvas.new(2, 1)
    canvas.write_at(drawing, 0.5, 0.5, "one text")
    canvas.write_at(drawing, 0.6, 0.52, "another")
    canvas.write_at(drawing, 1.8, 0.2, "leaves the figure")
    found, size = painted(drawing)
    assert overlapping(found) == [("one text", "another")]
    assert outside(found, size) == ["leaves the figure"]


def check_svg(svg, name="f0"):
    svg = safe.drawing(svg, name)
    root = ElementTree.fromstring(svg)
    assert "viewBox" in root.attrib
    assert "height" not in root.attrib
    assert "currentColor" in svg
    tags = {element.tag.split("}")[1] for element in root.iter()}
    assert not tags & {"script", "style", "image", "foreignObject", "metadata", "a"}
    for element in root.iter():
        for name, value in element.attrib.items():
            assert not name.lower().startswith("on")
            assert canvas.INK not in value
            assert name != "href" or value.startswith("#")
    assert "http" not in re.sub(r'\sxmlns="[^"]*"', "", svg)
    return [element.attrib["id"] for element in root.iter() if "id" in element.attrib]


@quickly
def test_the_set_of_two_models_and_text_only(tmp_path, monkeypatch):
    monkeypatch.setattr("lmms_patch.present.report.figures.MOST_HEATMAPS", size(2, 30))
    pairs = enumerate(itertools.product("abcd", ("m1", "m2")))
    made = [
        entry(b, m, seed=i, indices=(0.1 * i - 0.3, 0.02 * i**2 - 0.3), blind=estimate(0.3, 0.05))
        for i, (b, m) in pairs
    ]
    entries = [*made, tst_entry("a")]
    points = across.points_of(entries)
    told = []
    found = figures(entries, points, tmp_path, told.append)
    assert told
    names = [one.name for one in found]
    assert len(set(names)) == len(names)
    assert names[0] == "headline"
    assert {
        "fip-mpp",
        "cells-e-a-m1",
        "index2",
        "correlation",
        "cells3-all",
        "spread3",
        "ranking",
        "by-type",
        "without-image",
    } <= set(names)
    ids = [
        one
        for figure in found
        for svg in (figure.svg, figure.narrow)
        if svg
        for one in check_svg(svg, f"{figure.name}{svg == figure.narrow}")
    ]
    assert [figure.name for figure in found if figure.narrow] == ["headline"]
    assert len(set(ids)) == len(ids)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(name for one in found for name in one.files)
    for figure in found:
        assert figure.caption
        assert figure.section in ("headline", "runs", "benchmarks", "models", "tst")
        file = (tmp_path / f"{figure.name}.svg").read_text()
        assert 'fill="#ffffff"' in file
        assert "currentColor" not in file
        assert "var(" not in file
        ElementTree.fromstring(file)
    assert {path.suffix for path in tmp_path.iterdir()} == {".svg", ".png", ".pdf", ".tex"}


@pytest.mark.usefixtures("pdfs")
def test_the_same_numbers_give_the_same_files(tmp_path):
    """A forest, points with names, and a heatmap."""
    entries = [entry(b, indices=(0.1, i)) for b, i in zip("ab", (-0.2, 0.3), strict=True)]
    known = {one.name: one for one in sketches(entries, across.points_of(entries))}
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for name in size(("headline",), ("headline", "fip-mpp", "cells-e-a-model")):
            canvas.write(known[name], tmp_path / folder)
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()} for folder in ("one", "two"))
    assert one == two
    assert {name.rpartition(".")[2] for name in one} == {"svg", "png", "pdf", "tex"}
    assert all(content.startswith(b"%PDF") for name, content in one.items() if name.endswith(".pdf"))


@pytest.mark.usefixtures("pdfs")
def test_files_for_papers_have_the_width_of_their_columns(tmp_path):
    entries = [entry("50% of a_b & more"), entry("b")]
    for figure in figures(entries, across.points_of(entries), tmp_path):
        snippet = (tmp_path / f"{figure.name}.tex").read_text()
        widths = {}
        for file in figure.files:
            if file.endswith(".pdf"):
                box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+)", (tmp_path / file).read_bytes())
                widths[file] = float(box[1]) / 72
                assert f"{{figures/{file}}}" in snippet
        assert widths == {file: pytest.approx(3.3 if "-1col" in file else 6.9) for file in widths}
        assert widths
        live = "\n".join(line for line in snippet.splitlines() if not line.startswith("%"))
        assert (
            live.count(r"\caption{")
            == live.count(r"\label{fig:")
            == live.count(r"\begin{figure")
            == live.count(r"\end{figure")
            == 1
        )
        plain = re.sub(r"\\.", "", live)
        assert plain.count("{") == plain.count("}")
        assert not re.search(r"(?<!\\)[%&_#$]", live)
    assert r"50\% of a\_b \& more" in (tmp_path / "cells-e-50--of-a-b---more-model.tex").read_text()


@quickly
def test_hostile_names_stay_text(tmp_path):
    entries = [entry(HOSTILE + b, HOSTILE, label=f"e-{b}", blind=estimate(0.2)) for b in "ab"]
    for figure in figures(entries, across.points_of(entries), tmp_path):
        check_svg(figure.svg)
        assert "<script" not in figure.svg
        assert "<script" not in safe.drawing(figure.svg, "f0")
        assert any(
            "<script>alert(1)</script>" in (element.text or "")
            for element in ElementTree.fromstring(figure.svg).iter()
            if "title" in element.tag
        )

    def draw(width):
        drawing = canvas.new(width, 2)
        canvas.tip(canvas.write_at(drawing, 0.1, 1, lettering.fit(HOSTILE, 9.0, 4, 1)), HOSTILE)
        return drawing

    shown = canvas.write(canvas.Sketch("x", HOSTILE, "", HOSTILE, "runs", draw), tmp_path)
    written = "".join(ElementTree.fromstring(shown.svg).itertext())
    assert written.count("alert(1)") == 2
    assert "$x^2$" in written
    assert 'id="p" url(#a)' in written
    assert canvas.INK in written


@quickly
@pytest.mark.parametrize(
    "entries",
    [
        [],
        [entry("a", grids=(3,), indices=(-0.2,))],
        [entry("a", gate=0), entry("b", gate=0)],
        [entry("a", half=None)],
        [tst_entry("a")],
        [entry("a", grids=(), indices=())],
        [entry("a", grids=(9,), indices=(1.0,))],
    ],
)
def test_little_to_draw(tmp_path, entries):
    for figure in figures(entries, across.points_of(entries), tmp_path):
        check_svg(figure.svg)


@quickly
def test_settings_of_the_process_come_back(tmp_path):
    import matplotlib

    before = dict(matplotlib.rcParams)
    figures([entry("a", grids=(2,), indices=(0.1,))], [], tmp_path)
    assert dict(matplotlib.rcParams) == before


@quickly
def test_a_folder_that_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RecordError, match="cannot be written: Not a directory"):
        figures([entry("a")], [], tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
