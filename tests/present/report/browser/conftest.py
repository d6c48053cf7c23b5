"""The report's page for the tests here, opened in the one browser of ``tests.making.browsing``."""

import pytest

from lmms_patch.present.report.page import page
from tests.making import pages
from tests.making.browsing import SIZES, Opened


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with a space and an accent, as users have them."""
    made = tmp_path_factory.mktemp("report") / "my réport"
    made.mkdir()
    (made / "index.html").write_text(page(pages.report()), encoding="utf-8")
    return made


@pytest.fixture
def open_page(browser, folder):
    """Opens a report's page; at the end it must have been silent and alone."""
    contexts, opened = [], []

    def opener(size="wide", theme="light", file=None, **more):
        context = browser.new_context(
            viewport=SIZES[size], color_scheme=theme, offline=True, reduced_motion="reduce", **more
        )
        contexts.append(context)
        opened.append(Opened(context, file or folder / "index.html"))
        return opened[-1].page

    yield opener
    for context in contexts:
        context.close()
    for one in opened:
        assert one.said == []
        assert one.dialogs == []
        assert [url for url in one.requests if not url.startswith(("file:", "data:"))] == []
