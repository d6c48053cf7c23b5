"""Every reader refuses a run whose numbers are not those of its log, and opens one whose are."""

import json
import shutil
import time

import numpy as np
import pytest

from lmms_patch.app import api
from lmms_patch.compare import audit
from lmms_patch.compare.tasks import compare
from lmms_patch.errors import RecordError
from lmms_patch.present.board import store
from lmms_patch.present.report.gather import gather
from lmms_patch.runs import run as runs
from tests.making.finished import finish
from tests.making.recordings import record
from tests.making.runs import guess, magic_doc, mc_run, views_run, world_run, write_magic, write_run

READERS = {
    "show": lambda folder, spare: api.show(folder),
    "report": lambda folder, spare: gather(runs.find([folder])),
    "leaderboard": lambda folder, spare: store.update(store.Store(), store.find([folder]), spare),
    "compare": lambda folder, spare: compare(folder, spare),
}


@pytest.fixture(scope="module")
def true(tmp_path_factory):
    folder = tmp_path_factory.mktemp("true")
    write_run(folder / "one", {"toy_rci2": mc_run(60)})
    write_run(folder / "two", {"toy_rci2": mc_run(60, answers=1)})
    return folder


def edit(folder, change, name="toy_rci2"):
    (path,) = folder.glob("*_results.json")
    data = json.loads(path.read_text())
    change(data, data["results"][name])
    path.write_text(json.dumps(data))


def fip(data, values):
    values["acc,none"] = values["patch,none"]["analysis"]["fip"]["value"] = values["patch,none"]["analysis"]["gate"][
        "fip"
    ] = 7.0
    values["patch,none"]["analysis"]["fip"] |= {"low": 6.0, "high": 8.0}


def docs(data, values):
    values["patch,none"]["n_docs"] = values["patch,none"]["analysis"]["n_docs"] = 100_000


def around(data, values):
    values["patch,none"]["analysis"]["fip"] |= {"low": 0.0, "high": 0.1}


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_opens_a_true_run_and_refuses_an_edited_one(true, tmp_path, reader):
    READERS[reader](true / "one", true / "two")
    for change in (fip, docs, around, None):
        folder = tmp_path / getattr(change, "__name__", "log")
        shutil.copytree(true / "one", folder)
        if change is None:
            (log,) = folder.glob("*.jsonl")
            log.write_text(log.read_text().replace('"acc": 0.0', '"acc": 1.0', 1))
        else:
            edit(folder, change)
        with pytest.raises(RecordError) as caught:
            READERS[reader](folder, true / "two")
        assert "\n" not in str(caught.value)
        assert str(folder) in str(caught.value)


def test_a_run_of_which_every_call_failed_is_opened_beside_others(true, tmp_path):
    """Every call of a blind task fails where an adapter cannot answer without an image; a board of that run and others is still made."""
    spec, records, made = views_run("blind", [0.5], n=60)
    lost = [{**one, "views": [{"kind": "blind", "scores": {}, "items": {}, "failed": "no answer"}]} for one in records]
    write_run(tmp_path / "failed", {"toy_blind": (spec, lost, made)}, aggregate=lambda items: None)
    (result,) = runs.read(next((tmp_path / "failed").glob("*_results.json"))).results
    assert (result.docs, result.failed, result.scored) == (60, 60, 0)
    api.show(tmp_path / "failed")
    store.update(store.Store(), store.find([tmp_path / "failed", true / "one"]), tmp_path)
    edit(tmp_path / "failed", fip, "toy_blind")
    with pytest.raises(RecordError, match="fip"):
        api.show(tmp_path / "failed")


def swap(folder):
    """Two tasks change names: entries, configs, counts and logs; no number is forged."""
    names = {"toy_rci2": "tox_rci2", "tox_rci2": "toy_rci2"}
    (path,) = folder.glob("*_results.json")
    data = json.loads(path.read_text())
    for part in ("results", "configs", "n-samples"):
        data[part] = {names[name]: value for name, value in data[part].items()}
    path.write_text(json.dumps(data))
    logs = {name: next(folder.glob(f"*_samples_{name}.jsonl")) for name in names}
    texts = {name: log.read_text() for name, log in logs.items()}
    for name, log in logs.items():
        log.write_text(texts[names[name]])


def whole(folder, all_docs=60):
    """The first 20 of 60 docs under their own count."""
    (path,) = folder.glob("*_results.json")
    data = json.loads(path.read_text())
    data["config"] = {"limit": None}
    for name, values in data["results"].items():
        data["n-samples"][name] = {"original": 20, "effective": 20}
        values["patch,none"]["made"]["all_docs"] = all_docs
    path.write_text(json.dumps(data))


EDITS = {
    "two tasks swapped": swap,
    "a part as the whole": whole,
    "and the count of all docs": lambda folder: whole(folder, 20),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("reader", READERS)
def test_every_reader_holds_a_run_to_its_names_and_its_docs(tmp_path, reader, edit):
    worlds = {}
    for seed, name in enumerate(("toy", "tox")):
        spec, records, plan = world_run(knows, 60, seed=seed, base=name)
        worlds[f"{name}_rci2"] = spec, records[:20], plan
    part = {"config": {"limit": 20}, "n-samples": {name: {"original": 60, "effective": 20} for name in worlds}}
    write_run(tmp_path / "run", worlds, part_of_plan=True, **part)
    write_run(tmp_path / "other", worlds, part_of_plan=True, **part)
    READERS[reader](tmp_path / "run", tmp_path / "other")
    EDITS[edit](tmp_path / "run")
    with pytest.raises(RecordError) as caught:
        READERS[reader](tmp_path / "run", tmp_path / "other")
    assert "\n" not in str(caught.value)


def knows(stream, gold):
    """Knows 80 % on the full image; cells and wrong images tell nothing."""
    return [gold if stream.random() < 0.8 else guess(stream), *(guess(stream) for _ in range(4))], None


# --- other forms and metrics ------------------------------------------------------------------------


def result_of(path):
    (run,) = runs.find([path])
    return run.results[0]


def percent(items):
    return round(100 * float(np.mean(items)), 2)


def total(items):
    return float(np.sum(items))


def median(items):
    return float(np.median(items)) + 0.125 * len(items)


@pytest.mark.parametrize(("aggregate", "known"), [(percent, True), (total, True), (median, False)])
def test_aggregations_that_round_or_add_are_checked_and_others_are_named(tmp_path, aggregate, known):
    stream = np.random.default_rng(0)
    made = [
        record(i, float(stream.random() < 0.7), {2: (stream.random(4) < 0.4).astype(float).tolist()}) for i in range(77)
    ]
    path = finish(tmp_path, made, aggregate)
    unchecked = audit.check(result_of(path)).unchecked
    assert unchecked == (() if known else ("acc and what is made of it: only its own aggregation can compute it",))
    if known:
        data = json.loads(path.read_text())
        values = data["results"]["toy_rci2"]
        more = values["acc,none"] + 1.5
        values["acc,none"] = values["patch,none"]["analysis"]["fip"]["value"] = values["patch,none"]["analysis"][
            "gate"
        ]["fip"] = more
        values["patch,none"]["analysis"]["fip"]["high"] = more + 1
        path.write_text(json.dumps(data))
        with pytest.raises(RecordError, match="acc"):
            audit.check(result_of(path))


def test_another_native_metric_is_checked_where_it_is_a_mean(tmp_path):
    made = [record(i, float(i % 3 > 0), {2: [0.0] * 4}) for i in range(30)]
    for one in made:
        for view in one["views"]:
            view["scores"]["em"] = view["items"]["em"] = view["scores"]["acc"] / 2
    path = finish(tmp_path, made, flat={"em": 1 / 3, "em_mpp2": 0.0})
    assert audit.check(result_of(path)).unchecked == ()
    edit(tmp_path, lambda data, values: values.update({"em,none": 0.9}))
    assert audit.check(result_of(path)).unchecked == ("em: no mean of its docs",)


def test_magic_numbers_are_recomputed(tmp_path):
    made = [magic_doc(f"i{k}", used=(1,), right=k % 3 > 0) for k in range(30)]

    def narrower(data):
        found = data["results"]["toy_magic"]["magic,none"]
        found["made"]["numbers"] = 1
        one = found["magic"]["numbers"]["acc_exact"]
        one["low"] = one["value"] - 1e-3

    result = result_of(write_magic(tmp_path / "true", {"all": made}))
    assert audit.check(result).unchecked == ("the log as a whole (an earlier version recorded no digest of it)",)
    with pytest.raises(RecordError, match=r"acc_exact\.low"):
        audit.check(result_of(write_magic(tmp_path / "edited", {"all": made}, change=narrower)))


# --- cost ----------------------------------------------------------------------------------------------


def test_the_time_is_linear_in_the_docs(tmp_path):
    """8 times the docs in less than 16 times the time; the better of two tries each, as others share the machine."""
    taken = []
    for n in (150, 1200):
        result = result_of(write_run(tmp_path / str(n), {"toy_rci2": mc_run(n)}))
        tries = []
        for _ in range(2):
            start = time.process_time()
            audit.check(result)
            tries.append(time.process_time() - start)
        taken.append(min(tries))
    assert taken[1] < 16 * taken[0]
