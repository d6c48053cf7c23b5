"""The host's ``llava_hf``, chat and simple, with tiny random weights: what it makes of an exception, and of a question without an image."""

import numpy as np
import pytest
import torch
from lmms_eval.models.chat.llava_hf import LlavaHf as Chat
from lmms_eval.models.simple.llava_hf import LlavaHf as Simple
from PIL import Image
from transformers import (
    AutoTokenizer,
    CLIPImageProcessor,
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
)

from lmms_patch.resources import folder as resource
from tests.harness import toys
from tests.harness.toys import metrics, rows, write_task

DOCS = 8
TEMPLATE = (
    "{% for m in messages %}{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}<image>{% else %}{{ c['text'] }}{% endif %}{% endfor %}{% endif %}{% endfor %}"
)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llava")
    tokenizer = AutoTokenizer.from_pretrained(resource("tasks") / "mosaic" / "model")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    tokenizer.eos_token, tokenizer.pad_token = (
        (tokenizer.eos_token or "<image>"),
        (tokenizer.pad_token or tokenizer.eos_token),
    )
    vision = CLIPVisionConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, image_size=28, patch_size=14
    )
    text = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2
    )
    torch.manual_seed(0)
    config = LlavaConfig(
        vision_config=vision,
        text_config=text,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_seq_length=4,
    )
    LlavaForConditionalGeneration(config).save_pretrained(folder)
    images = CLIPImageProcessor(size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28})
    LlavaProcessor(
        images,
        tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=TEMPLATE,
    ).save_pretrained(folder)
    return folder


@pytest.fixture
def tasks(tmp_path):
    def picture(doc):
        return Image.fromarray(np.random.default_rng(doc).integers(0, 256, (60, 60, 3), dtype=np.uint8))

    return write_task(tmp_path, "toy", rows(DOCS, image=picture))


def made(adapter, weights, fails=lambda call: False):
    model = adapter(pretrained=str(weights), device="cpu", device_map="cpu", dtype="float32", chat_template=TEMPLATE)
    plain, calls = model._model.generate, []

    def generate(*args, **kwargs):
        calls.append(1)
        if fails(len(calls)):
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return plain(*args, **kwargs)

    model._model.generate = generate
    return model


def answered(model, tasks, name):
    """What a run found; and by (doc, view) each answer, its scores, and whether its call failed."""
    results = toys.run(model, name, tasks)
    views = {
        (one["doc_id"], place): (answer, view["scores"], "failed" in view)
        for one in results["samples"][name]
        for place, (answer, view) in enumerate(zip(one["filtered_resps"], one["patch"]["views"], strict=True))
    }
    return metrics(results, name), views


@pytest.mark.parametrize("adapter", [Chat, Simple])
def test_calls_that_ran_out_of_memory_are_asked_again(weights, tasks, adapter):
    """One call in four, at random: each is asked once more by itself.

    The few that fail twice are failed calls, and all others have their answers.
    """
    fails, raised = np.random.default_rng(1).random(1000) < 0.25, []

    def fail(call):
        raised.extend([call] * bool(fails[call]))
        return bool(fails[call])

    _, whole = answered(made(adapter, weights), tasks, "toy_rci2")
    found, views = answered(made(adapter, weights, fail), tasks, "toy_rci2")
    assert len({answer for answer, _, _ in whole.values()}) > DOCS, "answers differ, so a shift would be seen"
    lost = {place for place, (_, _, failed) in views.items() if failed}
    assert 0 < len(lost) < len(raised) // 2, "most were answered when they were asked again"
    assert {place: view for place, view in views.items() if place not in lost} == {
        place: view for place, view in whole.items() if place not in lost
    }
    assert all(views[place][1] == {} for place in lost)
    failed = found["patch"]["analysis"]["failed"]
    assert (failed["calls"], failed["asked"]) == (len(lost), len(whole))
    assert found["patch"]["n_failed"] == failed["docs"] == len({doc for doc, _ in lost})


@pytest.mark.parametrize("adapter", [Chat, Simple])
def test_without_an_image_there_is_no_number_and_one_line(weights, tasks, told, adapter):
    """``chat`` raises and ``simple`` fails without an image.

    Asked beside other tasks, ``simple`` would answer about the image of the request before.
    """
    results = toys.run(made(adapter, weights), "toy_rci2,toy_blind", tasks)
    found = metrics(results, "toy_blind")
    assert (found["exact_match"], found["patch"]["n_failed"]) == (None, DOCS)
    (line,) = [line for line in told if "every call without an image fails" in line]
    assert "type --tasks toy_blank or toy_swap" in line
    assert metrics(results, "toy_rci2")["patch"]["n_failed"] == 0
