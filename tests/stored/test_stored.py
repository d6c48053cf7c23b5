"""Every number of stored runs, as this version makes it: ``tests.stored`` says what is compared.

And schemas, of real files. ``make test`` leaves out commands that repeat others' numbers, and judges some files of each
schema.
"""

import json
import re
import zlib

import pytest
from jsonschema import Draft202012Validator

from lmms_patch.app import schemas
from lmms_patch.app.cli import main
from lmms_patch.ask.kinds import KINDS
from lmms_patch.present.report.figures import canvas
from tests.making.reports import undrawn
from tests.places import ROOT
from tests.sizes import DEEP, size
from tests.stored import columns, commands, differences, numbers, repeats, stored, unpack

SCHEMAS = {
    "analyze": "analysis",
    "gate": "gate",
    "report": "report",
    "compare": "compare",
    "leaderboard": "leaderboard",
    "magic": "magic-show",
}
"""By command, the schema of what it writes."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The unpacked runs, the folder that the commands wrote to, and the numbers that they wrote."""
    folder = tmp_path_factory.mktemp("stored")
    (folder / "out").mkdir()
    runs = unpack(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canvas, "write", size(undrawn, canvas.write))
        return runs, folder / "out", numbers(runs, folder / "out", main, few=not DEEP)


def test_every_number_of_earlier_runs_stays(made):
    found = made[-1]
    before = {name: of for name, of in stored().items() if DEEP or not repeats(name)}
    assert found.keys() == before.keys()
    assert not list(differences(before, found))
    assert {name.split()[0] for name, of in found.items() if of["wrote"]} == {*SCHEMAS, "show", "gap", "export"}


NOTHING = ["analyze regions_a", "analyze regions_b", "analyze tst", "analyze damaged", "report damaged"]
"""Commands that say why there is nothing to write."""


def test_each_kind_has_a_stored_run(made):
    kinds = {config["lmms_patch"]["kind"] for file in made[0].rglob("*_results.json") for config in json.loads(file.read_text())["configs"].values()
             if "lmms_patch" in config}  # fmt: skip
    assert kinds | {"magic"} == set(KINDS)  # what MAGIC was asked stands elsewhere in the config
    assert [name for name, found in made[-1].items() if not found["wrote"] and not name.startswith("gate")] == [
        name for name in NOTHING if name in made[-1]
    ]


LINES = 2
"""So many lines of each log, from its first to its last part, are held against the schema in ``make test``, and all in ``make test-deep``."""
FILES = 3
"""The same, files of each command."""


def of_runs(runs):
    """Yield (schema, value) of everything that a run writes.

    Runs of regions and MAGIC are made without the harness: their results are in part.
    """
    for log in sorted(runs.rglob("*_samples_*.jsonl")):
        lines = [] if log.parent.name == "damaged" else log.read_text().splitlines()
        chosen = map(json.loads, lines[:: size(max(1, len(lines) // LINES), 1)])
        yield from (("patch", line["patch"]) for line in chosen if "patch" in line)
    for file in sorted(runs.rglob("*_results.json")):
        data = json.loads(file.read_text())
        if "lmms_patch" in data:
            yield "objects", json.loads((file.parent / data["lmms_patch"]["file"]).read_text())
        yield from (
            ("task-config", config["lmms_patch"]) for config in data["configs"].values() if "lmms_patch" in config
        )
        whole = file.parent.name.startswith(("mosaic", "tst", "world"))
        yield from (
            ("details", task["patch,none"]) for task in data["results"].values() if whole and task.get("patch,none")
        )


def test_real_files_are_as_their_schemas_say(made):
    runs, out, _ = made
    values = [
        *of_runs(runs),
        *(
            ("magic-item", json.loads(line))
            for line in (ROOT / "tasks/magic/mosaic/items.jsonl").read_text().splitlines()[:: size(5, 1)]
        ),
    ]
    written = [
        (SCHEMAS.get(name.split()[0]), file)
        for name, _, file in commands(runs, out)
        if file and file.is_file() and file.name != "board.json"
    ]
    for schema in set(SCHEMAS.values()):
        files = [file for name, file in written if name == schema]
        values += [(schema, json.loads(file.read_text())) for file in files[:: size(max(1, len(files) // FILES), 1)]]
    judges = {name: Draft202012Validator(schemas.load(name)) for name, _ in values}
    wrong = [
        f"{name}: {error.json_path}: {error.message[:200]}"
        for name, value in values
        for error in judges[name].iter_errors(value)
    ]
    assert not wrong[:10]
    assert set(judges) == {"patch", "task-config", "details", "objects", "magic-item", *SCHEMAS.values()}


def test_a_difference_is_seen():
    before = stored()
    task = before["analyze mosaic"]["wrote"]["runs"][0]["tasks"][0]["metrics"]
    name = next(key for key, value in task.items() if isinstance(value, float))
    task[name] += 1e-12
    assert not list(differences(stored(), before))
    task[name] += 1e-8
    assert len(list(differences(stored(), before))) == 1


def test_a_difference_in_a_printed_page_and_in_a_table_of_docs_is_seen():
    before = stored()
    page = before["show clips"]["wrote"]
    before["show clips"]["wrote"] = page.replace("0.917", "0.918", 1).replace("Shown otherwise", "Shown in another way")
    (told,) = differences(stored(), before)
    assert "'0.917'" in told
    assert "'0.918'" in told
    assert len(told) < 300
    rows = [{"doc": 1, "score": 1.0, "answer": "a"}, {"doc": 2, "score": 0.0, "answer": None}]
    swapped = [{**rows[0], "score": 0.0}, {**rows[1], "score": 1.0}]
    assert columns("\n".join(map(json.dumps, rows))) == {
        "rows": 2,
        "doc": {"values": 2, "sum": 3.0, "square": 9.0},
        "score": {"values": 2, "sum": 1.0, "square": 1.0},
        "answer": {"values": 1, "checksum": zlib.crc32(b'["a"]')},
    }
    assert [
        where.split(":")[0]
        for where in differences(*(columns("\n".join(map(json.dumps, each))) for each in (rows, swapped)))
    ] == ["$.score.square"]


@pytest.mark.parametrize(
    ("page", "blocks", "command", "run"),
    [("regions", 1, "show", "regions_a"), ("magic", None, "magic show", "magic_a")],
)
def test_pages_show_what_the_commands_print(made, capsys, page, blocks, command, run):
    """The examples of these pages, or so many of them, are of stored runs: some lines are left out, and long ones broken."""
    assert main([*command.split(), str(made[0] / run), "--wide"]) == 0
    printed = capsys.readouterr().out
    shown = "".join(
        re.findall(r"^```text\n(.*?)^```", (ROOT / f"docs/{page}.md").read_text(), re.M | re.S)[:blocks]
    ).splitlines()
    shown = [line for line in shown if line != "..."]
    tables = [line for line in shown if "  " in line or set(line) == {"-"}]
    assert len(tables) >= 6
    assert set(tables) <= set(printed.splitlines())
    words = " ".join(printed.split())
    assert [line for line in shown if line not in tables and line not in words] == []
