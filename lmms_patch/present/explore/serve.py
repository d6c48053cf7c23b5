"""The explorer's folder on this machine alone, for who has the address."""

from __future__ import annotations

import secrets
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


def serve(folder: Path) -> None:
    """Serve the files of a folder on loopback until Ctrl-C, to whoever has the address, which nobody can guess."""
    secret = f"/{secrets.token_urlsafe(24)}/"

    class Files(SimpleHTTPRequestHandler):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given, directory=str(folder))

        def send_head(self) -> Any:
            if not self.path.startswith(secret):
                return self.send_error(404)
            self.path = self.path[len(secret) - 1 :]
            return super().send_head()

        def list_directory(self, path: Any) -> None:
            self.send_error(404)

        def log_message(self, *given: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        # ``say`` would hide the secret in the address
        print(f"http://127.0.0.1:{server.server_port}{secret}  (Ctrl-C ends it)", flush=True)
        server.serve_forever()
