"""How much a reader has to scroll and open: reports of made runs in a real browser, one model on 7 benchmarks and five models on 12.

In ``make test`` one on 4 and two on 5.
"""

import pytest

from lmms_patch import commands
from lmms_patch.present.page import wording
from lmms_patch.present.report import shapes
from lmms_patch.present.report.figures import LANES
from tests import sizes
from tests.making.runs import suite

SCREEN = {"width": 1440, "height": 900}
LONGEST = sizes.size({(1, 4): 5_000, (2, 5): 8_000}, {(1, 7): 6_000, (5, 12): 12_000})
"""Pixels of the whole page at that screen, by models and benchmarks."""


@pytest.fixture(scope="module", params=LONGEST, ids=lambda size: f"{size[0]}x{size[1]}")
def made(request, tmp_path_factory):
    """The number of models and benchmarks, the report's page, and what it shows."""
    work = tmp_path_factory.mktemp("suite")
    report = commands.report([suite(work / "runs", *request.param, docs=sizes.size(24, 60))], work / "report")
    return request.param, work / "report" / "index.html", report


SMALL, LARGE = (
    pytest.mark.parametrize("made", [size], indirect=True, ids=[f"{size[0]}x{size[1]}"]) for size in LONGEST
)


def at(open_page, made, width=1440, **more):
    page = open_page(file=made[1], **more)
    page.set_viewport_size({**SCREEN, "width": width})
    return page


def bottom(page, selector):
    return page.locator(selector).evaluate("one => one.getBoundingClientRect().bottom")


def test_the_page_is_short_and_its_first_screen_has_the_findings_and_the_headline(open_page, made):
    size, _, report = made
    page = at(open_page, made)
    assert page.evaluate("document.documentElement.scrollHeight") <= LONGEST[size]
    assert 1 <= page.locator("#findings ol > li").count() <= 5
    assert page.locator("#findings ol > li").count() == len(report.findings)
    assert bottom(page, "#findings ol") < SCREEN["height"]
    if any(figure.section == "headline" for figure in report.figures):
        assert bottom(page, "#findings .drawing:not(.narrow) svg") < SCREEN["height"]


def test_the_findings_come_before_anything_else_on_a_phone(open_page, made):
    page = at(open_page, made, 390)
    assert page.locator("#findings li").first.evaluate("one => one.getBoundingClientRect().bottom") < 844


LETTERS = """svg => Math.min(...[...svg.querySelectorAll('text')].map(one =>
    parseFloat(getComputedStyle(one).fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width))"""
"""Height of the smallest letters of a drawing, in pixels of the screen."""


def test_a_phone_shows_the_whole_headline_in_letters_that_can_be_read(open_page, made):
    page = at(open_page, made, 390)
    (drawing,) = [one for one in page.locator("#findings .drawing svg").all() if one.is_visible()]
    box = drawing.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390 or made[0][0] * made[0][1] > LANES  # a table in colours, which scrolls
    assert drawing.evaluate(LETTERS) >= 10
    for figure in page.locator("figure.figure:not(#findings *)").all():
        figure.evaluate("one => one.closest('details')?.setAttribute('open', '')")
        assert figure.locator(".drawing svg").evaluate(LETTERS) >= 10
        assert figure.locator(".hint").is_visible()
    page.set_viewport_size({**SCREEN, "width": 1440})
    assert page.locator(".hint:visible").count() == 0
    assert page.locator("#findings .drawing svg:visible").count() == 1


@SMALL
def test_the_numbers_of_the_headline_are_reached_by_keyboard(open_page, made):
    page = at(open_page, made)
    page.locator("#findings .told > summary").focus()
    page.keyboard.press("Enter")
    lines = page.locator("#findings .told li:visible").all_inner_texts()
    measures = made[2].entries[0].whole.measures
    assert any(
        line.startswith(f"{made[2].entries[0].base}, ") and f"{measures['rci3'].value:+.3f}".replace("-", "−") in line
        for line in lines
    )
    assert len(lines) >= made[0][0] * made[0][1]


@SMALL
def test_a_phone_shows_benchmark_score_and_index_of_the_first_table(open_page, made):
    page = at(open_page, made, 390)
    heads = page.locator("#results-table thead th:visible").all_inner_texts()
    assert [head.split()[0] for head in heads] == ["Benchmark", "Score", "RCI"]
    assert page.locator(".scroll:has(#results-table)").evaluate("one => one.scrollWidth <= one.clientWidth")
    for row, line in zip(page.locator("#results-table tbody tr").all(), shapes.rows(made[2].entries), strict=True):
        name, score, index = row.locator("> :visible").all_inner_texts()
        size = line.entry.words.size(line.at.n)
        assert name.split("\n") == [line.entry.base, f"{size}, steady" if line.steady else size]
        assert score.startswith(f"{line.score.value:.3f}")
        assert index.startswith(wording.value(line.at.headline, signed=True) if line.has_index else "N/A")


FOLDED = "document.querySelectorAll('details:not([open])').length"
UNFOLD = "document.querySelectorAll('details').forEach(one => { one.open = true; })"
CUT = """() => [...document.querySelectorAll('body *')].filter(one => {
    const look = getComputedStyle(one);
    const hides = look.overflowX === 'hidden' || look.overflowX === 'clip' || look.textOverflow === 'ellipsis';
    return hides && one.scrollWidth > one.clientWidth + 1 && !one.closest('.sr, .skip, svg, .theme');
}).map(one => one.outerHTML.slice(0, 120))"""
"""Elements that hide a part of their text."""
SCROLLERS = """() => [...document.querySelectorAll('body *')].filter(one =>
    one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX === 'auto'
    && !(one.tabIndex === 0 && one.getAttribute('role') === 'region' && one.getAttribute('aria-label'))
).map(one => one.outerHTML.slice(0, 120))"""
"""Boxes that scroll and cannot be reached by keyboard, or have no name."""


@SMALL
@pytest.mark.parametrize("width", [1440, 768, 390])
def test_nothing_is_cut_and_the_page_never_scrolls_sideways(open_page, made, width):
    page = at(open_page, made, width)
    for opened in (False, True):
        if opened:
            page.evaluate(UNFOLD)
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert page.evaluate(CUT) == []
        assert page.evaluate(SCROLLERS) == []


@SMALL
def test_each_fold_says_what_is_in_it_and_how_much(open_page, made):
    page = at(open_page, made)
    for summary in page.locator("main > details > summary, main > section > details > summary").all():
        assert any(letter.isdigit() for letter in summary.inner_text()), summary.inner_text()


@LARGE
def test_a_finding_leads_to_the_details_of_its_result(open_page, made):
    page = at(open_page, made)
    link = page.locator("#findings li a").first
    link.click()
    target = page.locator(link.get_attribute("href"))
    target.locator("> .body").wait_for()
    assert target.evaluate("one => one.getBoundingClientRect().top") < SCREEN["height"]


@LARGE
def test_an_address_opens_what_is_folded(open_page, made):
    """The heat map of the last result lies in its details, which lie in the folded details of all."""
    page = at(open_page, made)
    last = made[2].entries[-1].label
    page.goto(f"{made[1].as_uri()}#{last}-c1")
    page.locator(f"#{last}-c1").wait_for()
    assert page.locator(f"#{last}-c1").is_visible()


@SMALL
def test_the_browsers_search_opens_what_is_folded(open_page, made):
    """A text fragment finds as the search does; these words stand in the explanations only, which are folded."""
    page = at(open_page, made)
    assert not page.locator("#reading > .reads").is_visible()
    page.goto(f"{made[1].as_uri()}#:~:text=What%20it%20scores%20above%20chance")
    page.locator("#reading > .reads").wait_for()


@LARGE
def test_on_paper_everything_is_open(open_page, made):
    page = at(open_page, made)
    assert page.evaluate(FOLDED) > 5
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(FOLDED) == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(FOLDED) > 5
