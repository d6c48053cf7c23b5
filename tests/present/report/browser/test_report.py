"""The report's page in a real browser: opened from disk, network off.

Every test also asserts silence (``conftest.open_page``).
"""

import itertools
import re

import pytest

from lmms_patch.present.report.page import page as render
from tests import sizes
from tests.making import pages
from tests.making.browsing import Opened

THEMES = ("light", "dark")
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(18, 22, 26)"


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def column(page, table, number):
    return page.locator(f"#{table} tbody tr:visible > :nth-child({number})").all_inner_texts()


def values(page, table, number):
    return page.locator(f"#{table} tbody tr > :nth-child({number})").evaluate_all(
        "cells => cells.map(cell => cell.dataset.value)"
    )


def head(page, table, name):
    return page.locator(f"#{table} thead th", has_text=re.compile(rf"^\s*{re.escape(name)}"))


def unfold(page, name):
    """Open a folded part of the page, as a reader does."""
    page.locator(f"#{name} > summary").click()


def open_all(page):
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")


# --- sorting --------------------------------------------------------------------------------------


def test_sorting_goes_up_then_down_with_what_is_not_defined_last(open_page):
    page = open_page()
    before = values(page, "results-table", 9)
    up = sorted((v for v in before if v), key=float)
    missing = before.count("")
    assert missing == 4
    button = head(page, "results-table", "RCI / PCRI").get_by_role("button")
    button.click()
    assert values(page, "results-table", 9) == up + [""] * missing
    assert head(page, "results-table", "RCI / PCRI").get_attribute("aria-sort") == "ascending"
    button.click()
    assert values(page, "results-table", 9) == up[::-1] + [""] * missing
    assert head(page, "results-table", "RCI / PCRI").get_attribute("aria-sort") == "descending"
    assert page.locator("#results-table [aria-sort]").count() == 1


def test_sorting_works_by_keyboard_and_sorts_words(open_page):
    page = open_page()
    button = head(page, "results-table", "Model").get_by_role("button")
    button.focus()
    page.keyboard.press("Enter")
    assert column(page, "results-table", 2) == sorted(column(page, "results-table", 2), key=str.lower)
    page.keyboard.press("Space")
    assert head(page, "results-table", "Model").get_attribute("aria-sort") == "descending"


def test_a_table_made_elsewhere_sorts_too(open_page):
    page = open_page()
    head(page, "s-benchmarks-1", "Docs").get_by_role("button").click()
    assert values(page, "s-benchmarks-1", 3) == [str(1000 - 10 * i) for i in reversed(range(12))]


# --- filters --------------------------------------------------------------------------------------


def test_the_filter_of_a_table_counts_what_is_left(open_page):
    page = open_page()
    box = page.get_by_label("Filter this table").first
    count = page.locator("output[data-counts=results-table]")
    assert count.inner_text() == "13 rows"
    box.fill("mosaic_local QWEN")
    assert set(column(page, "results-table", 1)) == {"mosaic_local"}
    assert set(column(page, "results-table", 2)) == {"Qwen/Qwen2.5-VL-7B-Instruct"}
    assert count.inner_text() == "2 of 13 rows"
    assert count.get_attribute("aria-live") == "polite"
    box.fill("no such thing")
    assert column(page, "results-table", 1) == []
    assert count.inner_text() == "0 of 13 rows"
    box.fill("")
    assert count.inner_text() == "13 rows"


def test_the_filter_of_results_reaches_rows_details_and_examples(open_page):
    page = open_page()
    unfold(page, "details")
    unfold(page, "examples")
    count = page.locator("#everywhere-count")
    assert count.inner_text() == "14 results"
    page.locator("#everywhere").fill("mosaic_count rci mosaic-vlm")
    assert count.inner_text() == "1 of 14 results"
    assert column(page, "results-table", 4) == ["2×2", "3×3"]
    assert page.locator("details.entry:visible").count() == 1
    assert page.locator(".card:visible h3").all_inner_texts() == ["global only mosaic_count, doc 5"]


def test_two_filters_go_together(open_page):
    page = open_page()
    page.locator("#everywhere").fill("mosaic_count")
    page.get_by_label("Filter this table").first.fill("3×3")
    assert column(page, "results-table", 3) == ["rci", "pcri"]
    page.locator("#everywhere").fill("")
    assert len(column(page, "results-table", 3)) == 7
    page.get_by_label("Filter this table").first.fill("")
    assert len(column(page, "results-table", 3)) == 13


# --- theme ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("system", "expected"), [("light", LIGHT), ("dark", DARK)])
def test_the_theme_follows_the_system_until_it_is_chosen(open_page, system, expected):
    page = open_page(theme=system)
    assert background(page) == expected
    other = "Light" if system == "dark" else "Dark"
    page.get_by_label(other, exact=True).check(force=True)
    assert background(page) == (LIGHT if system == "dark" else DARK)
    page.reload()
    assert page.get_by_label(other, exact=True).is_checked()
    assert background(page) == (LIGHT if system == "dark" else DARK)
    page.get_by_label("Auto", exact=True).check(force=True)
    assert background(page) == expected


def test_the_theme_is_chosen_by_keyboard(open_page):
    page = open_page()
    page.get_by_label("Auto", exact=True).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert background(page) == DARK


@pytest.mark.parametrize("theme", THEMES)
def test_paper_is_white_with_all_details_open(open_page, theme):
    page = open_page(theme=theme)
    page.get_by_label("Dark", exact=True).check(force=True)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert background(page) == LIGHT
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(26, 31, 36)"
    dark = page.evaluate(
        "[...document.querySelectorAll('main *, header *')].filter(e => e.checkVisibility()).map(e => getComputedStyle(e).backgroundColor)"
        ".filter(c => /^rgb\\((\\d+), (\\d+), (\\d+)\\)$/.test(c) && c.match(/\\d+/g).every(v => v < 100)).length"
    )
    assert dark == 0
    assert page.locator("details.entry > .body >> nth=0").is_visible()
    assert page.locator(".panel").evaluate_all("all => all.every(one => getComputedStyle(one).display === 'block')")
    assert not page.locator(".bar").is_visible()
    page.emulate_media(media="screen")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("details.entry[open]").count() == 0


# --- tabs -----------------------------------------------------------------------------------------


def test_tabs_by_category_by_mouse_and_keys(open_page):
    page = open_page()
    unfold(page, "details")
    page.locator("#e0-mosaic-local > summary").click()
    tabs = page.locator("#e0-mosaic-local .tabs")
    names = ["All together", "left of", "right of", pages.SCRIPT]
    assert tabs.get_by_role("tab").all_inner_texts() == names

    def chosen():
        (name,) = [one.inner_text() for one in tabs.get_by_role("tab", selected=True).all()]
        (panel,) = [one for one in tabs.get_by_role("tabpanel").all() if one.is_visible()]
        assert panel.get_attribute("aria-labelledby") == tabs.get_by_role("tab", selected=True).get_attribute("id")
        return name

    assert chosen() == "All together"
    tabs.get_by_role("tab", name="right of").click()
    assert chosen() == "right of"
    # FIP of "right of" is 0.825 - 0.05
    assert "0.775" in tabs.get_by_role("tabpanel").filter(visible=True).inner_text()
    for press, name in (
        ("ArrowRight", pages.SCRIPT),
        ("ArrowRight", "All together"),
        ("ArrowLeft", pages.SCRIPT),
        ("Home", "All together"),
        ("End", pages.SCRIPT),
    ):
        page.keyboard.press(press)
        assert chosen() == name
        assert page.evaluate("document.activeElement.getAttribute('aria-selected')") == "true"
    assert tabs.get_by_role("tab").evaluate_all("all => all.map(one => one.tabIndex)") == [-1, -1, -1, 0]
    assert "#e0-mosaic-local-c" not in page.url


def test_without_script_everything_is_there(open_page):
    page = open_page(java_script_enabled=False)
    unfold(page, "details")
    assert page.locator("table.sortable button").count() == 0
    assert page.locator(".needs-js:visible").count() == 0
    page.locator("#e0-mosaic-local > summary").click()
    assert page.locator("#e0-mosaic-local .panel:visible").count() == 4
    assert page.locator("#e0-mosaic-local .tablist a").first.get_attribute("href") == "#e0-mosaic-local-all"
    unfold(page, "examples")
    assert page.locator(".card:visible").count() == 5
    assert page.locator("#results-table tbody tr:visible").count() == 13


# --- details --------------------------------------------------------------------------------------


def test_a_link_to_a_result_opens_its_details(open_page):
    page = open_page()
    link = page.locator("#results-table tbody a", has_text="mosaic_count").first
    link.click()
    page.locator("#e0-mosaic-count[open]").wait_for()
    page.locator("#e0-mosaic-count > summary").click()
    page.locator("#e0-mosaic-count:not([open])").wait_for()
    link.click()
    page.locator("#e0-mosaic-count[open]").wait_for()


def test_open_all_and_close_all(open_page):
    page = open_page()
    unfold(page, "details")
    page.get_by_role("button", name="Open all").click()
    assert page.locator("details.entry[open]").count() == 14
    page.get_by_role("button", name="Close all").click()
    assert page.locator("details.entry[open]").count() == 0


def test_row_1_column_3_is_drawn_at_the_top_right(open_page):
    page = open_page()
    unfold(page, "details")
    page.locator("#e0-mosaic-local > summary").click()
    heat = page.locator("#e0-mosaic-local table.heat", has_text="3 by 3").first
    places = heat.locator("td[class^=h]").evaluate_all(
        "all => all.map(c => { const r = c.getBoundingClientRect(); return [r.x, r.y, c.textContent.includes('★')]; })"
    )
    (marked,) = [place for place in places if place[2]]
    assert marked[0] == max(x for x, _, _ in places)
    assert marked[1] == min(y for _, y, _ in places)


# --- examples -------------------------------------------------------------------------------------


def test_the_gallery_filters_by_rule_model_and_benchmark(open_page):
    page = open_page()
    unfold(page, "examples")
    count = page.locator("#gallery-count")
    shown = page.locator(".card:visible")
    assert (count.inner_text(), shown.count()) == ("5 examples", 5)
    page.locator("select[data-gallery=rule]").select_option(label="local")
    assert (count.inner_text(), shown.count()) == ("1 of 5 examples", 1)
    assert shown.locator(".chip").inner_text() == "local"
    page.locator("select[data-gallery=base]").select_option(label="mosaic_count")
    assert shown.count() == 0
    assert page.locator(".none-left").is_visible()
    page.locator("select[data-gallery=rule]").select_option(label="all")
    assert shown.locator("h3").all_inner_texts() == ["global only mosaic_count, doc 5"]
    page.locator("select[data-gallery=base]").select_option(label="all")
    page.locator("select[data-gallery=model]").select_option(label="mosaic-vlm")
    assert shown.count() == 3
    page.locator("#everywhere").fill("mosaic_local")
    assert count.inner_text() == "2 of 5 examples"


def test_cells_are_marked_by_outline_and_sign_where_they_are(open_page):
    page = open_page()
    unfold(page, "examples")
    card = page.locator(".card", has_text="mosaic_local, doc 3")
    drawing = card.locator("svg[role=img]").nth(1)
    assert "3 by 3: 1 of 9 cells right: row 1 column 3" in drawing.get_attribute("aria-label")
    frame, right = drawing.bounding_box(), drawing.locator(".box.right").bounding_box()
    assert right["x"] > frame["x"] + 0.6 * frame["width"]
    assert right["y"] < frame["y"] + 0.1 * frame["height"]
    dashes = {
        name: drawing.locator(f".box.{name}").first.evaluate("one => getComputedStyle(one).strokeDasharray")
        for name in ("right", "wrong", "unscored")
    }
    assert len(set(dashes.values())) == 3
    assert (drawing.locator(".badge.right").count(), drawing.locator(".badge.wrong").count()) == (1, 7)
    # the second grid shows the image of the first again
    assert drawing.locator("use").bounding_box()["width"] == pytest.approx(frame["width"], abs=2)


# --- hostile strings ------------------------------------------------------------------------------


def test_scripts_and_long_answers_stay_text(open_page):
    page = open_page()
    open_all(page)
    page.wait_for_timeout(100)
    assert page.locator("script").count() == 1
    assert page.locator("img, iframe, object, embed").count() == 0
    card = page.locator(".card", has_text="doc 1")
    assert card.locator("dd").all_inner_texts() == [pages.SCRIPT, pages.IMG, pages.SCRIPT]
    long = page.locator(".card", has_text="doc 2").locator("dd").nth(2).inner_text()
    assert long == "x" * 600 + "… (100,000 characters)"


PUT_IN = """async () => {
    window.ran = [];
    const refused = [];
    document.addEventListener("securitypolicyviolation", event => refused.push(event.effectiveDirective));
    const put = document.createElement("div");
    put.innerHTML = "<img src='data:,' onerror='ran.push(`error`)'><button onclick='ran.push(`click`)'></button>";
    const script = document.createElement("script");
    script.textContent = "ran.push('script')";
    const failed = new Promise(done => put.firstChild.addEventListener("error", done));
    document.body.append(put, script);
    await failed;
    put.lastChild.click();
    await new Promise(done => setTimeout(done, 200));  // refusals are told a little later
    return [ran.sort(), refused.sort()];
}"""
"""Put handlers and a script into the page by hand, and return which ran and which the page's policy refused."""


@pytest.mark.parametrize("policy", [True, False])
def test_scripts_put_in_by_hand_run_only_without_the_policy(browser, folder, policy):
    """Open the page without ``open_page``, which asserts silence: Chromium reports what a policy blocks, and how much differs by version."""
    context = browser.new_context(offline=True, bypass_csp=not policy)
    opened = Opened(context, folder / "index.html")
    ran, refused = opened.page.evaluate(PUT_IN)
    assert ran == ([] if policy else ["click", "error", "script"])
    assert refused == (["script-src-attr", "script-src-attr", "script-src-elem"] if policy else [])
    assert [line for line in opened.said if "violates the following Content Security Policy" not in line] == []
    context.close()


# --- for everyone ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "theme"), sizes.size([("narrow", "dark")], [("wide", "light"), ("narrow", "dark")]))
def test_no_serious_accessibility_fault(open_page, axe, size, theme):
    page = open_page(size, theme)
    # a result of each kind: axe takes a second for each
    page.evaluate(
        "kinds => document.querySelectorAll('details').forEach(one => { one.open = !one.matches('.entry') || kinds.includes(one.id); })",
        opened := sizes.size(
            ["e0-mosaic-local", "e-tst"], ["e0-mosaic-local", "e0-mosaic-text-blind", "e-tst", "e-hostile"]
        ),
    )
    assert page.locator("details.entry[open]").count() == len(opened)
    found = axe.run(page).response["violations"]
    told = [f"{one['impact']} {one['id']}: {one['nodes'][0]['html'][:200]} ({len(one['nodes'])})" for one in found]
    assert not [line for line in told if line.startswith(("serious", "critical", "moderate"))], "\n".join(told)


@pytest.mark.parametrize(("size", "theme"), sizes.size([("wide", "light")], [("wide", "dark"), ("narrow", "light")]))
def test_colours_have_contrast_in_the_other_size(open_page, axe, size, theme):
    page = open_page(size, theme)
    found = axe.run(page, options={"runOnly": ["color-contrast"], "resultTypes": ["violations"]}).response["violations"]
    assert [node["html"][:200] for one in found for node in one["nodes"]] == []


def test_the_first_tab_stop_skips_to_the_content(open_page):
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator(".skip").bounding_box()["width"] > 50
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"


def test_headings_go_down_one_step_at_a_time(open_page):
    page = open_page()
    levels = page.locator("h1, h2, h3, h4, h5, h6").evaluate_all("all => all.map(one => Number(one.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))


def test_a_large_report_opens_and_filters_fast(open_page, tmp_path):
    file = tmp_path / "index.html"
    file.write_text(render(pages.large(results := sizes.size(24, 40))), encoding="utf-8")
    page = open_page(file=file)
    spent = page.evaluate(
        "() => { const box = document.getElementById('everywhere'); box.value = 'bench 2'; const start = performance.now();"
        " box.dispatchEvent(new Event('input')); document.body.offsetHeight; return performance.now() - start; }"
    )
    # both words somewhere: the eight results of the bench, and those of the model of its number on the other benchmarks
    assert page.locator("#everywhere-count").inner_text() == f"{7 + results // 8} of {results} results"
    assert spent < 1000
