"""The real ``lmms-eval`` command line on ``magic_mosaic`` with scripted models, whose scores are derived in ``magic_truth``: one process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from lmms_patch.app import schemas
from lmms_patch.runs.results import objects_file, results_files
from lmms_patch.runs.run import read
from tests.harness.command import INSTALLED, lmms_eval
from tests.harness.magic.models import FORKED, INVENTED, SCRIPTS, install, resisted
from tests.harness.magic.truth import VARIANTS, distraction, heals, items, left_out, number, truth
from tests.sizes import DEEP, size

pytestmark = pytest.mark.cli


RUN = size(("wrong", "distracted"), tuple(SCRIPTS))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One evaluation per script, each of all four tasks."""
    out = tmp_path_factory.mktemp("magic")
    common = {"model": "magic_script", "tasks": ",".join(VARIANTS.values()), "batch_size": 1, "log_samples": True}
    evaluations = [{**common, "model_args": f"script={script}", "output_path": str(out / script)} for script in RUN]
    (out / "runs.yaml").write_text(yaml.safe_dump(evaluations))
    how = {"command": INSTALLED, **install(out / "plugin")} if DEEP else {"first": FORKED}
    printed = lmms_eval("--config", out / "runs.yaml", **how)
    assert "Error during evaluation" not in printed, printed[-4000:]
    return out


def results(runs: Path, script: str, variant: str):
    (path,) = results_files(runs / script)
    return next(result for result in read(path).results if result.task == VARIANTS[variant])


def lines(runs: Path, script: str, variant: str) -> list[dict]:
    (path,) = (runs / script).rglob(f"*_samples_{VARIANTS[variant]}.jsonl")
    return [json.loads(line)["magic"] for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("script", RUN)
def test_every_number_is_the_derived_one(runs, script, variant):
    result = results(runs, script, variant)
    expected = truth(script, variant)
    assert {name: value for name, value in result.metrics.items() if name in expected} == {
        name: None if value is None else pytest.approx(value, abs=1e-12) for name, value in expected.items()
    }
    numbers = result.details["magic"]["numbers"]
    assert set(numbers) == set(expected)
    for name, value in expected.items():
        estimate = numbers[name]
        assert estimate["value"] == (None if value is None else pytest.approx(value, abs=1e-12))
        if value is None:
            assert estimate["reason"]
        else:
            assert estimate["low"] <= value <= estimate["high"]
        assert (result.metrics[f"{name}_low"], result.metrics[f"{name}_high"]) == (estimate["low"], estimate["high"]), (
            "columns of the results file"
        )
    Draft202012Validator(schemas.load("objects")).validate(
        json.loads(objects_file(result.run.path).read_text(encoding="utf-8"))
    )


@pytest.mark.parametrize("script", RUN)
def test_each_line_of_the_log_says_what_the_script_did(runs, script):
    by_id = {item["id"]: item for item in items()}
    for record in lines(runs, script, "all"):
        item, every = by_id[record["id"]], set(range(1, record["boxes"] + 1))
        relevant = set(record["relevant"])
        assert len(every) == len(item["boxes"])
        assert len(relevant) == sum(box["relevant"] for box in item["boxes"])
        extra = set() if resisted(number(item)) else {min(every - relevant)}
        looked = {
            "right": relevant,
            "wrong": every - relevant,
            "all": every,
            "none": set(),
            "distracted": relevant | extra,
        }
        assert set(record["used"]) == looked[script]
        assert record["invented"] == ([INVENTED] if script == "wrong" and record["type"] == "query" else [])
        assert record["group"] == item["group"]


def test_the_planted_distraction_is_found(runs):
    """Relevant boxes alone minus the candidate set: in accuracy exactly the planted share.

    The other scripts lose nothing.
    """
    for script in RUN:
        alone, among = (results(runs, script, variant).metrics["acc_synonym"] for variant in ("relevant", "all"))
        assert alone - among == pytest.approx(distraction() if script == "distracted" else 0.0)
    assert distraction() == 0.6


def test_self_heal_asks_about_every_run_within_the_bounds(runs):
    records = lines(runs, RUN[0], "selfheal")
    wanted = {(name, first, last) for name, found in heals().items() for first, last in found}
    assert {(record["id"].split("/")[0], record["first"], record["last"]) for record in records} == wanted
    assert len(records) == len(wanted)
    found = results(runs, RUN[0], "selfheal").details["magic"]
    assert {why: found["left_out"][why] for why in left_out()} == left_out()


def test_the_derivations_by_hand():
    """96 boxes are relevant and 232 adversarial.

    ``distracted`` resists on 24 of 60 items, which have 20 of the 45 wrong runs.
    """
    assert truth("all", "all")["magiscore_precision_micro"] == 96 / 328
    assert truth("all", "all")["magiscore_f1_micro"] == 2 * 96 / (328 + 96)
    assert truth("distracted", "all")["magiscore_precision_micro"] == 96 / (96 + 36)
    assert truth("distracted", "all")["acc_synonym"] == 24 / 60
    assert truth("distracted", "selfheal")["acc_synonym"] == 20 / 45
    assert truth("none", "all")["magiscore_precision_micro"] is None
    assert truth("none", "all")["magiscore_precision_macro"] == 0
