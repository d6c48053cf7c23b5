"""The explorer in real Chromium, opened from disk with the network off."""

import pytest

SIZES = {
    "wide": {"width": 1440, "height": 900},
    "middle": {"width": 768, "height": 1024},
    "narrow": {"width": 390, "height": 844},
}


class Pages:
    """Opens pages; keeps what they said and asked for."""

    def __init__(self, browser):
        self.browser, self.contexts, self.said, self.requests = browser, [], [], []

    def open(self, written, size="wide", theme="light", state="", **more):
        address = (written.folder / "index.html").as_uri()
        context = self.browser.new_context(
            viewport=SIZES[size], color_scheme=theme, reduced_motion="reduce", offline=True, **more
        )
        self.contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (self.said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(address + (f"#{state}" if state else ""))
        page.wait_for_selector("#doc h2")
        return page


@pytest.fixture
def pages(browser):
    """Opens pages; at the end they must have been silent, and have asked for files alone."""
    made = Pages(browser)
    yield made
    while made.contexts:
        made.contexts.pop().close()
    assert made.said == []
    assert [url for url in made.requests if not url.startswith(("file:", "data:"))] == []
