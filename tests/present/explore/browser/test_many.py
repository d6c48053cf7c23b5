"""A run of 100,000 docs (20,000 in ``make test``) with ten views each."""

from playwright.sync_api import expect

from tests.making.explored import kind_of, write_many
from tests.sizes import size

DOCS = size(20_000, 100_000)


def test_many_docs_are_found(tmp_path, pages, explored):
    page = pages.open(explored(write_many(tmp_path, DOCS), docs=0))
    expect(count := page.locator("#count")).to_have_text(f"{DOCS:,} of {DOCS:,} docs")
    kinds = [kind_of(doc) for doc in range(DOCS)]
    page.locator("#needs button", has_text="whole image").click()
    expect(count).to_have_text(f"{kinds.count('whole image'):,} of {DOCS:,} docs")
    page.locator("#needs button", has_text="whole image").click()
    page.locator("#q").fill(f"picture {4242 * 7919 % 1000003} of")
    expect(count).to_have_text(f"1 of {DOCS:,} docs")
    page.locator("#q").fill("")
    expect(count).to_have_text(f"{DOCS:,} of {DOCS:,} docs")
    page.locator("#list").focus()
    page.keyboard.press("End")
    expect(page.locator("#doc h2")).to_have_text(f"Doc {DOCS - 1}")
    expect(page.locator("#list")).to_contain_text(f"picture {(DOCS - 1) * 7919 % 1000003}")
