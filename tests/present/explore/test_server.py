"""The server, in this process: who gets an answer, and which."""

import time

import pytest
from PIL import Image
from starlette.testclient import TestClient

from lmms_patch.present.explore.docs import Seen
from lmms_patch.present.explore.pictures import Pictures
from lmms_patch.present.explore.server import HEADERS, app
from lmms_patch.present.explore.server import TOKEN as HEADER
from tests.sizes import each

PORT, TOKEN = 51234, "a-token-of-this-test"
HERE = {"host": f"127.0.0.1:{PORT}"}
PUBLIC = ["/", "/explore.js", "/explore.css"]
OF_RUNS = [
    "/api/about", "/api/columns?task=0", "/api/doc?task=0&place=0", "/image?task=0&place=0",
    "/api/image?task=0&place=0", "/nothing",
]  # fmt: skip


@pytest.fixture
def client(album, loaded, pictures):
    return TestClient(app(loaded(album), pictures, TOKEN, PORT), base_url=f"http://127.0.0.1:{PORT}", headers=HERE)


@pytest.fixture
def ours(client):
    """A client that sends the token, as the page does."""
    client.headers[HEADER] = TOKEN
    return client


@pytest.mark.parametrize("path", PUBLIC)
def test_the_page_itself_says_nothing_of_the_run_and_sets_no_cookie(client, path):
    answer = client.get(path, params={"token": TOKEN})
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers
    assert TOKEN not in answer.text
    assert not any(word in answer.text for word in ("album", "org/vlm", "picture 7919"))


@pytest.mark.parametrize(
    ("path", "token"), each(OF_RUNS, [None, "", "wrong", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "\u00e9".encode()])
)
def test_without_the_token_there_is_nothing(client, path, token):
    """Neither in the address nor as a cookie does a token count: a cookie goes to every port of this machine."""
    for headers in (
        {} if token is None else {HEADER: token},
        {"cookie": f"{HEADER}={TOKEN}; lmms_patch_explore_{PORT}={TOKEN}"},
    ):
        answer = client.get(path, headers=HERE | headers)
        assert (answer.status_code, answer.text) == (403, "not yours\n")
    assert client.get(path, params={"token": TOKEN, "task": 0, "place": 0}).status_code == 403


def test_a_fault_of_ours_is_told_in_words(ours, monkeypatch):
    def fails(self):
        raise TypeError("no such thing")

    monkeypatch.setattr("lmms_patch.present.explore.explorer.Explorer.about", fails)
    answer = ours.get("/api/about")
    assert (answer.status_code, answer.json()) == (
        500,
        {"error": "the explorer failed at /api/about: TypeError: no such thing"},
    )
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS


FOREIGN = {
    "another host's name": {"host": "evil.example:51234"},
    "a name that leads to this machine": {"host": "127.0.0.1.nip.io:51234"},
    "another port": {"host": "127.0.0.1:80"},
    "no port": {"host": "127.0.0.1"},
    "another origin": {"origin": "http://evil.example"},
    "another port's origin": {"origin": "http://127.0.0.1:8888"},
    "a page without an origin": {"origin": "null"},
    "https": {"origin": f"https://127.0.0.1:{PORT}"},
    "a request that another site makes": {"sec-fetch-site": "cross-site"},
    "one that another port makes": {"sec-fetch-site": "same-site"},
    "a frame of another site": {
        "sec-fetch-site": "cross-site",
        "sec-fetch-mode": "navigate",
        "sec-fetch-dest": "iframe",
    },
}


@pytest.mark.parametrize(("path", "foreign"), each(["/", "/api/about", "/image?task=0&place=0"], list(FOREIGN)))
def test_another_origin_gets_nothing_even_with_the_token(ours, path, foreign):
    assert ours.get(path, headers=HERE | FOREIGN[foreign]).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": f"http://localhost:{PORT}"},
        {"host": f"localhost:{PORT}"},
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
    ],
)
def test_our_own_page_gets_its_answers(ours, headers):
    assert ours.get("/api/about", headers=HERE | headers).status_code == 200


def test_a_link_in_another_program_opens_the_page(client):
    clicked = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert client.get("/", params={"token": TOKEN}, headers=HERE | clicked).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_nothing_can_be_changed(ours, method):
    assert ours.request(method, "/api/about").status_code == 403


PATHS = [
    *(
        "/../../etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/explore.js/../../server.py",
        "/page/index.html",
    ),
    *(
        "/index.html",
        "/server.py",
        "/explore.js%00.html",
        "/images/..%5c..%5cx",
        "/api/../../etc/passwd",
        "/file:///etc/passwd",
    ),
]


@pytest.mark.parametrize("path", PATHS)
def test_no_path_reaches_a_file(ours, path):
    answer = ours.get(f"http://127.0.0.1:{PORT}{path}")
    assert answer.status_code in (403, 404)
    assert "root:" not in answer.text
    assert "import" not in answer.text


QUERIES = [
    "", "task=1&place=0", "task=-1&place=0", "task=0&place=420", "task=0&place=x", "task=0&place=../0",
    "task=\u0660&place=0", "task=0&place=99999999999999999999",
]  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_what_is_not_there_is_told_in_one_line(ours, query):
    for path in ("/api/doc", "/api/image", "/image", "/api/rows"):
        answer = ours.get(f"{path}?{query.replace('place', 'places') if path.endswith('rows') else query}")
        assert answer.status_code == 404
        assert answer.json() == {"error": "there is no such doc"}


def test_every_answer_has_the_headers_that_keep_it_to_itself(ours):
    for path in ("/", "/api/about", "/explore.js", "/nothing", "/api/doc?task=9"):
        answer = ours.get(path)
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    policy = HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "*" not in policy
    assert "http" not in policy


def test_a_request_asks_for_no_more_than_a_page_of_docs(ours):
    answer = ours.get("/api/rows", params={"task": 0, "places": ",".join(map(str, range(420)))})
    assert len(answer.json()) == 100


def wait_for(ours, place):
    for _ in range(200):
        found = ours.get("/api/image", params={"task": 0, "place": place}).json()
        if found["ready"] or found["why"]:
            return found
        time.sleep(0.02)
    raise AssertionError("no image came")


def test_images_come_when_they_were_taken(ours):
    assert ours.get("/image", params={"task": 0, "place": 7}).status_code in (200, 404)  # it may not be there yet
    assert wait_for(ours, 7) == {"ready": True, "why": ""}
    image = ours.get("/image", params={"task": 0, "place": 7})
    assert (image.headers["content-type"], image.content[:8]) == ("image/png", b"\x89PNG\r\n\x1a\n")


def test_a_doc_without_its_image_says_why(ours):
    assert wait_for(ours, 1)["why"] == "the doc has no image that can be read"
    assert (
        wait_for(ours, 2)["why"] == "another image: the one here has 301 × 200 pixels, the one in the run had 300 × 200"
    )
    assert ours.get("/image", params={"task": 0, "place": 1}).status_code == 404


@pytest.mark.parametrize(
    ("digest", "there", "why"),
    [
        ("aa", "aa", ""),
        ("aa", "bb", "another image: its colours are not those of the image in the run"),
        (None, "bb", ""),
        ("aa", "", ""),  # not known here
    ],
)
def test_an_image_of_other_colours_is_another_image(digest, there, why):
    taken = Pictures(lambda base: lambda doc_id: (Image.new("RGB", (30, 20)), there))
    picture = taken.take("album", Seen(0, (30, 20), digest))
    assert (picture.why, bool(picture.data)) == (why, not why)


def test_where_images_cannot_be_had_the_reason_is_told_once(album, loaded):
    calls = []

    def open_task(base):
        calls.append(base)
        raise RuntimeError("no network\nat all")

    taken = Pictures(open_task)
    assert [taken.take("album", Seen(doc_id, None, None)).why for doc_id in (0, 1)] == [
        "no images: album cannot be loaded here: RuntimeError('no network\\nat all')"
    ] * 2
    assert calls == ["album"]
    assert Pictures(None, "switched off").get("album", Seen(0, None, None)).why == "switched off"


def test_images_that_nobody_looks_at_make_room(monkeypatch):
    monkeypatch.setattr("lmms_patch.present.explore.pictures.ROOM", 2_000)
    taken = Pictures(lambda base: lambda doc_id: (Image.effect_noise((64, 64), 90), ""))
    for doc_id in range(6):
        while taken.get("album", Seen(doc_id, None, None)) is None:
            time.sleep(0.01)
    assert list(taken._kept) == [("album", 5)]
