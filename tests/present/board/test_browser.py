"""The board's page in a real browser, from disk, with the network off; skips or fails without one as the report's tests do."""

import pytest

from lmms_patch.present.board.build import leaderboard
from tests.making.boards import document, index_task, write
from tests.making.browsing import SIZES, Opened


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    root = tmp_path_factory.mktemp("tafel ü")
    runs = [document(f"m{i}", [index_task(grids={3: (-0.1 * i, -0.1 * i - 0.05, -0.1 * i + 0.05)}, fip=0.9 - 0.05 * i)]) for i in range(9)]
    runs += [document("near chance", [index_task(grids={3: None}, valid=False, fip=0.26)]), document("<script>alert(1)</script>")]
    write(root / "runs", *runs)
    leaderboard([root / "runs"], root / "board")
    return root / "board" / "index.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_it_opens_sorts_and_filters(browser, axe, file, size, scheme):
    context = browser.new_context(viewport=SIZES[size], color_scheme=scheme, offline=True)
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
    page.locator("input[data-filters=g0-table]").fill("m3")
    assert page.locator(names).all_inner_texts() == ["m3"]
    assert page.locator("th", has_text="<script>alert(1)</script>").count() == 2
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    faults = axe.run(page).response["violations"]
    assert [one["id"] for one in faults if one["impact"] in ("serious", "critical")] == []
    assert opened.said == opened.dialogs == []
    assert all(request.startswith(("file:", "data:")) for request in opened.requests)
    context.close()
