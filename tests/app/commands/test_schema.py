"""The schemas: true of what is written, and wrong of what is changed; the command that prints them."""

import dataclasses
import json

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from lmms_patch import commands
from lmms_patch.app import schemas
from lmms_patch.app.cli import main
from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.spec import SUFFIXES, Options, WrapSpec
from lmms_patch.stats.forms import FORMS
from lmms_patch.tst import controls, pruned
from lmms_patch.tst.items import Item
from lmms_patch.tst.prune import Pruned, Round
from lmms_patch.tst.selection import PruneSettings
from tests.stored import unpack

OWN = ("analysis", "details", "objects", "patch", "pruned", "task-config")


def judge_by(name):
    return Draft202012Validator(schemas.load(name))


def pruned_file(folder, more=None):
    items = [Item(i, f"prompt {i}", (str(i),), "open", (), "colour", key=f"doc-{i}") for i in range(6)]
    found = Pruned(
        np.arange(4),
        np.array([5, 4]),
        (0.9, 0.8),
        (Round(1, 6, 0.5, 0.4, 0.01, 0.9, 0.9, {"doc-5": 0.9, "doc-4": 0.8}),),
        "the budget is used up",
    )
    judged = controls.Judged(
        0.5, 0.4, (controls.Control("category", (0.5,), 0.1, (), None),), 0.4, 0.01, 0.9, "unknown", "unknown: ..."
    )
    settings = {
        **dataclasses.asdict(PruneSettings()),
        "by": "s",
        "model": "boosting",
        "judge": "linear",
        "folds": 5,
        "grouping": "none",
    }
    pruned.write(
        folder,
        "toy",
        items,
        found,
        settings,
        {"judged": dataclasses.asdict(judged)} if more is None else more,
    )
    return json.loads((folder / "pruned.json").read_text())


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A file of each schema, as it is written; tests/stored holds many of most of them against theirs."""
    folder = tmp_path_factory.mktemp("files")
    run = unpack(folder) / "f1"
    results, objects = (json.loads(next(run.glob(f"*_{name}.json")).read_text()) for name in ("results", "patch"))
    log = json.loads(next(run.glob("*_polar_rci2.jsonl")).read_text().splitlines()[0])
    return {
        "patch": log["patch"],
        "task-config": results["configs"]["polar_rci2"]["lmms_patch"],
        "details": objects["results"]["polar_rci2"]["patch,none"],
        "objects": objects,
        "analysis": json.loads(json.dumps(commands.analyze([run]).to_json())),
        "pruned": pruned_file(folder),
    }


@pytest.mark.parametrize("more", [None, {}])
def test_the_file_of_a_pruning_is_right_with_and_without_a_judgement(tmp_path, more):
    judge_by("pruned").validate(pruned_file(tmp_path, more))


@pytest.mark.parametrize("name", schemas.names())
def test_each_is_a_schema_of_its_draft_with_a_title_and_one_line(name):
    found = schemas.load(name)
    Draft202012Validator.check_schema(found)
    assert found["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert found["title"] == name
    assert found["description"].endswith(".")
    assert "\n" not in found["description"]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("patch", {"schema": 2}),
        ("patch", {"kind": "other"}),
        ("patch", {"grids": [0]}),
        ("patch", {"views": []}),
        ("patch", {"doc_id": -1}),
        ("patch", {"unknown": 1}),
        ("task-config", {"schema": 3}),
        ("task-config", {"kind": "other"}),
        ("details", {"rci2": "0.5"}),
        ("details", {"gate": 2}),
        ("objects", {"schema": 2}),
        ("objects", {"results": {"a_rci2": {"patch,none": 0.5}}}),
        ("analysis", {"runs": []}),
        ("pruned", {"schema": 2}),
        ("pruned", {"unknown": 1}),
    ],
)
def test_wrong_values_are_refused(files, name, change):
    assert judge_by(name).is_valid(files[name])
    assert not judge_by(name).is_valid({**files[name], **change})


@pytest.mark.parametrize("name", OWN)
def test_a_missing_key_is_refused(files, name):
    for key in schemas.load(name)["required"]:
        assert not judge_by(name).is_valid({other: one for other, one in files[name].items() if other != key}), key


def test_options_and_kinds_are_those_of_the_program():
    found = schemas.load("task-config")
    options = found["$defs"]["Options"]
    assert list(options["properties"]) == Options.names()
    assert sorted(options["properties"]["aggregation"]["additionalProperties"]["enum"]) == sorted(FORMS)
    assert (
        sorted(SUFFIXES) == found["properties"]["kind"]["enum"] == schemas.load("patch")["properties"]["kind"]["enum"]
    )
    Draft202012Validator(options).validate(WrapSpec("x", KINDS["rci"], (3,)).described()["options"])
    assert set(options["required"]) == set(Options.names()) - set(Options.LEFT_OUT)


def test_a_part_of_two_files_is_described_once():
    """Where two files have a part of the same name, it is the same type."""
    parts = {}
    for name in schemas.names():
        for part, found in schemas.load(name).get("$defs", {}).items():
            parts.setdefault(part, []).append(found)
    assert len(parts["Estimate"]) >= 5
    assert [part for part, found in parts.items() if part != "Made" and any(one != found[0] for one in found)] == []


def test_every_key_of_a_run_is_described_or_says_itself():
    """What a reader learns of the files of a run: most keys have a description of their own."""
    for name in ("details", "patch"):
        found = schemas.load(name)
        keys = [one for part in (found, *found["$defs"].values()) for one in part.get("properties", {}).values()]
        assert sum("description" in one for one in keys) > 0.5 * len(keys)


# --- the command --------------------------------------------------------------------------------


def test_the_list_has_one_line_each(capsys):
    assert main(["config", "schemas"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [f"schemas/{name}" for name in schemas.names()]
    assert set(OWN) <= set(schemas.names())
    for line, name in zip(lines, schemas.names(), strict=True):
        assert line.endswith(schemas.load(name)["description"])


@pytest.mark.parametrize("name", schemas.names())
def test_one_is_printed_as_json(capsys, name):
    assert main(["config", f"schemas/{name}"]) == 0
    assert json.loads(capsys.readouterr().out) == schemas.load(name)


def test_an_unknown_one_is_one_line(capsys):
    assert main(["config", "schemas/zzz"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("lmms-patch: no schema 'zzz'; allowed: analysis, ")
