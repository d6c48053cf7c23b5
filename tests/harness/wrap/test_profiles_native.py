"""The profiles on a handful of docs, through lmms-eval's own YAML files and scorers: every number derived by hand (``handmade``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lmms_eval.tasks import TaskManager

from tests.harness.handmade import Case
from tests.harness.handmade_words import CASES, cider, hallusion_judged
from tests.harness.standins import Overlap, Verdict, Words
from tests.harness.told import Outcome, images_in, run_told

NEAR = 1e-9
JUDGED = "{task: hallusion_judged, class: !function lmms_patch.Wrap, base: hallusion_bench_image, grids: [2], allow_judge: true, null: 0}"


class Asked(Verdict):
    """Notes what the judge is asked about."""

    about: set[str] = set()

    def __init__(self, url: str, json: Any, **kwargs: Any) -> None:
        super().__init__(url, json, **kwargs)
        self.about.add(json["messages"][0]["content"].split("\nPrediction answer:")[1].removesuffix("\nOutput:"))


@pytest.fixture(scope="module", params=CASES)
def done(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Case, Outcome]:
    """Each benchmark's case and its run, once for all tests."""
    folder = tmp_path_factory.mktemp("run")
    manager = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pycocoevalcap.tokenizer.ptbtokenizer.PTBTokenizer", Words)
        patch.setattr("pycocoevalcap.eval.Meteor", Overlap)
        patch.setattr("requests.post", Asked)
        patch.setenv("AMBER_DIR", str(folder / "amber"))
        if request.param == "HallusionBench judged":
            (folder / "judged.yaml").write_text(JUDGED)
            manager = TaskManager(verbosity="ERROR", include_path=str(folder))
        case = CASES[request.param](folder / "amber") if request.param == "AMBER" else CASES[request.param]()
        return case, run_told(case.standin, case.task, case.rows, case.says, folder, manager)


def test_formats_and_golds_are_read_off_the_real_prompts(done: tuple[Case, Outcome]) -> None:
    case, run = done
    assert [f"{record['answer']['label']} {record['answer']['gold']}" for record in run.records] == case.asked


def test_metric_best_cells_and_index(done: tuple[Case, Outcome]) -> None:
    case, run = done
    metric = run.analysis["metric"]
    assert run.grid["fip"] == pytest.approx(case.fip, abs=NEAR)
    assert run.grid["mpp"]["value"] == run.metrics[f"{metric}_mpp2"] == pytest.approx(case.mpp, abs=NEAR)
    assert {name: run.metrics[name] for name in case.others} == pytest.approx(case.others, abs=NEAR)
    best = {i: 1 + (0 if i in case.never else i % 4) for i in range(len(case.rows)) if i not in case.gone}
    assert {record["doc_id"]: record["best"]["2"] for record in run.records if record["best"]} == best
    assert {record["doc_id"] for record in run.records if record["excluded"]} == case.gone
    assert run.details["n_excluded2"] == len(case.gone)
    assert run.details["gate"] == case.gate
    assert run.details["rci2"] == (None if case.gate == 0 else pytest.approx(1 - case.mpp / case.fip, abs=NEAR))
    assert run.details["gap2"] == (None if case.gate == 0 else pytest.approx(case.fip - case.mpp, abs=NEAR))


def test_floors_and_chance(done: tuple[Case, Outcome]) -> None:
    case, run = done
    chance = run.analysis["chance"]
    name, value = case.chance
    assert {floor: chance["floors"][floor]["value"] for floor in case.floors} == pytest.approx(case.floors, abs=NEAR)
    assert chance["floor"] == name
    if case.task.startswith("mme"):
        # twenty guesses: (1/4 · 200 + 1/2 · 50 = 75) in each of two categories; one guess is off by 75 · (1/2 +
        # 1)^(1/2) = 92
        assert chance["value"] == pytest.approx(value, abs=3 * 92 / 20**0.5)
    elif case.task.startswith("coco"):
        # "other" is the gold of another doc that was drawn: scored by pycocoevalcap
        said = [
            next(answer for answer, (roles, _) in run.baselines(i).items() if "other" in roles)
            for i in range(len(case.rows))
        ]
        assert chance["value"] == pytest.approx(sum(cider(case.rows, said)) / len(said), abs=NEAR)
    else:
        assert chance["value"] == run.metrics["chance"] == pytest.approx(value, abs=NEAR)
    if case.gate == 0:  # of ten docs: 2 SE of the paired difference are wider than 0.9 less the floor
        assert run.grid["reason"].startswith("near chance")
    if case.task.startswith("blink"):
        assert "only against a uniform guess (0.375)" in run.grid["reason"]


def test_ceiling_and_gold_that_gets_no_full_marks(done: tuple[Case, Outcome]) -> None:
    case, run = done
    assert run.details["ceiling"] == (None if case.ceiling is None else pytest.approx(case.ceiling, abs=NEAR))
    if case.gold_below >= 0:
        assert run.analysis["gold_below"] == case.gold_below
        assert [w for w in run.analysis["warnings"] if "full marks" in w] == (
            [f"the scorer does not give full marks to the gold answer of {case.gold_below} of {len(case.rows)} docs"]
            if case.gold_below
            else []
        )


def test_form_and_clusters(done: tuple[Case, Outcome]) -> None:
    case, run = done
    assert run.analysis["form"] == case.form
    assert run.analysis["clusters"] == case.clusters
    of_metric = [record for record in run.records if run.analysis["metric"] in record["views"][0]["items"]]
    assert run.analysis["n_docs"] == len(of_metric)
    if case.clusters is not None:
        assert len({record["fields"]["cluster"] for record in of_metric}) == case.clusters
    for record, row in zip(run.records, case.rows, strict=True):
        assert record["image_sizes"] == [list(image.size) for image in images_in(row)]
        assert {len(view.get("boxes", ())) for view in record["views"][1:]} == {len(images_in(row))}


def test_the_judge_hears_only_what_the_model_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chance is the majority of the golds: no uninformed answer, no gold and no donor's answer is ever judged."""
    case = hallusion_judged()
    (tmp_path / "judged.yaml").write_text(JUDGED)
    monkeypatch.setattr("requests.post", Asked)
    monkeypatch.setattr(Asked, "about", set())
    run_told(
        case.standin,
        case.task,
        case.rows,
        case.says,
        tmp_path,
        TaskManager(verbosity="ERROR", include_path=str(tmp_path)),
    )
    assert Asked.about == {*case.right, *case.wrong}
