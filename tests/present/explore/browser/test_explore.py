"""The explorer as people use it: with the mouse, with the keyboard alone, with hostile texts, all from disk."""

import itertools
import re
import urllib.parse

import polars as pl
import pytest
from PIL import Image
from playwright.sync_api import expect

import lmms_patch
from lmms_patch.runs.details import Model
from tests.making.explored import HOSTILE, write_hostile, write_many, write_swap
from tests.present.explore.conftest import images
from tests.sizes import DEEP, some


def count(page):
    return page.locator("#count")


def need(page, name):
    return page.locator("#needs button", has_text=name)


def state(page):
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(page.url).fragment))


@pytest.fixture
def mosaic(explored, stored):
    return explored(stored / "demo")


def by_hand(stored, task):
    """How many docs of a mosaic task are of each class; all of them were asked on a wrong image."""
    found = dict.fromkeys(("text", "one cell", "whole image", "unsolved"), 0)
    for rows in lmms_patch.samples(stored / "demo", task).partition_by("doc_id"):
        lost = [row for row in rows.to_dicts() if row["swapped"]]
        own = [row for row in rows.to_dicts() if not row["swapped"]]
        cell = any(row["score"] for row in own if row["n"] == 3)
        image = "one cell" if cell else "whole image" if own[0]["score"] else "unsolved"
        found["text" if lost[0]["score"] else image] += 1
    return found


def test_the_map_filters_and_the_address_keeps_the_state(pages, mosaic, stored):
    page = pages.open(mosaic)
    expect(count(page)).to_have_text("210 of 210 docs")
    page.get_by_role("button", name="mosaic_count_rci3", exact=True).click()
    expect(count(page)).to_have_text("30 of 210 docs")
    for name, docs in by_hand(stored, "mosaic_count_rci3").items():
        expect(need(page, name).locator(".count")).to_have_text(f"{docs} docs")
    page.get_by_role("group", name="mosaic_same_rci3").get_by_role("button", name=re.compile("^whole image")).click()
    whole = by_hand(stored, "mosaic_same_rci3")["whole image"]
    expect(count(page)).to_have_text(f"{whole} of 210 docs")
    assert (state(page)["task"], state(page)["need"]) == ("mosaic_same_rci3", "whole image")
    third = page.locator("#list [role=option]").nth(2)
    title = "Doc " + re.search(r"#(\d+)", third.inner_text())[1]
    third.click()
    expect(page.locator("#doc h2")).to_have_text(title)
    chosen = page.url
    page.go_back()
    page.go_back()
    expect(count(page)).to_have_text("30 of 210 docs")
    again = pages.open(mosaic, state=urllib.parse.urlsplit(chosen).fragment)
    expect(again.locator("#doc h2")).to_have_text(title)
    expect(count(again)).to_have_text(f"{whole} of 210 docs")


def test_search_filters_and_sort(pages, mosaic):
    page = pages.open(mosaic, state="task=mosaic_center_rci3")
    page.locator("#q").fill("IN RED")
    page.wait_for_timeout(300)
    texts = page.locator("#list [role=option] p:last-child").all_inner_texts()
    assert texts
    assert all("in red" in text for text in texts)
    page.locator("#q").fill("no such words")
    expect(count(page)).to_have_text("0 of 210 docs")
    expect(page.locator("#list")).to_contain_text("No doc is like this")
    page.get_by_role("button", name="Clear filters").click()
    expect(count(page)).to_have_text("210 of 210 docs")
    page.get_by_label("First answer").select_option("wrong")
    expect(page.locator("#list .item").first.locator(".sr")).to_have_text("wrong")
    page.get_by_label("Sort by").select_option("most right cells")
    page.locator("#q").fill("17")  # a doc's id
    expect(page.locator("#list")).to_contain_text("#17")


def test_a_cell_tells_its_answer_and_shows_what_was_seen(pages, explored, album):
    page = pages.open(explored(album, open_task=images, docs=420), state="doc=album_rci3:4")
    cells = page.locator(".cell")
    assert cells.all_inner_texts() == ["✗", "✗", "✗", "✗", "✓", "✗", "✗", "✗", "✗"]
    cells.nth(4).hover()
    expect(page.locator(".under")).to_contain_text("row 2, column 2: B")
    image = page.locator(".frame img")
    expect(image).to_have_js_property("naturalWidth", 300)
    box, frame = cells.nth(4).bounding_box(), image.bounding_box()
    assert box["x"] - frame["x"] == pytest.approx(frame["width"] / 3, abs=2)
    assert box["y"] - frame["y"] == pytest.approx(frame["height"] * 0.33, abs=2)
    cells.nth(4).click()
    expect(cells.nth(4)).to_have_attribute("aria-pressed", "true")
    page.locator("#list [role=option]").nth(1).click()
    expect(page.locator(".why")).to_have_text("the doc has no image that can be read")


def test_answers_that_were_cut_are_marked_and_found(pages, explored, tmp_path):
    """The token limit cut the answers to the full image of docs 2 and 7, and to the fifth cell of doc 4."""
    cut = pl.format("{} {}", "doc_id", "view").is_in(["2 0", "7 0", "4 5"])
    change = {"unfinished": pl.when(cut).then(True)}
    out = write_many(tmp_path / "out", 40, change=lambda frame: frame.with_columns(**change)).parent
    page = pages.open(explored(out), state="doc=album_rci3:4")
    assert page.locator(".cell").all_inner_texts() == ["✗", "✗", "✗", "✗", "✓…", "✗", "✗", "✗", "✗"]
    expect(page.locator(".cell").nth(4)).to_have_attribute(
        "aria-label", re.compile("row 2, column 2, right, unfinished: B")
    )
    page.get_by_label("First answer").select_option("unfinished")
    expect(count(page)).to_have_text("2 of 40 docs")
    expect(page.locator("#list .item").first).to_contain_text("#2")
    expect(page.locator("#list .item .sr").first).to_have_text(re.compile("^(right|wrong), unfinished$"))


def test_the_keyboard_alone_reaches_everything(pages, explored, album):
    page = pages.open(explored(album, open_task=images, docs=420), permissions=["clipboard-read", "clipboard-write"])
    seen, last = [], None
    for _ in range(80):
        page.keyboard.press("Tab")
        handle = page.evaluate_handle("document.activeElement")
        name = handle.evaluate("node => node.id || node.name || node.className || node.tagName")
        if name == "BODY" or (name, "skip") == ("skip", last):
            break
        seen.append(handle.evaluate("node => [node.tagName, node.id, node.textContent.slice(0, 30).trim()]"))
        last = name
    reached = {tuple(one) for one in seen}
    enabled = page.evaluate(
        """[...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')]
           .filter(node => node.checkVisibility() && !node.disabled && node.tabIndex >= 0 && !node.closest('dialog') && !(node.type === 'radio' && !node.checked))
           .map(node => [node.tagName, node.id, node.textContent.slice(0, 30).trim()])"""
    )
    assert {tuple(one) for one in enabled} <= reached
    page.locator("#list").focus()
    title = page.locator("#doc h2")
    for key, expected in (("j", 1), ("ArrowDown", 2), ("k", 1), ("End", 419), ("Home", 0)):
        page.keyboard.press(key)
        expect(title).to_have_text(f"Doc {expected}")
    page.keyboard.press("/")
    page.keyboard.type("picture 7919 of")
    expect(count(page)).to_have_text("1 of 420 docs")
    page.keyboard.press("j")  # typed, not stepped
    expect(page.locator("#q")).to_have_value("picture 7919 ofj")
    page.keyboard.press("Escape")
    expect(page.locator("#list")).to_be_focused()
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_be_hidden()
    page.get_by_role("button", name="Clear filters").press("Enter")
    page.locator(".cell").first.focus()
    for key, cell in (
        ("ArrowRight", "row 1, column 2"),
        ("ArrowDown", "row 2, column 2"),
        ("ArrowLeft", "row 2, column 1"),
    ):
        page.keyboard.press(key)
        expect(page.locator(".under")).to_contain_text(cell)
    page.keyboard.press("Enter")
    expect(page.locator(".cell[aria-pressed=true]")).to_have_attribute("aria-label", re.compile("row 2, column 1"))
    page.get_by_role("button", name="Copy id").press("Enter")
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == re.search(r"\d+", title.inner_text())[0]


def test_two_models_side_by_side(pages, explored, tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    missed = (pl.col("doc_id") % 10 == 0) & (pl.col("view") == 0)  # by the second model
    change = {"score": pl.when(missed).then(0.0).otherwise("score")}
    change |= {"answer": pl.when(missed).then(pl.lit("D")).otherwise("answer")}
    one, two = write_many(folder / "one", 80).parent, folder / "two"
    write_many(two, 80, change=lambda frame: frame.with_columns(**change), model=Model("org/second", "vlm"))
    page = pages.open(explored(one, two))
    page.get_by_label("The two models").select_option("one right, one wrong")
    missed = [doc for doc in range(0, 80, 10) if doc % 4 != 2]  # the first model misses those itself
    expect(count(page)).to_have_text(f"{len(missed)} of 80 docs")
    expect(page.locator("#doc table").first).to_contain_text("org/second")
    assert page.locator(".frame").count() == 2
    full = page.locator("#doc table").first.locator("tbody tr").first.locator("td")
    assert [one.locator(".text").inner_text() for one in full.all()] == ["B", "D"]


def test_two_models_that_were_asked_different_views(pages, explored, tmp_path):
    """Doc 1 of the second run was asked on the image of doc 7, not 3, and was not asked on cells of it: each answer stands beside its own view."""

    def change(frame):
        lost, full = pl.col("swapped").fill_null(False), pl.col("kind") == "full"
        said = pl.when(lost & full).then(pl.lit("elsewhere")).when(lost).then(pl.lit("its fifth cell"))
        frame = frame.with_columns(answer=said.otherwise("answer"), wrong_from=pl.when(lost).then(7))
        frame = frame.filter(~lost | full | (pl.col("cell") == 5))
        return frame.with_columns(view=pl.int_range(pl.len()).over("doc_id"))

    one, two = write_many(tmp_path / "one", 8).parent, write_many(tmp_path / "two", 8, change=change).parent
    page = pages.open(explored(one, two), state="doc=album_rci3:1")
    page.get_by_text("Cells of the other image").click()

    def rows(table):
        found = page.locator("#doc table").nth(table).locator("tbody tr").all()
        return {
            row.locator("th").inner_text(): [cell.inner_text().split("\n")[-1] for cell in row.locator("td").all()]
            for row in found
        }

    assert rows(1) == {"full image of doc 3": ["C", "–"], "full image of doc 7": ["–", "elsewhere"]}
    cells = rows(2)
    assert cells["3×3, row 2, column 2 of doc 7"] == ["–", "its fifth cell"]
    assert cells["3×3, row 2, column 2 of doc 3"] == ["C", "–"]
    assert len(cells) == 10


def test_a_swap_task_shows_the_other_docs_image(pages, explored, tmp_path):
    write_swap(tmp_path / "one")
    colours = [(200, 0, 0), (0, 200, 0), (0, 0, 200), (90, 90, 90)]

    def taken(base):
        return lambda doc: (Image.new("RGB", (100 * (doc + 1), 100), colours[doc]), "")

    page = pages.open(explored(tmp_path / "one", open_task=taken), state="doc=album_swap2:0")
    image = page.locator(".frame img")
    expect(image).to_have_js_property("naturalWidth", 200)
    expect(image).to_have_attribute("alt", "the image of doc 1")
    assert (
        Image.open(explored(tmp_path / "one", open_task=taken).folder / "images" / "0-0.png").getpixel((0, 0))[1] == 200
    )
    expect(page.locator("figcaption")).to_have_text("full image of doc 1, right; 200 × 100 pixels")
    assert page.locator(".cell").all_inner_texts() == ["✓", "✗", "✗", "✗"]
    expect(page.locator("#doc")).not_to_contain_text("not asked")
    write_swap(tmp_path / "other", source=lambda doc: (doc + 2) % 4)
    page = pages.open(explored(tmp_path / "one", tmp_path / "other", open_task=taken), state="doc=album_swap2:0")
    expect(page.locator(".frame").nth(0).locator("img")).to_have_js_property("naturalWidth", 200)
    expect(page.locator(".frame").nth(1)).to_contain_text("This model was shown the image of doc 2.")


@pytest.mark.parametrize("theme", some(["light", "dark"], first=1))
def test_axe_finds_nothing_serious_in_any_state(pages, mosaic, explored, album, axe, theme):
    # the themes take turns in the states; in ``make test`` two states each
    turn = itertools.cycle([DEEP or theme == "light", DEEP or theme == "dark", DEEP])

    def check(page):
        if not next(turn):
            return
        # axe would fetch the style sheet, which the page does not allow
        found = axe.run(page, options={"resultTypes": ["violations"], "preload": False})
        assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found.response["violations"]] == []

    page = pages.open(mosaic, theme=theme)
    check(page)
    page.get_by_role("group", name="mosaic_same_rci3").get_by_role("button", name=re.compile("^whole image")).click()
    check(page)
    page.locator("#q").fill("no such words")
    expect(count(page)).to_have_text("0 of 210 docs")
    check(page)
    page.get_by_role("button", name="Keys and words").click()
    check(page)
    page = pages.open(
        explored(album, open_task=images, docs=420), theme=theme, size="narrow", state="doc=album_rci3:300"
    )
    page.locator(".cell").nth(4).click()
    check(page)
    page = pages.open(explored(album, open_task=images, docs=420), theme=theme, size="middle", state="doc=album_rci3:1")
    page.get_by_text("Cells of the other image").click()
    check(page)


@pytest.mark.parametrize("size", ["middle", "narrow"])
def test_nothing_is_wider_than_the_screen(pages, mosaic, size):
    page = pages.open(mosaic, size=size)
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def check_hostile(page, docs):
    """Step through all docs: each text is there as text, and nothing of it was made."""
    for _ in range(docs):
        expect(page.locator("#doc .why, #doc .frame img").first).to_be_attached()
        assert page.evaluate("window.hit") is None
        assert page.locator("article script, article svg, article iframe, article a, #list img").count() == 0
        page.keyboard.press("j")
    expect(page.locator("#doc .text").first).to_contain_text(
        HOSTILE[(docs - 1) % len(HOSTILE)][:30]
    )  # those of the last doc
    assert "<script>window.hit" in page.locator("#title").inner_text()
    assert "\u202e" not in page.content()
    assert "\x1b" not in page.content()


def test_hostile_texts_stay_texts(pages, explored, tmp_path_factory):
    run = write_hostile(tmp_path_factory.mktemp("hostile") / "out").parent
    page = pages.open(explored(run, open_task=images))
    check_hostile(page, 12)
    page.locator("#q").fill(HOSTILE[0])
    expect(count(page)).to_have_text("4 of 12 docs")  # two by their question, two more by their category


def test_a_piece_that_is_missing_is_told_in_words_until_something_goes_right(pages, explored, tmp_path):
    run = write_many(tmp_path / "out", 240)
    written = explored(run)
    page = pages.open(written)
    gone = (written.folder / "data" / "0-1.js").rename(tmp_path / "0-1.js")
    page.locator("#list").press("End")
    expect(page.locator("#fault")).to_have_text("data/0-1.js cannot be read: the whole folder belongs to this page")
    gone.rename(written.folder / "data" / "0-1.js")
    page.locator("#list").press("k")
    expect(page.locator("#doc h2")).to_have_text("Doc 238")
    expect(page.locator("#fault")).to_be_hidden()
    assert all("ERR_FILE_NOT_FOUND" in one for one in pages.said)
    pages.said.clear()


def test_the_shares_are_of_the_chosen_category(pages, explored, album):
    page = pages.open(explored(album))
    page.get_by_label("Category").select_option("outdoor")
    expect(count(page)).to_have_text("140 of 420 docs")
    expect(page.locator("#of")).to_contain_text("category outdoor")
    expect(page.locator("#of")).to_contain_text("no doc was asked again")
