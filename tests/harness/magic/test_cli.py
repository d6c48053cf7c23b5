"""The real ``lmms-eval`` command line on ``magic_mosaic`` with scripted models, whose scores are derived in ``magic_truth``: one process."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from lmms_patch.runs.run import find
from tests.harness.command import INSTALLED, lmms_eval, metrics
from tests.harness.magic.models import FORKED, INVENTED, SCRIPTS, install, resisted
from tests.harness.magic.truth import VARIANTS, distraction, heals, items, number, truth
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
    (run,) = find([runs / script])
    return next(result for result in run.results if result.task == VARIANTS[variant])


def lines(runs: Path, script: str, variant: str) -> list[dict]:
    frame = results(runs, script, variant).frame()
    return [{**row["magic"], "group": row["cluster"]} for row in frame.iter_rows(named=True)]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("script", RUN)
def test_every_number_is_the_derived_one(runs, script, variant):
    result = results(runs, script, variant)
    expected = truth(script, variant)
    numbers, columns = result.magic.numbers, metrics(runs / script)[result.task]
    assert set(numbers) == set(expected)
    for name, value in expected.items():
        one = numbers[name]
        wanted = None if value is None else pytest.approx(value, abs=1e-12)
        assert (one.value, columns[name]) == (wanted, wanted)
        assert one.reason if value is None else one.low <= value <= one.high


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
        alone, among = (
            results(runs, script, variant).magic.numbers["acc_synonym"].value for variant in ("relevant", "all")
        )
        assert alone - among == pytest.approx(distraction() if script == "distracted" else 0.0)
    assert distraction() == 0.6


def test_self_heal_asks_about_every_run_within_the_bounds(runs):
    records = lines(runs, RUN[0], "selfheal")
    wanted = {(name, first, last) for name, found in heals().items() for first, last in found}
    assert {(record["id"].split("/")[0], int(record["first"]), int(record["last"])) for record in records} == wanted
    assert len(records) == len(wanted)


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
