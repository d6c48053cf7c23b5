"""``_tst<k>`` tasks through the real evaluator, in-process: requests, native scores, records, numbers, options."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from lmms_patch.tst.results import flat
from tests.harness.toys import ChatModel, Model, metrics, run
from tests.harness.tst.toys import ODD, Rf, choices, details, rf, samples_of, tst_of, write
from tests.making.tst import stress_of

THREE = ("bed", "rug", "lamp")


def marks(said, gold):
    """What ``utils.odd`` gives, by hand."""
    return {(True, 0): 1.0, (True, 1): 0.3}.get((said != "", abs("ABC".index(said) - "ABC".index(gold))), 0.0)


def prompts_of_requests(results, task):
    return [sample["arguments"][0] for sample in samples_of(results, task)]


# --- requests: the base's own prompts, and nothing to see -----------------------------------------


def test_prompts_are_the_bases_own_and_no_image_is_asked_for(tmp_path):
    write(tmp_path)
    results = rf(tmp_path)
    assert not (tmp_path / "asked").exists()
    write(tmp_path, doc_to_visual=None)
    base = Model()
    base.task_dict, seen = {}, []
    base.generate_until = lambda requests: [seen.append(request.args[0]) or "A" for request in requests]
    run(base, "toy", tmp_path)
    assert prompts_of_requests(results, "toy_tst5") == seen
    assert seen[0].splitlines()[1:] == ["A. bed", "B. rug", "Answer with the letter."]


@pytest.mark.parametrize("model", [Model, ChatModel])
def test_blind_shows_nothing_and_asks_for_no_image(tmp_path, model):
    write(tmp_path)
    blind = model(lambda prompt, images: "A")
    results = run(blind, "toy_blind", tmp_path)
    assert not (tmp_path / "asked").exists()
    assert [images for _, _, images, _ in blind.seen] == [[]] * 48
    assert [prompt for *_, prompt in blind.seen] == [
        f"{row['question']}\nA. {row['choices'][0]}\nB. {row['choices'][1]}\nAnswer with the letter."
        for row in choices(48)
    ]
    assert metrics(results, "toy_blind")["exact_match"] == np.mean([row["answer"] == "A" for row in choices(48)])


# --- scores: the base's own ---------------------------------------------------------------------


def test_answers_go_through_the_native_scorer(tmp_path):
    """Recomputed from the log by hand, and by a native run of the same answers."""
    rows = choices(60, purity=0.6, options=THREE)
    write(tmp_path, rows=rows, **ODD)
    results = rf(tmp_path)
    lines = samples_of(results, "toy_tst5")
    said = [line["filtered_resps"][0] for line in lines]
    by_hand = [marks(answer, row["answer"]) for answer, row in zip(said, rows, strict=True)]
    assert [line["marks"] for line in lines] == by_hand == [tst["scores"]["source"][0] for tst in tst_of(results)]
    assert {0.0, 0.3, 1.0} == set(by_hand)
    assert metrics(results, "toy_tst5")["marks"] == pytest.approx(np.mean(by_hand), abs=1e-12)

    write(tmp_path, rows=rows, doc_to_visual=None, **ODD)
    teller = Model()
    teller.generate_until = lambda requests: [said[request.doc_id] for request in requests]
    assert metrics(run(teller, "toy", tmp_path), "toy")["marks"] == metrics(results, "toy_tst5")["marks"]


def write_log_likelihoods(folder, rows):
    rows = [{**row, "place": "ABCD".index(row["answer"])} for row in rows]
    of_places = {
        "output_type": "multiple_choice",
        "doc_to_choice": "choices",
        "doc_to_target": "place",
        "generation_kwargs": None,
    }
    write(
        folder, rows=rows, **of_places, metric_list=[{"metric": "acc", "aggregation": "mean", "higher_is_better": True}]
    )
    return rows


def test_log_likelihood_tasks_score_the_option_that_is_answered(tmp_path):
    """Golds and answers are places among the options."""
    rows = write_log_likelihoods(tmp_path, choices(48, purity=0.8, options=THREE))
    results = rf(tmp_path)
    right = [record["answers"][0] == str(row["place"]) for record, row in zip(tst_of(results), rows, strict=True)]
    assert 0.5 < np.mean(right) < 1
    assert [record["scores"]["source"][0] for record in tst_of(results)] == right
    assert [line["acc"] for line in samples_of(results, "toy_tst5")] == right
    assert metrics(results, "toy_tst5")["acc"] == np.mean(right)


def test_the_gold_of_a_log_likelihood_task_gets_full_marks(tmp_path):
    """And an option gets what it deserves: uninformed answers are scored in the form that the scorer gets."""
    rows = write_log_likelihoods(tmp_path, choices(48, options=THREE))
    results = run(Model(lambda *_: "0"), "toy_blind", tmp_path)
    assert details(results, "toy_blind")["ceiling"] == 1
    for line, row in zip(samples_of(results, "toy_blind"), rows, strict=True):
        scores = {one["answer"]: one["scores"]["acc"] for one in line["patch"]["baselines"]}
        assert scores == {str(place): float(place == row["place"]) for place in range(3)}


# --- what is found, and what is not ---------------------------------------------------------------


def test_a_planted_shortcut_is_found(tmp_path):
    """Six words, each with its own right option wherever it stands: all docs can be known without looking."""
    write(tmp_path, rows=choices(120))
    found = details(rf(tmp_path))
    assert found["tst"] > 0.95
    assert 0.4 < found["tst_majority"] < 0.65
    assert found["tst_above_low"] > 0.2
    assert found["tst_p"] < 0.001
    assert found["tst_s"] > found["tst_chance"] == 0.5


def test_random_golds_give_chance(tmp_path):
    """240 coins: within four standard errors of one half, and s(x) on average what a guess earns."""
    write(tmp_path, rows=choices(240, seed=3, purity=0.0))
    found = details(rf(tmp_path))
    assert abs(found["tst"] - 0.5) < 4 * (0.25 / 240) ** 0.5
    assert abs(found["tst_s"] - 0.5) < 0.05
    assert found["tst_p"] > 0.01


# --- records and numbers ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tested(tmp_path_factory):
    """Three fold seeds, all groupings, 64 docs of 16 scenes; some texts are repeated."""
    folder = tmp_path_factory.mktemp("tested")
    rows = choices(64, seed=1, purity=0.7, options=THREE)
    write(folder, rows=rows, profile={"group": "scene", "category": "kind", "choices": "choices"}, **ODD)
    return rows, run(Rf(groupings="all"), "toy_tst5", folder)


def by_seed(records, key, name):
    """Shape (seeds, docs)."""
    return np.array([record[key][name] for record in records]).T


def test_each_record_says_all_there_is_to_a_doc(tested):
    rows, results = tested
    for row, record, line in zip(rows, tst_of(results), samples_of(results, "toy_tst5"), strict=True):
        assert sorted(record) == sorted(
            [
                "diagnostic",
                "grouping",
                "fold",
                "source",
                "answers",
                "s",
                "s_minus_chance",
                "chance",
                "delta",
                "zero_shot",
                "scores",
                "baseline",
                "copies",
                "text",
            ]
        )
        assert (record["diagnostic"], record["grouping"], record["source"]) == ("rf", "source", row["scene"])
        assert record["fold"] in range(5)
        assert record["delta"] is record["zero_shot"] is None
        assert set(record["scores"]) == set(record["baseline"]) == {"source", "none", "text"}
        assert record["answers"][0] == line["filtered_resps"][0]
        assert record["scores"]["source"] == [marks(answer, row["answer"]) for answer in record["answers"]]
        assert 0 <= record["s"] <= 1
        assert record["s_minus_chance"] == pytest.approx(record["s"] - 1 / 3)
        assert record["chance"] == pytest.approx(np.mean([marks(letter, row["answer"]) for letter in "ABC"]))
        assert line["patch"]["fields"]["category"] == row["kind"]


def test_the_baseline_is_the_majority_letter_of_the_training_folds(tested):
    """By hand, at the first fold seed; any of the most frequent where several are."""
    rows, results = tested
    found = tst_of(results)
    for row, record in zip(rows, found, strict=True):
        letters = Counter(
            r["answer"]
            for r, t in zip(rows, found, strict=True)
            if t["fold"] != record["fold"] and r["kind"] == row["kind"]
        )
        most = [letter for letter, count in letters.items() if count == max(letters.values())]
        assert record["baseline"]["source"][0] in [marks(letter, row["answer"]) for letter in most]


def test_numbers_follow_from_the_records(tested):
    rows, results = tested
    found, records = details(results), tst_of(results)
    assert found["tst_details"]["headline"] == found["tst_details"]["grouping"] == "source"
    for name, grouped in found["tst_details"]["by_grouping"].items():
        scores, baseline = by_seed(records, "scores", name), by_seed(records, "baseline", name)
        assert scores.shape == (5, 64), "five fold seeds where docs are few"
        assert grouped["seeds"] == 5
        assert grouped["accuracy"]["value"] == pytest.approx(scores.mean())
        assert grouped["sd"] == pytest.approx(scores.mean(axis=1).std(ddof=1))
        assert grouped["majority"] == pytest.approx(baseline.mean())
        assert grouped["above"]["value"] == pytest.approx(scores.mean() - baseline.mean())
        assert grouped["accuracy"]["low"] < scores.mean() < grouped["accuracy"]["high"]
        assert found[f"tst_{name}"] == grouped["accuracy"]["value"]
    leak = by_seed(records, "scores", "none").mean() - by_seed(records, "scores", "source").mean()
    assert found["tst_leakage"] == found["tst_details"]["leakage"]["value"] == pytest.approx(leak)
    assert found["tst_chance"] == pytest.approx(
        np.mean([marks(letter, row["answer"]) for letter in "ABC" for row in rows])
    )
    assert found["tst_s"] == pytest.approx(np.mean([record["s"] for record in records]))
    assert found["tst_details"]["unscored"] == 0
    assert metrics(results, "toy_tst5")["tst"] == found["tst"]


@pytest.mark.parametrize("known", [True, False], ids=["sources", "no source"])
def test_numbers_do_not_depend_on_the_order_of_the_docs(tested, known):
    """The host gathers the docs of several ranks one rank after the other. 20 docs: no p-value is the smallest possible one."""
    records = [line["patch"] for line in samples_of(tested[1], "toy_tst5")][:20]
    if not known:
        records = [{**record, "tst": {**record["tst"], "source": None}} for record in records]
    in_order, by_rank = flat(stress_of(records)), flat(stress_of(records[::2] + records[1::2]))
    assert by_rank == pytest.approx(in_order, abs=1e-12)


def test_texts_causes_and_importance(tested):
    rows, results = tested
    found = details(results)["tst_details"]
    texts = [(row["question"], *sorted(row["choices"])) for row in rows]
    right = [row["choices"]["ABC".index(row["answer"])] for row in rows]
    golds = {text: {gold for gold, own in zip(right, texts, strict=True) if own == text} for text in texts}
    assert found["texts"] == {
        "different": len(golds),
        "repeated": sum(texts.count(text) > 1 for text in texts),
        "conflicting": sum(len(golds[text]) > 1 for text in texts),
        "near": 0,
    }
    for cause in found["causes"]:
        own = [
            i
            for i, row in enumerate(rows)
            if row["kind"] == cause["category"] and f"the {cause['words']}?" in row["question"]
        ]
        options = Counter(rows[i]["choices"]["ABC".index(rows[i]["answer"])] for i in own)
        assert cause["docs"] == len(own)
        assert cause["s"] == pytest.approx(np.mean([tst_of(results)[i]["s"] for i in own]))
        assert options[cause["gold"]] == max(options.values())
        assert cause["gold_share"] == pytest.approx(max(options.values()) / len(own))
    assert [cause["rank"] for cause in found["causes"]] == list(range(1, len(found["causes"]) + 1))
    assert {row["kind"] for row in found["importance"]} == {"options"}
    assert sum(row["gain"] for row in found["importance"]) == pytest.approx(1)
    assert found["settings"] == {"model": "boosting", "trees": 5, "depth": 20}
    assert (found["diagnostic"], found["folds"], list(found["unusable"])) == ("rf", 5, ["joined"])
