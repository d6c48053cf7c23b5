"""The explorer (``present.explore``) as a server on this machine, with images from the harness."""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lmms_patch.errors import OptionError, PatchError

if TYPE_CHECKING:
    from pathlib import Path

    from lmms_patch.present.explore.explorer import Explorer
    from lmms_patch.present.explore.pictures import Pictures


def pictures_of(wanted: bool, include_path: str | Path | None) -> Pictures:
    """Return what takes images through the harness, which is loaded when the first is wanted."""
    from lmms_patch.present.explore.pictures import Pictures

    def open_task(base: str) -> Callable[[int], Any]:
        from lmms_patch.harness.images import image_of
        from lmms_patch.harness.names.catalog import quietly

        with quietly(bars=False):
            return image_of(base, include_path)

    return Pictures(open_task) if wanted else Pictures(None, "images were switched off with --no-images")


def serve(explorer: Explorer, pictures: Pictures, port: int, browser: bool) -> None:
    """Serve the explorer until Ctrl-C."""
    import uvicorn

    from lmms_patch.present.explore.server import HOST, app

    with contextlib.closing(_listening(HOST, port)) as listening:
        port, token = listening.getsockname()[1], secrets.token_urlsafe(32)
        address = f"http://{HOST}:{port}/?token={token}"
        threading.Thread(target=_load, args=(explorer,), daemon=True, name="docs").start()
        served = uvicorn.Server(uvicorn.Config(app(explorer, pictures, token, port), log_level="critical", access_log=False, lifespan="off"))
        print(f"{address}  (Ctrl-C ends it)", flush=True)  # not ``say``, which hides tokens
        if browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True, name="browser").start()
        with contextlib.suppress(KeyboardInterrupt):  # how it is meant to end
            served.run(sockets=[listening])


def _load(explorer: Explorer) -> None:
    """Read the docs; what goes wrong is shown by the page."""
    try:
        explorer.load()
    except (PatchError, OSError, MemoryError) as error:
        explorer.fault = str(error) or type(error).__name__


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens on loopback.

    Raises:
        OptionError: the port is taken, or not allowed.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise OptionError(f"--port {port}: {error.strerror}; leave --port out to take any free one") from None
    return listening
