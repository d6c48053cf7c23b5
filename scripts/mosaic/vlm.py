"""The tiny vision-language model: a Qwen2.5-VL of 1.1 million weights, with a word-level tokenizer."""

import re

from questions import LETTERS, NUMBER_WORDS, TEMPLATES, UNKNOWN
from scans import TILE
from scenes import FULL_PX, INK_NAMES
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2_5_VLProcessor,
    Qwen2VLImageProcessor,
    Qwen2VLVideoProcessor,
)

PATCH = TILE // 2  # px; 2x2 patches make one vision token
WORD = r"[A-D]\.|\w+|[^\w\s]"
SPECIAL = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<unk>",
]
# Words that name what one tile shows: the vision part is taught with them, no question uses them.
DIGIT_NAMES = [str(digit) for digit in range(10)] + ["blank", "mark"]
TILE_INKS = [*INK_NAMES, "none"]
# One line, no roles: system messages are dropped, every other message is <|im_start|>content<|im_end|>.
CHAT_TEMPLATE = (
    "{%- for message in messages if message['role'] != 'system' -%}<|im_start|>"
    "{%- if message['content'] is string -%}{{ message['content'] }}{%- else -%}"
    "{%- for part in message['content'] -%}"
    "{%- if part['type'] == 'image' -%}<|vision_start|><|image_pad|><|vision_end|>"
    "{%- elif part['type'] == 'text' -%}{{ part['text'] }}{%- endif -%}"
    "{%- endfor -%}{%- endif -%}<|im_end|>{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|im_start|>{%- endif -%}"
)


def vocabulary() -> list[str]:
    """Every token the model knows: special ones, then all words of questions and answers in order."""
    spoken = re.findall(WORD, " ".join(re.sub(r"\{\w*\}", " ", template) for template in TEMPLATES))
    answers = [str(number) for number in range(19)] + ["yes", "no", UNKNOWN, *LETTERS]
    return SPECIAL + sorted({*spoken, *answers, *NUMBER_WORDS, *DIGIT_NAMES, *TILE_INKS})


def build_tokenizer() -> PreTrainedTokenizerFast:
    """One token per word; what it does not know becomes <unk>. Pads on the left, as generation needs."""
    words = {word: index for index, word in enumerate(vocabulary())}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(WORD), "removed", invert=True)
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        unk_token="<unk>",
        additional_special_tokens=[SPECIAL[1], *SPECIAL[3:7]],
        padding_side="left",
        chat_template=CHAT_TEMPLATE,
        model_max_length=2048,
    )


def build_processor() -> Qwen2_5_VLProcessor:
    """Images over 168x168 px are shrunk to that budget, as large models do with theirs."""
    options = {
        "patch_size": PATCH,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "size": {"shortest_edge": TILE * TILE, "longest_edge": FULL_PX * FULL_PX},
    }
    return Qwen2_5_VLProcessor(
        image_processor=Qwen2VLImageProcessor(**options),
        tokenizer=build_tokenizer(),
        video_processor=Qwen2VLVideoProcessor(**options),
        chat_template=CHAT_TEMPLATE,
    )


def build_model(tokenizer: PreTrainedTokenizerFast, attention: str = "sdpa") -> Qwen2_5_VLForConditionalGeneration:
    """Return an untrained model: language 4 layers of width 128, vision 2 layers of width 64 (the first sees one tile only)."""
    token = tokenizer.convert_tokens_to_ids
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": 128,
        "intermediate_size": 384,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "max_position_embeddings": 2048,
        "initializer_range": 0.05,
        "tie_word_embeddings": True,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 6, 6]},
        "bos_token_id": token("<|endoftext|>"),
        "eos_token_id": token("<|im_end|>"),
        "pad_token_id": token("<|endoftext|>"),
    }
    vision = {
        "depth": 2,
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_heads": 2,
        "patch_size": PATCH,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "window_size": TILE,
        "fullatt_block_indexes": [1],
        "out_hidden_size": text["hidden_size"],
        "initializer_range": 0.05,
    }
    config = Qwen2_5_VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=token("<|image_pad|>"),
        video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"),
        vision_end_token_id=token("<|vision_end|>"),
        tie_word_embeddings=True,
    )
    config._attn_implementation = attention
    model = Qwen2_5_VLForConditionalGeneration(config)
    model.generation_config.eos_token_id = text["eos_token_id"]
    model.generation_config.pad_token_id = text["pad_token_id"]
    model.generation_config.do_sample = False
    return model
