"""``tst_rf`` with ``embeddings=PATH``: a tiny model through the real function, and whole runs."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, BertModel

from lmms_patch.harness.models import embeddings
from lmms_patch.harness.models.embeddings import Embedder
from tests.harness.toys import metrics, run
from tests.harness.tst.toys import Rf, details, write
from tests.making.embeddings import HIDDEN, MOST, WORDS, write_bert

TEXTS = [
    "how many chairs are in the room ?", "dog", "is there a dog ?", "", "a chairs a chairs", "is is is is is is is",
    "how many unknown are there",
]  # fmt: skip


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return write_bert(tmp_path_factory.mktemp("embeddings") / "tiny")


@pytest.fixture
def copied(bert, tmp_path):
    """Return a copy of the folder, to be damaged."""
    return shutil.copytree(bert, tmp_path / "copied")


def with_pooling(folder, told):
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(told))
    return str(folder)


def by_hand(folder, text, pooling):
    """One text by itself, so without anything filled up, pooled in NumPy."""
    net, tokenizer = BertModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        hidden = net(input_ids=torch.tensor([tokenizer(text)["input_ids"]])).last_hidden_state[0].numpy().astype(float)
    vector = {"mean": hidden.mean(axis=0), "cls": hidden[0], "max": hidden.max(axis=0)}[pooling]
    return vector / np.linalg.norm(vector)


# --- vectors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "pooling"),
    [
        (None, "mean"),
        ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False}, "mean"),
        ({"pooling_mode_mean_sqrt_len_tokens": True, "word_embedding_dimension": HIDDEN}, "mean"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode_cls_token": False, "pooling_mode_max_tokens": True}, "max"),
        ({"embedding_dimension": HIDDEN, "pooling_mode": "cls", "include_prompt": True}, "cls"),
        ({"pooling_mode": ["max"]}, "max"),
    ],
)
def test_pooling_is_that_of_the_folder(copied, told, pooling):
    folder = str(copied) if told is None else with_pooling(copied, told)
    found = Embedder(folder)
    assert found.described["pooling"] == pooling
    np.testing.assert_allclose(found(TEXTS), [by_hand(folder, text, pooling) for text in TEXTS], atol=1e-6)


def test_the_vectors_do_not_depend_on_batches_or_order(bert, monkeypatch):
    texts = TEXTS + [" ".join(np.random.default_rng(i).choice(WORDS, 1 + i % 20)) for i in range(100)]
    expected = Embedder(str(bert))(texts)
    for batch in (1, 3):
        monkeypatch.setattr(embeddings, "BATCH", batch)
        np.testing.assert_allclose(Embedder(str(bert))(texts), expected, atol=1e-6)
    np.testing.assert_allclose(Embedder(str(bert))(texts[::-1])[::-1], expected, atol=1e-6)
    np.testing.assert_array_equal(Embedder(str(bert))(texts), Embedder(str(bert))(texts))
    np.testing.assert_allclose(np.linalg.norm(expected, axis=1), 1, atol=1e-6)


def test_each_distinct_text_is_computed_once_whatever_the_threads(bert):
    found, rows = Embedder(str(bert)), []
    found._net.register_forward_hook(lambda net, given, result: rows.append(len(result.last_hidden_state)))
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda turn: found([*TEXTS, *TEXTS[:turn]])[: len(TEXTS)], range(8)))
    assert sum(rows) == len(TEXTS)
    for answer in answers:
        np.testing.assert_array_equal(answer, answers[0])
    assert found([]).shape == (0, HIDDEN)


@pytest.mark.parametrize(("limit", "most"), [(MOST, MOST), (None, MOST - 2), (10, 10)])
def test_long_texts_are_cut(copied, limit, most):
    """At the tokenizer's limit, or where it has none at the positions of the model, two of them kept free."""
    told = json.loads((copied / "tokenizer_config.json").read_text())
    told.pop("model_max_length")
    (copied / "tokenizer_config.json").write_text(
        json.dumps(told if limit is None else {**told, "model_max_length": limit})
    )
    words = ["dog", "room"] * 100
    whole, cut = Embedder(str(copied))(
        [" ".join(words), " ".join(words[: most - 2])]
    )  # the first and the last token count
    np.testing.assert_allclose(whole, cut, atol=1e-6)


def test_the_digest_is_of_the_weights(bert, copied, monkeypatch):
    one = Embedder(str(bert)).described
    assert one["name"] == "tiny"
    assert Embedder(f"{copied}/").described == {**one, "name": "copied"}
    monkeypatch.chdir(copied)
    assert Embedder(".").described == {**one, "name": "copied"}
    damage(copied, lambda weights: weights["embeddings.LayerNorm.bias"][3].add_(0.01))
    assert Embedder(str(copied)).described["sha256"] != one["sha256"]


def damage(folder, change):
    file = folder / "model.safetensors"
    weights = load_file(file)
    change(weights)
    save_file(weights, file, {"format": "pt"})


# --- whole runs ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def synonyms(tmp_path_factory):
    """Return a task of 96 docs, no two of which share a word that says anything, and a model that knows which mean the same."""
    folder = tmp_path_factory.mktemp("synonyms")
    stream = np.random.default_rng(0)
    words = stream.permutation(
        [f"{a}{b}{c}" for a in "bdfg" for b in "aeiouy" for c in "klmn"]
    ).tolist()  # the i-th means what i modulo 2 says
    rows = []
    for i, word in enumerate(stream.permutation(len(words)).tolist()):
        first, right = int(stream.integers(2)), word % 2
        rows.append(
            {
                "question": f"Which is closer to the {words[word]}?",
                "choices": ["bed", "rug"] if first == 0 else ["rug", "bed"],
                "answer": "AB"[right ^ first],
                "scene": f"scene {i // 4}",
                "kind": "near",
            }
        )
    write(folder / "tasks", rows=rows)
    return folder / "tasks", write_bert(folder / "knows", words, alike=2)


def test_a_run_with_embeddings(synonyms):
    """With the leak checks. Without embeddings nobody knows what a new word means."""
    tasks, model = synonyms
    plain, found = (
        run(Rf(trees=40, check=True, **given), "toy_tst5", tasks) for given in ({}, {"embeddings": str(model)})
    )
    assert abs(metrics(plain, "toy_tst5")["exact_match"] - 0.5) < 0.2  # 4 standard errors of 96 coins
    assert metrics(found, "toy_tst5")["exact_match"] > 0.9
    told = details(found)["tst_details"]["settings"]["embeddings"]
    assert told == Embedder(str(model)).described
    assert "embeddings" not in details(plain)["tst_details"]["settings"]
