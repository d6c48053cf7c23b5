"""One headless Chromium for all tests; pages are opened from disk, with the network off.

The root conftest registers the fixtures.

Without a browser or playwright the tests skip, and say why. Where LMMS_PATCH_BROWSER is ``required``, they fail
instead. LMMS_PATCH_CHROMIUM names another Chromium.
"""

import os
import shutil
from pathlib import Path

import pytest

ARGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first has no windows: it takes half the processor time."""
SIZES = {"wide": {"width": 1280, "height": 900}, "narrow": {"width": 390, "height": 844}}


def _missing(what):
    reason = f"{what}: the page is not tried in a browser"
    if os.environ.get("LMMS_PATCH_BROWSER") == "required":
        pytest.fail(f"{reason}, but LMMS_PATCH_BROWSER is required", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser():
    found = os.environ.get("LMMS_PATCH_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
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
