"""Stored runs are of every kind, and what pages show is what commands print of them."""

import json
import re

import pytest
from jsonschema import Draft202012Validator

from lmms_patch.app import schemas
from lmms_patch.ask.kinds import KINDS
from lmms_patch.runs.run import find
from tests.making.typed import typed
from tests.places import ROOT
from tests.sizes import size
from tests.stored import unpack


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return unpack(tmp_path_factory.mktemp("stored"))


def test_each_kind_has_a_stored_run(runs):
    assert {result.kind.name for run in find([runs]) for result in run.results} == set(KINDS)


def test_items_are_as_their_schema_says():
    items = (ROOT / "tasks/magic/mosaic/items.jsonl").read_text().splitlines()
    judge = Draft202012Validator(schemas.load("magic-item"))
    assert not [error for line in items[:: size(5, 1)] for error in judge.iter_errors(json.loads(line))]


@pytest.mark.parametrize(
    ("page", "blocks", "command", "run"), [("regions", 1, "show", "boxes"), ("magic", None, "magic show", "magic")]
)
def test_pages_show_what_the_commands_print(runs, page, blocks, command, run):
    """The examples of these pages, or so many of them, are of stored runs: some lines are left out, and long ones broken."""
    status, printed = typed(*command.split(), runs / run, "--wide")
    assert status == 0
    shown = "".join(
        re.findall(r"^```text\n(.*?)^```", (ROOT / f"docs/{page}.md").read_text(), re.M | re.S)[:blocks]
    ).splitlines()
    shown = [line for line in shown if line != "..."]
    tables = [line for line in shown if "  " in line or set(line) == {"-"}]
    assert len(tables) >= 4
    assert set(tables) <= set(printed.splitlines())
    words = " ".join(printed.split())
    assert [line for line in shown if line not in tables and line not in words] == []
