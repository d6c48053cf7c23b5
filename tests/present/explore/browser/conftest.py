"""The explorer in real Chromium: served in this process, and opened with its token."""

import contextlib
import secrets
import socket
import threading

import pytest
import uvicorn

from lmms_patch.present.explore.pictures import Pictures
from lmms_patch.present.explore.server import HOST, app

SIZES = {
    "wide": {"width": 1440, "height": 900},
    "middle": {"width": 768, "height": 1024},
    "narrow": {"width": 390, "height": 844},
}


@contextlib.contextmanager
def served(explorer, pictures):
    """Serve an explorer; its address with the token."""
    with socket.socket(proto=socket.IPPROTO_TCP) as listening:
        listening.bind((HOST, 0))
        listening.listen()
        port, token = listening.getsockname()[1], secrets.token_urlsafe(16)
        server = uvicorn.Server(
            uvicorn.Config(app(explorer, pictures, token, port), log_level="critical", lifespan="off")
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        yield f"http://{HOST}:{port}/?token={token}"
        server.should_exit = True
        thread.join(10)


class Pages:
    """Opens pages; keeps what they said and asked for."""

    def __init__(self, browser):
        self.browser, self.contexts, self.said, self.requests = browser, [], [], []

    def open(self, address, size="wide", theme="light", state="", **more):
        context = self.browser.new_context(viewport=SIZES[size], color_scheme=theme, reduced_motion="reduce", **more)
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

    def close(self):
        """Close all pages. A page that is open while its server ends would tell that nobody answers."""
        while self.contexts:
            self.contexts.pop().close()


@pytest.fixture
def pages(browser):
    """Opens pages; at the end they must have been silent, and have asked nobody else."""
    made = Pages(browser)
    yield made
    made.close()
    assert made.said == []
    assert [
        url
        for url in made.requests
        if not url.startswith(("http://127.0.0.1:", "blob:http://127.0.0.1:", "file:", "data:"))
    ] == []


@pytest.fixture(scope="session")
def _addresses():
    with contextlib.ExitStack() as stack:
        yield stack, {}


@pytest.fixture
def serve(_addresses, loaded):
    """Serves runs, each set of them once: from paths to the address."""
    stack, known = _addresses

    def server(*paths, pictures=None):
        if (key := tuple(map(str, paths))) not in known:
            known[key] = stack.enter_context(
                served(loaded(*paths), pictures or Pictures(None, "no images in this test"))
            )
        return known[key]

    return server
