"""Analysis from the Parquet file beside a log gives what analysis from the log gives, to the last bit, for runs of every kind."""

import copy
import json
import math

import pytest

from lmms_patch import commands
from lmms_patch.errors import RecordError
from lmms_patch.runs import packed, samples
from lmms_patch.runs.run import Result, find
from tests.making.finished import finish
from tests.making.recordings import guesses, record
from tests.making.runs import guesses_on_cells, mc_run, misled_by_cells, never_looks, world_run, write_run
from tests.stored import unpack

pytestmark = pytest.mark.usefixtures("small_tables")


def asked_in_part(folder):
    """Docs of a quick run: half asked whole, the others the image alone, or nothing; numbers do not matter here."""
    path = write_run(folder, {"toy_rci2": mc_run(60)})
    log = next(folder.glob("*.jsonl"))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for number, line in enumerate(lines):
        patch, how = line["patch"], number % 3
        patch["asked"] = {"metric": "acc", "block": how, "steps": 2 - how, "unasked": (0, 4, 5)[how]}
        if how:
            patch["asked"] |= {"p": [0.5, 0.25], "full": 0.7, "before": {"2": 0.8}, "after": {"2": 0.75}}
            patch["views"], patch["best"] = patch["views"][:1], {}
        if how == 2:
            patch["views"] = [{"kind": "full", "scores": {}, "items": {}}]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    data = json.loads(path.read_text())
    for name in ("analysis", "made"):  # so that its numbers are not held against the log's
        del data["results"]["toy_rci2"]["patch,none"][name]
    path.write_text(json.dumps(data))


def failed_and_raised(folder):
    """One call in ten failed, one scorer in twenty raised; two grids, clusters, items that are more than a number."""
    docs = [
        record(i, i % 2 / 2, {2: [0.0, 1.0, 0.5, 0.0], 3: [i % 3 / 2] * 9}, items=lambda score: {"score": score}, cluster=i // 3, category="ab"[i % 2],
               answer=("mc", 4, "A"), baselines=guesses("A", "ABCD"))
        for i in range(80)
    ]  # fmt: skip
    for i, one in enumerate(docs):
        if i % 10 == 0:
            one["views"][i % 14] |= {"scores": {}, "items": {}, "failed": "lost"}
            one["excluded"], one["best"] = {"2": "a call failed", "3": "a call failed"}, {}
        if i % 20 == 5:
            one["views"][3] |= {"scores": {}, "items": {}, "error": "raised"}
    finish(folder, docs, lambda items: sum(item["score"] for item in items) / len(items))


def worlds(folder):
    runs = {"toy_rci3": (guesses_on_cells, 3), "toy2_rci2": (misled_by_cells, 2), "toy3_rci2": (never_looks, 2)}
    write_run(
        folder,
        {
            name: world_run(say, 60, grid, per_cluster=2, base=name.partition("_")[0])
            for name, (say, grid) in runs.items()
        },
    )


def stored(name):
    def put(folder):
        unpack(folder)
        return folder / "runs" / name

    put.__name__ = name
    return put


def every_number(folder):
    try:
        other = commands.analyze(folder, draws=200, by_category=True)
    except RecordError:  # the run names no category
        other = commands.analyze(folder, draws=200)
    return json.dumps([commands.analyze(folder).to_json(), other.to_json()])


MAKERS = [worlds, asked_in_part, failed_and_raised, *(stored(name) for name in ("grids", "boxes"))]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_the_numbers_are_the_same_bit_for_bit(make, tmp_path, monkeypatch):
    folder = make(tmp_path) or tmp_path
    from_log = every_number(folder)
    for result in find([folder])[0].results:
        logged = copy.deepcopy(list(result.records()))
        samples.write([result])
        assert samples.records(result) == logged
    monkeypatch.setattr(Result, "records", lambda *_: pytest.fail("the log was read"))
    assert every_number(folder) == from_log


def with_views_in_another_order(line):
    line["patch"]["asked"] = {"metric": "acc", "block": 0, "steps": 2, "unasked": 1}
    line["patch"]["views"] = [line["patch"]["views"][i] for i in (0, 3, 1, 2)]
    line["patch"]["best"] = {"2": 1}


def with_half_a_character(line):
    line["patch"]["stratum"] = "\ud83d"


@pytest.mark.parametrize("change", [with_views_in_another_order, with_half_a_character])
def test_records_that_the_file_cannot_hold_come_from_the_log(change, tmp_path):
    write_run(tmp_path, {"toy_rci2": mc_run(20)})
    log = next(tmp_path.glob("*.jsonl"))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    change(lines[7])
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    [result] = find([tmp_path])[0].results
    logged = list(result.records())
    samples.write([result])
    assert samples._stored(result, ["score"]) is not None
    assert samples._stored(result, list(packed.COLUMNS))["record.own"].null_count == 100
    assert samples.records(result) == logged


def test_the_parts_are_all_the_keys_of_a_record():
    """A key that a later version adds to records must be packed too."""
    kept = {*packed._Alike.__struct_fields__, *packed._Own.__struct_fields__, "views"} - {"count"}
    assert kept == set(packed.Record.__struct_fields__)


def test_scores_keep_every_bit(tmp_path):
    scores = [0.1 + 0.2, 1e-300, math.pi, 1, -0.0, 2**49]
    docs = [record(i, score, {2: [score, 0.0, None, 1.0]}) for i, score in enumerate(scores)]
    finish(tmp_path, docs, lambda items: 0.5)
    [result] = find([tmp_path])[0].results
    samples.write([result])
    found = [one.views[0].scores["acc"] for one in samples.records(result)]
    assert [score.hex() for score in found] == [float(score).hex() for score in scores]
