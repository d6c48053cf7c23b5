"""Kinds of edits of a true run, and what each door says of them: refused, told, or, of what no file can show, let through.

What is true is known from how the run was made. A run is edited in two ways. The plain editor changes a value. The
knowing editor also writes the digests of the results file and of the answers anew, which takes no key: then numbers are
still refused, and what only the digests cover is let through. docs/strangers.md lists that.
"""

import copy
import functools
import json
import operator
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lmms_patch.app import api
from lmms_patch.compare import audit
from lmms_patch.errors import PatchError
from lmms_patch.gate.judge import gate
from lmms_patch.present.explore.explorer import open_runs
from lmms_patch.runs import samples
from lmms_patch.runs.run import find
from tests.gate.test_tampered import knows
from tests.making.files import sealed
from tests.making.runs import guess, world_run, write_run
from tests.sizes import size

pytestmark = pytest.mark.usefixtures("small_tables")

TASK, DOCS = "toy_rci2", 24
REFUSED, TOLD, LET = "refused", "told", "let through"
P = ("results", TASK, "patch,none")
A, G, C = (*P, "analysis"), (*P, "analysis", "grids", "2"), ("configs", TASK, "lmms_patch")
GATE, LOOK, MADE = (*A, "gate"), (*A, "gate", "looks", 0), (*P, "made")
OTHER = object()
"""Another value of the same type."""
GONE = object()

NUMBERS = [
    *(("results", TASK, f"{name},none") for name in ("acc", "acc_mpp2", "rci2", "rci2_low", "gap2", "chance", "gate")),
    *((*P, name) for name in ("records", "n_docs", "n_failed", "n_null", "fip0", "ceiling", "rci2_adj", "n_excluded2")),
    *((*A, "fip", name) for name in ("value", "se", "low", "n", "draws")),
    *((*A, name) for name in ("metric", "n_docs", "clusters", "ceiling", "gold_below")),
    *((*A, "chance", name) for name in ("value", "floor", "published")),
    (*A, "chance", "floors", "stratum", "value"),
    *((*GATE, name) for name in ("valid", "fip", "chance", "delta", "threshold", "se", "marginal")),
    *((*LOOK, name) for name in ("value", "full", "other", "docs")),
    (*LOOK, "difference", "low"),
    *((*G, name) for name in ("excluded", "fip", "band", "span", "luck_ceiling", "mark")),
    *((*G, name, end) for name in ("mpp", "index", "gap") for end in ("value", "low")),
    *((*G, "adj", *at) for at in (("estimate", "value"), ("fip0",), ("null",), ("classes", 0, "state"))),
    *((*G, "shares", *at) for at in (("score", 0), ("win", 0), ("p",), ("p_cells", 0))),
    *((*A, "necessity", 0, *at) for at in (("shares", "text", "value"), ("counts", "text"), ("checked",))),
]
"""Numbers: refused whoever edits them."""

SETTINGS = {
    **{(*P, "settings", name): REFUSED for name in ("seed", "draws", "level", "delta", "chance", "form", "signed")},
    (*MADE, "numbers"): REFUSED,
    (*MADE, "log"): REFUSED,
    (*MADE, "answers"): REFUSED,
    (*MADE, "all_docs"): REFUSED,
    (*MADE, "image_sizes"): REFUSED,
    (*MADE, "images"): REFUSED,
    ("n-samples", TASK, "original"): REFUSED,
    ("n-samples", TASK, "effective"): LET,  # more than there are: all were asked
    (*C, "base"): REFUSED,
    (*C, "grids", 0): REFUSED,
    (*C, "options", "seed"): REFUSED,
    (*C, "options", "delta"): REFUSED,
    ("config", "offset"): REFUSED,
    **{(*MADE, name): LET for name in ("docs", "prompts", "lmms_eval", "lmms_patch")},
    **{("config", name): LET for name in ("model", "model_args", "gen_kwargs")},
    **{("configs", TASK, name): LET for name in ("dataset_path", "test_split", "generation_kwargs")},
    **{(name, TASK): LET for name in ("versions", "n-shot")},
    **{(name,): LET for name in ("date", "start_time", "model_name", "system_instruction_sha")},
}
"""What a result rests on, and what a knowing editor gets for it: what the log tells is refused, the rest is only claimed."""


def edits():
    """Every kind of edit of the results file: its path, another value, and what the knowing editor gets."""
    yield from ((path, OTHER, REFUSED) for path in NUMBERS)
    yield from ((path, OTHER, outcome) for path, outcome in SETTINGS.items())
    yield (*MADE, "numbers"), 999, REFUSED
    yield (*MADE, "answers"), GONE, TOLD
    yield (*MADE, "log"), GONE, TOLD
    yield ("n-samples", TASK), GONE, TOLD
    yield ("results", TASK, "em,none"), 0.987, TOLD
    yield (*A, "necessity"), GONE, REFUSED
    yield (*A, "curve"), {"4": {"value": 1.0}}, REFUSED
    yield ("lmms_patch", "digest"), GONE, REFUSED
    yield ("lmms_patch",), GONE, TOLD


def another(value):
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1 if isinstance(value, int) else value * 0.9 + 0.0213
    if value is None:
        return 0.5
    is_digest = len(value) == 16 and set(value) <= set("0123456789abcdef")
    return f"{int(value[0] == '0')}{value[1:]}" if is_digest else f"{value}x"


def apply(data, path, value):
    """Edit a results file's content in place."""
    at = functools.reduce(operator.getitem, path[:-1], data)
    if value is GONE:
        del at[path[-1]]
    else:
        at[path[-1]] = another(at[path[-1]]) if value is OTHER else value


@pytest.fixture(scope="module")
def true(tmp_path_factory):
    """A run as this version writes it, with its Parquet file."""
    folder = tmp_path_factory.mktemp("true")
    about = {"config": {"model": "hf", "model_args": "pretrained=a/b", "gen_kwargs": "", "limit": None, "offset": 0}}
    path = write_run(folder, {TASK: world_run(knows, DOCS, per_cluster=2)}, model_name="a/b", **about)
    data = json.loads(path.read_text())
    data["configs"][TASK]["generation_kwargs"] = "until"
    path.write_text(json.dumps(data))
    samples.write(find([sealed(path)])[0].results)
    return folder


@pytest.fixture
def run(true, tmp_path):
    """A copy to edit."""
    shutil.copytree(true, tmp_path / "run")
    return tmp_path / "run"


def outcome(folder):
    """What the audit says of a run: refused; else what ``require: checked`` does not let through is told."""
    try:
        found = [audit.check(one) for run in find([folder]) for one in run.results]
    except PatchError:
        return REFUSED
    assert found, "no result is left to be judged"
    return TOLD if any(one.whole for one in found) else LET


def write(folder, data, *, knowing):
    (path,) = folder.glob("*_results.json")
    path.write_text(json.dumps(data))
    if knowing and "digest" in data.get("lmms_patch", {}):
        sealed(path, answers=False)


def test_a_true_run_is_let_through(run):
    assert outcome(run) == LET
    assert gate(run, rules("checked")).status == 0


def test_no_edit_of_a_results_file_is_let_through(true, run):
    """The table: each kind of edit, by the plain and by the knowing editor."""
    (path,) = true.glob("*_results.json")
    data, found = json.loads(path.read_text()), {}
    for at, value, expected in list(edits())[:: size(20, 1)]:
        for knowing in (False, True):
            edited = copy.deepcopy(data)
            apply(edited, at, value)
            write(run, edited, knowing=knowing)
            said = outcome(run)
            if said != (expected if knowing or at[0] == "lmms_patch" else REFUSED):
                found[".".join(map(str, at)), value if isinstance(value, (int, float)) else "", knowing] = said
    assert not found


def text(line, key, value):
    return {**line, key: value}


def of_patch(change):
    def edit(lines):
        change(lines[3]["patch"])
        return lines

    return edit


LOG = {
    "a score": of_patch(lambda one: one["views"][0].update(scores={"acc": 0.5}, items={"acc": 0.5})),
    "the best cell": of_patch(lambda one: one["best"].update({"2": 1 + one["best"]["2"] % 4})),
    "a doc's number": of_patch(lambda one: one.update(doc_id=DOCS)),
    "a failed call": of_patch(lambda one: one["views"][1].update(failed="no", scores={}, items={})),
    "a gold": of_patch(lambda one: one["answer"].update(gold="Z")),
    "a category": of_patch(lambda one: one["fields"].update(category="z")),
    "a cluster": of_patch(lambda one: one["fields"].update(cluster=77)),
    "an image": of_patch(lambda one: one.update(images="f" * 16)),
    "a wrong image's answer": of_patch(lambda one: one["wrong_image"]["views"][0].update(said="forged")),
    "a line gone": lambda lines: lines[1:],
    "a line twice": lambda lines: [*lines, lines[0]],
    "an answer": lambda lines: [text(lines[0], "filtered_resps", ["forged"] * 10), *lines[1:]],
    "a prompt": lambda lines: [text(lines[0], "input", "Which else?"), *lines[1:]],
    "a target": lambda lines: [text(lines[0], "target", "forged"), *lines[1:]],
    "two docs' answers": lambda lines: [
        text(lines[0], "filtered_resps", ["B"] * 10),
        text(lines[1], "filtered_resps", ["A"] * 10),
        *lines[2:],
    ],
}


@pytest.mark.parametrize("change", LOG.values(), ids=LOG)
def test_no_edit_of_a_log_is_let_through(run, change):
    (log,) = run.glob("*.jsonl")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text("".join(json.dumps(line) + "\n" for line in change(lines)))
    assert outcome(run) == REFUSED
    with pytest.raises(PatchError):
        gate(run, rules())


# --- the same at every door -------------------------------------------------------------------------


def rules(*require):
    more = [{"name": "checked", "require": list(require)}] if require else []
    return {"schema": 1, "rules": [{"name": "score", "metric": "fip", "min": 0, "interval": False}, *more]}


def explored(folder):
    """What the explorer's page is told beside a task."""
    explorer = open_runs([folder])
    explorer.load()
    if explorer.fault:
        raise PatchError(explorer.fault)
    return [task.note for task in explorer.tasks]


def shown(folder, tmp_path):
    """By door, a function that passes through it and returns what it says beside the numbers."""
    board, report = tmp_path / "board", tmp_path / "report"
    return {
        "gate": lambda: gate(folder, rules()).notes,
        "show": lambda: api.show(folder).unchecked,
        "report": lambda: (api.report([folder], report), (report / "index.html").read_text())[1],
        "leaderboard": lambda: (api.leaderboard([folder], board), (board / "leaderboard.md").read_text())[1],
        "explore": lambda: explored(folder),
        "compare": lambda: api.compare(folder, folder).tasks[0].warnings,
    }


DOORS = ("gate", "show", "report", "leaderboard", "explore", "compare")


@pytest.fixture(scope="module")
def at_chance(tmp_path_factory):
    """A run whose model guesses: no index is read."""
    folder = tmp_path_factory.mktemp("chance")
    guesses = world_run(lambda stream, gold: [[guess(stream) for _ in range(5)] for _ in "12"], DOCS)
    sealed(write_run(folder, {TASK: guesses}))
    return folder


@pytest.mark.parametrize("door", DOORS)
def test_an_index_that_was_forged_is_refused_at_every_door(at_chance, tmp_path, door):
    """Chance, gate and index of a task at chance, wherever they stand; the log is honest, and the digest written anew.

    The explorer shows the log's docs, says it, and shows none of the file's numbers.
    """
    folder = tmp_path / "run"
    shutil.copytree(at_chance, folder)
    shown(folder, tmp_path / "true")[door]()
    (path,) = folder.glob("*_results.json")
    data = json.loads(path.read_text())
    details = data["results"][TASK]["patch,none"]
    analysis = details["analysis"]
    grid, judged = analysis["grids"]["2"], analysis["gate"]
    assert judged["valid"] is not True
    fip, mpp = analysis["fip"]["value"], grid["mpp"]["value"]
    index = {**analysis["fip"], "value": 1 - mpp / fip, "low": -mpp / fip - 1, "high": 1.0}
    judged.update(valid=True, chance=0.0, threshold=max(judged["delta"], 2 * judged["se"]), reason="", looks=[])
    analysis["chance"].update(value=0.0)
    grid.update(index=index, gap={**index, "value": fip - mpp, "low": -1.0}, reason="")
    flat = {"chance": 0.0, "gate": 1, "rci2": index["value"], "rci2_low": index["low"], "rci2_high": index["high"]}
    flat |= {"gap2": fip - mpp, "gap2_low": -1.0, "gap2_high": 1.0}
    details.update(flat)
    data["results"][TASK].update({f"{name},none": value for name, value in flat.items()})
    write(folder, data, knowing=True)
    if door == "explore":  # its docs come from the log
        assert "but the run reported" in str(shown(folder, tmp_path)[door]())
        return
    with pytest.raises(PatchError, match="but the run reported"):
        shown(folder, tmp_path)[door]()


@pytest.mark.parametrize("door", ["gate", "show", "report", "leaderboard"])
def test_without_a_log_every_door_says_that_nothing_was_checked(run, tmp_path, door):
    for file in (*run.glob("*.jsonl"), *run.glob("*.parquet")):
        file.unlink()
    assert "no sample log beside the results file" in str(shown(run, tmp_path)[door]())


@pytest.mark.parametrize("door", ["gate", "report", "leaderboard", "explore"])
def test_answers_and_settings_without_a_digest_are_said_to_be_unchecked(run, tmp_path, door):
    """As in runs of earlier versions."""
    (path,) = run.glob("*_results.json")
    data = json.loads(path.read_text())
    del data["lmms_patch"], data["results"][TASK]["patch,none"]["made"]["answers"]
    path.write_text(json.dumps(data))
    said = str(shown(run, tmp_path)[door]())
    assert "settings, model and date" in said
    assert "prompts, answers and golds" in said
    assert gate(run, rules("checked")).status == 1


def test_answers_forged_in_a_parquet_file_are_not_shown(run, tmp_path):
    """Its seal is computed anew, and the log is honest: the explorer shows the log's answers."""
    (path,) = run.glob("*.parquet")
    table, about = pq.read_table(path), pq.read_schema(path).metadata
    at = table.schema.get_field_index("answer")
    forged = table.set_column(at, table.schema.field(at), pa.array(["forged answer"] * len(table), pa.string()))
    with pq.ParquetWriter(path, table.schema.with_metadata(about)) as out:
        out.write_table(forged)
    samples._seal(path)
    assert "forged answer" not in samples.table(find([run])[0].results[0], ["answer"])["answer"].to_pylist()
    for door in ("report", "explore"):
        assert "forged answer" not in str(shown(run, tmp_path)[door]())


def test_what_the_audit_lets_through_is_what_a_gate_lets_through(true, run):
    (path,) = true.glob("*_results.json")
    data = json.loads(path.read_text())
    for at, value, expected in edits():
        for knowing in (False, True):
            edited = copy.deepcopy(data)
            apply(edited, at, value)
            write(run, edited, knowing=knowing)
            try:
                judged = gate(run, rules("checked"))
            except PatchError:
                continue
            checked = next(one for one in judged.verdicts if one.metric == "checked")
            assert (checked.call == "pass") == (knowing and expected == LET), at
            assert checked.call == "pass" or any("not checked" in note for note in judged.notes), at
