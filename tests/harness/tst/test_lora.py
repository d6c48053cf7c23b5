"""``tst_lora`` through the real evaluator, with a small random language model; CPU, no network."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen2Config, Qwen2ForCausalLM

from tests.harness.toys import metrics, run
from tests.harness.tst.toys import Lora, choices, details, samples_of, tst_of, write
from tests.tst.lora.test_lora import SIZES, save, tokenizer_of

DOCS = 24
SMALL = {
    "r": 8,
    "alpha": 16,
    "dropout": 0.0,
    "lr": 5e-3,
    "epochs": 1,
    "batch": 8,
    "device": "cpu",
    "max_length": 192,
    "max_new_tokens": 8,
}


@pytest.fixture(scope="module")
def language_model(tmp_path_factory):
    """A random Qwen2 with a chat template."""
    tokenizer = tokenizer_of(template=True)
    torch.manual_seed(0)
    net = Qwen2ForCausalLM(Qwen2Config(vocab_size=len(tokenizer), tie_word_embeddings=True, **SIZES))
    return save(net, tokenizer, tmp_path_factory.mktemp("qwen2"))


@pytest.fixture(scope="module")
def world(tmp_path_factory, language_model):
    """A task, and a run of it: (folder, cache, results)."""
    folder = tmp_path_factory.mktemp("world")
    write(folder, rows=choices(DOCS))
    return folder, folder / "cache", asked(folder, language_model, folder / "cache")


def asked(folder, language_model, cache, tasks="toy_tst2", **settings):
    return run(Lora(model=language_model, cache=str(cache), **{**SMALL, **settings}), tasks, folder)


def test_records_have_delta_and_zero_shot(world):
    _, _, results = world
    found, rows = details(results, "toy_tst2"), choices(DOCS)
    for row, record, line in zip(rows, tst_of(results, "toy_tst2"), samples_of(results, "toy_tst2"), strict=True):
        assert record["diagnostic"] == "lora"
        assert record["fold"] in (0, 1)
        assert record["answers"] == line["filtered_resps"]
        assert record["scores"] == {"source": [float(record["answers"][0] == row["answer"])]}
        assert record["delta"] == pytest.approx(record["s"] - record["zero_shot"]["s"])
        assert record["zero_shot"]["score"] == float(record["zero_shot"]["s"] > 0.5)
    zero = np.mean([record["zero_shot"]["score"] for record in tst_of(results, "toy_tst2")])
    assert found["tst_zero_shot"] == pytest.approx(zero)
    assert found["tst_delta"] == pytest.approx(found["tst"] - zero)
    assert metrics(results, "toy_tst2")["tst_delta"] == found["tst_delta"]
    assert metrics(results, "toy_tst2")["exact_match"] == found["tst"]
    assert found["tst_details"]["importance"] == []
    assert found["tst_details"]["settings"]["epochs"] == 1


def test_zero_shot_is_the_untrained_model(world, language_model):
    """By plain forward passes: the probability of each letter and of the end of the turn, normalised over the letters."""
    _, _, results = world
    tokenizer, net = (
        AutoTokenizer.from_pretrained(language_model),
        AutoModelForCausalLM.from_pretrained(language_model).eval(),
    )
    for row, record, line in list(
        zip(choices(DOCS), tst_of(results, "toy_tst2"), samples_of(results, "toy_tst2"), strict=True)
    )[:6]:
        messages = [{"role": "user", "content": line["arguments"][0]}]
        prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        logs = []
        for letter in "AB":
            start, whole = (
                tokenizer(text, add_special_tokens=False, return_tensors="pt").input_ids
                for text in (prompt, f"{prompt}{letter}<|im_end|>")
            )
            with torch.no_grad():
                given = net(whole).logits[0].log_softmax(-1)
            logs.append(sum(float(given[at - 1, whole[0, at]]) for at in range(start.shape[1], whole.shape[1])))
        right = np.exp(logs["AB".index(row["answer"])]) / np.exp(logs).sum()
        assert record["zero_shot"]["s"] == pytest.approx(right, abs=1e-4)


def test_log_likelihood_tasks_are_answered_by_place(tmp_path, language_model):
    rows = [{**row, "place": "AB".index(row["answer"])} for row in choices(DOCS)]
    of_places = {
        "output_type": "multiple_choice",
        "doc_to_choice": "choices",
        "doc_to_target": "place",
        "generation_kwargs": None,
    }
    write(
        tmp_path,
        rows=rows,
        **of_places,
        metric_list=[{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
    )
    results = asked(tmp_path, language_model, "none")
    right = [
        record["answers"][0] == str(row["place"]) for record, row in zip(tst_of(results, "toy_tst2"), rows, strict=True)
    ]
    assert [line["acc"] for line in samples_of(results, "toy_tst2")] == right
