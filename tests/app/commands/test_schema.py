"""The schemas: true of what is written, and wrong of what is changed; the command that prints them."""

import contextlib
import dataclasses
import functools
import json
import operator
import shutil

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from lmms_patch.app import api, schemas
from lmms_patch.app.cli import main
from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.spec import SUFFIXES, Options, WrapSpec
from lmms_patch.rci import recompute
from lmms_patch.runs.results import objects_text
from lmms_patch.stats.forms import FORMS
from lmms_patch.tst import controls, pruned
from lmms_patch.tst.items import Item
from lmms_patch.tst.prune import Pruned, Round
from lmms_patch.tst.selection import PruneSettings
from tests.making.runs import mc_run, write_run
from tests.making.tst import tst_record, write_tst
from tests.sizes import size

OWN = ("analysis", "details", "objects", "patch", "pruned", "task-config")


def judge_by(name):
    return Draft202012Validator(schemas.load(name))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of a group of two tasks."""
    one, two = mc_run(n=60), mc_run(n=60, seed=1, per_cluster=3)
    path = write_run(
        tmp_path_factory.mktemp("run"), {"a_rci2": one, "b_rci2": two}, groups={"g_rci2": ["a_rci2", "b_rci2"]}
    )
    return path, json.loads(path.read_text())


@pytest.fixture(scope="module")
def tested(tmp_path_factory):
    """A run with a text-only cross-validation, whose records have what the harness writes of one."""
    path = write_tst(tmp_path_factory.mktemp("tst"))
    return path, json.loads(path.read_text())


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
        "by": "locality",
        "model": "boosting",
        "judge": "linear",
        "folds": 5,
        "grouping": "none",
    }
    overlap = dataclasses.asdict(controls.Overlap(1, 2, 3, 0.5, 0.25, 0.3, 0.2))
    pruned.write(
        folder,
        "toy",
        items,
        found,
        settings,
        {"judged": dataclasses.asdict(judged), "overlap": overlap} if more is None else more,
    )
    return json.loads((folder / "pruned.json").read_text())


def objects_in(values):
    return {key: value for key, value in values.items() if key.startswith("patch,")}


@pytest.fixture(scope="module")
def files(run, tested, tmp_path_factory):
    """Files of each schema, as they are written."""
    folder = tmp_path_factory.mktemp("files")
    path, _ = run
    logs = [
        json.loads(line)["patch"]
        for log in sorted(path.parent.glob("*.jsonl"))
        for line in log.read_text().splitlines()
    ]
    shutil.copytree(path.parent, folder / "again")
    again = folder / "again" / path.name
    again.write_text(
        json.dumps({**json.loads(again.read_text()), "start_time": -1.0, "versions": {}})
    )  # another run with the same answers
    recomputed = json.loads(json.dumps(api.analyze([path, again], by_category=True).to_json()))
    assert recomputed["warnings"]
    return {
        "patch": [*logs, {**logs[0], "best": {}, "excluded": {"2": "too small"}}, tst_record()],
        "task-config": [config["lmms_patch"] for _, found in (run, tested) for config in found["configs"].values()],
        "details": [
            value
            for _, found in (run, tested)
            for task in found["results"].values()
            for value in objects_in(task).values()
        ],
        "objects": [
            json.loads(objects_text({task: objects_in(values) for task, values in found["results"].items()})[0])
            for _, found in (run, tested)
        ],
        "analysis": [
            recomputed,
            json.loads(json.dumps(api.analyze([path], recompute.Changes(category="a")).to_json())),
        ],
        "pruned": [pruned_file(folder / "a"), pruned_file(folder / "b", {})],
    }


@pytest.mark.parametrize("name", schemas.names())
def test_each_is_a_schema_of_its_draft_with_a_title_and_one_line(name):
    found = schemas.load(name)
    Draft202012Validator.check_schema(found)
    assert found["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert found["title"] == name
    assert found["description"].endswith(".")
    assert "\n" not in found["description"]


@pytest.mark.parametrize("name", OWN)
def test_files_as_they_are_written_are_right(files, name):
    assert files[name]
    for one in files[name]:
        judge_by(name).validate(one)


def mutations(value, schema, top, place=(), known=None):
    """Every change of a file that its schema forbids by a ``required`` key or a ``type``: (place, changed file as a function).

    A key of a type is changed where the type first has it; in other places, it is the same part of the schema that
    judges it.
    """
    known, schema = set() if known is None else known, resolved(schema, top)
    if isinstance(value, dict):
        for key in schema.get("required", ()):
            if (id(schema), key, "missing") not in known:
                known.add((id(schema), key, "missing"))
                yield (*place, key), "missing"
        for key, inner in value.items():
            if (id(schema), key) not in known:
                known.add((id(schema), key))
                yield from mutations(
                    inner,
                    schema.get("properties", {}).get(key, schema.get("additionalProperties", {})),
                    top,
                    (*place, key),
                    known,
                )
    elif isinstance(value, list) and value:
        yield from mutations(value[0], schema.get("items", {}), top, (*place, 0), known)
    if place and ({"type", "enum", "const"} & set(schema)):
        yield place, "type"


def resolved(schema, top):
    if not isinstance(schema, dict):
        return {}
    if "$ref" in schema:
        return resolved(top["$defs"][schema["$ref"].rpartition("/")[2]], top)
    if "anyOf" in schema:
        return next((resolved(one, top) for one in schema["anyOf"] if resolved(one, top).get("type") != "null"), {})
    return schema


@contextlib.contextmanager
def changed(value, place, how):
    """Leave a key of a file out, or give it a value of another type, and put it back."""
    *way, key = place
    inner = functools.reduce(operator.getitem, way, value)
    kept = inner[key]
    if how == "missing":
        del inner[key]
    else:
        inner[key] = "something else" if isinstance(kept, dict) else {"something": "else"}
    yield
    inner[key] = kept


@pytest.mark.parametrize("name", OWN)
def test_a_missing_key_and_a_wrong_type_are_refused(files, name):
    judge, schema = judge_by(name), schemas.load(name)
    seen = {"missing": 0, "type": 0}
    for one in (files[name][0], files[name][-1]):
        places = list(mutations(one, schema, schema))
        for place, how in places[:: size(max(1, len(places) // 50), 1)]:
            with changed(one, place, how):
                assert not judge.is_valid(one), (place, how)
            seen[how] += 1
        assert judge.is_valid(one)
    assert min(seen.values()) >= 3


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("patch", {"schema": 1}),
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
def test_other_wrong_values_are_refused(files, name, change):
    assert not judge_by(name).is_valid({**files[name][0], **change})


def test_options_and_kinds_are_those_of_the_program():
    found = schemas.load("task-config")
    options = found["$defs"]["Options"]
    assert list(options["properties"]) == Options.names()
    assert sorted(options["properties"]["aggregation"]["additionalProperties"]["enum"]) == sorted(FORMS)
    assert (
        sorted(SUFFIXES) == found["properties"]["kind"]["enum"] == schemas.load("patch")["properties"]["kind"]["enum"]
    )
    Draft202012Validator(options).validate(WrapSpec("x", KINDS["rci"], (3,)).described()["options"])
    assert set(options["required"]) == set(Options.names()) - set(Options.LATE)


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
