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

if TYPE_CHECKING:
    from lmms_patch.present.explore.explorer import Explorer
    from lmms_patch.present.explore.pictures import OfDoc, Pictures


def pictures_of(include_path: str | Path | None) -> Pictures:
    """Return the images of docs, taken through the harness, which is loaded when the first image is wanted.

    Args:
        include_path: a folder with more task files.
    """
    from lmms_patch.present.explore.pictures import Pictures

    def open_task(base: str) -> OfDoc:
        """Return how the images of a task's docs are loaded."""
        from lmms_patch.harness.load import image_of
        from lmms_patch.harness.names.catalog import quietly

        with quietly(bars=False):
            return image_of(base, include_path)

    return Pictures(open_task)


def serve(explorer: Explorer, pictures: Pictures) -> None:
    """Serve the explorer, and open it in the browser, until Ctrl-C.

    Args:
        explorer: what is shown; its docs are read in the background.
        pictures: the images.
    """
    import uvicorn

    from lmms_patch.present.explore.server import HOST, app

    with (
        contextlib.closing(_listening(HOST)) as listening,
        tempfile.TemporaryDirectory(prefix="lmms-patch-") as folder,
    ):
        port, token = listening.getsockname()[1], secrets.token_urlsafe(32)
        address = f"http://{HOST}:{port}/?token={token}"
        # The page opens at once, while the docs are read in the background.
        threading.Thread(target=explorer.load, daemon=True, name="docs").start()
        served = uvicorn.Server(
            uvicorn.Config(app(explorer, pictures, token, port), log_level="critical", access_log=False, lifespan="off")
        )
        # ``say`` would hide the token in the address.
        print(f"{address}  (Ctrl-C ends it)", flush=True)
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


def _listening(host: str) -> socket.socket:
    """Return a socket that listens on loopback, on any free port."""
    # named TCP, so that asyncio sends small answers at once: else each waits 40 ms for an acknowledgement
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind((host, 0))
    listening.listen(128)
    return listening
