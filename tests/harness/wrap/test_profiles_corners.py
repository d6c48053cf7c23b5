"""The corners of the profiles: groups of docs, what a kind of question tells, captions with and without Java."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pycocoevalcap.meteor.meteor import Meteor

from tests.harness import standins
from tests.harness.handmade_words import cider, coco, mme, write_amber
from tests.harness.standins import Overlap, Rows, StandIn, Words, noise
from tests.harness.told import Outcome, rows_of, run_told, with_rows
from tests.sizes import DEEP


def many(standin: StandIn, count: int, change: Callable[[int], dict[str, Any]]) -> StandIn:
    """A stand-in of ``count`` docs: its first ones over and over, each with changes of its own."""
    rows = rows_of(standin)
    return with_rows(standin, [{**rows[i % len(rows)], **change(i)} for i in range(count)])


def answered(standin: StandIn, task: str, says: Callable[[int, int], str], folder: Path) -> Outcome:
    return run_told(standin, task, rows_of(standin), says, folder)


# --- what is resampled together ---------------------------------------------------------------


def existence(pairs: int) -> StandIn:
    """MME with one category; of each pair the first question is answered "yes", the second "no"."""
    words = ("cup", "dog")
    return many(
        standins.mme(),
        2 * pairs,
        lambda i: {
            "question_id": f"existence/{i // 2:04}.png",
            "category": "existence",
            "question": f"Is there a {words[i % 2]} {i // 2}? Please answer yes or no.",
            "answer": ("Yes", "No")[i % 2],
            "image": noise(2000 + i // 2, (60, 40)),
        },
    )


def test_the_pairs_of_mme_are_resampled_together(tmp_path: Path) -> None:
    """Each of 20 pairs has one right answer: every draw of whole pairs gives 50, so that only a pair nobody has seen widens the interval.

    A draw of docs alone would vary by some 8 points (a pair scores 0, 50 or 200). One unseen pair moves 50 by at most
    (200 - 50) / 21 = 7.1.
    """
    standin = existence(20)
    run = answered(standin, "mme_rci2", lambda doc, view: "Yes", tmp_path)
    fip = run.analysis["fip"]
    assert (fip["value"], fip["clusters"]) == (50, 20)
    assert 0 < fip["se"] <= 150 / 21
    assert 0 < fip["low"] < 50 < fip["high"] < 200
    # a guess is right with 1/2: 75 a pair; 20 guesses at 20 pairs, each pair off by 75
    uniform = run.analysis["chance"]["floors"]["uniform"]
    assert uniform["value"] == pytest.approx(75, abs=3 * 75 / 400**0.5)
    assert run.analysis["chance"]["floors"]["constant"]["value"] == 50
    assert run.details["gate"] == 0


@pytest.mark.parametrize("small", [(0,), (1,), (0, 1)])
def test_a_pair_of_mme_with_an_unusable_image_leaves_as_a_whole(small: tuple[int, ...], tmp_path: Path) -> None:
    """Without the pair of docs 0 and 1: FIP 200 + 200 (existence, color), MPP 200 + 50 (doc 5 has no right cell).

    The native metric keeps it.
    """
    case = mme()
    rows = [dict(row) for row in case.rows]
    for doc in small:
        rows[doc]["image"] = noise(1, (1, 9))
    assert case.standin is not None
    run = run_told(with_rows(case.standin, rows), case.task, rows, case.says, tmp_path)
    assert run.metrics["mme_perception_score"] == 325
    assert (run.grid["fip"], run.metrics["mme_perception_score_mpp2"], run.details["n_excluded2"]) == (400, 250, 2)
    assert run.details["rci2"] == pytest.approx(1 - 250 / 400)


# --- strata and guesses -----------------------------------------------------------------------


def test_what_the_kind_of_question_tells_is_ambers_floor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """20 docs on existence, all "no"; 20 on a state, 15 "yes".

    "No" is right 25 times of 40; the majority of each kind 20 + 15 = 35 times.
    """
    asked = {
        "discriminative-hallucination": "Is there a cloud {} in it?",
        "discriminative-attribute-state": "Is the sky {} sunny?",
    }
    golds = ["no"] * 20 + ["yes"] * 15 + ["no"] * 5
    kinds = [list(asked)[i // 20] for i in range(40)]
    rows: Rows = [
        {"id": i, "image": noise(2500 + i // 2, (60, 40)).convert("RGB"), "question": asked[kinds[i]].format(i)}
        for i in range(40)
    ]
    write_amber(tmp_path / "amber", [(row, f"AMBER_{i // 2}.png", kinds[i], golds[i]) for i, row in enumerate(rows)])
    monkeypatch.setenv("AMBER_DIR", str(tmp_path / "amber"))
    run = run_told(None, "amber_discriminative_rci2", rows, lambda doc, view: golds[doc], tmp_path)

    floors = {name: floor["value"] for name, floor in run.analysis["chance"]["floors"].items()}
    assert (floors["uniform"], floors["constant"], floors["stratum"]) == pytest.approx((0.5, 25 / 40, 35 / 40))
    assert (run.analysis["chance"]["floor"], run.analysis["clusters"]) == ("stratum", 20)
    assert Counter(record["stratum"].split(" | ")[-1] for record in run.records) == {
        "existence": 20,
        "attribute-state": 20,
    }


def test_docs_without_an_image_do_not_open_the_gate(tmp_path: Path) -> None:
    """Forty questions without an image, all right: FIP of all 0.75.

    Forty with one, half right, as a guess between two would be: no index.
    """
    standin = many(
        standins.scienceqa_img(),
        80,
        lambda i: {
            "question": f"Which of these is number {i:03}?",
            "choices": ["bird", "fish"],
            "answer": i // 2 % 2,
            "image": noise(2800 + i, (60, 40)) if i < 40 else None,
        },
    )
    run = answered(
        standin, "scienceqa_img_rci2", lambda doc, view: "AB"[doc // 2 % 2 if doc >= 40 or view else doc % 2], tmp_path
    )
    assert (run.metrics["exact_match"], run.grid["fip"], run.details["n_excluded2"]) == (0.75, 0.5, 40)
    assert run.details["rci2"] is None


# --- captions ---------------------------------------------------------------------------------


def twelve_captions(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Images enough for intervals. The Java programs are replaced."""
    monkeypatch.setattr("pycocoevalcap.tokenizer.ptbtokenizer.PTBTokenizer", Words)
    monkeypatch.setattr("pycocoevalcap.eval.Meteor", Overlap)
    standin = standins.coco_cap()
    captions = [row["answer"] for row in rows_of(standin)]
    return many(
        standin,
        12,
        lambda i: {
            "question_id": f"{i + 1:012}.jpg",
            "id": i,
            "image": noise(2700 + i, (60, 40)),
            "answer": [f"{text[:-1]} number {i}" for text in captions[i % len(captions)]],
        },
    )


def says_first(standin: StandIn) -> Callable[[int, int], str]:
    rows = rows_of(standin)
    return lambda doc, view: rows[doc]["answer"][0] if view in (0, 1 + doc % 4) else "Nothing much"


def test_captions_have_intervals_and_a_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    standin = twelve_captions(monkeypatch)
    run = answered(standin, "coco2017_cap_val_lite_rci2", says_first(standin), tmp_path)
    rows = rows_of(standin)
    known = cider(rows, [row["answer"][0] for row in rows])
    assert run.grid["fip"] == run.metrics["coco_CIDEr"] == pytest.approx(sum(known) / 12)
    assert [record["views"][0]["scores"]["coco_CIDEr"] for record in run.records] == pytest.approx(known)
    assert run.analysis["form"] == "mean"
    assert (run.details["gate"], run.details["rci2"]) == (1, pytest.approx(0))
    assert run.grid["index"]["low"] is not None
    assert run.details["settings"]["scale"] == 1


@pytest.mark.skipif(shutil.which("java") is None, reason="no Java")
@pytest.mark.skipif(not DEEP, reason="METEOR takes ten seconds to start; make test-deep has this test")
def test_captions_with_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real tokenizer cuts these captions as the stand-in does.

    One METEOR serves full images and cells: it takes seconds to start.
    """
    meteor = Meteor()
    monkeypatch.setattr("pycocoevalcap.eval.Meteor", lambda: meteor)
    case = coco()
    run = run_told(case.standin, case.task, case.rows, case.says, tmp_path)
    assert run.metrics["coco_CIDEr"] == run.grid["fip"] == pytest.approx(case.fip)
    assert run.metrics["coco_CIDEr_mpp2"] == pytest.approx(case.mpp)
    assert run.analysis["form"] == "mean"
    assert {run.metrics[f"coco_{name}_mpp2"] is None for name in ("Bleu_1", "Bleu_4", "METEOR", "ROUGE_L")} == {False}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_captions_without_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The native metrics fail, ours are null with a reason, the captions' own scores and best cells stay.

    Nothing raises.
    """
    monkeypatch.setenv("PATH", str(tmp_path))
    case = coco()
    run = run_told(case.standin, case.task, case.rows, case.says, tmp_path)
    assert {value for name, value in run.metrics.items() if name.startswith("coco_")} == {None}
    assert [run.details[name] for name in ("rci2", "gap2", "chance", "ceiling", "gate")] == [None] * 5
    assert run.grid["reason"]
    assert run.analysis["gate"]["reason"]
    known = cider(case.rows, case.right)
    assert [record["views"][0]["scores"]["coco_CIDEr"] for record in run.records][1:] == pytest.approx(known[1:])
    assert [record["best"]["2"] for record in run.records][3:] == [4, 1, 2, 3, 4]
    assert "coco_CIDEr failed" in capfd.readouterr().err
