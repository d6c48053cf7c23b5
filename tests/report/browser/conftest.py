"""One headless Chromium for all tests here; pages are opened from disk, with the network off.

Without a browser or playwright the tests skip, and say why. Where LMMS_PATCH_BROWSER is ``required``, they fail instead.
LMMS_PATCH_CHROMIUM names another Chromium.
"""

import os
import shutil
from pathlib import Path

import pytest

from lmms_patch.report.page import page
from tests.report import pages

ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SIZES = {"wide": {"width": 1280, "height": 900}, "narrow": {"width": 390, "height": 844}}


def _missing(what):
    reason = f"{what}: the page is not tried in a browser"
    if os.environ.get("LMMS_PATCH_BROWSER") == "required":
        pytest.fail(f"{reason}, but LMMS_PATCH_BROWSER is required", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser():
    found = os.environ.get("LMMS_PATCH_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not found:
        _missing("no chromium on the PATH")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _missing("playwright is not installed")
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=found, args=ARGS)
        yield started
        started.close()


@pytest.fixture(scope="session")
def axe():
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        _missing("axe-playwright-python is not installed")
    return Axe()


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with a space and an accent, as users have them."""
    made = tmp_path_factory.mktemp("report") / "my réport"
    made.mkdir()
    (made / "index.html").write_text(page(pages.report()), encoding="utf-8")
    return made


class Opened:
    """A page that was opened, and what it did besides: messages, dialogs, errors, requests."""

    def __init__(self, context, file: Path):
        self.page = context.new_page()
        self.said, self.dialogs, self.requests = [], [], []
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.set_default_timeout(10_000)
        self.page.goto(file.as_uri())


@pytest.fixture
def open_page(browser, folder):
    """Opens a report's page; at the end it must have been silent and alone."""
    contexts, opened = [], []

    def opener(size="wide", theme="light", file=None, **more):
        context = browser.new_context(viewport=SIZES[size], color_scheme=theme, offline=True, reduced_motion="reduce", **more)
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
