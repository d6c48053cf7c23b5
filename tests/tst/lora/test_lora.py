"""`tst_lora` on a small random language model, against plain forward passes and planted shortcuts. CPU, no network."""

import dataclasses
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from lmms_patch.errors import OptionError
from lmms_patch.tst.items import Item
from lmms_patch.tst.lora import cache, load
from lmms_patch.tst.lora import model as lora_model
from lmms_patch.tst.lora.diagnostic import LoraDiagnostic, choice, run_folds
from lmms_patch.tst.lora.settings import PRESETS, LoraSettings
from lmms_patch.tst.lora.text import Encoder, Row
from tests.places import ROOT
from tests.sizes import size
from tests.tst.lora.ranks import places

TEMPLATE = (
    "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nYou help.<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
WORDS = ("desk", "sofa", "door", "bath", "shelf", "stove")
FEW = {"epochs": 1, "batch": 8}


def shortcut(n: int, seed: int = 0, *, right: float = 0.9) -> list[Item]:
    """Lamp is nearer to half of the words in `right` of the docs, chair to the other half.

    Which letter is which is random.
    """
    stream = np.random.default_rng(seed)
    items = []
    for i in range(n):
        word = WORDS[stream.integers(len(WORDS))]
        truth = (WORDS.index(word) % 2) ^ int(stream.random() > right)
        items.append(
            Item(
                doc_id=i,
                prompt=f"Which is closer to the {word} in room {stream.integers(50)}: A. lamp B. chair?",
                question=f"Which is closer to the {word}?",
                format="mc",
                options=("lamp", "chair"),
                answers=("A", "B"),
                golds=("AB"[truth],),
                category="secret",
                source=f"scene{i}",
                key=f"key{i}",
            )
        )
    return items


def opened(n: int) -> list[Item]:
    """Open questions whose answer the slot word gives away."""
    return [
        dataclasses.replace(
            item, prompt=f"Describe the {word}.", format="open", options=(), answers=(), golds=(f"a {word} lamp",)
        )
        for item, word in ((item, next(w for w in WORDS if w in item.question)) for item in shortcut(n, 5))
    ]


def tokenizer_of(*, template: bool) -> PreTrainedTokenizerFast:
    texts = [item.prompt for item in shortcut(200)] + [
        "chair leg",
        "a desk lamp",
        "user assistant system You help.",
        "Describe the sofa.",
    ]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(vocab_size=420, special_tokens=special, initial_alphabet=alphabet, show_progress=False),
    )
    if not template:
        return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>")
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>"],
    )
    fast.chat_template = TEMPLATE
    return fast


SIZES = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.2,
}


def save(net, tokenizer, folder) -> str:
    """Saves a random model whose logits are large enough to be sure of an answer: its output layer is not tuned."""
    with torch.no_grad():
        net.get_output_embeddings().weight *= 2
    net.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def chat(tmp_path_factory) -> str:
    """A random Qwen2 with a chat template and tied embeddings."""
    folder = tmp_path_factory.mktemp("qwen2")
    tokenizer = tokenizer_of(template=True)
    torch.manual_seed(0)
    return save(
        Qwen2ForCausalLM(Qwen2Config(vocab_size=len(tokenizer), tie_word_embeddings=True, **SIZES)), tokenizer, folder
    )


@pytest.fixture(scope="session")
def plain(tmp_path_factory) -> str:
    """A random Llama without chat template or padding token."""
    folder = tmp_path_factory.mktemp("llama")
    tokenizer = tokenizer_of(template=False)
    torch.manual_seed(1)
    return save(LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **SIZES)), tokenizer, folder)


@pytest.fixture(scope="session")
def absolute(tmp_path_factory) -> str:
    """A random GPT-2: its positions are absolute, so padding that is counted as text would change its answers."""
    tokenizer = tokenizer_of(template=False)
    torch.manual_seed(2)
    none = {
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
    }  # dropout of its own would depend on the micro-batch
    net = GPT2LMHeadModel(
        GPT2Config(
            **none, vocab_size=len(tokenizer), n_embd=64, n_layer=2, n_head=4, n_positions=256, initializer_range=0.2
        )
    )
    return save(net, tokenizer, tmp_path_factory.mktemp("gpt2"))


@pytest.fixture(params=["chat", "plain", "absolute"])
def folder(request) -> str:
    return request.getfixturevalue(request.param)


def small(folder: str, **changes) -> LoraSettings:
    """Settings that a random model can learn with."""
    base = {
        "r": 16,
        "alpha": 32,
        "dropout": 0.0,
        "lr": 5e-3,
        "epochs": 10,
        "batch": 16,
        "device": "cpu",
        "max_length": 128,
        "max_new_tokens": 8,
    }
    return LoraSettings(model=folder, **{**base, **changes})


def prepared(items, folder, **changes):
    return LoraDiagnostic(small(folder, **changes)).prepare(items)


def told(predictions) -> list[tuple]:
    """Predictions in a form that can be compared."""
    return [(p.answer, p.answers, p.probabilities.tolist()) for p in predictions]


def accuracy(predictions, items) -> float:
    return float(np.mean([p.answer == item.golds[0] for p, item in zip(predictions, items, strict=True)]))


def weights_of(net) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in net.state_dict().items()}


# ---------------------------------------------------------------- what is learned


def test_finds_a_planted_shortcut_and_leaves_the_model_as_it_was(chat):
    items = shortcut(300)
    model = prepared(items, chat, epochs=size(7, 10))
    before = model.zero_shot(places(200, 300))
    weights, names = weights_of(model._model().net), [name for name, _ in model._model().net.named_modules()]
    after = model.predict(places(200), places(200, 300), seed=0)
    assert accuracy(after, items[200:]) >= 0.8  # 0.9 is all there is to know
    assert accuracy(before, items[200:]) <= 0.65
    assert [name for name, _ in model._model().net.named_modules()] == names
    assert all(torch.equal(tensor, weights[name]) for name, tensor in model._model().net.state_dict().items())
    assert told(model.zero_shot(places(200, 300))) == told(before)
    gold = [p.probabilities[item.right] for p, item in zip(after, items[200:], strict=True)]
    assert 0.7 <= np.mean(gold) <= 0.95


def test_shuffled_golds_give_chance(chat):
    items = shortcut(300)
    golds = np.random.default_rng(3).permutation([item.golds[0] for item in items])
    mixed = [dataclasses.replace(item, golds=(str(gold),)) for item, gold in zip(items, golds, strict=True)]
    found = prepared(mixed, chat, epochs=3).predict(places(150), places(150, 300), seed=0)
    assert abs(accuracy(found, mixed[150:]) - 0.5) <= 3.5 * math.sqrt(0.25 / 150)


def test_open_answers_are_learned(plain):
    items = opened(120)
    found = prepared(items, plain, epochs=8).predict(places(90), places(90, 120), seed=0)
    assert accuracy(found, items[90:]) >= 0.9
    assert all((p.answers, p.probabilities.tolist()) == ((p.answer,), [1.0]) for p in found)


def test_only_prompt_and_gold_are_seen(chat):
    items = shortcut(40)
    others = [
        dataclasses.replace(item, source="x", key="y", category="z", question="q", cluster=1, extra={"a": 1.0})
        for item in items
    ]
    shuffled = others[:32] + [dataclasses.replace(item, golds=("B",)) for item in others[32:]]
    first = prepared(items, chat, **FEW).predict(places(32), places(32, 40), seed=0)
    assert told(prepared(shuffled, chat, **FEW).predict(places(32), places(32, 40), seed=0)) == told(first)


def test_the_seed_decides_and_the_process_generator_is_left_alone(chat):
    items = shortcut(40)
    model = prepared(items, chat, dropout=0.1, **FEW)
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    first = model.predict(places(32), places(32, 40), seed=1)
    assert torch.equal(torch.rand(1), expected)
    assert told(model.predict(places(32), places(32, 40), seed=1)) == told(first)
    assert told(model.predict(places(32), places(32, 40), seed=2)) != told(first)
    assert told(prepared(items, chat, dropout=0.0, **FEW).predict(places(32), places(32, 40), seed=1)) != told(first)


def test_items_without_gold_are_predicted_and_not_trained_on(chat):
    items = shortcut(40)
    none = [dataclasses.replace(item, golds=()) for item in items[:8]]
    with_none = prepared([*none, *items[8:]], chat, **FEW).predict(places(32), places(32, 40), seed=0)
    assert told(with_none) == told(prepared(items, chat, **FEW).predict(places(8, 32), places(32, 40), seed=0))
    with pytest.raises(OptionError, match="none of the 8 items to train on has a gold"):
        prepared([*none, *items[8:]], chat, **FEW).predict(places(8), places(32, 40), seed=0)


# ---------------------------------------------------------------- what is said, against plain forward passes


def brute(folder: str, prompt: list[int], answer: list[int]) -> float:
    """log p(answer | prompt): one sequence, no padding, one token at a time."""
    net = AutoModelForCausalLM.from_pretrained(folder)
    net.eval()
    total, ids = 0.0, list(prompt)
    with torch.no_grad():
        for token in answer:
            total += float(net(torch.tensor([ids])).logits[0, -1].double().log_softmax(-1)[token])
            ids.append(token)
    return total


@pytest.mark.parametrize(
    ("answers", "said"),
    [(("A", "B"),) * 2, (("chair", "chair leg", "a big lamp"),) * 2, (("0", "1"), ("chair", "a lamp"))],
)
def test_option_probabilities_are_those_of_plain_forward_passes(folder, answers, said):
    """Where answers are mere places, the option texts are what is said."""
    items = [dataclasses.replace(item, answers=answers, options=said, golds=answers[:1]) for item in shortcut(3)]
    items[1] = dataclasses.replace(items[1], prompt=items[1].prompt * 2)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    found = prepared(items, folder, predict_batch=4).zero_shot(places(3))
    for item, prediction in zip(items, found, strict=True):
        if "qwen2" in folder:
            text = f"<|im_start|>system\nYou help.<|im_end|>\n<|im_start|>user\n{item.prompt}<|im_end|>\n<|im_start|>assistant\n"
        else:
            text = item.prompt + "\n"
        ends = tokenizer.eos_token_id
        logprobs = [brute(folder, tokenizer(text).input_ids, [*tokenizer(a).input_ids, ends]) for a in said]
        expected = np.exp(logprobs) / np.exp(logprobs).sum()
        np.testing.assert_allclose(prediction.probabilities, expected, atol=1e-5)
        assert prediction.answers == answers
        assert prediction.answer == answers[int(np.argmax(expected))]


def test_greedy_answers_are_those_of_generate_one_by_one(folder):
    items = [dataclasses.replace(item, prompt=item.prompt * (1 + i % 3)) for i, item in enumerate(opened(6))]
    model = prepared(items, folder, predict_batch=4)
    tokenizer, net = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    expected = []
    for item in items:
        prompt = torch.tensor([model._encoder.prompt(item.prompt)])
        new = net.generate(
            prompt, do_sample=False, max_new_tokens=8, eos_token_id=tokenizer.eos_token_id, pad_token_id=0
        )[0, prompt.shape[1] :]
        expected.append(tokenizer.decode(new, skip_special_tokens=True).strip())
        ids = prompt  # and by hand
        for _ in range(8):
            ids = torch.cat([ids, net(ids).logits[:, -1:].argmax(-1)], 1)
            if ids[0, -1] == tokenizer.eos_token_id:
                break
        assert new.tolist() == ids[0, prompt.shape[1] :].tolist()
    assert [p.answer for p in model.zero_shot(places(6))] == expected


def test_the_models_own_generation_settings_are_set_aside(chat, tmp_path):
    for file in Path(chat).iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "generation_config.json").write_text(
        json.dumps({"repetition_penalty": 5.0, "do_sample": True, "temperature": 0.5})
    )
    items = opened(4)
    assert told(prepared(items, str(tmp_path)).zero_shot(places(4))) == told(prepared(items, chat).zero_shot(places(4)))


def test_batch_sizes_change_nothing(folder):
    items = [
        dataclasses.replace(item, prompt=item.prompt * (1 + i % 3)) for i, item in enumerate(shortcut(12))
    ] + opened(4)
    runs = [
        prepared(items, folder, predict_batch=batch, micro_batch=micro, **FEW).predict(places(8), places(8, 16), seed=0)
        for batch, micro in ((1, 1), (3, 3), (64, 64))
    ]
    for run in runs[1:]:
        for a, b in zip(runs[0], run, strict=True):
            assert a.answer == b.answer
            np.testing.assert_allclose(a.probabilities, b.probabilities, atol=1e-4)


def test_order_and_mixture_of_formats_are_kept(chat):
    items = shortcut(3) + opened(3)
    model = prepared(items, chat)
    straight = model.zero_shot(places(6))
    mixed = model.zero_shot(np.array([5, 0, 3, 2]))
    for a, b in zip(mixed, [straight[at] for at in (5, 0, 3, 2)], strict=True):
        assert a.answer == b.answer
        np.testing.assert_allclose(a.probabilities, b.probabilities, atol=1e-5)


def test_a_training_step_is_adamw_on_the_mean_loss_of_answer_tokens(chat):
    """The loss of the first step is that of the untrained model: B of LoRA starts at 0."""
    settings = small(chat, epochs=1, batch=4, micro_batch=3)
    encoder = load.load_tokenizer(settings)
    model = load.load_model(settings, torch.device("cpu"), torch.float32, encoder.pad)
    rows = [
        Row(encoder.prompt(item.prompt), encoder.answer(gold))
        for item, gold in zip(shortcut(4), ("A", "chair leg", "B", "A"), strict=True)
    ]
    with lora_model.adapted(model, settings, 0):
        trained = {name for name, weight in model.net.named_parameters() if weight.requires_grad}
        losses = lora_model.train(model, rows, settings, seed=0, label="t")
    logprobs = [brute(chat, list(row.prompt), list(row.answer)) for row in rows]
    assert losses == pytest.approx([-sum(logprobs) / sum(len(row.answer) for row in rows)], abs=1e-4)
    assert all("lora_" in name for name in trained)
    assert len(trained) == 2 * 2 * 7  # A and B; two layers; q, k, v, o, gate, up, down


# ---------------------------------------------------------------- tokens


def test_labels_are_masked_exactly_on_prompt_and_padding():
    batch = lora_model.collate([Row((5, 6), (7, 0)), Row((5, 6, 8, 9), (7,)), Row((0,), (4,))], pad=0)
    assert batch["input_ids"].tolist() == [[0, 5, 6, 7, 0], [5, 6, 8, 9, 7], [0, 0, 0, 0, 4]]
    assert batch["attention_mask"].tolist() == [[0, 1, 1, 1, 1], [1, 1, 1, 1, 1], [0, 0, 0, 1, 1]]
    assert batch["labels"].tolist() == [
        [-100, -100, -100, 7, 0],
        [-100, -100, -100, -100, 7],
        [-100, -100, -100, -100, 4],
    ]


def test_prompt_and_answer_are_those_of_the_chat_template(chat):
    tokenizer = AutoTokenizer.from_pretrained(chat)
    encoder = Encoder(tokenizer, max_length=128)
    turns = [{"role": "user", "content": "Which?"}, {"role": "assistant", "content": "chair leg"}]
    whole = tokenizer.apply_chat_template(turns, return_dict=False)
    assert [*encoder.prompt("Which?"), *encoder.answer("chair leg")] == whole[
        : len(whole) - 1
    ]  # but for the line break after <|im_end|>
    assert encoder.stops == [tokenizer.eos_token_id]
    system = Encoder(tokenizer, max_length=128, system="Guess.").prompt("Which?")
    assert tokenizer.decode(system).startswith("<|im_start|>system\nGuess.<|im_end|>\n<|im_start|>user\nWhich?")


def test_without_template_prompt_line_break_answer_end(plain):
    tokenizer = AutoTokenizer.from_pretrained(plain)
    encoder = Encoder(tokenizer, max_length=128)
    assert tokenizer.decode([*encoder.prompt("Which?"), *encoder.answer("A")]) == "Which?\nA<|endoftext|>"
    assert encoder.pad == tokenizer.eos_token_id


def test_long_prompts_lose_their_beginning_and_keep_the_template(folder):
    encoder = Encoder(AutoTokenizer.from_pretrained(folder), max_length=60)
    text = "beginning " + "room " * 80 + "A. lamp B. chair?"
    ids, cut = encoder.fitted(text, 8)
    shown = encoder.tokenizer.decode(ids)
    assert cut
    assert 48 <= len(ids) <= 52
    assert "beginning" not in shown
    assert "A. lamp B. chair?" in shown
    assert shown.startswith("<|im_start|>system") == bool(encoder.tokenizer.chat_template)
    assert encoder.fitted("Which?", 8) == (encoder.prompt("Which?"), False)
    if encoder.tokenizer.chat_template:
        with pytest.raises(OptionError, match="max_length=60 leaves no room for a prompt"):
            encoder.fitted(text, 50)


def test_options_that_are_answered_alike_share_and_ties_go_to_the_first():
    found = choice(("x", "y", "x"), [math.log(0.6), math.log(0.4), math.log(0.6)])
    assert found.answer == "x"
    assert found.answers == ("x", "y", "x")
    assert found.probabilities.tolist() == pytest.approx([0.3, 0.4, 0.3])
    assert choice(("b", "a"), [-2.0, -2.0]).answer == "b"
    assert choice(("b", "a"), [-2000.0, -2001.0]).probabilities[0] == pytest.approx(1 / (1 + math.exp(-1)))


# ---------------------------------------------------------------- cache, ranks


def test_finished_folds_are_not_trained_again(chat, tmp_path, monkeypatch):
    items = shortcut(30)
    jobs = [(None, places(30), 0), (places(20), places(20, 30), 0), (places(10, 30), places(10), 0)]
    first = prepared(items, chat, cache=str(tmp_path), **FEW)
    real, calls = lora_model.train, []

    def killed_in_the_second_fold(*args, **kwargs):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(lora_model, "train", killed_in_the_second_fold)
    with pytest.raises(KeyboardInterrupt):
        run_folds(first, jobs)
    monkeypatch.setattr(lora_model, "train", real)
    assert len(list(tmp_path.iterdir())) == 2

    second = prepared(items, chat, cache=str(tmp_path), micro_batch=4, **FEW)
    found = list(map(told, run_folds(second, jobs)))
    assert second.trainings == 1
    for fold, same in zip(run_folds(second, jobs), run_folds(prepared(items, chat, **FEW), jobs), strict=True):
        np.testing.assert_allclose([p.probabilities for p in fold], [p.probabilities for p in same], atol=1e-4)
    third = prepared(items, chat, cache=str(tmp_path), **FEW)
    assert list(map(told, run_folds(third, jobs))) == found
    assert (third.trainings, third._loaded) == (0, None)  # not even the model is loaded
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".json"]


def test_the_fingerprint_sees_what_matters(chat, tmp_path):
    items, settings = shortcut(4), small(chat)

    def mark(settings=settings, dtype="torch.float32", train=items[:2], test=items[2:], seed=0):
        return cache.fingerprint(settings, dtype, train, test, seed)

    def replaced(**changes):
        return settings.model_copy(update=changes)

    def changed(at, **changes):
        return [dataclasses.replace(item, **changes) if i == at else item for i, item in enumerate(items)]

    same = mark()
    assert mark(replaced(micro_batch=1, predict_batch=1, device="cuda", cache="x", gradient_checkpointing=True)) == same
    assert mark(test=changed(3, golds=("B", "A"))[2:]) == same
    assert mark(train=changed(0, key="other", source="other", category="other", doc_id=9)[:2]) == same
    flipped = "B" if items[0].golds[0] == "A" else "A"
    others = [
        mark(replaced(lr=1e-3)),
        mark(replaced(seed=1)),
        mark(dtype="torch.bfloat16"),
        mark(seed=1),
        mark(train=None),
        mark(train=items[1::-1]),
        mark(train=changed(0, golds=(flipped,))[:2]),
        mark(train=changed(0, prompt="?")[:2]),
        mark(test=changed(3, answers=("A", "C"))[2:]),
        mark(test=changed(3, format="open")[2:]),
        mark(test=items[3:]),
    ]
    (tmp_path / "config.json").write_text("{}")
    at_first = mark(small(str(tmp_path)))
    os.utime(tmp_path / "config.json", ns=(1, 1))
    others += [at_first, mark(small(str(tmp_path)))]
    assert len({same, *others}) == len(others) + 1


WORKER = """
import sys
from torch import distributed
from tests.tst.lora.ranks import JOBS, WHOLE, Stub
from lmms_patch.tst.lora.diagnostic import TrainingError, run_folds
rank = int(sys.argv[1])
distributed.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
assert run_folds(Stub(rank), JOBS, rank, 2) == WHOLE
try:
    run_folds(Stub(rank, fails=rank == 1), JOBS, rank, 2)
except Exception as error:
    print(type(error).__name__, error)
distributed.destroy_process_group()
"""


def test_two_processes(tmp_path):
    root = ROOT
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root), "GLOO_SOCKET_IFNAME": "lo"}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(rank), str(tmp_path / "store")],
            env=env,
            cwd=root,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    said = [one.communicate(timeout=120)[0].strip() for one in both]
    assert [one.returncode for one in both] == [0, 0]
    assert said == ["TrainingError rank 1 failed: OptionError: no memory", "OptionError no memory"]


# ---------------------------------------------------------------- settings


def test_presets():
    paper, released = LoraSettings.from_mapping({}, "x"), LoraSettings.from_mapping({"preset": "released"}, "x")
    assert paper == LoraSettings(**PRESETS["paper"]) == LoraSettings()
    assert (paper.model, paper.epochs, paper.batch, paper.schedule) == ("Qwen/Qwen2.5-7B-Instruct", 3, 32, "cosine")
    assert (
        released.r,
        released.alpha,
        released.dropout,
        released.lr,
        released.warmup,
        released.epochs,
        released.batch,
    ) == (
        8,
        16,
        0.1,
        2e-4,
        0.1,
        1,
        4,
    )
