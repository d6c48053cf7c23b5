"""The explorer (``present.explore``) as a server on this machine, with images from the harness."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import tempfile
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_patch.errors import OptionError

if TYPE_CHECKING:
    from lmms_patch.present.explore.explorer import Explorer
    from lmms_patch.present.explore.pictures import OfDoc, Pictures


def pictures_of(wanted: bool, include_path: str | Path | None) -> Pictures:
    """Return the images of docs, taken through the harness, which is loaded when the first image is wanted.

    Args:
        wanted: whether images are taken at all.
        include_path: a folder with more task files.
    """
    from lmms_patch.present.explore.pictures import Pictures

    def open_task(base: str) -> OfDoc:
        """Return how the images of a task's docs are loaded."""
        from lmms_patch.harness.images import image_of
        from lmms_patch.harness.names.catalog import quietly

        with quietly(bars=False):
            return image_of(base, include_path)

    return Pictures(open_task) if wanted else Pictures(None, "images were switched off with --no-images")


def serve(explorer: Explorer, pictures: Pictures, port: int, browser: bool) -> None:
    """Serve the explorer until Ctrl-C.

    Args:
        explorer: what is shown; its docs are read in the background.
        pictures: the images.
        port: that the server listens on; 0: any free one.
        browser: whether the page is opened in a browser.

    Raises:
        OptionError: the port is taken, or not allowed.
    """
    import uvicorn

    from lmms_patch.present.explore.server import HOST, app

    with (
        contextlib.closing(_listening(HOST, port)) as listening,
        tempfile.TemporaryDirectory(prefix="lmms-patch-") as folder,
    ):
        # The port from the socket: with --port 0 the system has chosen it.
        port, token = listening.getsockname()[1], secrets.token_urlsafe(32)
        address = f"http://{HOST}:{port}/?token={token}"
        # The page opens at once, while the docs are read in the background.
        threading.Thread(target=explorer.load, daemon=True, name="docs").start()
        served = uvicorn.Server(
            uvicorn.Config(app(explorer, pictures, token, port), log_level="critical", access_log=False, lifespan="off")
        )
        # ``say`` would hide the token in the address.
        print(f"{address}  (Ctrl-C ends it)", flush=True)
        if browser:
            # A file in place of the address, which other users could read in the browser's command line.
            opened = _leading_to(address, Path(folder)).as_uri()
            threading.Thread(target=webbrowser.open, args=(opened,), daemon=True, name="browser").start()
        # Ctrl-C is how it is meant to end
        with contextlib.suppress(KeyboardInterrupt):
            served.run(sockets=[listening])


def _leading_to(address: str, folder: Path) -> Path:
    """Write a page with a redirect to an address, and return its path.

    The browser is given this file in place of the address: everyone on the machine can read command lines, the
    browser's among them, but only the user can read the file.

    Args:
        address: with its token.
        folder: that only the user can read; who made it removes it.
    """
    page = folder / "explore.html"
    # Readable by this user alone from the moment when it is made.
    with open(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(
            '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Explorer</title>\n'
        )
        file.write(f'<meta http-equiv="refresh" content="0; url={address}"><a href="{address}">Open the explorer</a>\n')
    return page


def _listening(host: str, port: int) -> socket.socket:
    """Return a listening socket on loopback.

    Raises:
        OptionError: the port is taken, or not allowed.
    """
    # named TCP, so that asyncio sends small answers at once: else each waits 40 ms for an acknowledgement
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # On Windows this option would let two servers listen on the same port.
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise OptionError(f"--port {port}: {error.strerror}; leave --port out to take any free one") from None
    return listening
