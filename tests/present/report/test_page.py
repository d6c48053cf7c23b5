"""The page of a report, read as text: what is in it, what is not, and what hostile strings become.

Its behaviour: ``browser/``.
"""

import base64
import dataclasses
import hashlib
import re
import subprocess
import sys
import time
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.ask.kinds import KINDS, OF_IMAGES
from lmms_patch.present.findings import Finding
from lmms_patch.present.page import ANSWER, environment, wording
from lmms_patch.present.report import across, figures, gallery, page, run_sheets, shapes
from lmms_patch.present.report.data import Part, Report
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import block
from tests.making import pages
from tests.making import reports as made
from tests.making.html import Read
from tests.making.pages import rows_of, squeezed
from tests.making.results import with_analysis
from tests.sizes import examples, size


@pytest.fixture(scope="module")
def html():
    return page.page(pages.report())


@pytest.fixture(scope="module")
def read(html):
    return Read(html)


# --- the policy -----------------------------------------------------------------------------------


def test_the_policy_allows_this_style_and_script_and_nothing_else(read):
    policy = next(
        attrs["content"] for tag, attrs in read.elements if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    for tag in ("style", "script"):
        (source,) = read.sources[tag]
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert rules[f"{tag}-src"] == f"'sha256-{digest}'"
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data:"
    assert "unsafe" not in policy


def test_nothing_in_it_runs_styles_itself_or_leads_elsewhere(html, read):
    for tag, attrs in read.elements:
        assert tag not in ("iframe", "object", "embed", "link", "base", "form", "foreignobject", "img")
        assert not any(key.startswith("on") or key in ("style", "srcdoc", "action", "src") for key in attrs), (
            tag,
            attrs,
        )
        for key in ("href", "xlink:href"):
            target = attrs.get(key) or ""
            assert (
                re.match(r"^(#|tables/|figures/|report\.json$|data:image/(jpeg|png);base64,)", target) or not target
            ), (tag, target)
    assert [tag for tag, _ in read.elements].count("script") == 1
    outside = re.findall(r"https?://[^\s\"'<]+", html)
    assert set(outside) <= {"http://www.w3.org/2000/svg"}


def test_escaping_is_never_switched_off():
    for file in Path(page.__file__).with_name("templates").glob("*.j2"):
        assert not re.search(r"\|\s*safe\b|autoescape|Markup", file.read_text(encoding="utf-8")), file.name
    assert environment("lmms_patch.present.report").autoescape is True


def test_ids_are_unique_and_links_inside_the_page_arrive(read):
    ids = read.ids()
    assert len(ids) == len(set(ids))
    targets = {attrs["href"][1:] for _, attrs in read.elements if attrs.get("href", "").startswith("#")}
    assert targets <= set(ids)
    for key in ("aria-labelledby", "aria-controls", "data-filters", "data-counts"):
        assert {attrs[key] for _, attrs in read.elements if key in attrs} <= set(ids)


# --- hostile strings ------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [pages.SCRIPT, pages.IMG, pages.TEMPLATE, pages.EMOJI])
def test_what_a_run_says_stays_text(read, text):
    assert text in read.text


def test_control_and_direction_characters_are_shown_not_obeyed(html, read):
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\u200e\u200f\ud800-\udfff]", html)
    assert "nul� bell� escape�[31m lone � end" in read.text
    assert "abc�gnp.exe��" in read.text
    html.encode("utf-8")


def test_a_long_answer_is_cut_and_its_length_told(html, read):
    assert "(100,000 characters)" in read.text
    assert max(map(len, re.findall(r"x{50,}", html))) == ANSWER


def test_a_data_uri_that_is_no_picture_is_not_shown(html):
    assert "data:text/html" not in html
    assert html.count("data:image/jpeg;base64,") == 2


@examples(20)
@given(st.text(min_size=1, max_size=30))
def test_any_model_name_stays_in_its_place(name):
    plain, found = (
        Read(
            page.page(
                pages.report(
                    entries=(pages.index_entry("e-1", one, one, 0.8, {2: 0.1}, **more),),
                    examples=(),
                    figures=(),
                    sheets={},
                )
            )
        )
        for one, more in (
            ("m", {"categories": {"c": pages.part(0.8, {2: 0.1})}}),
            (name, {"categories": {name: pages.part(0.8, {2: 0.1})}, "path": "o"}),
        )
    )
    assert [tag for tag, _ in found.elements] == [tag for tag, _ in plain.elements]
    assert block(name) in found.text


# --- findings -------------------------------------------------------------------------------------


def told(text, *names, models=("m",)):
    """The pieces of a sentence about results of these benchmarks.

    Links as ``[name|id]``, what is in brackets in braces.
    """
    entries = tuple(
        pages.index_entry(f"e-{i}", one, name, 0.8, {2: 0.1})
        for i, (name, one) in enumerate((n, m) for n in names for m in models)
    )
    finding = Finding("cell", text, tuple(entry.label for entry in entries))
    (made,) = shapes.sentences(pages.report(entries=entries, findings=(finding,)))
    pieces = [f"[{p.text}|{p.entry}]" if p.entry else f"{{{p.text}}}" if p.aside else p.text for p in made.pieces]
    return "".join(pieces), [key for _, key in made.others], made.more


def test_a_sentence_links_the_first_mention_of_each_result():
    assert told("One cell is enough for b (RCI -0.20 [-0.3, -0.1]) and a; b too.", "a", "b") == (
        "One cell is enough for [b|e-1] {(RCI −0.20 [−0.3, −0.1])} and [a|e-0]; b too.",
        [],
        0,
    )


def test_a_name_inside_a_longer_name_is_no_mention():
    assert told("See mosaic_local, mosaic_local-2 and gqa.", "local", "mosaic_local-2", "gqa")[:2] == (
        "See mosaic_local, [mosaic_local-2|e-1] and [gqa|e-2].",
        ["e-0"],
    )


def test_a_benchmark_of_several_models_is_linked_once_for_all():
    text, others, _ = told(
        "The whole image is needed for a (all 2 models, RCI +0.50) and b (n).", "a", "b", models=("m", "n")
    )
    assert text == "The whole image is needed for [a|e-0] {(all 2 models, RCI +0.50)} and [b (n)|e-3]."
    assert others == ["e-2"]


def test_results_that_a_sentence_counts_are_linked_below_it_or_counted():
    _, others, more = told("One cell is enough for 11 results.", *(f"bench{i}" for i in range(11)))
    assert others == [f"e-{i}" for i in range(8)]
    assert more == 3


def test_a_finding_of_a_result_that_is_not_there_has_no_link(read):
    assert "not-in-this-report" not in read.text
    assert f"{pages.SCRIPT} One cell is enough for 3 results." in read.text


# --- need of the image ----------------------------------------------------------------------------


def needing(base, *maps, **more):
    """A result with necessity maps, the finest grid first."""
    return with_analysis(made.entry(base, **more), necessity=maps)


def test_a_bar_has_the_classes_of_the_finest_grid_one_after_the_other():
    one = needing("a", made.necessity(0.3, 0.5, 0.0, text=0.2), made.necessity(0.1, 0.7, 0.0, text=0.2, n=2))
    not_asked = needing("b", made.necessity(0.25, 0.75, 0.0, text=None))
    (bar,) = shapes.needs([one, not_asked, made.entry("none")])
    assert (bar.n, bar.docs) == (3, 200)
    assert [(part.name, part.at, part.width) for part in bar.parts] == [
        ("text", 0, 20),
        ("one cell", 20, 30),
        ("whole image", 50, 50),
    ]
    assert bar.parts[1].says == "one cell: 30 % [27, 33], about 60 of 200 docs"


def test_each_part_of_a_bar_is_told_as_text_once_whatever_its_width():
    """4 % has no room for a label, so it would be told by its colour alone; 12 % and 77 % stand in the bar."""
    html = page.page(Report("t", {}, (needing("a", made.necessity(0.04, 0.12, 0.77, text=0.07)),)))
    (line,) = re.findall(r'<span class="parts"[^>]*>(.*?)</span>\n</li>', html, re.DOTALL)
    assert (
        squeezed(re.sub(r"<[^>]+>", "", line.replace("</span><span class", "</span> <span class")))
        == "text 7 % one cell 4 % whole image unsolved"
    )


def test_what_a_drawing_tells_who_points_at_it_stands_below_it_as_text():
    """Each number once, in the order of the drawing; what hostile names bring stays text."""
    told = "GQA, m, 3×3: −0.380 [−0.430, −0.330]", "POPE, m: N/A, near chance", "<b> &amp;, m: 0.5"
    html = page.page(pages.report(figures=(pages.figure("ranking", "models", told=told),)))
    (shown,) = re.findall(r'<details class="more told">.*?<ul>(.*?)</ul>', html, re.DOTALL)
    assert [unescape(line) for line in re.findall(r"<li>(.*?)</li>", shown)] == [*told]
    assert "3 lines" in html


def test_needs_have_a_place_in_the_page_and_a_table_and_none_where_nothing_is_known():
    entries = [
        needing("a", made.necessity(0.3, 0.5, 0.0, text=0.2), model="m1"),
        needing("a", made.necessity(0.4, 0.4, 0.0, text=0.2), model="m2"),
    ]
    html = page.page(Report("t", {}, tuple(entries), across.sheets(entries, ())))
    assert html.count('class="needbar"') == 2
    assert "one cell: 40 % [37, 43], about 80 of 200 docs" in html
    assert rows_of(html, "s-needs-1")[0][:6] == ["m1", "a", "a_rci", "3", "200", "0.200 [0.170, 0.230]"]
    bare = [made.entry("a")]
    assert 'id="needs"' not in page.page(Report("t", {}, tuple(bare), across.sheets(bare, ())))


# --- what it shows --------------------------------------------------------------------------------


def test_the_table_of_results_says_each_number_with_its_interval(html):
    first = rows_of(html, "results-table")[0]
    assert first[:5] == [
        "mosaic_local mosaic-vlm, rci, 2×2",
        "mosaic-vlm",
        "rci",
        "2×2",
        "120",
    ]  # on a phone, in one cell
    assert first[5] == "0.825 [0.785, 0.865]"
    # 0.825 · (1 + 0.15) = 0.94875, ± 0.04
    assert first[6] == "0.949 [0.909, 0.989]"
    assert first[7] == "−0.124 [−0.174, −0.074]"
    assert first[8] == "−0.150 [−0.240, −0.060]"
    assert first[9] == "−0.180 [−0.330, −0.030] strong local to balanced"
    assert first[10:] == ["0.150 [0.120, 0.180]", "✓ valid", "0", "3"]


def test_a_blind_run_has_no_line_where_it_stands_beside_its_full_images():
    """Its score is a column of the table of what is answered without looking; alone it has a line."""
    full, of_other = (
        dataclasses.replace(pages.index_entry(f"e-{base}", "m", base, 0.8, {2: 0.1}), blind=beside)
        for base, beside in (("b", pages.estimate(0.3)), ("c", None))
    )
    blind, alone = (pages.blind_entry(f"e-{i}", "m", base, 0.3) for i, base in ((3, "b"), (4, "c")))
    assert [row.entry for row in shapes.rows([full, of_other, blind, alone])] == [full, of_other, alone]


def test_docs_that_a_grid_leaves_out_show_their_own_fip(html):
    second = rows_of(html, "results-table")[1]
    assert second[3] == "3×3"
    assert second[6].endswith("FIP of its docs 0.824")
    assert second[12] == "2"


def test_a_result_near_chance_has_no_index_and_says_why(html):
    near = next(row for row in rows_of(html, "results-table") if row[0].startswith("mosaic_text ") and row[2] == "rci")
    assert near[7] == near[8] == near[9] == "N/A near chance"
    assert near[11] == "✕ near chance"
    assert "FIP 0.210 &lt; 0.257" in html


def test_what_is_not_defined_is_never_a_number():
    nothing = pages.estimate(None, reason="no docs")
    assert wording.number(None) == wording.number(float("nan")) == wording.number(float("inf")) == "N/A"
    assert wording.raw(nothing) == wording.raw(None) == wording.raw(float("nan")) == ""
    assert wording.ends(nothing) == ""


@pytest.mark.parametrize(
    ("value", "signed", "text"),
    [
        (-0.0004, True, "0.000"),
        (0.0, True, "0.000"),
        (0.0004, False, "0.000"),
        (-0.0005001, True, "−0.001"),
        (0.5, True, "+0.500"),
        (1234.56, False, "1,234.6"),
        (1234, False, "1,234"),
        (-3, True, "−3"),
    ],
)
def test_numbers_as_people_read_them(value, signed, text):
    assert wording.number(value, signed) == text


@given(st.floats(-9.9, 9.9))
def test_a_shown_number_is_the_number_rounded(value):
    assert abs(float(wording.number(value, True).replace("−", "-")) - value) <= 0.00050001


def test_an_interval_has_the_decimals_of_its_value():
    big = Estimate(9.9, 1.0, 8.0, 12.0, 10, 10, 1000)
    assert wording.ends(big) == "[8.0, 12.0]"
    assert wording.number(9.9, largest=12.0) == "9.9"


def test_shares_that_are_not_there_are_said_to_be_not_there(html):
    assert shapes.shares(Part(10, {}, None), 3, KINDS["rci"]) is None
    assert "Grid 3×3: no cell scores" in html


@pytest.mark.parametrize(("answer", "says"), [("B", "B"), ("no", "no"), ("yes", ""), ("  a rather\nlong answer", "")])
def test_a_cell_with_room_for_two_letters_says_what_fits_whole(answer, says):
    """An image six times as tall as wide is 80 of the frame's 320 by 480 units: a third of that, less the outline, is 21.7; a letter takes 7.7."""
    (frame,) = gallery.frames(pages.example("e", "local", 1, size=(200, 1200), grids={3: pages.cells(3, {2}, answer)}))
    assert {box.says for box in frame.boxes} == {says}


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_frames_keep_images_whole_and_inside(width, height):
    (frame,) = gallery.frames(pages.example("e", "local", 1, size=(width, height), grids={2: pages.cells(2, {0})}))
    assert frame.w / frame.h == pytest.approx(width / height, rel=0.02 + 1 / frame.h + 1 / frame.w)
    for box in frame.boxes:
        assert box.x >= -0.6
        assert box.x + box.width <= frame.width + 0.6
        assert box.y >= -0.6
        assert box.y + box.height <= frame.height + 0.6


def test_the_summary_counts_what_was_run(read):
    found = shapes.facts(pages.report())
    assert (found.results, len(found.models), len(found.benchmarks), found.docs) == (14, 4, 4, 480)
    assert (found.readable, found.contradicted, found.refused, found.unknown) == (5, 0, {"near chance": 2}, 0)
    assert "14 results of 4 models on 4 benchmarks, 480 docs" in squeezed(read.text)


@pytest.mark.parametrize(
    "name",
    ["fip", "mpp", "rci", "pcri", "steady", "gap", "chance", "gate", "interval", "heatmap", "blind", "tst", "counts"],
)
def test_each_number_is_explained_with_when_not_to_read_it(html, name):
    found = re.search(rf'<div class="read" id="read-{name}">(.*?)</div>', html, re.DOTALL)[1]
    assert len(found) > 150
    assert "Not when:" in found


@pytest.mark.parametrize(("levels", "said"), [((0.95,), "95 %"), ((0.9,), "90 %"), ((0.975, 0.9), "90 % or 97.5 %")])
def test_texts_say_the_level_of_the_intervals_that_are_there(levels, said):
    """Not that of new runs: ``analyze --level`` and other tools write other ones."""
    entries = [_at(pages.index_entry(f"e-{level}", f"m{level}", "b", 0.8, {3: 0.2}), level) for level in levels]
    whole = page.page(Report("Levels", {}, tuple(entries)))
    assert f"One line for each result and grid; {said} intervals in brackets." in whole
    texts = [sheet.note for sheet in run_sheets.runs(entries) if sheet.name == "runs"]
    texts += [one.caption for one in (*figures.full_and_best(entries, OF_IMAGES), *figures.without_image(entries))]
    assert [re.findall(r"[\d.]+ %(?: or [\d.]+ %)?(?= interval)", text) for text in texts] == [[said]] * 3
    read = unescape(whole.partition('id="reading"')[2])
    assert re.findall(r"[\d.]+ % (?:or|interval)|, [\d.]+ %:", read) == []


def _at(entry, level):
    """A result with all its intervals at a level."""
    measures = {name: dataclasses.replace(one, level=level) for name, one in entry.whole.measures.items()}
    blind, tst = (one and dataclasses.replace(one, level=level) for one in (entry.blind, entry.tst))
    return dataclasses.replace(entry, whole=dataclasses.replace(entry.whole, measures=measures), blind=blind, tst=tst)


@pytest.mark.parametrize("models", [1, 3])
def test_an_index_stands_in_one_table_beside_the_details(models):
    """Each index has digits of its own; the page writes them in full where a table is sorted by them."""
    entries = [
        made.entry(
            f"b{b}", f"m{m}", indices=(0.1 + 0.0101 * b**2 + 0.00107 * m**2, -0.2 - 0.0103 * b**2 - 0.00109 * m**2)
        )
        for b in range(5)
        for m in range(models)
    ]
    html = page.page(Report("t", {}, tuple(entries), across.sheets(entries, across.points_of(entries))))
    outside = html[: html.index('id="details"')] + html[html.index('id="reading"') :]
    values = re.findall(r'data-value="(-?0\.\d+)"', outside)
    for entry in entries:
        for name in ("rci2", "rci3"):
            assert values.count(repr(entry.whole.measures[name].value)) == 1
    assert {"rci", "bands", "indices", "cells2"} <= {
        sheet.name for sheet in across.sheets(entries, across.points_of(entries))["benchmarks"]
    }
    for name in ("rci", "bands", "indices", "cells2", "categories"):
        assert f'id="t-{name}"' not in html
        assert (f'href="tables/{name}.csv"' in html) == (name != "categories")


def test_many_categories_get_tabs_only_as_far_as_they_help():
    many = {f"c{i}": pages.part(0.8, {2: 0.1}, docs=i + 1) for i in range(100)}
    shown, more = shapes.categories(pages.index_entry("e", "m", "b", 0.8, {2: 0.1}, categories=many))
    assert [name for name, _ in shown] == [f"c{i}" for i in range(60, 100)]
    assert more == 60


def test_the_same_report_gives_the_same_page(html):
    assert page.page(pages.report()) == html


def test_a_large_report_is_small_and_fast():
    report = pages.large(size(15, 40))
    start = time.process_time()
    html = page.page(report)
    assert time.process_time() - start < size(4, 10)  # 1.3 s on an idle core
    assert len(html.encode()) < 10_000_000


def test_the_page_draws_nothing_and_needs_no_harness():
    code = "import sys; from lmms_patch.present.report.page import page; from lmms_patch.present.report.data import Report; page(Report('t', {}, ())); print([m for m in ('altair', 'vl_convert', 'lmms_eval', 'torch', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
