"""The explorer's server: on loopback alone, for who has its token, from the explorer's memory alone. No path of a request reaches the file system."""

from __future__ import annotations

import functools
import hmac
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from lmms_patch.errors import RecordError, require
from lmms_patch.present.explore.explorer import Explorer
from lmms_patch.present.explore.page import FILES, file
from lmms_patch.present.explore.pictures import Picture, Pictures

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

HOST = "127.0.0.1"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
PAGE = 100
"""Docs whose texts one request may ask for."""
LONGEST_SEARCH = 500
"""Characters that are searched for."""


def app(explorer: Explorer, pictures: Pictures, token: str, port: int) -> Starlette:
    """Return the server's application.

    Args:
        explorer: what is shown.
        pictures: the images.
        token: without it, in the address or in the cookie that the first page sets, nothing is answered.
        port: that the server listens on; requests for another host or from another origin are not answered.

    Raises:
        PatchError: Starlette or uvicorn is not installed.
    """
    require("explore", "starlette", "uvicorn")
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    cookie = f"lmms_patch_explore_{port}"
    hosts = {f"{name}:{port}" for name in (HOST, "localhost")}

    async def guard(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        """Answer only requests of our own page."""
        given = request.cookies.get(cookie, "") or (request.query_params.get("token", "") if request.url.path == "/" else "")
        if request.url.path == "/" and request.query_params.get("token"):
            given = request.query_params["token"]
        origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
        ours = request.headers.get("host") in hosts and (origin is None or origin in {f"http://{host}" for host in hosts})
        fetched = site in (None, "same-origin", "none") or (site in ("same-site", "cross-site") and request.url.path == "/" and _is_page(request))
        if request.method not in ("GET", "HEAD") or not ours or not fetched or not _equal(given, token):
            return Response("not yours\n", 403, {**HEADERS, "Content-Type": "text/plain; charset=utf-8"})
        response = await call_next(request)
        for name, value in HEADERS.items():
            response.headers[name] = value
        return response

    def index(request: Request) -> Response:
        response = _file("index.html")
        response.set_cookie(cookie, token, httponly=True, samesite="strict", path="/")
        return response

    def _file(name: str) -> Response:
        return Response(file(name), media_type=FILES[name])

    def about(request: Request) -> Response:
        return JSONResponse(explorer.about())

    def columns(request: Request) -> Response:
        return JSONResponse(explorer.columns(_task(explorer, request)))

    def rows(request: Request) -> Response:
        number = _task(explorer, request)
        places = [_place(explorer, number, one) for one in request.query_params.get("places", "").split(",")[:PAGE]]
        return JSONResponse(explorer.rows(number, places))

    def doc(request: Request) -> Response:
        number = _task(explorer, request)
        return JSONResponse(explorer.doc(number, _place(explorer, number, request.query_params.get("place", ""))))

    def maps(request: Request) -> Response:
        number = _task(explorer, request)
        return JSONResponse(explorer.maps(number, _number(request.query_params.get("category", ""), 10**9)))

    def search(request: Request) -> Response:
        return JSONResponse(explorer.search(request.query_params.get("q", "")[:LONGEST_SEARCH]))

    def _picture(request: Request) -> Picture | None:
        number = _task(explorer, request)
        return pictures.get(*explorer.size_of(number, _place(explorer, number, request.query_params.get("place", ""))))

    def picture_state(request: Request) -> Response:
        found = _picture(request)
        return JSONResponse({"ready": bool(found and found.data), "why": found.why if found else ""})

    def image(request: Request) -> Response:
        found = _picture(request)
        return Response(found.data, media_type=found.type) if found and found.data else Response("no image\n", 404, media_type="text/plain")

    def icon(request: Request) -> Response:
        return Response(status_code=204)

    def refused(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": str(error)}, 404)

    routes = {"/": index, "/api/about": about, "/api/columns": columns, "/api/rows": rows, "/api/doc": doc, "/api/maps": maps}
    routes |= {"/api/search": search, "/api/image": picture_state, "/image": image, "/favicon.ico": icon}
    assets = [Route(f"/{name}", functools.partial(_asset, _file, name)) for name in FILES if name != "index.html"]
    return Starlette(
        routes=[*(Route(path, function) for path, function in routes.items()), *assets],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard)],
        exception_handlers={RecordError: refused},
    )


def _asset(answer: Callable[[str], Response], name: str, request: Request) -> Response:
    return answer(name)


def _is_page(request: Request) -> bool:
    """Tell whether a browser opens an address, as after a click on a link in another program."""
    return request.headers.get("sec-fetch-mode") == "navigate" and request.headers.get("sec-fetch-dest") == "document"


def _equal(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def _task(explorer: Explorer, request: Request) -> int:
    number = _number(request.query_params.get("task", ""), len(explorer.tasks))
    if not explorer.tasks[number].ready:
        raise RecordError("the docs of this task are not read yet")
    return number


def _place(explorer: Explorer, number: int, text: str) -> int:
    docs: Any = explorer.tasks[number].main.docs
    return _number(text, len(docs))


def _number(text: str, count: int) -> int:
    """Return a whole number from 0 to below a count.

    Raises:
        RecordError: it is none.
    """
    if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) < count):
        raise RecordError("there is no such doc")
    return int(text)
