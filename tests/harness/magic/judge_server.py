"""An OpenAI-compatible chat server on loopback that says what a test tells it to: the real wire format, with the failures of real servers."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    """What the server answers to one request.

    Attributes:
        content: text of the message; None: ``null``, as a server says that has only a refusal or tool calls.
        status: HTTP status; from 400 on an error object with ``message`` and ``code`` is sent.
        after: seconds before the answer.
        drip: seconds between single spaces sent before the answer, for ever: headers come at once, the body never ends.
        body: bytes in place of a chat completion.
        finish: the finish_reason of the completion.
        refusal: the refusal of the message, as OpenAI's servers send it.
    """

    content: str | None = "Reasoning: so it is.\nCorrectness: Correct"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    after: float = 0.0
    drip: float = 0.0
    message: str = "something is wrong"
    code: str | None = None
    body: bytes | None = None
    finish: str = "stop"
    refusal: str | None = None


@dataclass
class Asked:
    """One request: path, headers in lower case, JSON."""

    path: str
    headers: dict[str, str]
    payload: dict[str, Any]

    @property
    def prompt(self) -> str:
        return self.payload["messages"][-1]["content"]


class JudgeServer:
    """A context manager; ``says(prompt, number)`` gives the reply to the request of that number (from 1).

    The socket listens from the start, so that a process may be forked before the first thread is started by
    ``__enter__``.
    """

    def __init__(self, says: Callable[[str, int], Reply]) -> None:
        self.says = says
        self.asked: list[Asked] = []
        self.most_at_once = 0
        self._now = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            disable_nagle_algorithm = True
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                server._answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._http.handle_error = lambda *_: None  # a client that went away is no news
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> JudgeServer:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        payload = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
        asked = Asked(handler.path, {name.lower(): value for name, value in handler.headers.items()}, payload)
        with self._lock:
            self.asked.append(asked)
            number = len(self.asked)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            reply = self.says(asked.prompt, number)
            self._closing.wait(reply.after)
        finally:
            with self._lock:
                self._now -= 1
        with contextlib.suppress(OSError):
            self._send(handler, reply, payload)

    def _send(self, handler: BaseHTTPRequestHandler, reply: Reply, payload: dict[str, Any]) -> None:
        body = reply.body if reply.body is not None else json.dumps(_json(reply, payload)).encode()
        handler.send_response(reply.status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(body) + 10_000 * bool(reply.drip)),
            **reply.headers,
        }.items():
            handler.send_header(name, value)
        handler.end_headers()
        while reply.drip and not self._closing.wait(reply.drip):
            handler.wfile.write(b" ")
            handler.wfile.flush()
        handler.wfile.write(body)


def _json(reply: Reply, payload: dict[str, Any]) -> dict[str, Any]:
    if reply.status >= 400:
        return {"error": {"message": reply.message, "type": "error", "param": None, "code": reply.code}}
    words = len(str(payload["messages"][-1]["content"]).split())
    said = len((reply.content or "").split())
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": f"{payload['model']}-2024-01-01",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": reply.content, "refusal": reply.refusal},
                "finish_reason": reply.finish,
                "logprobs": None,
            }
        ],
        "usage": {"prompt_tokens": words, "completion_tokens": said, "total_tokens": words + said},
    }
