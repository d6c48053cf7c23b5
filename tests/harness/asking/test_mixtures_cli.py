"""Six planted mixtures through the real command line and the host's own client: their composition is found."""

from __future__ import annotations

import base64
import io
import os

import numpy as np
import pytest
from PIL import Image

from tests.harness import warm
from tests.harness.asking.test_steady import NEEDS, WORDS, drawn, gold
from tests.harness.command import results
from tests.harness.magic.judge_server import JudgeServer, Reply
from tests.harness.toys import rows, write_task
from tests.sizes import size

pytestmark = pytest.mark.cli

DOCS = size(40, 160)
MIXTURES = {
    "thirds": (4, 4, 4, 3),
    "whole": (1, 1, 6, 2),
    "text": (4, 0, 0, 1),
    "cell": (0, 4, 0, 1),
    "all": (0, 0, 4, 1),
    "none": (0, 0, 0, 1),
    "open": (4, 4, 4, 3),
}
"""How many docs in turn need the text, one cell, the whole image, or are not solved; ``open``: without options, so crops are trimmed."""
VALUES = ("3", "4", "5", "6", "7", "8")
ASKED = size(["thirds", "none"], [*MIXTURES])


def needs_of(mixture):
    return [need for need, count in zip(NEEDS, MIXTURES[mixture], strict=True) for _ in range(count)]


def answer(content, number):
    """Answer with the letter of the gold where what is shown is enough; else guess anew for each request that differs."""
    prompt = "".join(part["text"] for part in content if part["type"] == "text")
    [shown] = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
    image = Image.open(io.BytesIO(base64.b64decode(shown.partition(",")[2]))).convert("RGB")
    array, (doc, mixture) = np.asarray(image), prompt.split("?")[0].split()[-2:]
    needs = needs_of(mixture)
    need, own, whole = needs[int(doc) % len(needs)], (array[..., 2] == int(doc)).all(), np.ptp(array[..., 0]) > 30
    corner = own and not whole and array[0, 0, 0] < 25 and array[0, 0, 1] < 25
    knows = need == "text" or (own and ((whole and need != "unsolved") or (corner and need == "one cell")))
    if mixture == "open":
        return Reply(gold(doc, VALUES) if knows else drawn(prompt, [image], VALUES))
    letters = {line[3:]: line[0] for line in prompt.splitlines() if line[1:3] == ". "}
    return Reply(letters[gold(doc)] if knows else drawn(prompt, [image], list("ABCD")))


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixtures")
    letters = "{{question}}\n{% for option in options %}{{'ABCD'[loop.index0]}}. {{option}}\n{% endfor %}"
    for mixture in ASKED:
        made = rows(
            DOCS,
            question=lambda i, mixture=mixture: f"Which is it in {i} {mixture}?",
            options=lambda i: [*WORDS],
            answer=lambda i: "ABCD"[WORDS.index(gold(i))],
        )
        about, text = {"lmms_patch": {"null": 300, "steady": 300}}, letters
        if mixture == "open":
            asks, text = {"question": lambda i: f"How many in {i} open?", "answer": lambda i: gold(i, VALUES)}, None
            made = rows(DOCS, **asks)
        write_task(folder, mixture, made, metadata=about, **({"doc_to_text": text} if text else {}))
    with JudgeServer(answer) as server:
        arguments = f"model_version=scripted,base_url={server.url},api_key=k,max_retries=1,num_concurrent=8"
        tasks = ",".join(f"{mixture}_rci2" for mixture in ASKED)
        words = ["lmms-eval", "--model", "openai", "--model_args", arguments, "--tasks", tasks]
        words += ["--include_path", str(folder), "--output_path", str(folder / "out"), "--log_samples"]
        status, *printed = warm.run(words, {**os.environ, "NO_PROXY": "127.0.0.1", "PYTHONUNBUFFERED": "1"})
    assert status == 0, "".join(printed)[-4000:]
    return results(folder / "out")


@pytest.mark.parametrize("mixture", ASKED)
def test_what_was_planted_is_found_by_the_command(found, mixture):
    measures, needs = found[f"{mixture}_rci2"].measures, needs_of(mixture)
    shares = [measures[f"{name}2"] for name in ("text", "one", "whole", "unsolved")]
    for need, one in zip(NEEDS, shares, strict=True):
        truth = sum(needs[doc % len(needs)] == need for doc in range(DOCS)) / DOCS
        assert one.value == pytest.approx(truth, abs=size(0.08, 0.05)), (need, one)
        assert one.low <= truth <= one.high
