"""``lmms-patch demo`` on the run that it made for the pages of the site.

Stood for: lmms-eval (``make demo`` runs it), and the writing of the page.
"""

import itertools
from pathlib import Path

import pytest

from lmms_patch import commands
from lmms_patch.app import watched
from lmms_patch.app.cli import main
from lmms_patch.app.commands import report
from lmms_patch.errors import PatchError
from lmms_patch.runs.run import newest_of
from tests import stored

FOUND = (
    "Most of what is solved needs the whole image in mosaic_count (",
    "mosaic_same (",
    "One cell is enough for most of what is solved in mosaic_center (",
    "No image is needed for mosaic_text (acc 1.000 with its images, 1.000 with wrong images",
    "No result for mosaic_larger (acc 0.500, where guesses earn 0.500)",
)
"""What was planted in the tasks (docs/index.md)."""


@pytest.fixture
def demo(tmp_path, monkeypatch):
    """The folder in which the demo is run, what lmms-eval was asked there, and which pages were written of which runs."""
    asked, pages = [], []

    def lmms_eval(options, output, watch):
        asked.append(options)
        watch("asking", 1, 2)
        stored.demo(tmp_path)

    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(watched, "lmms_eval", lmms_eval)
    monkeypatch.setattr(
        report, "report", lambda runs, output, *, with_images: pages.append((runs, output, with_images))
    )
    return tmp_path / "out" / "demo", asked, pages


def test_the_last_screen_says_what_was_planted(demo, capsys):
    """In at most 40 lines of 80 columns, the sentences first."""
    assert main(["demo"]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    told = " ".join(printed.out.split("\n\n")[0].split())
    assert [one for one in FOUND if one not in told] == []
    assert lines[-1] == "page: out/demo/report/index.html"
    assert printed.err == "asking: 1 of 2\n"


def test_it_asks_both_kinds_of_task_and_writes_the_page_of_the_run(demo):
    folder, asked, pages = demo
    assert main(["demo"]) == 0
    [options] = asked
    named = dict(itertools.pairwise(options))
    assert (named["--model"], named["--tasks"], named["--output_path"]) == (
        "mosaic_vlm",
        "mosaic_rci,mosaic_blind",
        "out/demo",
    )
    [(run, output, with_images)] = pages
    assert (folder.parents[1] / run).resolve() == newest_of(folder).path.resolve()
    assert (folder.parents[1] / output).resolve() == folder / "report"
    assert with_images


def test_videos_have_a_folder_of_their_own(demo):
    """The stand-in for lmms-eval leaves the run of the images, so only what is asked is looked at."""
    _, asked, _ = demo
    with pytest.raises(PatchError, match="out/demo-video"):
        commands.demo(Path("out/demo-video"), video=True)
    named = dict(itertools.pairwise(asked[0]))
    assert (named["--model"], named["--tasks"], named["--output_path"]) == (
        "mosaic_reader",
        "mosaic_video_trci4",
        "out/demo-video",
    )
