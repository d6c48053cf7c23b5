"""A small Hugging Face hub on loopback: the endpoints that a push uses, and the ways in which it goes wrong."""

from __future__ import annotations

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

TOKEN = "hf_of_tests_only"


class Hub:
    """What the server holds and does.

    Attributes:
        repos: name -> {"private": ..., "files": {path: bytes}}.
        commits: the number of commits that were taken.
        seen: method and path of every request.
        dies_at: a part of a path: such a request gets no answer at all.
        refuses: a part of a path -> status and message.
    """

    def __init__(self):
        self.repos, self.commits, self.seen, self.dies_at, self.refuses = {}, 0, [], None, {}
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def _handler(self):
        hub = self

        class Handler(BaseHTTPRequestHandler):
            disable_nagle_algorithm = True

            def log_message(self, *_):
                pass

            def _answer(self, status, data, **headers):
                body = json.dumps(data).encode()
                self.send_response(status)
                for name, value in {
                    "Content-Type": "application/json",
                    "Content-Length": str(len(body)),
                    **headers,
                }.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(body)

            def _do(self):
                size = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(size)
                if self.headers.get("Transfer-Encoding") == "chunked":
                    body = b""
                    while length := int(self.rfile.readline(), 16):
                        body += self.rfile.read(length)
                        self.rfile.readline()
                    self.rfile.readline()
                path = self.path.split("?")[0]
                hub.seen.append(f"{self.command} {path}")
                if hub.dies_at is not None and hub.dies_at in path:
                    self.connection.close()
                    return None
                if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                    return self._answer(401, {"error": "Invalid credentials in Authorization header"})
                for part, (status, message) in hub.refuses.items():
                    if part in path:
                        return self._answer(status, {"error": message})
                if path == "/api/whoami-v2":
                    return self._answer(200, {"type": "user", "name": "me", "orgs": []})
                if path == "/api/validate-yaml":
                    return self._answer(200, {"errors": [], "warnings": []})
                if path == "/api/repos/create":
                    asked = json.loads(body)
                    owner = asked.get("organization") or "me"
                    name = f"{owner}/{asked['name']}"
                    if name in hub.repos:
                        return self._answer(
                            409, {"error": "You already created this dataset repo", "url": f"{hub.url}/datasets/{name}"}
                        )
                    private = asked.get("private") or asked.get("visibility") == "private"
                    hub.repos[name] = {"private": bool(private), "files": {".gitattributes": b""}}
                    return self._answer(200, {"url": f"{hub.url}/datasets/{name}", "name": name})
                parts = path.split("/")
                name = "/".join(parts[3:5])
                if path.startswith("/api/datasets/"):
                    if name not in hub.repos:
                        return self._answer(404, {"error": "Repository not found"}, X_Error_Code="RepoNotFound")
                    repo, what = hub.repos[name], parts[5] if len(parts) > 5 else ""
                    if what == "preupload":
                        files = [
                            {**one, "uploadMode": "regular", "shouldIgnore": False, "oid": None}
                            for one in json.loads(body)["files"]
                        ]
                        return self._answer(200, {"files": files})
                    if what == "tree":
                        return self._answer(
                            200,
                            [
                                {"type": "file", "path": p, "size": len(b), "oid": "0" * 40}
                                for p, b in repo["files"].items()
                            ],
                        )
                    if what == "commit":
                        for line in map(json.loads, body.splitlines()):
                            value = line["value"]
                            if line["key"] == "file":
                                repo["files"][value["path"]] = base64.b64decode(value["content"])
                            elif line["key"] == "deletedFile":
                                del repo["files"][value["path"]]
                        hub.commits += 1
                        sha = f"{hub.commits:040x}"
                        return self._answer(
                            200,
                            {"commitUrl": f"{hub.url}/datasets/{name}/commit/{sha}", "commitOid": sha, "success": True},
                        )
                    siblings = [{"rfilename": p} for p in repo["files"]]
                    return self._answer(
                        200, {"id": name, "private": repo["private"], "sha": "0" * 40, "siblings": siblings, "tags": []}
                    )
                return self._answer(404, {"error": f"no such endpoint: {path}"})

        for verb in ("GET", "POST"):
            setattr(Handler, f"do_{verb}", Handler._do)
        return Handler


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub that huggingface_hub talks to, with a token that it takes."""
    from huggingface_hub import constants

    made = Hub()
    monkeypatch.setattr(constants, "ENDPOINT", made.url)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no_token"))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    yield made
    made.close()
