"""Make what ``benchmarks/data/atlas-here.yaml`` asks: docs from local images, and models of random weights.

    python benchmarks/here.py --data FOLDER      # what is there already is not made again

Everything goes into ``out/atlas-here``, where the plan looks for it:

- ``docs``: the questions of PuzzleVQA and "Vision language models are blind" whose image lies in FOLDER. FOLDER holds
  ``puzzlevqa.jsonl`` and ``blindtest.jsonl``, a question a line: ``question``, ``choices``, ``answer``, ``category``
  and ``image``, a path inside FOLDER. Of each category the first ten with an image are taken, so that one machine can
  ask all of them.
- ``models/tiny-NAME``: two architectures of lmms-eval's adapters with random weights, whose answers are nonsense.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import parse

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "out" / "atlas-here"
DOCS = ("puzzlevqa", "blindtest")
OF_EACH = 10
"""The most docs of a category."""
WORDS = "What is shown in the image? Describe this image. Answer with the letter of one option: A. B. C. D. yes no"
"""What the tokenizer of a tiny model learns its pairs of bytes from. It spells out all other text byte by byte."""
TURNS = (
    "{{% for message in messages %}}<|im_start|>{{{{ message['role'] }}}}\n"
    "{{% if message['content'] is string %}}{{{{ message['content'] }}}}{{% else %}}{{% for part in message['content'] %}}"
    "{{% if part['type'] == 'image' %}}{image}{{% elif part['type'] == 'text' %}}{{{{ part['text'] }}}}{{% endif %}}"
    "{{% endfor %}}{{% endif %}}<|im_end|>\n{{% endfor %}}{{% if add_generation_prompt %}}<|im_start|>assistant\n{{% endif %}}"
)
"""The chat template of both tiny models; ``image`` is what stands for an image."""


def main() -> int:
    """Write the docs and the tiny models that are not there yet. With --tiny, write only the models, into a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the questions and their images")
    given = parse(parser)
    if given.tiny:
        with tempfile.TemporaryDirectory() as folder:
            tiny_models(Path(folder))
        return 0
    if given.data is None:
        parser.error("name the folder of the questions: --data FOLDER")
    for name in DOCS:
        if not (file := OUTPUT / "docs" / f"{name}.parquet").is_file():
            print(f"{name}: {write_docs(given.data, name, file)} docs")
    tiny_models(OUTPUT / "models")
    return 0


def write_docs(data: Path, name: str, file: Path) -> int:
    """Write the first questions of each category that have an image; return how many there are."""
    import datasets

    lines = [json.loads(line) for line in (data / f"{name}.jsonl").read_text().splitlines()]
    lines = [line for line in lines if line.get("image")]
    categories = dict.fromkeys(line["category"] for line in lines)
    first = [line for name in categories for line in [one for one in lines if one["category"] == name][:OF_EACH]]
    rows = [
        {
            "id": line["id"],
            "image": {"bytes": (data / line["image"]).read_bytes(), "path": None},
            "question": prompt(line["question"], line["choices"]),
            "choices": line["choices"],
            "answer": line["answer"],
            "category": line["category"],
        }
        for line in first
    ]
    file.parent.mkdir(parents=True, exist_ok=True)
    datasets.Dataset.from_list(rows).cast_column("image", datasets.Image()).to_parquet(str(file))
    return len(rows)


def prompt(question: str, choices: list[str] | None) -> str:
    """Return a question with its options, a line each."""
    if not choices:
        return question
    options = [f"{letter}. {text}" for letter, text in zip("ABCDEFGH", choices, strict=False)]
    return "\n".join([question, *options, "Answer with the letter of one option."])


def tiny_models(folder: Path) -> None:
    """Write each tiny model that is not in the folder, and print its size."""
    for name, write in TINY.items():
        if not (place := folder / f"tiny-{name}").is_dir():
            print(f"tiny-{name}: {write(place):,} random weights")


def tokenizer(special: list[str]) -> Any:
    """Return a byte-level tokenizer with the turns of Qwen and more special tokens. It pads on the left, as generation needs."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import PreTrainedTokenizerFast

    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator([WORDS], vocab_size=400, min_frequency=1, show_progress=False)
    return PreTrainedTokenizerFast(
        tokenizer_object=trained._tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>", *special],
        padding_side="left",
        model_max_length=8192,
    )


def text_part(tokens: Any) -> dict[str, Any]:
    """Return the config of a language part: two layers of width 32."""
    return {
        "vocab_size": len(tokens),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": 8192,
        "eos_token_id": tokens.eos_token_id,
        "pad_token_id": tokens.pad_token_id,
        "bos_token_id": tokens.pad_token_id,
    }


def save(model: Any, processor: Any, folder: Path) -> int:
    """Write a model and its processor; return the number of weights."""
    model.generation_config.eos_token_id = processor.tokenizer.eos_token_id
    model.generation_config.pad_token_id = processor.tokenizer.pad_token_id
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return int(model.num_parameters())


def qwen(folder: Path) -> int:
    """Write a Qwen2.5-VL, for ``--model qwen2_5_vl``; return the number of weights."""
    import torch
    from transformers import (
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
        Qwen2_5_VLProcessor,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
    )

    names = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
    tokens = tokenizer(names)
    start, end, image, video = tokens.convert_tokens_to_ids(names)
    config = Qwen2_5_VLConfig(
        text_config={**text_part(tokens), "rope_parameters": {"rope_type": "default", "mrope_section": [2, 3, 3]}},
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "out_hidden_size": 32,
            "fullatt_block_indexes": [1],
        },
        image_token_id=image,
        video_token_id=video,
        vision_start_token_id=start,
        vision_end_token_id=end,
    )
    torch.manual_seed(0)
    template = TURNS.format(image="<|vision_start|><|image_pad|><|vision_end|>")
    processor = Qwen2_5_VLProcessor(Qwen2VLImageProcessor(), tokens, Qwen2VLVideoProcessor(), chat_template=template)
    return save(Qwen2_5_VLForConditionalGeneration(config), processor, folder)


def llava(folder: Path) -> int:
    """Write a LLaVA-OneVision, for ``--model llava_hf``; return the number of weights."""
    import torch
    from transformers import (
        LlavaOnevisionConfig,
        LlavaOnevisionForConditionalGeneration,
        LlavaOnevisionImageProcessor,
        LlavaOnevisionProcessor,
        LlavaOnevisionVideoProcessor,
    )

    names = ["<image>", "<video>"]
    tokens = tokenizer(names)
    image, video = tokens.convert_tokens_to_ids(names)
    side, tiles = 56, [[56, 56], [56, 112], [112, 56], [112, 112]]
    config = LlavaOnevisionConfig(
        text_config={"model_type": "qwen2", **text_part(tokens)},
        vision_config={
            "model_type": "siglip_vision_model",
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": side,
            "patch_size": 14,
            "vision_use_head": False,
        },
        image_token_index=image,
        video_token_index=video,
        image_grid_pinpoints=tiles,
    )
    torch.manual_seed(0)
    size = {"height": side, "width": side}
    processor = LlavaOnevisionProcessor(
        LlavaOnevisionImageProcessor(size=size, image_grid_pinpoints=tiles),
        tokens,
        LlavaOnevisionVideoProcessor(size=size),
        num_image_tokens=(side // 14) ** 2,
        vision_feature_select_strategy="full",
        chat_template=TURNS.format(image="<image>\n"),
    )
    return save(LlavaOnevisionForConditionalGeneration(config), processor, folder)


TINY: dict[str, Callable[[Path], int]] = {"qwen2.5-vl": qwen, "llava-onevision": llava}

if __name__ == "__main__":
    sys.exit(main())
