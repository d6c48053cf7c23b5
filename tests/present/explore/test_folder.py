"""The explorer as a folder: what is in it, what is refused, and who can read it while it is served."""

import contextlib
import re
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from PIL import Image

from lmms_patch.app.cli import main
from lmms_patch.errors import OptionError, PatchError
from lmms_patch.present.explore.folder import MARK, NOT_TAKEN, write
from lmms_patch.present.explore.pictures import opened, save
from lmms_patch.runs.run import newest_of
from tests.making.explored import write_many, write_swap
from tests.present.explore.conftest import Written, images


def test_pictures_are_of_the_docs_that_were_chosen(album, tmp_path):
    run = newest_of(album).run
    assert write([run], tmp_path / "docs", images, docs=9) == (420, 7)
    found = Written(tmp_path / "docs")
    assert found.doc(7)["file"] == "images/0-7.png"
    assert found.doc(1)["why"] == "the doc has no image that can be read"
    assert found.doc(2)["why"] == "another image: the one here has 301 × 200 pixels, the one in the run had 300 × 200"
    assert found.doc(9)["why"] == NOT_TAKEN
    assert len(list((tmp_path / "docs" / "images").iterdir())) == 7
    write([run], tmp_path / "docs", images, where="category = 'outdoor' and view = 0 and score = 0")
    assert len(list((tmp_path / "docs" / "images").iterdir())) == 35
    with pytest.raises(OptionError, match=r"^--where 'colour = 1': .*columns: .*doc_id"):
        write([run], tmp_path / "docs", images, where="colour = 1")


def test_a_doc_of_a_swap_task_has_the_picture_that_was_shown(tmp_path):
    write_swap(tmp_path / "out", source=lambda doc: {0: 1, 1: 3, 2: 9}.get(doc))
    sized = lambda base: lambda doc: (Image.new("RGB", (100 * (doc + 1), 100)), "")  # noqa: E731 - a picture in a line
    write([newest_of(tmp_path / "out").run], tmp_path / "docs", sized)
    assert Image.open(tmp_path / "docs" / "images" / "0-1.png").size == (400, 100)
    assert Written(tmp_path / "docs").doc(3)["why"].startswith("the run found no other doc's image")


@pytest.mark.parametrize(
    ("digest", "there", "why"),
    [
        ("aa", "aa", None),
        ("aa", "bb", "another image: its colours are not those of the image in the run"),
        (None, "bb", None),
        ("aa", "", None),  # not known here
    ],
)
def test_an_image_of_other_colours_is_another_image(tmp_path, digest, there, why):
    found = save(lambda doc_id: (Image.new("RGB", (30, 20)), there), 0, tmp_path / "0-0", (30, 20), digest)
    assert (found.get("why"), "file" in found) == (why, why is None)


def test_where_images_cannot_be_had_the_reason_is_told_once(album, tmp_path):
    calls, told = [], []

    def open_task(base):
        calls.append(base)
        raise RuntimeError("no network\nat all")

    why = "no images: album cannot be loaded here: RuntimeError('no network\\nat all')"
    assert opened(open_task, "album") == why
    assert write([newest_of(album).run], tmp_path / "docs", open_task, tell=told.append) == (420, 0)
    assert calls == ["album"] * 2
    assert told[1:] == [f"album_rci3: {why}"]
    assert Written(tmp_path / "docs").doc(0)["why"] == why


def test_it_takes_the_place_of_an_earlier_one_and_of_nothing_else(tmp_path):
    run = newest_of(write_many(tmp_path / "out", 4)).run
    for _ in range(2):
        write([run], tmp_path / "docs", images)
    assert sorted(path.name for path in (tmp_path / "docs").iterdir()) == [
        "data",
        "explore.css",
        "explore.js",
        MARK,
        "images",
        "index.html",
    ]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(OptionError, match="this folder has other files in it; name a new folder"):
        write([run], tmp_path / "mine", images)


def refuses(base):
    raise PatchError("none in this test")


def test_the_command_writes_it(album, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("lmms_patch.harness.load.image_of", lambda base, include_path: refuses(base))
    assert main(["explore", str(album), "--output", str(tmp_path / "docs")]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"420 docs, 0 with a picture; written: {tmp_path / 'docs' / 'index.html'}\n"
    assert printed.err.count("up to a minute") == 1
    assert Written(tmp_path / "docs").doc(0)["why"] == "no images: none in this test"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such-run"], "no-such-run: no such run"),
        (["a", "b", "c"], "explore shows one run, or two side by side, not 3"),
    ],
)
def test_mistakes_are_one_line(arguments, said, capsys):
    assert main(["explore", *arguments]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert said in line


def status(address, **more):
    with contextlib.suppress(urllib.error.HTTPError):
        return urllib.request.urlopen(urllib.request.Request(address, **more)).status
    return None


def test_served_files_are_read_by_who_has_the_address_alone(album, tmp_path):
    """Every user of the machine, and every page in its browser, can ask the port: without the secret it says nothing."""
    line = [sys.executable, "-m", "lmms_patch.app.cli", "explore", str(album), "--serve", "--docs", "0"]
    with subprocess.Popen([*line, "--output", str(tmp_path / "docs")], stdout=subprocess.PIPE, text=True) as server:
        try:
            address = next(found[0] for said in server.stdout if (found := re.search(r"http://127\S+", said)))
            root = re.match(r"http://127\.0\.0\.1:\d+/", address)[0]
            assert status(address) == status(f"{address}data/0.js") == 200
            (tmp_path / "secret.txt").write_text("x")
            for path in ("", "index.html", "data/0.js", "x/index.html"):
                assert status(root + path) is None
            for path in ("images/", "data/", "../secret.txt", "%2e%2e/secret.txt", "..%2fsecret.txt", "none.js"):
                assert status(address + path) is None
            for method in ("POST", "PUT", "DELETE", "OPTIONS"):
                assert status(address, method=method) is None
        finally:
            server.send_signal(2)
    assert server.returncode in (0, 130)
