"""The board's page in a real browser, from disk, with the network off.

Skips or fails without one as the report's tests do.
"""

import pytest

from lmms_patch.present.board.build import leaderboard
from tests.making.boards import document, index_task, write
from tests.making.browsing import Opened
from tests.sizes import size


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    root = tmp_path_factory.mktemp("tafel ü")
    runs = [
        document(f"m{i}", [index_task(grids={3: (-0.1 * i, -0.1 * i - 0.05, -0.1 * i + 0.05)}, fip=0.9 - 0.05 * i)])
        for i in range(9)
    ]
    runs += [
        document("near chance", [index_task(grids={3: None}, valid=False, fip=0.26)]),
        document("<script>alert(1)</script>"),
    ]
    write(root / "runs", *runs)
    leaderboard([root / "runs"], root / "board")
    return root / "board" / "index.html"


def faults(axe, page):
    return [one["id"] for one in axe.run(page).response["violations"] if one["impact"] in ("serious", "critical")]


# Colours do not depend on the width, nor the layout on the colours: so each width needs one of the two grounds.
@pytest.mark.parametrize(
    ("width", "scheme"), [(1440, "light"), (390, "dark"), *size([], [(1280, "dark"), (768, "light")])]
)
def test_it_opens_sorts_and_filters(browser, axe, file, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    opened = Opened(context, file)
    page = opened.page
    names = "#g0-table tbody tr:not([hidden]) th"
    assert page.locator(names).first.inner_text() == "m0"
    page.locator("#g0-table thead button", has_text="FIP").click()
    shown = page.locator(names).all_inner_texts()
    assert shown[0] == "near chance"
    assert shown[1:3] == ["m8", "m7"]
    page.locator("#g0-table thead button", has_text="PCRI").first.click()
    assert page.locator(names).all_inner_texts()[-1] == "near chance"  # not defined: last, whichever way
    page.get_by_label("Search").fill("M3")
    assert page.locator(names).all_inner_texts() == ["m3"]
    assert page.locator("#o0-table tbody tr:not([hidden]) th").all_inner_texts() == ["m3"]  # all tables at once
    assert page.locator("output[data-counts=g0-table]").inner_text() == "1 of 11 rows"
    assert page.locator("th", has_text="<script>alert(1)</script>").count() == 4  # two tables, two charts
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert faults(axe, page) == []
    page.locator(names).get_by_role("link").click()
    assert page.locator("h1").inner_text() == "m3"
    assert "--tasks toy_pcri3 --output_path out" in page.locator("pre").inner_text()
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert faults(axe, page) == []
    assert opened.said == opened.dialogs == []
    assert all(request.startswith(("file:", "data:")) for request in opened.requests)
    context.close()


def test_the_table_comes_first_and_the_chart_shows_what_it_says(browser, file):
    """By hand: m1's mean |PCRI| is 0.10 with the interval [0.05, 0.15], less what noise may have added below.

    A quarter of m4's 0.40.
    """
    context = browser.new_context(viewport={"width": 1440, "height": 900}, offline=True)
    page = Opened(context, file).page
    assert page.locator("main table").first.get_attribute("id") == "o0-table"
    assert page.locator("#o0-table tbody tr").nth(8).bounding_box()["y"] < 900
    chart = page.locator(".forest").first
    at = {
        row.locator("a").inner_text(): [
            float(row.locator(f"svg > :nth-child({child})").get_attribute(name)[:-1]) for child, name in PLACES
        ]
        for row in chart.locator("tbody tr").all()
    }
    zero = at["m0"][0]
    assert {places[0] for places in at.values()} == {zero}
    assert at["m4"][3] - zero == pytest.approx(4 * (at["m1"][3] - zero), abs=0.05)
    assert at["m4"][2] - zero == pytest.approx(3 * (at["m1"][2] - zero), abs=0.05)  # 0.45 and 0.15
    drawn = chart.locator("tbody tr", has_text="m4").locator("circle").bounding_box()
    box = chart.locator("tbody tr", has_text="m4").locator("svg").bounding_box()
    assert drawn["x"] + drawn["width"] / 2 == pytest.approx(box["x"] + box["width"] * at["m4"][3] / 100, abs=1)
    context.close()


PLACES = ((1, "x1"), (2, "x1"), (2, "x2"), (3, "cx"))
"""In a row of the chart: where 0 lies, where the interval begins and ends, where the value is."""


def test_the_keyboard_sorts_searches_and_follows_a_model(browser, file):
    context = browser.new_context(viewport={"width": 1440, "height": 900}, offline=True)
    page = Opened(context, file).page
    sorted_by = "document.querySelector('#o0-table [aria-sort]')?.textContent + ' ' + document.querySelector('#o0-table [aria-sort]')?.ariaSort"
    focused = "document.activeElement.closest('#o0-table thead') !== null && document.activeElement.textContent"

    def tab_to(done):
        for _ in range(80):
            page.keyboard.press("Tab")
            if done():
                return
        pytest.fail("never reached by Tab")

    tab_to(lambda: page.evaluate("document.activeElement.id") == "everywhere")
    page.keyboard.type("m7")
    assert page.locator("#o0-table tbody tr:not([hidden])").count() == 1
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    tab_to(lambda: page.evaluate(focused) == "Model")
    page.keyboard.press("Enter")
    assert page.evaluate(sorted_by) == "Model ascending"
    page.keyboard.press("Space")
    assert page.evaluate(sorted_by) == "Model descending"
    tab_to(lambda: page.evaluate("document.activeElement.tagName + document.activeElement.textContent") == "Am8")
    page.keyboard.press("Enter")
    page.wait_for_url("**/models/m8.html")
    context.close()


@pytest.mark.parametrize("models", [1, size(24, 60)])
def test_every_size_of_board_fits_every_screen(browser, tmp_path, models):
    runs = [
        document(
            f"org/model-{i:02d}-with-a-long-name-7B",
            [index_task(grids={3: (0.01 * i, 0.01 * i - 0.1, 0.01 * i + 0.1)})],
        )
        for i in range(models)
    ]
    write(tmp_path / "runs", *runs)
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    for width in size((1440, 390), (1440, 768, 390)):
        context = browser.new_context(viewport={"width": width, "height": 900}, offline=True)
        page = Opened(context, tmp_path / "board" / "index.html").page
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert (
            page.locator(".forest").first.locator("tbody tr").count() == 20
            if models > 1
            else page.locator(".forest").count() == 0
        )
        assert page.evaluate("document.documentElement.scrollHeight") < (8_000 if width == 390 else 6_000)
        context.close()


@pytest.mark.parametrize(
    ("steady", "tables", "index"),
    [(None, "#o0-table, #g0-table", "+0.400"), ((0.6, 0.5, 0.7), "#o0-table", "+0.600")],
)
def test_twelve_benchmarks_fit_a_wide_screen_with_score_and_index_in_each_cell(
    browser, tmp_path, steady, tables, index
):
    names = [
        "gqa", "mmbench_en_dev", "scienceqa_img", "textvqa_val", "docvqa_val", "chartqa", "ai2d", "mmstar",
        "realworldqa",
    ]  # fmt: skip
    names += ["hallusion_bench_image", "vstar_bench", "seedbench_2_plus"]
    models = [
        "Qwen/Qwen2.5-VL-7B-Instruct",
        "llava-hf/llava-onevision-qwen2-7b-ov-hf",
        "microsoft/Phi-4-multimodal-instruct",
    ]
    runs = [
        document(model, [index_task(name, "rci", {3: (0.4, 0.3, 0.5)}, steady=steady, looks=True) for name in names])
        for model in models
    ]
    write(
        tmp_path / "runs",
        *runs,
        document("org/one-benchmark", [index_task("gqa", "rci", {3: None}, fip=0.3, valid=False)]),
    )
    leaderboard([tmp_path / "runs"], tmp_path / "board", over=names)
    context = browser.new_context(viewport={"width": 1440, "height": 900}, offline=True)
    page = Opened(context, tmp_path / "board" / "index.html").page
    clipped = f"[...document.querySelectorAll('{tables}')].filter(table => table.parentNode.scrollWidth > table.parentNode.clientWidth)"
    assert page.evaluate(f"{clipped}.length") == 0
    row = page.locator("#o0-table tbody tr", has_text="Qwen2.5").locator("td")
    assert row.locator(".fip").all_text_contents() == ["FIP 0.800"] * 12
    assert row.nth(4).locator(".v").inner_text() == index
    ends = row.nth(4).locator(".ci")
    assert ends.evaluate("it => getComputedStyle(it).clipPath") == "inset(50%)"
    row.nth(4).hover()
    assert ends.evaluate("it => getComputedStyle(it).clipPath") == "none"
    lacking = page.locator("#o0-table tbody tr", has_text="one-benchmark").locator("td").all_text_contents()
    assert sorted(cell for cell in lacking if cell) == sorted(["N/A near chanceFIP 0.300", *["N/A not run"] * 11])
    context.close()


def test_a_long_table_shows_its_first_rows_and_a_search_finds_the_others(browser, tmp_path):
    """Of 230 models 200 rows are shown; those that a search finds are, wherever they stand, and all on demand."""
    write(
        tmp_path / "runs",
        *(
            document(f"m{i:03d}", [index_task(grids={3: (0.001 * i, 0.001 * i - 0.1, 0.001 * i + 0.1)})])
            for i in range(230)
        ),
    )
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    context = browser.new_context(viewport={"width": 1440, "height": 900}, offline=True)
    page = Opened(context, tmp_path / "board" / "index.html").page
    rows, count = page.locator("#o0-table tbody tr:not([hidden])"), page.locator("output[data-counts=o0-table]")
    assert (rows.count(), count.inner_text()) == (200, "200 of 230 rows")
    page.get_by_label("Search").fill("m229")
    assert rows.locator("th").all_inner_texts() == ["m229"]
    page.get_by_label("Search").fill("")
    assert rows.count() == 200
    for _ in range(2):
        page.locator("#o0-table thead button", has_text="Model").click()
    assert (rows.first.locator("th").inner_text(), rows.count()) == ("m229", 200), "the first of what is sorted now"
    more = page.get_by_role("button", name="Show all rows")
    more.first.click()
    assert (rows.count(), count.inner_text()) == (230, "230 rows")
    assert more.count() == 1  # that of the other table
    context.close()
