"""The page in a real browser, from disk, with the network off: it is silent, alone, and fits the screen.

Skips or fails without one as ``tests.making.browsing`` says.
"""

import itertools

import pytest

from lmms_patch import commands
from lmms_patch.present.page import figures
from tests import sizes
from tests.making.boards import document, index_task, write
from tests.making.browsing import Opened
from tests.making.reports import undrawn
from tests.making.runs import again_run, never_looks, views_run, world_run, write_run

LIGHT, DARK = "rgb(255, 255, 255)", "rgb(18, 22, 26)"
UNFOLD = "document.querySelectorAll('details').forEach(one => { one.open = true; })"
FOLDED = "document.querySelectorAll('details:not([open])').length"
CUT = """() => [...document.querySelectorAll('body *')].filter(one => {
    const look = getComputedStyle(one);
    const hides = look.overflowX === 'hidden' || look.overflowX === 'clip' || look.textOverflow === 'ellipsis';
    return hides && one.scrollWidth > one.clientWidth + 1 && !one.closest('.sr, .skip, svg, .theme');
}).map(one => one.outerHTML.slice(0, 120))"""
"""Elements that hide a part of their text."""
SCROLLERS = """() => [...document.querySelectorAll('body *')].filter(one =>
    one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX === 'auto'
    && !(one.tabIndex === 0 && one.getAttribute('role') === 'region' && one.getAttribute('aria-label')) && !one.closest('nav')
).map(one => one.outerHTML.slice(0, 120))"""
"""Boxes that scroll and cannot be reached by keyboard, or have no name."""
PUT_IN = """async () => {
    window.ran = [];
    const put = document.createElement("div");
    put.innerHTML = "<img src='data:,' onerror='ran.push(`error`)'><button onclick='ran.push(`click`)'></button>";
    const script = document.createElement("script");
    script.textContent = "ran.push('script')";
    const failed = new Promise(done => put.firstChild.addEventListener("error", done));
    document.body.append(put, script);
    await failed;
    put.lastChild.click();
    return ran.sort();
}"""
"""Put handlers and a script into the page by hand, and return which ran."""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of two models on three benchmarks, one of which nobody looks at, with blind runs; in a folder as users have them."""
    folder = tmp_path_factory.mktemp("pages") / "my réport"
    for name, answers in (("a", 0), ("b", 1)):
        tasks = {
            "whole_rci3": again_run(["whole", "unsolved"], n=40, grid=3, base="whole", guesses=False),
            "cell_rci3": again_run(["cell"], n=40, grid=3, base="cell", guesses=False),
            "text_rci3": world_run(
                never_looks, n=40, grid=3, base="text", categories=("left", "right"), answers=answers
            ),
            "whole_blind": views_run("blind", [0.3], n=40, base="whole"),
        }
        write_run(folder / "runs" / name, tasks, model_name=f"org/model-{name}")
    return commands.report([folder / "runs"], folder / "page"), folder / "page" / "index.html"


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """A board of eleven models on one benchmark: one is near chance, the name of another is a script."""
    root = tmp_path_factory.mktemp("tafel ü")
    runs = [
        document(f"m{i}", [index_task(grids={3: (-0.1 * i, -0.1 * i - 0.05, 0.05 - 0.1 * i)}, fip=0.9 - 0.05 * i)])
        for i in range(9)
    ]
    runs += [
        document("near chance", [index_task(grids={3: None}, valid=False, fip=0.26)]),
        document("<script>alert(1)</script>"),
    ]
    write(root / "runs", *runs)
    commands.leaderboard([root / "runs"], root / "board")
    return root / "board" / "index.html"


@pytest.fixture
def open_page(browser):
    """Opens a page; at the end it must have been silent and alone."""
    contexts, opened = [], []

    def opener(file, width=1440, theme="light", **more):
        viewport = {"width": width, "height": 900}
        contexts.append(
            browser.new_context(viewport=viewport, color_scheme=theme, offline=True, reduced_motion="reduce", **more)
        )
        opened.append(Opened(contexts[-1], file))
        return opened[-1].page

    yield opener
    for context in contexts:
        context.close()
    for one in opened:
        assert one.said == []
        assert one.dialogs == []
        assert [url for url in one.requests if not url.startswith(("file:", "data:"))] == []


def names(page, table="t-results"):
    return page.locator(f"#{table} tbody tr:not([hidden]) > :nth-child(2)").all_inner_texts()


# --- what is read first ---------------------------------------------------------------------------


def test_findings_and_composition_are_on_the_first_screen(open_page, report):
    made, file = report
    page = open_page(file)
    assert page.locator("#findings ol > li").count() == len(made.findings)
    for selector in ("#findings ol > li", "#findings .drawing svg"):
        assert page.locator(selector).first.bounding_box()["y"] < 500
    assert page.locator("#figure-composition svg text", has_text="100 %").count() > 0
    phone = open_page(file, 390)
    assert phone.locator("#findings li").first.evaluate("one => one.getBoundingClientRect().top") < 500


def test_a_finding_leads_to_the_details_of_its_result(open_page, report):
    page = open_page(report[1])
    link = page.locator("#findings li a").first
    link.click()
    target = page.locator(link.get_attribute("href"))
    target.locator("> .body").wait_for()
    target.locator("> summary").click()
    link.click()
    page.locator(f"{link.get_attribute('href')}[open]").wait_for()


def test_a_mark_tells_its_numbers_to_pointer_and_keyboard(open_page, report):
    page = open_page(report[1])
    told = page.locator("#figure-composition svg title").all_text_contents()
    assert any("whole with org/model-a, 3×3, whole image: 50 % [" in text for text in told)
    page.locator("#figure-composition .told > summary").focus()
    page.keyboard.press("Enter")
    lines = page.locator("#figure-composition .told li:visible").all_inner_texts()
    assert set(told) <= set(lines)


# --- sorting and filtering ------------------------------------------------------------------------


def test_sorting_goes_up_then_down_with_what_is_not_defined_last(open_page, board):
    page = open_page(board)
    assert names(page)[:3] == ["m0", "m1", "<script>alert(1)</script>"]
    head = page.locator("#t-results thead th", has_text="PCRI")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert (names(page)[0], names(page)[-1]) == ("m8", "near chance")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert (names(page)[0], names(page)[-1]) == ("m0", "near chance")
    assert page.locator("#t-results [aria-sort]").count() == 1


def test_the_keyboard_sorts_and_searches(open_page, board):
    page = open_page(board)

    def tab_to(done):
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate(done):
                return
        pytest.fail("never reached by Tab")

    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    tab_to("document.activeElement.id === 'everywhere'")
    page.keyboard.type("M7")
    assert names(page) == ["m7"]
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    assert len(names(page)) == 11
    tab_to("document.activeElement.textContent === 'Model'")
    page.keyboard.press("Enter")
    assert page.locator("#t-results [aria-sort]").get_attribute("aria-sort") == "ascending"


def test_one_filter_reaches_rows_results_and_examples(open_page, report):
    page = open_page(report[1])
    page.evaluate(UNFOLD)
    cards = page.locator(".card:visible").count()
    page.locator("#everywhere").fill("whole model-a")
    assert set(page.locator("#t-results tbody tr:visible > :first-child").all_inner_texts()) == {"whole"}
    assert page.locator("details.entry:visible").count() == 2  # the full run and the blind one
    assert 0 < page.locator(".card:visible").count() < cards
    assert " of " in page.locator("#count").inner_text()
    page.locator("#everywhere").fill("no such thing")
    assert page.locator("#t-results tbody tr:visible").count() == 0
    page.locator("#everywhere").fill("")
    assert page.locator(".card:visible").count() == cards


def test_a_long_table_shows_its_first_rows_and_a_search_finds_the_others(open_page, tmp_path, monkeypatch):
    """Of 230 models 200 rows are shown; those that a search finds are, wherever they stand, and all on demand."""
    monkeypatch.setattr(figures, "write", undrawn)
    write(tmp_path / "runs", *(document(f"m{i:03d}", [index_task(fip=0.9 - 0.001 * i)]) for i in range(230)))
    commands.leaderboard([tmp_path / "runs"], tmp_path / "board")
    page = open_page(tmp_path / "board" / "index.html")
    assert len(names(page)) == 200
    page.get_by_label("Filter").fill("m229")
    assert names(page) == ["m229"]
    page.get_by_label("Filter").fill("")
    assert len(names(page)) == 200
    page.get_by_role("button", name="Show all rows").first.click()
    assert len(names(page)) == 230


# --- every screen ---------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1440, 390, *sizes.size([], [768])])
@pytest.mark.parametrize("which", ["report", "board"])
def test_nothing_is_cut_and_the_page_never_scrolls_sideways(open_page, report, board, which, width):
    page = open_page(report[1] if which == "report" else board, width)
    for opened in (False, True):
        if opened:
            page.evaluate(UNFOLD)
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert page.evaluate(CUT) == []
        assert page.evaluate(SCROLLERS) == []


def test_tables_scroll_by_themselves_on_a_phone_with_their_names_in_sight(open_page, report):
    page = open_page(report[1], 390)
    box = page.locator(".scroll:has(#t-results)")
    assert box.evaluate("one => one.scrollWidth > one.clientWidth")
    first = page.locator("#t-results tbody th").first
    before = first.bounding_box()["x"]
    box.evaluate("one => { one.scrollLeft = 300; }")
    assert first.bounding_box()["x"] == pytest.approx(before, abs=1)


@pytest.mark.parametrize(
    ("width", "theme"), [(390, "dark"), (1440, "light"), *sizes.size([], [(1440, "dark"), (390, "light")])]
)
@pytest.mark.parametrize("which", ["report", "board"])
def test_no_accessibility_fault(open_page, axe, report, board, which, width, theme):
    page = open_page(report[1] if which == "report" else board, width, theme)
    page.evaluate(UNFOLD)
    found = axe.run(page).response["violations"]
    told = [f"{one['impact']} {one['id']}: {one['nodes'][0]['html'][:200]} ({len(one['nodes'])})" for one in found]
    assert told == []


def test_headings_go_down_one_step_at_a_time(open_page, report):
    page = open_page(report[1])
    levels = page.locator("h1, h2, h3, h4, h5, h6").evaluate_all("all => all.map(one => Number(one.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))


# --- theme, script, paper -------------------------------------------------------------------------


@pytest.mark.parametrize(("system", "expected"), [("light", LIGHT), ("dark", DARK)])
def test_the_theme_follows_the_system_until_it_is_chosen(open_page, board, system, expected):
    page = open_page(board, theme=system)

    def ground():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    assert ground() == expected
    other = "Light" if system == "dark" else "Dark"
    page.get_by_label(other, exact=True).check(force=True)
    assert ground() == (LIGHT if system == "dark" else DARK)
    page.reload()
    assert page.get_by_label(other, exact=True).is_checked()
    assert ground() == (LIGHT if system == "dark" else DARK)
    page.get_by_label("Auto", exact=True).check(force=True)
    assert ground() == expected


def test_without_script_everything_is_there(open_page, board):
    page = open_page(board, java_script_enabled=False)
    assert page.locator("table.sortable button").count() == 0
    assert page.locator(".needs-js:visible").count() == 0
    assert len(names(page)) == 11


def test_on_paper_everything_is_open(open_page, report):
    page = open_page(report[1])
    folded = page.evaluate(FOLDED)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(FOLDED) == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(FOLDED) == folded > 5


@pytest.mark.parametrize("policy", [True, False])
def test_scripts_put_in_by_hand_run_only_without_the_policy(browser, board, policy):
    """Open the page without ``open_page``, which asserts silence: Chromium reports what a policy blocks."""
    context = browser.new_context(offline=True, bypass_csp=not policy)
    ran = Opened(context, board).page.evaluate(PUT_IN)
    assert ran == ([] if policy else ["click", "error", "script"])
    context.close()
