"""What is only a part never passes as whole: docs without answers, grids that are gone, --limit, a rank's docs."""

import json

import pytest

from lmms_patch.errors import OptionError
from lmms_patch.gate import rules
from tests.gate.running import DROP, VALID, copied, refused
from tests.making import lean
from tests.making.runs import magic_doc, write_magic

VALUE = {"metric": "fip", "min": 0.1}


# --- docs that are lost -----------------------------------------------------------------------------


def lost(tmp_path, count, docs=400):
    """The baseline is right on 0.7; the new run gives no answer on some docs that it would get wrong."""
    full, best = lean.planted(docs, 0.7, 0.6)
    lean.write(tmp_path / "old", [lean.task(full, best)])
    lean.write(tmp_path / "new", [lean.task(full, best, unscored=range(docs - count, docs))])
    return tmp_path / "new", tmp_path / "old"


@pytest.mark.parametrize(
    "rule", [{"metric": "fip", "max_drop": 0.5}, {"metric": "rci2", "max_rise": 5, "inconclusive": "warn"}, VALUE]
)
def test_wrong_answers_that_are_turned_into_no_answer_fail(asked, tmp_path, rule):
    new, old = lost(tmp_path, 120)
    ended = asked(new, rule, baseline=old)
    assert (ended.status, ended.calls) == (1, ["fail"])
    assert ended.of()["reason"].startswith("120 of 400 docs are lost (30.0%, more than max_lost 1.0%)")


@pytest.mark.parametrize(
    ("count", "more", "call"),
    [(4, {}, "pass"), (5, {}, "fail"), (5, {"max_lost": 0.0125}, "pass"), (4, {"max_lost": 0}, "fail")],
)
def test_how_many_may_be_lost_is_the_rules_to_say(asked, tmp_path, count, more, call):
    """4 of 400 are 1 %."""
    new, old = lost(tmp_path, count)
    assert asked(new, {"metric": "fip", "max_drop": 0.5, **more}, baseline=old).calls == [call]
    assert asked(new, {"metric": "fip", "max_drop": 0.5}, baseline=old, **more).calls == [call]
    assert asked(new, {**VALUE, **more}).calls == [call]


def test_docs_that_the_new_run_leaves_out_of_a_grid_are_lost_to_it(asked, tmp_path):
    full, best = lean.planted(400, 0.7, 0.6)
    lean.write(tmp_path / "old", [lean.task(full, best)])
    lean.write(tmp_path / "new", [lean.task(full, best, out=range(300, 400))])
    ended = asked(
        tmp_path / "new",
        {"metric": "fip", "max_drop": 0.5},
        {"metric": "mpp2", "max_drop": 0.5},
        baseline=tmp_path / "old",
    )
    assert ended.calls == ["pass", "fail"]
    for name in ("old", "new"):  # both leave them out: too small for the grid
        lean.write(tmp_path / name, [lean.task(full, best, out=range(300, 400))])
    assert asked(tmp_path / "new", {"metric": "mpp2", "max_drop": 0.5}, baseline=tmp_path / "old").calls == ["pass"]


def test_unpaired_runs_lose_docs_too(asked, tmp_path):
    new, old = lost(tmp_path, 120)
    next(old.glob("*.jsonl")).unlink()
    ended = asked(new, {"metric": "fip", "max_drop": 0.5}, baseline=old)
    assert (ended.calls, ended.of()["basis"]) == (["fail"], "unpaired")


def test_magic_docs_whose_call_failed_are_lost(asked, tmp_path):
    docs = [magic_doc(f"i{k}", used=(1,), right=k % 3 > 0) for k in range(40)]
    write_magic(tmp_path / "run", {"all": docs})
    assert asked(tmp_path / "run", {"metric": "acc_exact", "min": 0}).calls == ["pass"]
    path = next((tmp_path / "run").glob("*_results.json"))
    data = json.loads(path.read_text())
    data["results"]["toy_magic"]["magic,none"]["magic"]["counts"]["failed"] = 10
    path.write_text(json.dumps(data))
    (said,) = asked(tmp_path / "run", {"metric": "acc_exact", "min": 0}).json["verdicts"]
    assert said["verdict"] != "pass"


# --- grids that are gone ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule",
    [
        {"metric": "rci*", "max_rise": 5},
        {"metric": "rci?", "max": 5},
        VALID,
        {"require": "looks"},
        {"max_excluded": 0.5},
    ],
)
def test_a_grid_that_the_baseline_has_must_be_there(asked, run, tmp_path, rule):
    """The baseline was asked two grids; what the new one leaves out might be the one that fails."""
    before = copied(run)
    path = next(before.glob("*_results.json"))
    data = json.loads(path.read_text().replace("toy_rci2", "toy_rci"))
    found = data["results"]["toy_rci"]["patch,none"]
    found["analysis"]["grids"]["3"] = {**found["analysis"]["grids"]["2"], "n": 3}
    data["configs"]["toy_rci"]["lmms_patch"]["grids"] = [2, 3]
    path.write_text(json.dumps(data))
    next(before.glob("*.jsonl")).unlink()
    refused(asked(run, rule, baseline=before), "the baseline of toy_rci2 has rci3")
    assert asked(run, {"metric": "fip", "min": 0.1}, baseline=before).status == 0  # a rule that is about no grid


# --- a part of the benchmark ----------------------------------------------------------------------------


@pytest.mark.parametrize("config", [{"limit": 400}, {"limit": 400.0}, {"limit": 0.5}, {"offset": 10}])
def test_limits_of_numbers_are_not_held_against_a_part(asked, tmp_path, config):
    lean.write(tmp_path / "run", [lean.task(*lean.planted(400, 0.8, 0.6))], **config)
    said = f"toy_rci2 was run with --{next(iter(config))}"
    refused(asked(tmp_path / "run", VALUE), said, "say 'allow_limit: true' in the rule")
    assert asked(tmp_path / "run", {**VALUE, "allow_limit": True}).status == 0
    assert asked(tmp_path / "run", VALUE, allow_limit=True).status == 0
    ended = asked(tmp_path / "run", VALID, {"min_docs": 400})
    assert ended.status == 0
    assert "so not the whole benchmark" in ended.out
    assert asked(tmp_path / "run", DROP, baseline=copied(tmp_path / "run")).status == 0  # both are of the same part


@pytest.mark.parametrize("limit", [None, -1])
def test_a_run_of_all_docs_has_no_limit(asked, tmp_path, limit):
    lean.write(tmp_path / "run", [lean.task(*lean.planted(400, 0.8, 0.6))], limit=limit)
    assert asked(tmp_path / "run", VALUE).status == 0


def test_text_only_limits_neither(asked, tmp_path):
    lean.write(tmp_path / "run", [lean.stressed()], limit=400)
    refused(asked(tmp_path / "run", {"max_tst_over_chance": 0.5}), "toy_tst5 was run with --limit 400")


@pytest.mark.parametrize(
    ("key", "value"), [("max_lost", 1), ("max_lost", -0.1), ("max_lost", "1 %"), ("allow_limit", "yes")]
)
def test_what_the_new_keys_take(key, value):
    with pytest.raises(OptionError, match=key):
        rules.parse({"schema": 1, "rules": [{"name": "a", **VALUE, key: value}]})
    with pytest.raises(OptionError, match=f"'{key}' says nothing here"):
        rules.parse(
            {"schema": 1, "rules": [{"name": "a", "min_docs": 3, key: {"max_lost": 0.5, "allow_limit": True}[key]}]}
        )


# --- docs that were never asked ----------------------------------------------------------------------------


def test_a_run_of_fewer_docs_than_the_harness_asked_is_refused(asked, tmp_path):
    def told(data):
        data["n-samples"] = {"toy_rci2": {"original": 400, "effective": 200}}
        data["config"]["limit"] = 200

    lean.write(tmp_path / "run", [lean.task(*lean.planted(100, 0.8, 0.6))], change=told)
    refused(asked(tmp_path / "run", VALID), "100 docs have a record, but the harness asked 200")
