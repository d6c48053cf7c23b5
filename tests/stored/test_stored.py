"""What runs and commands write is as the JSON schemas say; what pages show is what commands print of stored runs."""

import json
import re

import pytest
from jsonschema import Draft202012Validator

from lmms_patch.app import schemas
from lmms_patch.ask.kinds import KINDS
from tests.making.typed import typed
from tests.places import ROOT
from tests.sizes import size
from tests.stored import unpack

RULES = """schema: 1
rules:
  - {name: valid, kind: [rci], require: valid gate}
  - {name: score, metric: fip, min: 0.3, allow_limit: true}
"""
LINES = 2
"""So many lines of each log, from its first to its last part, are held against the schema in ``make test``, and all in ``make test-deep``."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return unpack(tmp_path_factory.mktemp("stored"))


def written(runs, out):
    """Yield commands that write JSON: schema, file, command line."""
    (out / "rules.yaml").write_text(RULES)
    a, b = runs / "demo", runs / "demo_b"
    yield "analysis", out / "a.json", ["analyze", a, "--by-category", "--json", out / "a.json"]
    yield "analysis", out / "e.json", ["analyze", "--ensemble", a, b, "--json", out / "e.json"]
    yield "gate", out / "g.json", ["gate", a, "--config", out / "rules.yaml", "--json", out / "g.json"]
    yield "compare", out / "c.json", ["compare", a, b, "--json", out / "c.json"]
    yield "report", out / "r" / "report.json", ["report", a, b, runs / "points", "--output", out / "r"]
    yield "magic-show", out / "m.json", ["magic", "show", runs / "magic", runs / "magic_b", "--json", out / "m.json"]


def of_runs(runs):
    """Yield (schema, value) of everything that a run writes."""
    for log in sorted(runs.rglob("*_samples_*.jsonl")):
        lines = log.read_text().splitlines()
        chosen = map(json.loads, lines[:: size(max(1, len(lines) // LINES), 1)])
        yield from (("patch", line["patch"]) for line in chosen if "patch" in line)
    for file in sorted(runs.rglob("*_results.json")):
        data = json.loads(file.read_text())
        objects = json.loads((file.parent / data["lmms_patch"]["file"]).read_text())
        yield "objects", objects
        yield from (
            ("task-config", config["lmms_patch"]) for config in data["configs"].values() if "lmms_patch" in config
        )
        yield from (
            ("details", value)
            for task in objects["results"].values()
            for name, value in task.items()
            if name.startswith("patch,")
        )


def test_each_kind_has_a_stored_run(runs):
    kinds = {
        config["lmms_patch"]["kind"]
        for file in runs.rglob("*_results.json")
        for config in json.loads(file.read_text())["configs"].values()
        if "lmms_patch" in config
    }
    assert kinds | {"magic"} == set(KINDS)  # what MAGIC was asked stands elsewhere in the config


def test_real_files_are_as_their_schemas_say(runs, tmp_path):
    values = list(of_runs(runs))
    items = (ROOT / "tasks/magic/mosaic/items.jsonl").read_text().splitlines()
    values += [("magic-item", json.loads(line)) for line in items[:: size(5, 1)]]
    for schema, file, line in written(runs, tmp_path):
        status, said = typed(*line)
        assert status in (0, 1, 3), said
        values.append((schema, json.loads(file.read_text())))
    judges = {name: Draft202012Validator(schemas.load(name)) for name, _ in values}
    wrong = [
        f"{name}: {error.json_path}: {error.message[:200]}"
        for name, value in values
        for error in judges[name].iter_errors(value)
    ]
    assert not wrong[:10]


@pytest.mark.parametrize(
    ("page", "blocks", "command", "run"),
    [("regions", 1, "show", "boxes"), ("magic", None, "magic show", "magic")],
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
