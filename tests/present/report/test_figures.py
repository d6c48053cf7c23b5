"""Figures: every number of the rows is in the drawing, texts hide nothing, SVG that a page can hold, and names that mean no harm."""

import dataclasses
import itertools
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from html import unescape

import numpy as np
import pytest

from lmms_patch.errors import RecordError
from lmms_patch.present import draw, palette
from lmms_patch.present.report import across, figures, safe
from lmms_patch.present.report.points import Point
from lmms_patch.stats.index import BANDS
from lmms_patch.stats.spatial import CellShares
from tests.making.reports import MODELS, entry, estimate, necessity, region_entries, situations, tst_entry
from tests.making.results import with_grid
from tests.sizes import size

HOSTILE = '<script>alert(1)</script> & "$x^2$ \\frac{1} id="p" url(#a) #010203 \x00\x1b\n]]>\ud800\u202eend'


def made(entries, points=None):
    """The figures of some results by name, not drawn yet."""
    return {one.name: one for one in figures.drawings(entries, across.points_of(entries) if points is None else points)}


def drawn(one, narrow=False):
    return draw.svg((one.narrow if narrow else one.chart)())


def titles(svg):
    """What a drawing tells who points at it."""
    return [unescape(text) for text in re.findall(r"<title>(.*?)</title>", svg)]


def texts(svg):
    """What a drawing has written on it, line by line."""
    out = []
    for one in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):
        lines = [part.text for part in one if part.tag.endswith("}tspan")]
        out += lines or [(one.text or "") + "".join(part.tail or "" for part in one)]
    return out


def signed(value, digits=3):
    """A number as people read it, made here: with its sign, a true minus, and no sign where all digits are 0."""
    text = f"{value:+.{digits}f}"
    return (text if float(text) else text[1:]).replace("-", "−")


# --- the index ------------------------------------------------------------------------------------


@pytest.mark.parametrize("many", [(1, 1), (5, 3), *size([], [(20, 1), (20, 12)])])
@pytest.mark.parametrize("narrow", [False, True])
def test_the_headline_has_the_index_to_go_by_of_every_result(many, narrow):
    entries = situations(*many)
    one = made(entries)["headline"]
    assert one.section == "headline"
    told, shown = titles(drawn(one, narrow and one.narrow is not None)), texts(drawn(one))
    for result in entries:
        who = f"{result.base}, {result.model}, 3×3"
        index, steady = (result.whole.measures.get(name) for name in ("rci3", "rci3_steady"))
        if index.value is None:
            assert any(text.startswith(f"{who}: N/A, {index.reason}") for text in told)
            continue
        name, best = ("RCI", index) if steady is None else ("steady RCI", steady)
        number = f"{signed(best.value)} [{signed(best.low)}, {signed(best.high)}]"
        assert any(text.startswith(f"{who}, {name}: {number}") for text in told)
        assert any(signed(best.value, 2) in text for text in shown)


def test_numbers_lie_at_their_places_on_the_axis_and_bands_are_the_papers():
    one = made([entry("a", grids=(3,), indices=(-0.2,)), entry("b", grids=(3,), indices=(0.25,))])["headline"]
    spec = one.chart().to_dict()
    (bands,) = [rows for rows in spec["datasets"].values() if "band" in rows[0]]
    assert [(row["band"], row["to"]) for row in bands[:-1]] == [(name, end) for end, name in BANDS]
    assert [row["band"] for row in bands] == list(palette.NAMES)
    low, high = bands[0]["from"], bands[-1]["to"]
    assert (low, high) == (-figures.LEAST, pytest.approx(figures.LEAST + 0.04))
    places = [
        float(x)
        for x in re.findall(r'<path transform="translate\(([\d.]+),[^>]*><title>[ab], model, 3×3, RCI', drawn(one))
    ]
    assert places == pytest.approx([draw.WIDE * (value - low) / (high - low) for value in (-0.2, 0.25)], abs=0.01)


def test_refused_results_stand_last_in_grey_with_their_reason():
    one = made([entry("b", indices=(0.0, 0.4)), entry("c", gate=0), entry("a", indices=(0.0, -0.2))])["headline"]
    svg = drawn(one)
    shown = texts(svg)
    assert [name for name in shown if name in ("a", "b", "c")] == ["a", "b", "c"]
    assert "N/A: near chance" in shown
    assert re.search(
        r'<text[^>]*opacity="0.65"[^>]*><title>c, model, 3×3: N/A, near chance: FIP 0.26, threshold 0.30</title>', svg
    )
    assert "N/A (1 result): refused by the gate" in one.caption
    assert "c, model, 3×3: N/A, near chance: FIP 0.26, threshold 0.30" in one.tips


def test_notes_stand_beside_an_index_and_the_caption_names_the_marks_that_are_there():
    entries = situations(9, 1)
    one = made(entries)["headline"]
    shown = texts(drawn(one))
    for at, beside in ((1, "marginal"), (3, "RCI contradicted"), (6, "sampled")):
        steady = entries[at].whole.measures["rci3_steady"]
        assert f"{signed(steady.value, 2)} [{signed(steady.low, 2)}, {signed(steady.high, 2)}], {beside}" in shown
    assert "Filled: steady RCI" in one.caption
    assert "Hollow: RCI" in one.caption
    plain = made([entry("a", grids=(3,), indices=(-0.2,))])["headline"]
    assert "Filled" not in plain.caption
    assert "RCI, 3×3" in texts(drawn(plain))


def test_each_grid_is_drawn_once_and_another_grid_is_named():
    entries = [entry("a"), entry("b")]
    assert [name for name in made(entries) if name.startswith(("headline", "index", "map"))] == ["headline", "index2"]
    odd = made([*entries, entry("c", grids=(2,), indices=(0.1,))])["headline"]
    assert any(text.endswith("2×2") for text in texts(drawn(odd)))
    assert made([]) == {}


def test_an_index_far_out_lies_at_the_edge_with_its_number():
    points = [
        Point("d", "model", 3, -2.31, None, None, None, "", True, ""),
        Point("e", "model", 3, 0.1, 0.0, 1.4, 20, "", True, ""),
    ]
    svg = drawn(made([], points)["headline"])
    assert "◂ −2.31" in texts(svg)
    assert "d, model, 3×3, RCI: −2.310" in titles(svg)
    ends = [
        float(x)
        for x in re.findall(
            r'transform="translate\((-?[\d.]+),[\d.]+\)" (?:x2="[\d.]+" y2="0" )?[^>]*><title>[de],', svg
        )
    ]
    assert ends
    assert min(ends) >= 0
    assert max(ends) <= draw.WIDE + 10


def test_of_many_indices_the_headline_is_a_table_in_colours_with_each_number_in_its_cell():
    stream = np.random.default_rng(0)
    points = [
        Point(f"b{i}", f"m{j}", 2, float(stream.normal() / 3), None, None, None, "", True, "", source="t.csv")
        for i, j in itertools.product(range(6), range(8))
    ]
    points.append(Point("b0", "m8", 2, None, None, None, None, "", False, "no number", source="t.csv"))
    found = made([], points)
    assert list(found)[:2] == ["headline", "index2"]
    told = titles(drawn(found["headline"]))
    for p in points[:-1]:
        assert told.count(f"{p.benchmark}, {p.model}, 2×2, RCI: {signed(p.value)}") == 2  # the cell, and its number
    assert "b0, m8, 2×2: N/A, no number" in told
    rows = next(rows for rows in found["headline"].chart().to_dict()["datasets"].values() if "level" in rows[0])
    values = {(p.benchmark, p.model): p.value for p in points}
    for row in rows:
        value = values[row["row"], row["x"]]
        assert figures.BANDS[row["level"]] == palette.band_colour(value)
        assert row["text"] == signed(value, 2)


def test_what_is_too_much_is_told():
    rows = [entry(f"b{i:03}", indices=(0.0, i / 300)) for i in range(125)]
    one = made(rows)["headline"]
    assert "Not drawn: 5 of 125 indices; all are in the tables." in one.caption
    assert len(one.tips) == figures.ROWS


def test_the_correlation_matrix_is_drawn_as_it_is():
    stream = np.random.default_rng(0)
    points = [
        Point(f"b{i}", m, 3, float(stream.normal()), None, None, None, "", True, "") for i in range(6) for m in "xyz"
    ]
    told = titles(drawn(made([], points)["correlation"]))
    truth = np.corrcoef([[p.value for p in points if p.model == m] for m in "xyz"])
    for (a, x), (b, y) in itertools.permutations(enumerate("xyz"), 2):
        r = f"{truth[a, b]:.3f}".replace("-", "−")
        assert any(text.startswith(f"{x}, 3×3 and {y}, 3×3: r = {r} [") for text in told)
    assert "correlation" not in made([], points[:9])


# --- cells and composition ------------------------------------------------------------------------


def test_row_1_column_3_is_the_top_right():
    score = np.array([0.05, 0.06, 0.40, 0.07, 0.08, 0.09, 0.10, 0.11, 0.04])
    p_cells = np.array([1.0] * 2 + [0.01] + [1.0] * 6)
    shares = CellShares(score, np.full(9, 1 / 9), 1.0, 0.001, p_cells, 77)
    one = made([with_grid(entry(grids=(3,), indices=(-0.1,)), 3, shares=shares)])["cells-e-toy-model"]
    svg = drawn(one)
    at = {
        number: (float(x), float(y))
        for x, y, number in re.findall(
            r'<text[^>]*transform="translate\(([\d.]+),([\d.]+)\)"[^>]*><title>[^<]*</title>([\d.]+)<', svg
        )
    }
    assert at["40.0"][0] > at["6.0"][0] > at["5.0"][0]
    assert at["40.0"][1] == at["5.0"][1] < at["7.0"][1] < at["10.0"][1]
    assert at["10.0"][0] == at["5.0"][0]
    assert {"3×3, 77 docs", "even: p = 0.001"} <= set(texts(svg))
    assert "toy with model, 3×3, row 1, column 3: 40.0 % (even: 11.1 %), p = 0.010" in titles(svg)
    outlined = re.findall(r'<path[^>]*stroke-width="2.5"[^>]*><title>([^<]*)<', svg)
    assert [text.partition(":")[0] for text in outlined] == ["toy with model, 3×3, row 1, column 3"]


def test_the_mean_of_cells_and_each_result_are_drawn():
    weights = [0.05] * 9
    weights[5] = 0.95  # row 2, column 3
    entries = [entry(b, grids=(3,), indices=(-0.1,), weights=weights, seed=i) for i, b in enumerate("abc")]
    told = titles(drawn(made(entries)["cells3-all"]))
    truth = 100 * np.mean([e.whole.shares(3).score for e in entries], axis=0)
    assert truth.argmax() == 5
    assert f"mean over 3 results, 3×3, row 2, column 3: {truth[5]:.1f} % (even: 11.1 %)" in told
    for one in entries:
        share = 100 * one.whole.shares(3).score[5]
        assert any(text.startswith(f"{one.base} with model, 3×3, row 2, column 3: {share:.1f} %") for text in told)


def test_two_results_of_a_model_on_a_benchmark_have_rows_of_their_own():
    entries = [entry("a", task=f"a_{end}", label=f"e-{end}", blind=estimate(0.3), grids=(2, 3, 5), indices=(0.1, 0.2, 0.3)) for end in ("rci", "pcri")]  # fmt: skip
    found = made(entries)
    assert {"a_rci", "a_pcri"} <= set(texts(drawn(found["cells3-all"])))
    assert {"model, a_rci", "model, a_pcri"} <= set(texts(drawn(found["curve-grids"])))


def test_results_near_chance_are_marked_and_in_no_overview():
    found = made([entry("bad", gate=0), entry("good"), entry("more")])
    assert "near chance" in found["cells-e-bad-model"].title
    shown = texts(drawn(found["cells2-all"]))
    assert "good" in shown
    assert "bad" not in shown


def test_the_composition_fills_its_bar_and_tells_shares_and_intervals():
    found = necessity(0.25, 0.4, 0.15, text=0.2)
    plain = entry("a")
    whole = dataclasses.replace(plain.whole, analysis=dataclasses.replace(plain.whole.analysis, necessity=(found,)))
    one = made([dataclasses.replace(plain, whole=whole)])["composition"]
    rows = next(rows for rows in one.chart().to_dict()["datasets"].values() if "part" in rows[0])
    assert [(row["part"], round(row["start"]), round(row["end"])) for row in rows] == [
        ("text", 0, 20),
        ("one cell", 20, 45),
        ("whole image", 45, 85),
        ("unsolved", 85, 100),
    ]
    assert "a with model, whole image: 40 % [37, 43] of 200 docs, 3×3" in titles(drawn(one))
    refused = dataclasses.replace(whole.analysis, necessity=(necessity(0, 0, 0, text=None),))
    assert "composition" not in made([dataclasses.replace(plain, whole=dataclasses.replace(whole, analysis=refused))])


# --- scores and models ----------------------------------------------------------------------------


def test_fip_is_across_and_mpp_is_up():
    one = entry("a", grids=(2,), indices=(0.5,), fip=0.8)
    found = made([one])["fip-mpp"]
    (point, *_) = next(rows for rows in found.chart().to_dict()["datasets"].values() if "ylow" in rows[0])
    assert (point["x"], point["y"]) == pytest.approx((0.8, 0.4))
    assert "a with model, 2×2: FIP 0.800 [0.760, 0.840], MPP 0.400 [0.360, 0.440]" in titles(drawn(found))
    less = with_grid(
        one, 2, fip=0.7
    )  # docs are left out: FIP over those that MPP uses, of which only the value is stored
    assert "a with model, 2×2: FIP 0.700, MPP 0.400 [0.360, 0.440]" in titles(drawn(made([less])["fip-mpp"]))


def test_metrics_of_other_scales_have_axes_of_their_own():
    percent = entry("p")
    percent.whole.measures["ceiling"] = estimate(100.0)
    cider = entry("c", metric="CIDEr")
    cider.whole.measures["ceiling"] = estimate(3.7)
    found = made([entry("a"), percent, cider])
    axes = {
        name: next(text for text in texts(drawn(found[name])) if "(FIP)" in text)
        for name in found
        if name.startswith("fip")
    }
    assert axes == {
        "fip-mpp-1": "whole image (FIP), 0 to 1",
        "fip-mpp-2": "whole image (FIP), 0 to 100",
        "fip-mpp-3": "whole image (FIP), CIDEr of c",
    }


def test_models_and_scores_tell_their_numbers():
    pairs = itertools.product((("a", -0.4), ("b", 0.1), ("c", 0.3)), (("m", 0.0), ("n", 0.02)))
    entries = [
        entry(b, m, grids=(3,), indices=(i + j,), blind=estimate(0.31, 0.05), type_="mcq") for (b, i), (m, j) in pairs
    ]
    found = made(entries)
    ranking = titles(drawn(found["ranking"]))
    assert any(text.startswith("m, mean |PCRI|, 3×3: 0.267 [") for text in ranking)  # (0.4 + 0.1 + 0.3) / 3
    assert any(text.startswith("n, mean |PCRI|, 3×3: 0.273 [") for text in ranking)  # (0.38 + 0.12 + 0.32) / 3
    by_type = titles(drawn(found["by-type"]))
    assert any(text.startswith("m, mean PCRI, 3×3, mcq: 0.000 [") for text in by_type)
    assert any(text.startswith("n, mean PCRI, 3×3, mcq: +0.020 [") for text in by_type)
    told = titles(drawn(found["without-image"]))
    assert "a with m, without the image (blind): 0.310 [0.260, 0.360]" in told
    assert "a with m, full image: 0.800 [0.760, 0.840]" in told
    assert "a with m, chance: 0.250 [0.220, 0.280]" in told
    assert "text only (TsT)" not in texts(drawn(found["without-image"]))
    assert not {"ranking", "by-type"} & made([entry("a")]).keys()


@pytest.mark.parametrize("models", [1, 12])
def test_regions_tell_their_numbers(models):
    entries = region_entries(models)
    found = made(entries)
    assert list(found) == ["magic-precision-recall", "magic-focus-answers"]
    told = titles(drawn(found["magic-precision-recall"]))
    for one in entries:
        recall, share = (one.whole.measures[f"magiscore_{what}_micro"].value for what in ("recall", "precision"))
        who = f"{one.model}, magic_magic: recall {recall:.3f} ["
        assert any(text.startswith(who) and f"precision {share:.3f} [" in text for text in told)


# --- the whole set --------------------------------------------------------------------------------


def boxes(svg):
    """The texts of a drawing, with their outlines: left, right and middle, as wide as Liberation Sans is at most on average."""
    out = []
    stack = [(ElementTree.fromstring(svg), 0.0, 0.0)]
    while stack:
        one, x, y = stack.pop()
        moved = re.match(r"translate\((-?[\d.]+),\s*(-?[\d.]+)\)", one.get("transform", ""))
        x, y = (x + float(moved[1]), y + float(moved[2])) if moved else (x, y)
        if one.tag.endswith("}text") and "rotate" not in one.get("transform", ""):
            words = (one.text or "") + "".join(part.tail or "" for part in one)
            wide = 0.5 * float(one.get("font-size", "12px").removesuffix("px")) * len(words)
            left = {"end": x - wide, "middle": x - wide / 2}.get(one.get("text-anchor"), x)
            if words:
                out.append((words, left, left + wide, y))
        stack += [(child, x, y) for child in one]
    return out


@pytest.mark.parametrize(("benchmarks", "models"), size([(1, 1), (5, 3)], [(1, 1), (5, 3), (20, 1), (1, 12), (20, 12)]))
def test_rows_have_room_and_no_number_hides_another(benchmarks, models):
    entries = situations(benchmarks, models)
    for name, one in made(entries).items():
        if name.startswith("cells-") and one.entries[0] != entries[0].label:
            continue  # one stands for all
        svg = drawn(one)
        root = ElementTree.fromstring(svg)
        wide, tall = (float(root.get(key)) for key in ("width", "height"))
        found = boxes(svg)
        assert found
        for words, left, right, y in found:
            assert 0 <= y <= tall, (name, words)
            assert left >= -0.2 * wide, (name, words)
            assert right <= 1.2 * wide, (name, words)
        numbers = [box for box in found if re.match(r"[(+−\d].*[\d)\]]$", box[0])]
        for (a, *first), (b, *second) in itertools.combinations(numbers, 2):
            apart = min(first[1], second[1]) <= max(first[0], second[0]) or abs(first[2] - second[2]) >= 9
            assert apart or name.startswith(("fip", "magic")), (name, a, b)


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
            assert draw.INK not in value
            assert name != "href" or value.startswith("#")
    assert "http" not in re.sub(r'\sxmlns="[^"]*"', "", svg)
    return [element.attrib["id"] for element in root.iter() if "id" in element.attrib]


def test_the_set_of_two_models_and_text_only(tmp_path):
    pairs = enumerate(itertools.product("abcd", ("m1", "m2")))
    results = [
        entry(b, m, seed=i, indices=(0.1 * i - 0.3, 0.02 * i**2 - 0.3), blind=estimate(0.3, 0.05))
        for i, (b, m) in pairs
    ]
    entries = [*results, tst_entry("a")]
    found = figures.figures(entries, across.points_of(entries), tmp_path)
    names = [one.name for one in found]
    assert len(set(names)) == len(names)
    assert names[0] == "headline"
    assert {"fip-mpp", "cells-e-a-m1", "index2", "map3", "cells3-all", "ranking", "without-image"} <= set(names)
    svgs = [(f"{one.name}{k}", svg) for one in found for k, svg in enumerate((one.svg, one.narrow)) if svg]
    ids = [identifier for name, svg in svgs for identifier in check_svg(svg, name)]
    assert [one.name for one in found if one.narrow] == ["headline"]
    assert len(set(ids)) == len(ids)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(name for one in found for name in one.files)
    for one in found:
        assert one.caption
        assert one.section in ("headline", "needs", "runs", "benchmarks", "models", "tst")
        assert one.told
        assert one.told[0] in one.alt
        assert set(titles(one.svg)) <= set(one.told)
        assert "currentColor" not in one.svg
        assert "var(" not in one.svg
        assert (tmp_path / f"{one.name}.png").read_bytes().startswith(b"\x89PNG")
        assert (tmp_path / f"{one.name}.pdf").read_bytes().startswith(b"%PDF")


def test_colours_follow_the_page_and_the_files_have_no_ground(tmp_path):
    plain = entry("b", "n", blind=estimate(0.3))
    found = necessity(0.25, 0.4, 0.15, text=0.2)
    whole = dataclasses.replace(plain.whole, analysis=dataclasses.replace(plain.whole.analysis, necessity=(found,)))
    entries = [entry("a"), entry("c", gate=0), dataclasses.replace(plain, whole=whole), *region_entries(2)]
    (one, *_) = figures.figures(entries, across.points_of(entries), tmp_path)
    page = safe.drawing(one.svg, "f0")
    for colour in (*palette.BAND_LIGHT, *palette.SERIES_LIGHT[:2]):
        assert colour in one.svg
        assert palette.in_page(colour) in page
    known = {palette.INK, "none", "transparent", *palette.BAND_LIGHT, *palette.SERIES_LIGHT, *palette.SHARES}
    known |= {pair[0] for pair in palette.NEEDS.values()} | {"#000000", "#ffffff"}  # what is written on a share
    for other in figures.drawings(entries, across.points_of(entries)):
        assert set(re.findall(r'(?:fill|stroke)="([^"]*)"', drawn(other))) <= known, other.name
    assert palette.INK in one.svg
    assert not re.search(r"<rect[^>]*fill=\"(white|#ffffff)\"", one.svg)


def test_the_same_numbers_give_the_same_files(tmp_path):
    entries = [entry(b, indices=(0.1, i)) for b, i in zip("ab", (-0.2, 0.3), strict=True)]
    known = made(entries)
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for name in ("headline", "fip-mpp", "cells-e-a-model"):
            figures.write(known[name], tmp_path / folder)
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()} for folder in ("one", "two"))
    for name, content in one.items():  # in a PDF the order of entries is not fixed
        assert (
            sorted(content.split(b"\n")) == sorted(two[name].split(b"\n"))
            if name.endswith(".pdf")
            else content == two[name]
        )
    assert {name.rpartition(".")[2] for name in one} == {"svg", "png", "pdf", "tex"}


def test_latex_places_the_file_with_caption_and_label(tmp_path):
    entries = [entry("50% of a_b & more"), entry("b")]
    for one in figures.figures(entries, across.points_of(entries), tmp_path):
        snippet = (tmp_path / f"{one.name}.tex").read_text()
        assert f"{{figures/{one.name}.pdf}}" in snippet
        live = "\n".join(line for line in snippet.splitlines() if not line.startswith("%"))
        for part in (r"\caption{", r"\label{fig:", r"\begin{figure", r"\end{figure"):
            assert live.count(part) == 1
        plain = re.sub(r"\\.", "", live)
        assert plain.count("{") == plain.count("}")
        assert not re.search(r"(?<!\\)[%&_#$]", live)
    assert r"50\% of a\_b \& more" in (tmp_path / "cells-e-50--of-a-b---more-model.tex").read_text()


def test_hostile_names_stay_text(tmp_path):
    entries = [entry(HOSTILE + b, f"{HOSTILE}{m}", label=f"e-{b}{m}", blind=estimate(0.2)) for b in "ab" for m in "xy"]
    found = figures.figures(entries, across.points_of(entries), tmp_path)
    assert found
    for one in found:
        check_svg(one.svg)
        for svg in (one.svg, safe.drawing(one.svg, "f0")):
            assert "<script" not in svg
            assert not re.search("[\x00\x1b\ud800\u202e]", svg)
        assert any("<script>alert(1)</script>" in text for text in titles(one.svg))
        assert "$x^2$" in "".join(one.told)
        assert 'id="p" url(#a)' in "".join(one.told)


def test_long_names_are_cut_with_an_ellipsis_and_told_whole():
    name = "no.separator" * 12
    svg = drawn(made([entry(name), entry("b", MODELS[4])])["headline"])
    assert not any(name in text for text in texts(svg))
    assert any(text.startswith("no.separator") and text.endswith("…") for text in texts(svg))
    assert any(name in text for text in titles(svg))
    assert float(ElementTree.fromstring(svg).get("width")) < 900


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
    found = figures.figures(entries, across.points_of(entries), tmp_path)
    assert bool(found) == bool(entries and (entries[0].grids or entries[0].kind.folds))
    for one in found:
        check_svg(one.svg)


def test_a_folder_that_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RecordError, match="cannot be written: Not a directory"):
        figures.figures([entry("a")], [], tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_draws_is_imported_only_to_draw():
    code = "import sys; import lmms_patch.present.report.build; print([m for m in ('altair', 'vl_convert') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_every_model_and_benchmark_of_a_table_in_colours_is_named():
    entries = situations(4, 12)
    shown = texts(drawn(made(entries)["headline"]))
    for name in {one.base for one in entries} | {one.model for one in entries}:
        assert any(text == name or (text.endswith("…") and name.startswith(text[:-1])) for text in shown), name
