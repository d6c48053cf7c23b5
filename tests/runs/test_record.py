"""Records: what we write comes back, and what somebody changed is refused with its place."""

import copy
import json
from functools import partial
from random import Random

import msgspec
import pytest

from lmms_patch.errors import RecordError
from lmms_patch.runs.record import record_of
from tests.ask.test_boxes import planted
from tests.fuzz.damage import json_text, tree_changed
from tests.making.logged import read_samples
from tests.making.runs import guesses_on_cells, mc_run, world_run
from tests.making.tst import tst_record
from tests.sizes import size


def failed():
    (_, (record, *_), _) = mc_run(n=4)
    record["views"][1] |= {"failed": "[LMMS_EVAL_REQUEST_FAILED]", "scores": {}, "items": {}}
    return {**record, "best": {}, "excluded": {"2": "a call failed"}}


RECORDS = [*mc_run(n=6)[1], *world_run(guesses_on_cells, n=6, grid=3)[1], *planted(6), tst_record(), failed()]


@pytest.mark.parametrize("patch", RECORDS, ids=range(len(RECORDS)))
def test_what_we_write_is_right_and_comes_back(patch):
    patch = json.loads(json.dumps(patch))
    assert msgspec.to_builtins(record_of(patch)) == patch


def told(read):
    """What a reader says of a file; empty where it reads it."""
    try:
        read()
    except RecordError as error:
        return str(error)
    return ""


def test_a_changed_record_is_refused_in_one_line_or_read(tmp_path):
    """Over thousands of changed records, whole and as lines of a log: what is refused says where.

    Both ways of reading are one.
    """
    stream, refused, turns = Random(0), 0, size(600, 2000)
    for _ in range(turns):
        changed, how = tree_changed(stream, json.loads(json.dumps(stream.choice(RECORDS))))
        try:
            changed = json.loads(json_text(changed))
        except (ValueError, RecursionError):
            continue
        if isinstance(changed, dict):
            (tmp_path / "log").write_text(json.dumps({"patch": changed}) + "\n")
            whole, line = (
                told(partial(record_of, changed)),
                told(partial(list, read_samples(tmp_path / "log", lean=True))),
            )
            assert bool(whole) == bool(line), (how, whole, line)
            assert (whole + line).isprintable(), how
            assert len(whole) < 600
            refused += bool(whole)
    assert 0.15 * turns < refused < 0.9 * turns


def put(*keys):
    *path, last, value = keys

    def change(record):
        for key in path:
            record = record[key]
        record[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (put("views", 0, "scores", "acc", float("nan")), "patch.views[0].scores.acc must be a finite number, not nan"),
        (put("views", 0, "scores", "acc", True), "patch.views[0].scores.acc must be a finite number or null, not true"),
        (put("views", 0, "scores", "acc", 10**400), "patch.views[0].scores.acc must be a finite number"),
        (put("views", 2, "n", 12), "patch.views[2].n must be a whole number <= 9, not 12"),
        (put("views", 2, "cell", 1), "patch.views[2].cell must be the number of the cell in its row and column"),
        (put("views", 1, "boxes", [[0, 0, 9]]), "patch.views[1].boxes[0] must be a list of length >= 4, not of 3"),
        (put("views", []), "patch.views must be a list of length >= 1, not of 0"),
        (put("best", "2", 5), "patch.best.2 must be the place of one of its 5 views"),
        (
            put("best", {"x": 0}),
            "a key of patch.best must be a text matching regex '^([1-9]|[1-5][0-9]|6[0-4]|relevant|adversarial|beside|turns)$', not 'x'",
        ),
        (put("answer", "gold_at", 5), "patch.answer.gold_at must be the place of one of its "),
        (put("views", 3, "names", 5), "patch.views name more than the "),
        (put("answer", "gold", ["A"]), "patch.answer.gold must be a text or null, not a list"),
        (
            put("baselines", 0, "roles", ["judge"]),
            'patch.baselines[0].roles[0] must be one of "constant", "gold", "option", "other", "stratum", not',
        ),
        (put("image_sizes", [[9]]), "patch.image_sizes[0] must be a list of length >= 2, not of 1"),
        (lambda patch: patch.pop("best"), "patch.best is missing"),
        (lambda patch: patch["views"][1].pop("row"), "patch.views[1].row is missing"),
        (lambda patch: patch["views"][1].update({"\x1b[31m\n": 1}), ""),
    ],
)
def test_the_place_is_named(change, said):
    patch = copy.deepcopy(RECORDS[0])
    change(patch)
    if not said:
        record_of(patch)
        return
    with pytest.raises(RecordError) as told:
        record_of(patch)
    assert str(told.value).startswith(said)
    assert str(told.value).isprintable()


def test_of_several_faults_no_key_is_named_that_is_right():
    """msgspec does not name the key of a mapping.

    With another fault behind it, each of its keys alone makes a record that is refused.
    """
    patch = copy.deepcopy(RECORDS[0])
    patch["views"][0]["scores"] = {"right": 1.0, "wrong": "x", "null": None}
    patch["stratum"] = 5
    with pytest.raises(
        RecordError, match=r"^patch\.views\[0\]\.scores\.wrong must be a finite number or null, not 'x'$"
    ):
        record_of(patch)
    del patch["stratum"]
    with pytest.raises(
        RecordError, match=r"^patch\.views\[0\]\.scores\.wrong must be a finite number or null, not 'x'$"
    ):
        record_of(patch)
    patch["views"][1]["items"] = 5
    with pytest.raises(
        RecordError, match=r"^patch\.views\[0\]\.scores\.wrong must be a finite number or null, not 'x'$"
    ):
        record_of(patch)
