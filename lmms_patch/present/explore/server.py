"""The explorer's server: on loopback alone, for who has its token, from the explorer's memory alone.

No path of a request reaches the file system.

Browsers send a cookie of 127.0.0.1 to every port there, so any other local server would get it. There is no cookie,
therefore: the page takes the token from its address, keeps it in ``localStorage``, which belongs to this port alone,
and sends it as a header with every request, for images too. A page of another origin cannot send that header: the
browser would ask for leave first (OPTIONS), and gets none. The files of the page (``page.FILES``) say nothing of a run,
and are the only answers without the token.
"""

from __future__ import annotations

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
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
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
TOKEN = "X-Explore-Token"
"""The header that holds the token; ``page/explore.js`` sends it."""
PAGE = 100
"""Docs whose texts one request may ask for."""
LONGEST_SEARCH = 500
"""Characters that are searched for."""


def app(explorer: Explorer, pictures: Pictures, token: str, port: int) -> Starlette:
    """Return the server's application.

    Args:
        explorer: what is shown.
        pictures: the images.
        token: without it in the header ``TOKEN`` nothing of the runs is answered.
        port: that the server listens on; requests for another host or from another origin are not answered.

    Raises:
        PatchError: Starlette or uvicorn is not installed.
    """
    require("explore")
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    assets = {"/" if name == "index.html" else f"/{name}" for name in FILES}
    public = {*assets, "/favicon.ico"}
    # Any other host name may be a page that rebinds its name to this machine.
    hosts = {f"{name}:{port}" for name in (HOST, "localhost")}

    async def guard(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        """Answer a request of our own page, and refuse any other.

        What fails unexpectedly is told as JSON, which the page can show.
        """
        path = request.url.path
        origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
        ours = request.headers.get("host") in hosts and (
            origin is None or origin in {f"http://{host}" for host in hosts}
        )
        # Another site may only lead to the page itself, never fetch docs or images.
        fetched = site in (None, "same-origin", "none") or (
            site in ("same-site", "cross-site")
            and path == "/"
            and (request.headers.get("sec-fetch-mode"), request.headers.get("sec-fetch-dest"))
            == ("navigate", "document")
        )
        # Comparing takes a time that does not depend on the number of right characters.
        given = request.headers.get(TOKEN, "").encode("utf-8", "replace")
        known = path in public or hmac.compare_digest(given, token.encode())
        # One answer for every refusal: it does not tell which check failed.
        if request.method not in ("GET", "HEAD") or not ours or not fetched or not known:
            return Response("not yours\n", 403, {**HEADERS, "Content-Type": "text/plain; charset=utf-8"})
        try:
            response = await call_next(request)
        except Exception as error:  # a fault of ours
            response = JSONResponse({"error": f"the explorer failed at {path}: {type(error).__name__}: {error}"}, 500)
        for name, value in HEADERS.items():
            response.headers[name] = value
        return response

    def served(request: Request) -> Response:
        name = request.url.path.removeprefix("/") or "index.html"
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
        return pictures.get(*explorer.seen(number, _place(explorer, number, request.query_params.get("place", ""))))

    def picture_state(request: Request) -> Response:
        found = _picture(request)
        return JSONResponse({"ready": bool(found and found.data), "why": found.why if found else ""})

    def image(request: Request) -> Response:
        found = _picture(request)
        return (
            Response(found.data, media_type=found.type)
            if found and found.data
            else Response("no image\n", 404, media_type="text/plain")
        )

    def icon(request: Request) -> Response:
        return Response(status_code=204)

    def refused(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": str(error)}, 404)

    routes = {
        "/api/about": about,
        "/api/columns": columns,
        "/api/rows": rows,
        "/api/doc": doc,
        "/api/maps": maps,
        "/api/search": search,
    }
    routes |= {"/api/image": picture_state, "/image": image, "/favicon.ico": icon, **dict.fromkeys(assets, served)}
    return Starlette(
        routes=[Route(path, function) for path, function in routes.items()],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard)],
        exception_handlers={RecordError: refused},
    )


def _task(explorer: Explorer, request: Request) -> int:
    """Return the number of the task in a request.

    Raises:
        RecordError: there is no such task, or none of its docs is read yet.
    """
    number = _number(request.query_params.get("task", ""), len(explorer.tasks))
    if not explorer.tasks[number].ready:
        raise RecordError("the docs of this task are not read yet")
    return number


def _place(explorer: Explorer, number: int, text: str) -> int:
    """Return the place of a doc in its task.

    Args:
        explorer: whose docs they are.
        number: of the task; some of its docs are read.
        text: the place as the request has it.

    Raises:
        RecordError: there is no such doc.
    """
    docs: Any = explorer.tasks[number].main.docs
    return _number(text, len(docs))


def _number(text: str, count: int) -> int:
    """Return a whole number from 0 to below a count.

    Raises:
        RecordError: it is none.
    """
    # ``int`` alone takes digits of other scripts, signs and white space.
    if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) < count):
        raise RecordError("there is no such doc")
    return int(text)
