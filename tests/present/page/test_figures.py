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

from lmms_patch.ask.kinds import KINDS
from lmms_patch.errors import RecordError
from lmms_patch.present import draw, palette
from lmms_patch.present.page import figures, safe, tables
from lmms_patch.present.page.rows import Row
from lmms_patch.present.ranking import BY
from lmms_patch.stats.index import BANDS, band
from lmms_patch.stats.resample import Estimate
from tests.making.reports import NEAR, entry, estimate, region_entries, rows, tst_entry
from tests.sizes import size

HOSTILE = '<script>alert(1)</script> & "$x^2$ \\frac{1} id="p" url(#a) #010203 \x00\x1b\n]]>\ud800\u202eend'


def made(entries, some=None):
    """The figures of some results by name, not drawn yet."""
    shown = rows(entries) if some is None else some
    return {one.name: one for one in figures.drawings(entries, shown, {"models": tables.overall(shown, BY["score"])})}


def drawn(one):
    return draw.svg(one.chart())


def written(entries, folder):
    return tuple(figures.write(one, folder) for one in made(entries).values())


def row(benchmark, model, n, value, low=None, high=None, reason=""):
    index = Estimate(value, None, low, high, 20, 20, 0, reason=reason)
    return Row(benchmark, model, KINDS["rci"], n, {"index": index})


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


# --- composition and index ------------------------------------------------------------------------


def test_the_composition_opens_the_page_fills_its_bars_and_tells_shares_and_intervals():
    found = made([entry("a", grids=(3,), indices=(0.1,), needs=(0.25, 0.4, 0.15, 0.2))])
    one = found["composition"]
    assert (one.section, found["index3"].section) == ("headline", "results")
    marks = next(some for some in one.chart().to_dict()["datasets"].values() if "part" in some[0])
    assert [(mark["part"], round(mark["start"]), round(mark["end"])) for mark in marks] == [
        ("text", 0, 20),
        ("one cell", 20, 45),
        ("whole image", 45, 85),
        ("unsolved", 85, 100),
    ]
    assert "a with model, 3×3, whole image: 40 % [37, 43] of 200 docs" in titles(drawn(one))
    assert "composition" not in made([entry("a")])
    assert made([entry("a")])["index3"].section == "headline", "where docs were not asked again"


@pytest.mark.parametrize("many", [(1, 1), (5, 3), *size([], [(10, 3)])])
def test_the_index_to_go_by_of_every_result_is_drawn(many):
    stream = np.random.default_rng(7)
    entries = [
        entry(
            f"b{b}",
            f"m{m}",
            grids=(3,),
            indices=(float(stream.normal(0, 0.3)),),
            steady=(0.4,) if b % 2 else None,
            refused=NEAR if b == 4 else "",
        )
        for b, m in itertools.product(*map(range, many))
    ]
    one = made(entries)["index3"]
    told, shown = titles(drawn(one)), texts(drawn(one))
    for result in entries:
        who, measures = f"{result.result.base}, {result.model}, 3×3", result.result.measures
        if measures["rci3"].value is None:
            assert f"{who}: N/A, {NEAR}" in told
            continue
        name, best = ("steady RCI", measures["rci3_steady"]) if "rci3_steady" in measures else ("RCI", measures["rci3"])
        number = f"{signed(best.value)} [{signed(best.low)}, {signed(best.high)}]"
        assert any(text.startswith(f"{who}, {name}: {number}") for text in told)
        assert any(signed(best.value, 2) in text for text in shown)


def test_numbers_lie_at_their_places_on_the_axis_and_bands_are_the_papers():
    one = made([entry("a", grids=(3,), indices=(-0.2,)), entry("b", grids=(3,), indices=(0.25,))])["index3"]
    spec = one.chart().to_dict()
    (bands,) = [some for some in spec["datasets"].values() if "band" in some[0]]
    assert [(mark["band"], mark["to"]) for mark in bands[:-1]] == [(name, end) for end, name in BANDS]
    assert [mark["band"] for mark in bands] == list(palette.NAMES)
    low, high = bands[0]["from"], bands[-1]["to"]
    assert (low, high) == (-figures.LEAST, pytest.approx(figures.LEAST + 0.04))
    places = [
        float(x)
        for x in re.findall(r'<path transform="translate\(([\d.]+),[^>]*><title>[ab], model, 3×3, RCI', drawn(one))
    ]
    assert places == pytest.approx([draw.WIDE * (value - low) / (high - low) for value in (-0.2, 0.25)], abs=0.01)


def test_refused_results_stand_last_in_grey_with_their_reason():
    some = [entry("b", indices=(0.0, 0.4)), entry("c", refused=NEAR), entry("a", indices=(0.0, -0.2))]
    one = made(some)["index3"]
    svg = drawn(one)
    shown = texts(svg)
    assert [name for name in shown if name in ("a", "b", "c")] == ["a", "b", "c"]
    assert "N/A: near chance" in shown
    assert re.search(rf'<text[^>]*opacity="0.65"[^>]*><title>c, model, 3×3: N/A, {NEAR}</title>', svg)
    assert "N/A (1): refused by the gate" in one.caption


def test_the_caption_names_the_marks_that_are_there():
    both = made([entry("a", grids=(3,), indices=(0.0,), steady=(0.9,)), entry("b", grids=(3,), indices=(0.1,))])[
        "index3"
    ]
    assert "Filled: steady RCI" in both.caption
    assert "Hollow: RCI" in both.caption
    assert any(text.endswith("RCI contradicted") for text in texts(drawn(both)))
    plain = made([entry("a", grids=(3,), indices=(-0.2,))])["index3"]
    assert "Filled" not in plain.caption
    assert "RCI, 3×3" in texts(drawn(plain))


def test_an_index_far_out_lies_at_the_edge_with_its_number():
    svg = drawn(made([], [row("d", "model", 3, -2.31), row("e", "model", 3, 0.1, 0.0, 1.4)])["index3"])
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


def test_many_indices_are_a_table_in_colours_with_each_number_in_its_cell():
    stream = np.random.default_rng(0)
    some = [row(f"b{i}", f"m{j}", 2, float(stream.normal() / 3)) for i, j in itertools.product(range(6), range(8))]
    some.append(row("b0", "m8", 2, None, reason="no number"))
    found = made([], some)
    told = titles(drawn(found["index2"]))
    for one in some[:-1]:
        number = signed(one.numbers["index"].value)
        assert told.count(f"{one.benchmark}, {one.model}, 2×2, RCI: {number}") == 2  # the cell, and its number
    assert "b0, m8, 2×2: N/A, no number" in told
    marks = next(some for some in found["index2"].chart().to_dict()["datasets"].values() if "level" in some[0])
    values = {(one.benchmark, one.model): one.numbers["index"].value for one in some}
    for mark in marks:
        value = values[mark["row"], mark["x"]]
        assert figures.BANDS[mark["level"]] == palette.BAND_LIGHT[palette.NAMES.index(band(value))]
        assert mark["text"] == signed(value, 2)
    for name in {one.benchmark for one in some} | {one.model for one in some}:
        assert name in texts(drawn(found["index2"]))


def test_what_is_too_much_is_told():
    one = made([], [row(f"b{i:03}", "m", 3, i / 300) for i in range(125)])["index3"]
    assert "Not drawn: 5 of 125 indices; all are in the tables." in one.caption
    assert len(one.tips) == figures.ROWS


# --- cells ----------------------------------------------------------------------------------------


def test_row_1_column_3_is_the_top_right():
    made_of = entry(grids=(3,), indices=(-0.1,))
    grid = made_of.result.analysis.grids[3]
    score = np.array([0.05, 0.06, 0.40, 0.07, 0.08, 0.09, 0.10, 0.11, 0.04])
    shares = dataclasses.replace(
        grid.shares, score=score, p=0.001, p_cells=np.array([1.0] * 2 + [0.01] + [1.0] * 6), docs=77
    )
    made_of.result.analysis.grids[3] = dataclasses.replace(grid, shares=shares)
    one = made([made_of])["cells-e-toy-model"]
    assert one.entry == "e-toy-model"
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
    scores = [np.asarray(one.result.analysis.grids[3].shares.score) for one in entries]
    truth = 100 * np.mean(scores, axis=0)
    assert truth.argmax() == 5
    assert f"mean over 3 results, 3×3, row 2, column 3: {truth[5]:.1f} % (even: 11.1 %)" in told
    for one, score in zip(entries, scores, strict=True):
        assert any(
            text.startswith(f"{one.result.base} with model, 3×3, row 2, column 3: {100 * score[5]:.1f} %")
            for text in told
        )


def test_shares_of_a_handful_of_docs_and_of_refused_results_are_in_no_overview():
    """One right answer among 200 docs puts all of the score into one cell: an accident, not a place."""
    rare = entry("rare", grids=(2,), indices=(1 - 0.005 / 0.8,))
    found = made([entry("bad", refused=NEAR), rare, entry("good"), entry("more")])
    assert "near chance" in found["cells-e-bad-model"].title
    shown = texts(drawn(found["cells2-all"]))
    assert {"good", "more"} <= set(shown)
    assert not {"bad", "rare"} & set(shown)


def test_two_results_of_a_model_on_a_benchmark_have_rows_of_their_own():
    entries = [entry("a", task=f"a_{end}", label=f"e-{end}", blind=estimate(0.3), grids=(2, 3, 5), indices=(0.1, 0.2, 0.3)) for end in ("rci", "pcri")]  # fmt: skip
    found = made(entries)
    assert {"a_rci", "a_pcri"} <= set(texts(drawn(found["cells3-all"])))
    assert {"model, a_rci", "model, a_pcri"} <= set(texts(drawn(found["curve-grids"])))


# --- scores and models ----------------------------------------------------------------------------


def test_fip_is_across_and_mpp_is_up():
    found = made([entry("a", grids=(2,), indices=(0.5,), fip=0.8)])["fip-mpp"]
    (point, *_) = next(some for some in found.chart().to_dict()["datasets"].values() if "ylow" in some[0])
    assert (point["x"], point["y"]) == pytest.approx((0.8, 0.4))
    assert "a with model, 2×2: FIP 0.800 [0.760, 0.840], MPP 0.400 [0.360, 0.440]" in titles(drawn(found))


def test_metrics_of_other_scales_have_axes_of_their_own():
    found = made([entry("a"), entry("p", ceiling=100.0), entry("c", metric="CIDEr", ceiling=3.7)])
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
    entries = [entry(b, m, grids=(3,), indices=(i + j,), blind=estimate(0.31, 0.05)) for (b, i), (m, j) in pairs]
    found = made(entries)
    ranking = titles(drawn(found["overall-models"]))
    assert any(text.startswith("m, mean |index|, 3×3: 0.267 [") for text in ranking)  # (0.4 + 0.1 + 0.3) / 3
    assert any(text.startswith("n, mean |index|, 3×3: 0.273 [") for text in ranking)  # (0.38 + 0.12 + 0.32) / 3
    told = titles(drawn(found["without-image"]))
    assert "a with m, without the image (blind): 0.310 [0.260, 0.360]" in told
    assert "a with m, full image: 0.800 [0.760, 0.840]" in told
    assert "a with m, chance: 0.250 [0.220, 0.280]" in told
    assert "overall-models" not in made([entry("a")])


@pytest.mark.parametrize("models", [1, 12])
def test_regions_tell_their_numbers(models):
    entries = region_entries(models)
    found = made(entries)
    assert list(found) == ["magic"]
    told = titles(drawn(found["magic"]))
    for one in entries:
        focus, share = (one.result.measures[name].value for name in ("magiscore_f1_macro", "acc_short"))
        who = f"{one.model}, magic_magic: F1, macro {focus:.3f} ["
        assert any(text.startswith(who) and f"share of right answers {share:.3f} [" in text for text in told)


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
    stream = np.random.default_rng(7)
    names = [f"benchmark-with-a-name-{b}" * (1 + b % 3) for b in range(benchmarks)]
    entries = [
        entry(
            b,
            f"org/model-{m}",
            indices=(0.1, float(stream.normal(0, 0.4))),
            blind=estimate(0.3, 0.05),
            needs=(0.2, 0.3, 0.4, 0.1),
            seed=m,
        )
        for b, m in itertools.product(names, range(models))
    ]
    for name, one in made(entries).items():
        if one.entry and one.entry != entries[0].label:
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
        entry(
            b,
            m,
            seed=i,
            indices=(0.1 * i - 0.3, 0.02 * i**2 - 0.3),
            blind=estimate(0.3, 0.05),
            needs=(0.2, 0.3, 0.4, 0.1),
        )
        for i, (b, m) in pairs
    ]
    found = written([*results, tst_entry("a")], tmp_path)
    names = [one.name for one in found]
    assert len(set(names)) == len(names)
    assert names[0] == "composition"
    assert {"fip-mpp", "cells-e-a-m1", "index2", "index3", "cells3-all", "overall-models", "without-image"} <= set(
        names
    )
    ids = [identifier for one in found for identifier in check_svg(one.svg, one.name)]
    assert len(set(ids)) == len(ids)
    forms = ("svg", "pdf", "png", "tex")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"{name}.{form}" for name in names for form in forms
    )
    for one in found:
        assert one.caption
        assert one.section in ("headline", "results", "benchmarks", "models", "text", "details")
        assert one.told[0] in one.alt
        assert set(titles(one.svg)) <= set(one.told)
        assert "currentColor" not in one.svg
        assert "var(" not in one.svg
        assert (tmp_path / f"{one.name}.png").read_bytes().startswith(b"\x89PNG")
        assert (tmp_path / f"{one.name}.pdf").read_bytes().startswith(b"%PDF")


def test_colours_follow_the_page_and_the_files_have_no_ground():
    entries = [
        entry("a", needs=(0.2, 0.3, 0.4, 0.1)),
        entry("c", refused=NEAR),
        entry("b", "n", blind=estimate(0.3)),
        *region_entries(2),
    ]
    found = made(entries)
    page = safe.drawing(drawn(found["index3"]), "f0")
    for colour in (*palette.BAND_LIGHT, *palette.SERIES_LIGHT[:2]):
        assert colour in drawn(found["index3"])
        assert palette.in_page(colour) in page
    known = {palette.INK, "none", "transparent", *palette.BAND_LIGHT, *palette.SERIES_LIGHT, *palette.SHARES}
    known |= {pair[0] for pair in palette.NEEDS.values()} | {"#000000", "#ffffff"}  # what is written on a share
    for one in found.values():
        assert set(re.findall(r'(?:fill|stroke)="([^"]*)"', drawn(one))) <= known, one.name
        assert palette.INK in drawn(one)
        assert not re.search(r"<rect[^>]*fill=\"(white|#ffffff)\"", drawn(one))


def test_latex_places_the_file_with_caption_and_label(tmp_path):
    for one in written([entry("50% of a_b & more"), entry("b")], tmp_path):
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
    found = written(entries, tmp_path)
    assert found
    for one in found:
        check_svg(one.svg)
        for svg in (one.svg, safe.drawing(one.svg, "f0")):
            assert "<script" not in svg
            assert not re.search("[\x00\x1b\ud800\u202e]", svg)
        assert any("<script>alert(1)</script>" in text for text in titles(one.svg))
        assert "$x^2$" in "".join(one.told)


def test_long_names_are_cut_with_an_ellipsis_and_told_whole():
    name = "no.separator" * 12
    svg = drawn(made([entry(name), entry("b", "org/" + "model " * 12)])["index3"])
    assert not any(name in text for text in texts(svg))
    assert any(text.startswith("no.separator") and text.endswith("…") for text in texts(svg))
    assert any(name in text for text in titles(svg))
    assert float(ElementTree.fromstring(svg).get("width")) < 900


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [entry("a", grids=(3,), indices=(-0.2,))],
        [entry("a", refused=NEAR), entry("b", refused=NEAR)],
        [entry("a", half=None)],
        [tst_entry("a")],
        [entry("a", grids=(), indices=())],
        [entry("a", grids=(9,), indices=(1.0,))],
    ],
)
def test_little_to_draw(tmp_path, entries):
    found = written(entries, tmp_path)
    assert bool(found) == bool(entries and (entries[0].result.grids or entries[0].kind.folds))
    for one in found:
        check_svg(one.svg)


def test_a_folder_that_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RecordError, match="cannot be written: Not a directory"):
        written([entry("a")], tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_draws_is_imported_only_to_draw():
    code = "import sys; import lmms_patch.present.page.report; print([m for m in ('altair', 'vl_convert') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
