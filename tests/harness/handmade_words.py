"""More benchmarks by hand (see ``handmade``): those answered by yes or no, by words, by captions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pycocoevalcap.cider.cider import Cider

from tests.harness import standins
from tests.harness.handmade import Case, ai2d, blink, mmmu, mmstar, realworldqa, scienceqa
from tests.harness.standins import Rows, Words, noise
from tests.harness.told import rows_of, with_rows


def amber(folder: Path) -> Case:
    """Four images with three questions each: on existence (all "no"), on a state (yes no yes no), on a relation (yes yes yes no).

    Seven golds of twelve are "no". "No" is the positive label: doc 3 is a "no" that no cell gets, so MPP's recall is
    6/7, and its precision 1, as a wrong answer is neither word.
    """
    asked = [
        ("Is there a cloud {} in this image?", "discriminative-hallucination"),
        ("Is the sky {} sunny?", "discriminative-attribute-state"),
    ]
    asked.append(("Does the man {} touch the car?", "discriminative-relation"))
    golds = ["no", "yes", "yes", "no", "no", "yes", "no", "yes", "yes", "no", "no", "no"]
    rows = [
        {"id": i, "image": noise(1800 + i // 3, (60, 40)).convert("RGB"), "question": asked[i % 3][0].format(i)}
        for i in range(12)
    ]
    write_amber(
        folder,
        [
            (row, f"AMBER_{i // 3}.png", asked[i % 3][1], gold)
            for i, (row, gold) in enumerate(zip(rows, golds, strict=True))
        ],
    )
    return Case(
        "amber_discriminative_rci2",
        rows,
        right=[f"{gold.capitalize()}, it is so." for gold in golds],
        wrong=["maybe"] * 12,
        asked=[f"yesno {gold}" for gold in golds],
        floors={"uniform": 0.5, "constant": 7 / 12, "stratum": 7 / 12},
        chance=("stratum", 7 / 12),
        off=frozenset({1}),
        never=frozenset({2, 3}),
        fip=11 / 12,
        mpp=10 / 12,
        others={
            "amber_precision": 1.0,
            "amber_recall": 1.0,
            "amber_precision_mpp2": 1.0,
            "amber_recall_mpp2": 6 / 7,
            "amber_unclear_mpp2": 2 / 12,
        },
        form="mean",
        clusters=4,
        gate=None,
    )


def write_amber(folder: Path, docs: list[tuple[dict[str, Any], str, str, str]]) -> None:
    """The authors' layout: row, name of the image, annotated type, truth."""
    (folder / "data/query").mkdir(parents=True)
    (folder / "image").mkdir()
    queries = [{"id": row["id"], "image": name, "query": row["question"]} for row, name, *_ in docs]
    (folder / "data/query/query_discriminative.json").write_text(json.dumps(queries))
    (folder / "data/annotations.json").write_text(
        json.dumps([{"id": row["id"], "type": kind, "truth": gold} for row, _, kind, gold in docs])
    )
    for row, name, *_ in docs:
        row["image"].save(folder / "image" / name)


def hallusion_yesno() -> Case:
    """Two sets of two figures with three questions each: golds yes yes yes no no no, and no no no yes yes yes.

    A question counts over its two figures: doc 0 loses one of six; docs 1 and 4 are the same question. A figure counts
    over its three
    questions: doc 0 loses one of four, docs 1 and 4 two.
    """
    standin = standins.hallusion_bench_image()
    golds = (["yes"] * 3 + ["no"] * 3) + (["no"] * 3 + ["yes"] * 3)
    return Case(
        "hallusion_bench_yesno_rci2",
        rows_of(standin),
        right=[f"{gold.capitalize()}. It is so." for gold in golds],
        wrong=["I am not sure"] * 12,
        asked=[f"yesno {gold}" for gold in golds],
        floors={"uniform": 0.5, "constant": 0.5, "stratum": 0.0},
        chance=("uniform", 0.5),
        never=frozenset({1, 4}),
        fip=11 / 12,
        mpp=10 / 12,
        others={"qAcc": 5 / 6, "fAcc": 3 / 4, "qAcc_mpp2": 5 / 6, "fAcc_mpp2": 2 / 4, "unclear": 1 / 12},
        form="mean",
        clusters=2,
        gate=None,
        standin=standin,
        base="hallusion_bench_yesno",
    )


def hallusion_judged() -> Case:
    """The same docs under the judge, in percent to four decimals; half of the golds are yes, so the majority is 50.

    Without its own answers to.
    the scorer there is no ceiling, no floor but the documented one, and no donor."""
    plain = hallusion_yesno()
    return Case(
        "hallusion_judged",
        plain.rows,
        plain.right,
        plain.wrong,
        asked=[f"yesno {('No', 'Yes')[one.endswith('yes')]}" for one in plain.asked],
        floors={},
        chance=("majority", 50.0),
        never=plain.never,
        fip=91.6667,
        mpp=83.3333,
        others={"qAcc": 83.3333, "fAcc": 75.0, "qAcc_mpp2": 83.3333, "fAcc_mpp2": 50.0},
        form="mean",
        ceiling=None,
        clusters=2,
        gate=None,
        standin=plain.standin,
    )


def mme() -> Case:
    """Perception: two pairs on existence, one on color; each pair "yes" then "no".

    A pair: 100 · (accuracy + both right), 0 to 200.

    Doc 0 is wrong: its pair has 50, existence (50 + 200)/2 = 125, color 200: 325. No cell of doc 5 is right: color 50,
    existence 200: 250. A constant is right once in each pair: 50 in each of two categories (of ten in the real data:
    500). All right: 200 in each. Without the doc itself the other word leads, so that the stratum's floor is 0.
    """
    standin = standins.mme()
    return Case(
        "mme_rci2",
        rows_of(standin),
        right=["Yes.", "no"] * 6,
        wrong=["unclear"] * 12,
        asked=["yesno Yes", "yesno No"] * 6,
        floors={"constant": 100.0, "stratum": 0.0},
        chance=("uniform", 150.0),
        never=frozenset({5}),
        fip=325.0,
        mpp=250.0,
        others={"mme_cognition_score": 400.0, "mme_cognition_score_mpp2": 400.0},
        form="mme",
        ceiling=400.0,
        clusters=3,
        gate=None,
        standin=standin,
    )


def pope() -> Case:
    """Golds yes no yes yes no no yes no yes no, on four images.

    The wrong answer "Yes." is no bare word: neither a false "yes" nor a "no".

    So precision stays 1; recall loses the "yes" of doc 0 only where the answer is "no": it stays 1 too.
    """
    standin = standins.pope()
    golds = ["yes", "no", "yes", "yes", "no", "no", "yes", "no", "yes", "no"]
    return Case(
        "pope_rci2",
        rows_of(standin),
        right=[gold.capitalize() for gold in golds],
        wrong=["Yes."] * 10,
        asked=[f"yesno {gold}" for gold in golds],
        floors={"uniform": 0.5, "constant": 0.5, "stratum": 0.0},
        chance=("uniform", 0.5),
        never=frozenset({1, 4}),
        fip=0.9,
        mpp=0.8,
        others={
            "pope_precision": 1.0,
            "pope_recall": 1.0,
            "pope_f1_score": 1.0,
            "pope_yes_ratio": 0.5,
            "pope_recall_mpp2": 1.0,
        },
        form="mean",
        clusters=4,
        gate=None,
        standin=standin,
        base="pope",
    )


def chartqa() -> Case:
    """Six numbers (14, 0.57, 58%, 14.3, 2010, 0), three yes/no (yes twice), a word; 5 % off is right.

    Constants: 14 is right for 14 and 14.3, 0.57 for 0.57 and 58% (as text the first of the two): 2; yes 2; the word 1:
    5 of 10. A guess between yes and no: 1.5 in place of 2. Without the doc itself no gold leads that is right for it,
    but for the word, which is alone and keeps the constant. Human are docs 0, 3, 6 and 9.
    """
    standin = standins.chartqa()
    golds = ["14", "Yes", "0.57", "58%", "Blue", "14.3", "No", "2010", "0", "Yes"]
    kinds = ["yesno" if gold in ("Yes", "No") else "open" if gold == "Blue" else "number" for gold in golds]
    return Case(
        "chartqa_rci2",
        rows_of(standin),
        right=["14.5", "yes", "0.55", "60%", "blue", "14", "no", "2000", "0", "Yes"],
        wrong=["n/a %"] * 10,
        asked=[f"{kind} {gold}" for kind, gold in zip(kinds, golds, strict=True)],
        floors={"uniform": 0.45, "constant": 0.5, "stratum": 0.1},
        chance=("constant", 0.5),
        off=frozenset({1}),
        never=frozenset({0, 2}),
        fip=0.9,
        mpp=0.8,
        others={
            "relaxed_human_split": 1.0,
            "relaxed_human_split_mpp2": 3 / 4,
            "relaxed_augmented_split": 5 / 6,
            "relaxed_augmented_split_mpp2": 5 / 6,
        },
        form="mean",
        gate=0,
        standin=standin,
        base="chartqa",
    )


def gqa() -> Case:
    """Yes and no three times each, left and dog twice each, on five images: half is right by a guess as by a constant."""
    standin = standins.gqa()
    golds = ["yes", "no", "left", "yes", "dog", "no", "left", "dog", "yes", "no"]
    return Case(
        "gqa_rci2",
        rows_of(standin),
        right=[f"{gold.capitalize()}." for gold in golds],
        wrong=["it is hard to say"] * 10,
        asked=[f"{'yesno' if gold in ('yes', 'no') else 'open'} {gold}" for gold in golds],
        floors={"uniform": 0.5, "constant": 0.5, "stratum": 0.0},
        chance=("uniform", 0.5),
        never=frozenset({1, 3}),
        fip=0.9,
        mpp=0.8,
        form="mean",
        clusters=5,
        gate=None,
        standin=standin,
    )


FIRST = [answers[0] for answers in standins.CONSENSUS]
MOST = ["red", "dark red", "3", "thats all", "Yes", "stop", "unanswerable", "hes", "unanswerable", "8:30"]


def textvqa() -> Case:
    """The model says what the first of ten people said.

    Said by k of ten, an answer gets the mean of min(1, others/3) when each in turn is left.
    out: 0.3, 0.6, 0.9 for k = 1, 2, 3, else 1. So 1 .6 1 1 .6 1 1 1 .3 1 ("2" and "two" are one answer); doc 0 is off:
    7.5 of 10; docs 1 and 2 get nothing from any cell: 8.5 - 1.6 = 6.9. The most frequent gold, "unanswerable", is right
    for docs 6 and 8 (of ten, nine and seven said so): 2. No other does better: "red" has 1 + .6 + .3. Without the doc
    itself none leads there; elsewhere it leads, and is wrong: 0.
    """
    standin = standins.textvqa()
    return Case(
        "textvqa_val_rci2",
        rows_of(standin),
        right=FIRST,
        wrong=["#!"] * 10,
        asked=[f"open {gold}" for gold in MOST],
        floors={"constant": 0.2, "stratum": 0.0},
        chance=("constant", 0.2),
        never=frozenset({1, 2}),
        fip=0.75,
        mpp=0.69,
        form="mean",
        clusters=10,
        standin=standin,
        base="textvqa_val",
    )


def vizwiz() -> Case:
    """As TextVQA, but ten people give doc 9 ten answers: each is worth 0.3, so the ceiling is 9.3/10 and one doc's gold is no full mark."""
    standin = standins.vizwiz_vqa()
    rows = [dict(row) for row in rows_of(standin)]
    rows[9]["answers"] = [f"word{i}" for i in range(10)]
    return Case(
        "vizwiz_vqa_val_rci2",
        rows,
        right=[*FIRST[:9], "word0"],
        wrong=["#!"] * 10,
        asked=[f"open {gold}" for gold in [*MOST[:9], "word0"]],
        floors={"constant": 0.2, "stratum": 0.0},
        chance=("constant", 0.2),
        never=frozenset({1, 2}),
        fip=0.68,
        mpp=0.62,
        form="mean",
        ceiling=0.93,
        gold_below=1,
        standin=with_rows(standin, rows),
        base="vizwiz_vqa_val",
    )


def coco() -> Case:
    """CIDEr is the mean of what ``pycocoevalcap`` gives each caption, which is 0 for the wrong one, as it shares no word.

    The gold answer is the better of the two references; its mean is the ceiling.
    """
    standin = standins.coco_cap()
    rows = rows_of(standin)
    right = [row["answer"][0] for row in rows]
    known = cider(rows, right)
    golds = [max(pair) for pair in zip(known, cider(rows, [row["answer"][1] for row in rows]), strict=True)]
    return Case(
        "coco2017_cap_val_lite_rci2",
        rows,
        right=right,
        wrong=["Nothing much"] * 8,
        asked=[f"caption {text}" for text in right],
        floors={},
        chance=("other", -1.0),
        never=frozenset({1, 2}),
        fip=sum(known[1:]) / 8,
        mpp=(sum(known) - known[1] - known[2]) / 8,
        form="mean",
        ceiling=sum(golds) / 8,
        gold_below=-1,
        gate=None,
        standin=standin,
    )


def cider(rows: Rows, captions: list[str]) -> list[float]:
    golds = {i: [{"caption": text} for text in row["answer"]] for i, row in enumerate(rows)}
    tokens = Words()
    _, scores = Cider().compute_score(
        tokens.tokenize(golds), tokens.tokenize({i: [{"caption": text}] for i, text in enumerate(captions)})
    )
    return [float(score) for score in scores]


CASES: dict[str, Callable[..., Case]] = {
    "AI2D": ai2d,
    "AMBER": amber,
    "BLINK": blink,
    "ChartQA": chartqa,
    "COCO": coco,
    "GQA": gqa,
    "HallusionBench": hallusion_yesno,
    "HallusionBench judged": hallusion_judged,
    "MME": mme,
    "MMMU": mmmu,
    "MMStar": mmstar,
    "POPE": pope,
    "RealWorldQA": realworldqa,
    "ScienceQA": scienceqa,
    "TextVQA": textvqa,
    "VizWiz": vizwiz,
}
