"""The fast check of a record says what the slow one says; both let pass what we write."""

import copy
import json
from random import Random

import pytest

from lmms_patch.runs.record_checks import fault, is_right
from tests.fuzz.damage import json_text, tree_changed
from tests.making.boxes import planted
from tests.making.runs import guesses_on_cells, mc_run, world_run
from tests.making.tst import tst_record

NOTHING = "patch must be as docs/records.md says"


def failed():
    (_, (record, *_), _) = mc_run(n=4)
    record["views"][1] |= {"failed": "[LMMS_EVAL_REQUEST_FAILED]", "scores": {}, "items": {}}
    return {**record, "best": {}, "excluded": {"2": "a call failed"}}


RECORDS = [*mc_run(n=6)[1], *world_run(guesses_on_cells, n=6, grid=3)[1], *planted(6), tst_record(), failed()]


@pytest.mark.parametrize("record", RECORDS, ids=range(len(RECORDS)))
def test_what_we_write_is_right(record):
    record = json.loads(json.dumps(record))
    assert is_right(record)
    assert fault(record) == NOTHING


def test_both_checks_are_one():
    """Over thousands of changed records; what JSON cannot hold is no record."""
    stream, wrong = Random(0), 0
    for _ in range(4000):
        changed, said = tree_changed(stream, json.loads(json.dumps(stream.choice(RECORDS))))
        try:
            changed = json.loads(json_text(changed))
        except (ValueError, RecursionError):
            continue
        if isinstance(changed, dict):
            changed["schema"] = 2  # asked before
            assert is_right(changed) == (fault(changed) == NOTHING), (said, fault(changed))
            wrong += not is_right(changed)
    assert 1000 < wrong < 3500


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
        (put("views", 0, "scores", "acc", float("nan")), "patch.views[0].scores.acc must be a finite number or null, not nan"),
        (put("views", 0, "scores", "acc", True), "patch.views[0].scores.acc must be a finite number or null, not true"),
        (put("views", 0, "scores", "acc", 10**400), "patch.views[0].scores.acc must be a finite number or null, not a number that is too large"),
        (put("views", 2, "n", 12), "patch.views[2].n must be a whole number from 2 to 9, not 12"),
        (put("views", 2, "cell", 1), "patch.views[2].cell must be the number of the cell in its row and column"),
        (put("views", 1, "boxes", [[0, 0, 9]]), "patch.views[1].boxes[0] must be a list of 4, not of 3"),
        (put("views", []), "patch.views must be a list of at least 1, not of 0"),
        (put("best", "2", 5), "patch.best.2 must be the place of one of its 5 views"),
        (put("best", {"x": 0}), "patch.best must be by grid or set of boxes, not 'x'"),
        (put("answer", "gold", ["A"]), "patch.answer.gold must be a text or null, not a list"),
        (put("baselines", 0, "roles", ["judge"]), "patch.baselines[0].roles[0] must be one of 'gold', 'option'"),
        (put("lent", "p", [100]), "patch.lent.p[0] must be a whole number from 0 to 99, not 100"),
        (put("lent", "full", []), "patch.lent must have as many numbers in each of its lists"),
        (put("image_sizes", [[9]]), "patch.image_sizes[0] must be a list of 2, not of 1"),
        (lambda record: record.pop("best"), "patch.best is missing"),
        (lambda record: record["views"][1].pop("row"), "patch.views[1].row is missing"),
        (lambda record: record["views"][1].update({"\x1b[31m\n": 1}), ""),
    ],
)
def test_the_place_is_named(change, said):
    record = copy.deepcopy(RECORDS[0])
    assert record["lent"]["to"]
    change(record)
    assert fault(record).startswith(said)
    assert is_right(record) == (not said)
    assert fault(record).isprintable()
