"""The judge against `transformers serve`: a real OpenAI-compatible server with a real, if tiny, language model.

The model has one layer and has learnt four replies by heart; its chat template turns what a prompt contains into the
one token that calls one of them up. So the server, its wire format and greedy decoding are real, and the verdicts are
known.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import pytest

from lmms_patch.harness.magic.judge import Judge
from lmms_patch.magic.score.judge_settings import JudgeSettings
from tests.harness.magic.asked import full, heal, short

pytestmark = pytest.mark.skipif(
    not (find_spec("fastapi") and find_spec("uvicorn")),
    reason="transformers serve needs more; type: pip install fastapi uvicorn",
)

REPLIES = {
    "A": "Reasoning: the same.\nCorrectness: Correct",
    "B": "Reasoning: another thing.\nCorrectness: Incorrect",
    "C": "I would rather not say.",
    "D": "Final judgement: YES",
}
TEMPLATE = (
    "{%- set text = messages[-1]['content'] -%}"
    "{%- if 'Final judgement' in text -%}D{%- elif '> a stool' in text and 'Note:' not in text -%}C{%- elif '> a sofa' in text -%}A{%- else -%}B{%- endif -%}"
)


def _make_model(folder: Path) -> None:
    """A Llama of one layer that answers each of the letters with its reply."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer, raw.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    raw.train_from_iterator(
        REPLIES.values(),
        trainers.BpeTrainer(vocab_size=400, special_tokens=["</s>"], initial_alphabet=alphabet, show_progress=False),
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="</s>", pad_token="</s>")
    tokenizer.chat_template = TEMPLATE
    sizes = {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
    }
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            max_position_embeddings=512,
            bos_token_id=None,
            eos_token_id=0,
            pad_token_id=0,
            **sizes,
        )
    )
    rows = [tokenizer(letter + reply)["input_ids"] + [0] for letter, reply in REPLIES.items()]
    longest = max(map(len, rows))
    ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    labels = torch.tensor([row + [-100] * (longest - len(row)) for row in rows])
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(150):
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    _make_model(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = "import sys; from transformers.cli.transformers import main; sys.argv[0] = 'transformers'; main()"
    arguments = ["serve", str(folder), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    log = (tmp_path_factory.mktemp("log") / "serve.log").open("w")
    server = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=log, stderr=log, env={**os.environ, "HF_HUB_OFFLINE": "1"}
    )
    try:
        for _ in range(600):
            assert server.poll() is None, Path(log.name).read_text()
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
                break
            except OSError:
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1", str(folder)
    finally:
        server.kill()
        server.wait()
        log.close()


def test_verdicts_of_a_real_server(served, tmp_path, monkeypatch):
    url, model = served
    monkeypatch.setenv("OPENAI_API_URL", url)
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    settings = JudgeSettings(model=model, cache=tmp_path, timeout=60.0, retries=0, tokens=64)
    judge = Judge(settings)
    right = short(judge, "What is it?", "a sofa", "couch")
    assert (right.value, right.raw, right.error) == (True, REPLIES["A"], "")
    assert model in right.model
    assert full(judge, "What is it?", "In R1, a chair.", "It is a couch.").value is False
    assert heal(judge, ["It is red."], ["It is blue."], "It is blue.").value is True
    assert judge.counts == {"requests": 3, "asked": 3}
    again = short(
        judge, "What is it?", "a stool", "couch"
    )  # the first reply has no verdict; the second, to the note, has
    assert (again.value, judge.counts["requests"], judge.counts["malformed"]) == (False, 5, 1)
    assert short(judge, "What is it?", "a sofa", "couch").cached
    assert heal(Judge(settings), ["It is red."], ["It is blue."], "It is blue.").cached


def test_a_real_server_that_is_too_slow(served, monkeypatch):
    url, model = served
    monkeypatch.setenv("OPENAI_API_URL", url)
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    judge = Judge(JudgeSettings(model=model, timeout=0.001, retries=1))
    assert short(judge, "What is it?", "a sofa", "couch").error == "no answer within 0.001 s (2 tries)"
