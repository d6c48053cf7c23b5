"""The tables of MAGIC tasks: what stands beside a number that a judge did not finish, or that chance reaches too."""

import json

import pytest

from lmms_patch import commands
from lmms_patch.present.page.report import build
from lmms_patch.present.terminal import magic
from tests.making.runs import magic_doc, write_magic


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """60 docs: half without a verdict on the short answer, none without one on the full.

    Self-Heal by words 40 of 60, where chance is .06.
    """
    folder = tmp_path_factory.mktemp("run")
    judged = [magic_doc(f"doc {i:03}", right=i < 30, short=True if i < 30 else None, full=True) for i in range(60)]
    heal = [magic_doc(f"doc {i:03}/3-3", healed=i < 40) for i in range(60)]
    return write_magic(folder, {"all": judged, "selfheal": heal}, judge="j").parent


def shown(path):
    """The rows of the terminal's table by their metric, and the whole text."""
    text = magic.text(commands.magic_show(path))
    return {line.split()[0]: line for line in text.splitlines() if line.split()}, text


def test_bounds_stand_beside_the_number(run):
    rows, text = shown(run)
    assert "0.500 to 1.000 with the unjudged" in rows["acc_short"]
    assert "unjudged" not in rows["acc_full"].partition("N/A")[0]
    assert "acc_short is computed over the 30 docs with a verdict; 30 of 60 have none" in text
    assert "were all unjudged wrong it would be 0.500, were all right 1.000" in text


@pytest.mark.parametrize(("unjudged", "told"), [(1, False), (2, True)])
def test_bounds_within_a_point_are_not_shown(tmp_path, unjudged, told):
    docs = [magic_doc(f"doc {i:03}", short=None if i < unjudged else True, full=True) for i in range(100)]
    rows, _ = shown(write_magic(tmp_path, {"none": docs}, judge="j").parent)
    assert ("0.980 to 1.000 with the unjudged" in rows["acc_short"]) == told
    assert ("unjudged" in rows["acc_short"]) == told


def test_the_file_and_the_page_hold_them(run, tmp_path):
    data = json.loads(json.dumps(magic.to_json(commands.magic_show(run))))
    first, _ = data["tasks"]
    assert (first["bounds"]["acc_short"]["low"]["value"], first["bounds"]["acc_short"]["high"]["value"]) == (0.5, 1.0)
    build([run], tmp_path / "report", count=0)
    page = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "report").rglob("*.html"))
    assert "0.500 to 1.000 with the unjudged" in page
