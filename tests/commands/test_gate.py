"""``lmms-patch gate`` from its command line: verdicts, baselines, outputs, and what is refused."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from lmms_patch.cli import main
from tests.gate import lean
from tests.gate.running import gate, rules_file
from tests.runs import mc_run, write_run

VALID = {"require": "valid gate"}
DROP = {"metric": "fip", "max_drop": 0, "margin": 0.02}


@pytest.fixture
def run(tmp_path):
    """A run of 400 docs: 0.8 on full images, 0.6 on the best cell, and so an index of 0.25."""
    lean.write(tmp_path / "run", [lean.task(*lean.planted(400, 0.8, 0.6))])
    return tmp_path / "run"


@pytest.fixture
def asked(capsys, tmp_path):
    """Run the gate with some rules."""

    def ask(out, *given, baseline=None, more=(), **defaults):
        return gate(capsys, tmp_path, out, rules_file(tmp_path, *given, **defaults), baseline, *more)

    return ask


def refused(ended, *said):
    assert ended.status == 2
    for words in said:
        assert words in ended.err
    return ended


# --- limits of the number itself --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "status", "call"),
    [
        ({"metric": "fip", "min": 0.7}, 0, "pass"),
        ({"metric": "fip", "min": 0.9}, 1, "fail"),
        ({"metric": "fip", "min": 0.8}, 3, "inconclusive"),
        ({"metric": "fip", "min": 0.8, "inconclusive": "warn"}, 0, "inconclusive"),
        ({"metric": "fip", "min": 0.8, "margin": 0.1}, 0, "pass"),
        ({"metric": "fip", "min": 0.81, "interval": False}, 1, "fail"),
        ({"metric": "fip", "max": 0.9}, 0, "pass"),
        ({"metric": "fip", "min": 0.7, "max": 0.9}, 0, "pass"),
        ({"metric": "fip", "min": 0.7, "max": 0.71}, 1, "fail"),
        ({"metric": "rci2", "min": 0.1, "max": 0.4}, 0, "pass"),
        ({"metric": "pcri2", "min": 0.5}, 1, "fail"),
        ({"metric": "rci2", "absolute": True, "max": 0.4}, 0, "pass"),
        ({"metric": "gap2", "min": 0.1}, 0, "pass"),
        ({"metric": "ceiling", "min": 0.5}, 3, "inconclusive"),
        ({"metric": "ceiling", "min": 0.5, "interval": False}, 0, "pass"),
        ({"metric": "ceiling", "max": 0.5}, 1, "fail"),
        (VALID, 0, "pass"),
        ({"min_docs": 400}, 0, "pass"),
        ({"min_docs": 401}, 1, "fail"),
        ({"max_excluded": 0}, 0, "pass"),
    ],
)
def test_a_limit(asked, run, rule, status, call):
    ended = asked(run, rule)
    assert (ended.status, ended.calls) == (status, [call])


def test_several_checks_of_one_rule_are_a_verdict_each(asked, run):
    ended = asked(run, {"metric": "fip", "min": 0.7, **VALID, "min_docs": 500, "max_excluded": 0.1})
    assert {one["metric"]: one["verdict"] for one in ended.json["verdicts"]} == {"fip": "pass", "gate": "pass", "excluded": "pass", "n_docs": "fail"}


def test_the_verdict_shows_all_that_it_is_made_of(asked, run, tmp_path):
    one = asked(run, {"name": "n", **DROP}, baseline=run).of()
    assert (one["rule"], one["task"], one["model"], one["baseline_model"], one["metric"]) == ("n", "toy_rci2", "m", "m", "fip")
    assert one["limit"] == "drop <= 0, margin 0.02"
    assert one["value"]["value"] == one["baseline"]
    assert one["level"] == 0.95
    assert one["difference"]["value"] == 0
    assert one["basis"] == "paired"


def test_excluded_docs_and_a_gate_that_is_not_valid(asked, tmp_path):
    full, best = lean.scored(400, 0.8, 0.6, 0)
    for gate_of, status in ((True, 0), (False, 1), (None, 1)):
        made = lean.task(full, best, excluded=21)
        made[0]["patch,none"]["gate"] = gate_of if gate_of is None else int(gate_of)
        lean.write(tmp_path / "run", [made])
        assert asked(tmp_path / "run", VALID).status == status
    ended = asked(tmp_path / "run", {"max_excluded": 0.05})
    assert (ended.calls, ended.of()["value"]["value"], ended.of()["reason"]) == (["fail"], 21 / 400, "21 of 400 docs at grid 2")
    assert asked(tmp_path / "run", {"max_excluded": 0.0525}).status == 0


def test_an_index_near_chance_fails_with_its_reason(asked, tmp_path):
    lean.write(tmp_path / "run", [lean.task(*lean.scored(200, 0.27, 0.3, 0))])
    ended = asked(tmp_path / "run", {"metric": "rci2", "max": 5, "inconclusive": "warn"})
    assert ended.calls == ["fail"]
    assert "near chance" in ended.of()["reason"]


@pytest.mark.parametrize(("n", "call"), [(40, "inconclusive"), (80, "pass")])
def test_all_right_on_few_docs_is_not_believed(asked, tmp_path, n, call):
    """0.025^(1/40) = 0.912 and 0.025^(1/80) = 0.955."""
    lean.write(tmp_path / "run", [lean.task(np.ones(n), np.ones(n))])
    ended = asked(tmp_path / "run", {"metric": "fip", "min": 0.95})
    assert ended.calls == [call]
    assert ended.of()["value"]["low"] == pytest.approx(0.025 ** (1 / n))


def test_too_few_docs_for_an_interval(asked, tmp_path):
    lean.write(tmp_path / "run", [lean.task(np.ones(9), np.ones(9))])
    assert asked(tmp_path / "run", {"metric": "fip", "min": 0.1}).status == 3


def test_text_only_cross_validation(asked, tmp_path):
    lean.write(tmp_path / "run", [lean.stressed(accuracy=0.35), lean.task(*lean.scored(400, 0.8, 0.6, 0))])
    ended = asked(tmp_path / "run", {"max_tst_over_chance": 0.2}, {"max_tst_over_chance": 0.0}, {"metric": "tst", "max": 0.5})
    assert ended.calls == ["pass", "fail", "pass"]
    assert "leaves out toy_rci2 of m: is no text-only cross-validation" in ended.out
    again = asked(tmp_path / "run", {"metric": "tst_over_chance", "max_rise": 0, "margin": 0.02}, baseline=tmp_path / "run")
    assert (again.of()["basis"], again.calls) == ("paired", ["pass"])


# --- wildcards and the correction -------------------------------------------------------------------


@pytest.fixture
def many(tmp_path):
    """Two models on two tasks."""
    for k, model in enumerate(("one", "two")):
        tasks = [lean.task(*lean.scored(300, 0.8, 0.6, j), name=name) for j, name in enumerate(("apple_rci2", "pear_rci2"))]
        lean.write(tmp_path / "many" / model, tasks, model=model, date=f"2026-01-0{k + 1}")
    return tmp_path / "many"


def test_wildcards_pick_tasks_models_and_metrics(asked, many):
    everything = asked(many, {"metric": "*", "min": -1, "interval": False})
    assert {one["task"] for one in everything.json["verdicts"]} == {"apple_rci2", "pear_rci2"}
    names = [one["metric"] for one in everything.json["verdicts"] if (one["task"], one["model"]) == ("apple_rci2", "one")]
    assert names == ["score", "chance", "ceiling", "mpp2", "rci2", "rci2_adj", "gap2"]  # fip and acc are score, so once
    for rule, expected in (
        ({"task": "apple*"}, {("apple_rci2", "one"), ("apple_rci2", "two")}),
        ({"model": ["two", "three"]}, {("apple_rci2", "two"), ("pear_rci2", "two")}),
        ({"base": "p?ar", "model": "one"}, {("pear_rci2", "one")}),
    ):
        ended = asked(many, {**rule, "metric": "fip", "min": 0.5})
        assert {(one["task"], one["model"]) for one in ended.json["verdicts"]} == expected


def test_the_level_holds_over_all_that_a_rule_matches(asked, many):
    ended = asked(
        many,
        {"metric": "fip", "min": 0.5},
        {"metric": "fip", "min": 0.5, "correction": "none"},
        {"metric": "[fm]*", "min": 0.1, "task": "apple*", "min_docs": 5, "level": 0.9},
    )
    levels = {rule: {one["level"] for one in ended.json["verdicts"] if one["rule"] == rule} for rule in ("rule 0", "rule 1", "rule 2")}
    assert levels == {"rule 0": {1 - 0.05 / 4}, "rule 1": {0.95}, "rule 2": {1 - 0.1 / 4, None}}
    wide, narrow = (next(one for one in ended.json["verdicts"] if one["rule"] == rule)["value"] for rule in ("rule 0", "rule 1"))
    assert wide["high"] - wide["value"] == pytest.approx((narrow["high"] - narrow["value"]) * 2.4977 / 1.9600, rel=1e-3)


def test_the_newest_result_counts(asked, run):
    lean.write(run, [lean.task(*lean.scored(400, 0.5, 0.4, 1))], date="2026-03-01")
    ended = asked(run, {"metric": "fip", "min": 0.7})
    assert ended.status == 1
    assert "1 older results in" in ended.out


# --- the baseline -----------------------------------------------------------------------------------


def test_the_same_run_as_its_own_baseline_passes_where_there_are_docs_enough(asked, tmp_path):
    """No doc of 400 differs: up to 1 − 0.025^(1/400) = 0.92 % may."""
    lean.write(tmp_path / "run", [lean.task(*lean.scored(400, 0.8, 0.6, 0))])
    ended = asked(tmp_path / "run", DROP, {"metric": "rci2", "absolute": True, "max_rise": 0, "margin": 0.05}, baseline=tmp_path / "run")
    assert ended.calls == ["pass", "pass"]
    assert ended.of("rule 0")["difference"]["high"] == pytest.approx(1 - 0.025 ** (1 / 400))


def test_a_drop_and_a_rise(asked, tmp_path):
    for name, full in (("old", 0.8), ("new", 0.6)):
        lean.write(tmp_path / name, [lean.task(*lean.scored(400, full, 0.5, 0))])
    rules = [DROP, {"metric": "fip", "max_rise": 0}, {"metric": "fip", "max_drop": 0.3}, {"metric": "acc", "max_drop": 0.1, "max_rise": 0.1}]
    assert asked(tmp_path / "new", *rules, baseline=tmp_path / "old").calls == ["fail", "pass", "pass", "fail"]
    assert asked(tmp_path / "old", *rules, baseline=tmp_path / "new").calls == ["pass", "fail", "pass", "fail"]


def test_without_logs_it_is_unpaired_and_said_so(asked, tmp_path):
    for name, full, logs in (("old", 0.8, True), ("new", 0.5, False)):
        lean.write(tmp_path / name, [lean.task(*lean.scored(400, full, 0.5, 0))], logs=logs)
    ended = asked(tmp_path / "new", DROP, baseline=tmp_path / "old")
    assert ended.of()["basis"] == "unpaired"
    assert "no sample log in this run" in ended.out
    assert ended.status == 1


def test_the_index_without_luck_is_unpaired(asked, tmp_path):
    folder = tmp_path / "real"
    write_run(folder, {"toy_rci2": mc_run(n=150)})
    ended = asked(folder, {"metric": "rci2_adj", "max_rise": 0.5}, {"metric": "rci2", "max_rise": 0.5}, baseline=folder)
    assert [one["basis"] for one in ended.json["verdicts"]] == ["unpaired", "paired"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"limit": 10}, "limit (all and 10)"),
        ({"gen_kwargs": "temperature=1"}, "generation"),
        ({"docs": "other"}, "docs"),
        ({"prompts": "other"}, "prompts"),
    ],
)
def test_a_baseline_of_other_settings_is_refused_unless_the_rules_ignore_it(asked, tmp_path, change, said):
    made = {key: change.pop(key) for key in ("docs", "prompts") if key in change}
    scores = lean.scored(400, 0.8, 0.6, 0)
    lean.write(tmp_path / "old", [lean.task(*scores)])
    lean.write(tmp_path / "new", [lean.task(*scores, **made)], **change)
    refused(asked(tmp_path / "new", DROP, baseline=tmp_path / "old"), "was made otherwise", said)
    if "docs" not in made:
        ended = asked(tmp_path / "new", DROP, baseline=tmp_path / "old", ignore=[said.partition(" (")[0]])
        assert ended.status == 0
        assert "ignored, as the rules say" in ended.out


def test_a_baseline_of_other_docs_is_refused_also_where_the_rules_ignore_it(asked, tmp_path):
    for name, n in (("old", 400), ("new", 300)):
        lean.write(tmp_path / name, [lean.task(*lean.scored(n, 0.8, 0.6, 0), docs="d")])
    refused(asked(tmp_path / "new", DROP, baseline=tmp_path / "old"), "number of docs (400 and 300)")
    refused(
        asked(tmp_path / "new", DROP, baseline=tmp_path / "old", ignore=["number of docs"]),
        "asks other docs",
        "100 are in the baseline only, such as doc 300",
    )


def test_which_result_is_the_baseline(asked, many, tmp_path):
    other = tmp_path / "other"
    lean.write(other, [lean.task(*lean.scored(300, 0.8, 0.6, 0), name="apple_rci2")], model="third")
    refused(asked(other, DROP, baseline=many), "apple_rci2 of third could be set against apple_rci2 of one, apple_rci2 of two")
    ended = asked(many, {**DROP, "task": "apple*"}, baseline=other)  # the only other one
    assert {one["baseline_model"] for one in ended.json["verdicts"]} == {"third"}
    same = asked(many, DROP, baseline=many)
    assert all(one["baseline_model"] == one["model"] for one in same.json["verdicts"])
    refused(asked(many, DROP, baseline=other), "nothing to set pear_rci2 against; it has apple_rci2")
    refused(asked(other, DROP, baseline=many / "one"), "the baseline has pear_rci2, this run has not")


def test_a_limit_on_a_difference_needs_a_baseline(asked, run, tmp_path):
    refused(asked(run, DROP), "rule 'rule 0' compares with a baseline; give one: --baseline DIR")
    refused(asked(run, DROP, baseline=tmp_path / "nothing"), "no *_results.json here")
    assert "no rule compares with the baseline" in asked(run, VALID, baseline=run).out


@pytest.mark.parametrize(
    ("key", "said"),
    [("limits", "there is no such setting; did you mean limit?"), ("benchmark", "two results of other benchmark cannot be compared")],
)
def test_what_cannot_be_ignored(asked, run, key, said):
    refused(asked(run, VALID, ignore=[key]), said)


# --- rules that do not go with the run --------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"task": "toy_rci3", **VALID}, "task toy_rci3 matches nothing; did you mean toy_rci2? there is toy_rci2"),
        ({"model": "x", **VALID}, "model x matches nothing; there is m"),
        ({"base": "gqa*", **VALID}, "base gqa* matches nothing; there is toy"),
        ({"kind": "tst", **VALID}, "kind tst matches nothing; there is rci"),
        ({"metric": "fipp", "min": 0}, "metric 'fipp' matches nothing in toy_rci2 or the others; did you mean fip"),
        ({"metric": "rci3", "min": 0}, "metric 'rci3' matches nothing"),
        ({"metric": "zz*", "min": 0}, "there is score, fip"),
        ({"max_tst_over_chance": 0}, "none of its tasks can be judged: toy_rci2 is no text-only cross-validation"),
    ],
)
def test_a_rule_that_finds_nothing_is_refused(asked, run, rule, said):
    refused(asked(run, rule), "gates.yaml: rule 'rule 0': ", said)


def test_a_rule_for_an_index_on_a_task_without_one(asked, tmp_path):
    lean.write(tmp_path / "run", [lean.task(*lean.scored(100, 0.5, 0, 0)[:1], name="toy_blind")])
    refused(asked(tmp_path / "run", VALID), "toy_blind has no chance gate")
    refused(asked(tmp_path / "run", {"max_excluded": 0.1}), "toy_blind has no grid")


# --- damaged input ----------------------------------------------------------------------------------


def cut(data):
    return data[: len(data) // 2]


def without_last_line(data):
    return b"".join(data.splitlines(keepends=True)[:-1])


@pytest.mark.parametrize("side", ["run", "baseline"])
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut, "cut or not JSON"),
        (without_last_line, "399 lines, but the run scored 400"),
        (lambda data: b"", "0 lines"),
        (lambda data: os.urandom(5000).replace(b"\n", b"") + b"\n" * 400, "cut or not JSON"),
        (lambda data: data + data, "800 lines"),
        (lambda data: without_last_line(data) + data.splitlines(keepends=True)[0], "doc 0 is there 2 times"),
        (lambda data: data.replace(b'"schema": 2', b'"schema": 9'), "schema 9"),
        (lambda data: data.replace(b'"base": "toy"', b'"base": "other"'), "other"),
        (lambda data: data.replace(b'"acc": 1.0', b'"acc": NaN'), "not a finite number"),
        (lambda data: data.replace(b'"patch"', b'"pitch"'), "no 'patch' object"),
    ],
)
def test_a_damaged_log_is_refused(asked, run, tmp_path, side, damage, said):
    shutil.copytree(run, tmp_path / "old")
    (log,) = (run if side == "run" else tmp_path / "old").glob("*.jsonl")
    log.write_bytes(damage(log.read_bytes()))
    ended = asked(run, DROP, baseline=tmp_path / "old")
    assert ended.status == 2
    assert said in ended.err or "lines, but the run scored" in ended.err
    if side == "run":
        assert asked(run, {"metric": "fip", "min": 0.1}).status == 2  # also where no rule needs the log


@pytest.mark.parametrize("side", ["run", "baseline"])
@pytest.mark.parametrize(
    "damage",
    [
        cut,
        lambda data: b"",
        lambda data: os.urandom(3000),
        lambda data: b"[]",
        lambda data: b"[" * 100_000,
        lambda data: data.replace(b'"schema": 2', b'"schema": 3'),
        lambda data: data.replace(b'"kind": "rci"', b'"kind": ["rci"]'),
        lambda data: data.replace(b'"fip": {', b'"fop": {'),
        lambda data: data.replace(b'"floors"', b'"floor_"'),
        lambda data: data.replace(b'"n_docs": 400', b'"n_docs": "x"').replace(b'"grids": {"2"', b'"grids": {"2": 3, "4"'),
        lambda data: data.replace(b'"records": 400', b'"records": 0'),
        lambda data: data.replace(b'"options": {', b'"options": [], "was": {'),
    ],
)
def test_a_damaged_results_file_is_refused(asked, run, tmp_path, side, damage):
    shutil.copytree(run, tmp_path / "old")
    (path,) = (run if side == "run" else tmp_path / "old").glob("*_results.json")
    path.write_bytes(damage(path.read_bytes()))
    refused(asked(run, DROP, {"metric": "rci2", "min": -9, "interval": False}, baseline=tmp_path / "old"))


def test_an_empty_run_or_none(asked, tmp_path):
    (tmp_path / "empty").mkdir()
    refused(asked(tmp_path / "empty", VALID), "no *_results.json here")
    (tmp_path / "empty" / "2026_results.json").write_text(json.dumps({"results": {"gqa": {"acc,none": 1}}, "configs": {"gqa": {}}}))
    refused(asked(tmp_path / "empty", VALID), "has no wrapped task to judge")
    lean.write(tmp_path / "run", [lean.task(*lean.scored(50, 0.5, 0.5, 0))], change=lambda data: data["results"]["toy_rci2"].pop("patch,none"))
    refused(asked(tmp_path / "run", {"metric": "fip", "min": 0}), "nothing was scored in toy_rci2")


def test_a_number_that_is_no_number_fails(asked, run):
    (path,) = run.glob("*_results.json")
    data = json.loads(path.read_text())
    data["results"]["toy_rci2"]["patch,none"]["analysis"]["fip"]["value"] = float("nan")
    path.write_text(json.dumps(data))
    assert asked(run, {"metric": "fip", "min": 0, "inconclusive": "warn"}).calls == ["fail"]


@pytest.mark.parametrize("name", ["ünï ☃ 'quoted' $(x)", "a b", os.fsdecode(b"not-utf8-\xff")])
def test_paths_of_any_kind(asked, run, tmp_path, name):
    try:
        shutil.copytree(run, tmp_path / name)
    except OSError:
        pytest.skip("this file system takes no such name")
    assert asked(tmp_path / name, VALID).status == 0
    assert asked(tmp_path / name, DROP, baseline=tmp_path / name).status == 0


# --- outputs ----------------------------------------------------------------------------------------

HOSTILE = "<b>&\"'|`%0A::error::x\x1b[31m\x00\r\n]]>\u202e\ud800"


def test_hostile_names_stay_text_everywhere(asked, run, tmp_path):
    (path,) = run.glob("*_results.json")
    data = json.loads(path.read_text())
    data["model_name"] = HOSTILE
    path.write_text(json.dumps(data))
    summary = tmp_path / "summary.md"
    ended = asked(run, {"name": "r " + HOSTILE[:12], "metric": "fip", "min": 0.99}, more=("--annotations", "--summary", str(summary)))
    assert ended.status == 1
    for text in (ended.out, summary.read_text()):
        assert not any(character in text for character in "\x1b\x00\r\u202e")
    (annotation,) = [line for line in ended.out.splitlines() if line.startswith("::")]
    assert annotation.startswith("::error title=lmms-patch gate%3A r <b>")
    assert "%250A" in annotation
    assert annotation.split("::", 2)[1].count(",") == 0
    (failure,) = ended.junit.findall(".//failure")
    assert "<b>&\"'|`%0A::error::x" in failure.get("message")
    assert "<b>" not in summary.read_text()


def test_junit_counts(asked, run):
    ended = asked(
        run,
        {"metric": "fip", "min": 0.7},
        {"metric": "fip", "min": 0.8},
        {"metric": "fip", "min": 0.9},
        {"metric": "fip", "max": 0.8, "inconclusive": "warn"},
    )
    assert ended.status == 1
    assert (ended.junit.get("tests"), ended.junit.get("failures"), ended.junit.get("skipped")) == ("4", "2", "1")
    assert [one.get("type") for one in ended.junit.findall(".//failure")] == ["inconclusive", "fail"]
    assert [one.get("classname") for one in ended.junit.findall(".//testcase")] == [f"rule {i}" for i in range(4)]


def test_github_is_told_by_itself(asked, run, tmp_path, monkeypatch):
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    ended = asked(run, {"metric": "fip", "min": 0.9}, {"metric": "fip", "min": 0.8, "inconclusive": "warn"})
    assert [line.partition(" ")[0] for line in ended.out.splitlines()[:2]] == ["::error", "::warning"]
    assert summary.read_text().startswith("before\n### :x: gate failed (exit status 1): ")
    quiet = asked(run, {"metric": "fip", "min": 0.9}, more=("--no-annotations",))
    assert "::error" not in quiet.out
    bad = asked(run, {"metric": "fipp", "min": 0.9})
    assert bad.out.startswith("::error title=lmms-patch gate%3A bad input::gate bad input (exit status 2)")
    assert summary.read_text().count("###") == 3


def test_bad_input_leaves_no_earlier_verdict(asked, run):
    assert asked(run, VALID).status == 0
    ended = asked(run, {"task": "nothing", **VALID})
    assert (ended.status, ended.json["status"]) == (2, 2)


@pytest.mark.parametrize("option", ["--json", "--junit", "--summary"])
def test_an_output_that_cannot_be_written_is_bad_input_and_nothing_is_half_written(run, tmp_path, capsys, option):
    config = rules_file(tmp_path, VALID)
    (tmp_path / "file").write_text("")
    others = {"--json": tmp_path / "o.json", "--junit": tmp_path / "o.xml", "--summary": tmp_path / "o.md"}
    for place in (tmp_path / "file" / "x", run):
        argv = [str(part) for name, path in {**others, option: place}.items() for part in (name, path)]
        assert main(["gate", str(run), "--config", str(config), *argv]) == 2
        printed = capsys.readouterr()
        assert printed.err.startswith(f"lmms-patch: {place}: cannot be written: ")
        assert printed.out == ""
        assert not [path for path in tmp_path.iterdir() if path.name.startswith("o.")]


def test_two_outputs_in_one_file_are_refused(run, tmp_path, capsys):
    config, file = rules_file(tmp_path, VALID), str(tmp_path / "o")
    assert main(["gate", str(run), "--config", str(config), "--json", file, "--junit", file]) == 2
    assert "two outputs cannot go to one file" in capsys.readouterr().err


def test_a_reader_that_is_gone_does_not_change_the_verdict(run, tmp_path):
    config = rules_file(tmp_path, {"metric": "fip", "min": 0.99})
    line = f"{sys.executable} -m lmms_patch.cli gate '{run}' --config '{config}' | true; exit ${{PIPESTATUS[0]}}"
    assert subprocess.run(["bash", "-c", line], capture_output=True, text=True).returncode == 1


def test_a_terminal_without_unicode_does_not_change_the_verdict(run, tmp_path):
    config = rules_file(tmp_path, {"name": "ünï ☃", "metric": "fip", "min": 0.99})
    done = subprocess.run(
        [sys.executable, "-m", "lmms_patch.cli", "gate", str(run), "--config", str(config)],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 1
    assert b"\\u2603" in done.stdout


def test_it_needs_neither_the_harness_nor_torch(run, tmp_path):
    config = rules_file(tmp_path, DROP, {"metric": "fip", "max": 0.99})
    code = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "lmms_eval", "transformers", "datasets", "sklearn", "matplotlib", "lightgbm", "loguru"):
            raise ImportError("blocked: " + name)
sys.meta_path.insert(0, Blocked())
from lmms_patch.cli import main
sys.exit(main(sys.argv[1:]))
"""
    argv = ["gate", str(run), "--config", str(config), "--baseline", str(run)]
    done = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_shipped_rules_on_whole_runs(capsys, tmp_path):
    full, best = lean.scored(2000, 0.8, 0.7, 0)
    lean.write(tmp_path / "run", [lean.task(full, best, name="toy_pcri2"), lean.stressed(n=2000, accuracy=0.25)])
    assert gate(capsys, tmp_path, tmp_path / "run", "model-regression", tmp_path / "run").status == 0
    assert gate(capsys, tmp_path, tmp_path / "run", "model-compliance").status == 0
    ended = gate(capsys, tmp_path, tmp_path / "run", "benchmark-release")
    refused(ended, "metric 'rci3' matches nothing")  # asked at grid 2 only


def test_config_is_needed(run, capsys):
    assert main(["gate", str(run)]) == 2
    assert capsys.readouterr().err.startswith("lmms-patch: --config is missing")


def test_junit_is_valid_for_whatever_bytes(tmp_path):
    from lmms_patch.gate import outputs
    from lmms_patch.gate.judge import Judgement

    every = "".join(map(chr, range(0x3000))) + "\ud800\udfff\ufffe\uffff\U0001f600"
    found = Judgement((), (), every, every, every, every)
    ElementTree.fromstring(outputs.junit(found).encode())
    outputs.write(found, json_file=tmp_path / "j", junit_file=tmp_path / "x", summary_file=tmp_path / "s")
    assert json.loads(Path(tmp_path / "j").read_text())["status"] == 2
