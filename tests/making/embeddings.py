"""A tiny text-embedding model with random weights, written to a folder."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HIDDEN = 16
MOST = 32
"""Positions of the model."""
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = ("how", "many", "chairs", "are", "in", "the", "room", "is", "there", "a", "dog", "?")


def write_bert(
    folder: Path,
    words: Sequence[str] = WORDS,
    *,
    pooling: Mapping[str, Any] | None = None,
    alike: int | None = None,
    special: bool = True,
) -> Path:
    """Write a BERT of two layers with a vocabulary of whole words.

    Args:
        folder: a new folder.
        words: the vocabulary.
        pooling: what ``1_Pooling/config.json`` says; None: there is no such file.
        alike: words whose numbers are equal modulo this have the same vector, so that they mean the same.
        special: whether texts get a first and a last token.
    """
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate((*SPECIAL, *words))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    if special:
        tokenizer.post_processor = processors.BertProcessing(
            ("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"])
        )
    named = {
        "unk_token": "[UNK]",
        "pad_token": "[PAD]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    }
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=MOST, **named).save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = BertModel(
            BertConfig(
                vocab_size=len(vocabulary),
                hidden_size=HIDDEN,
                intermediate_size=32,
                num_hidden_layers=2,
                num_attention_heads=2,
                max_position_embeddings=MOST,
                initializer_range=0.5,
            )
        )
    if alike is not None:
        with torch.no_grad():
            rows = net.embeddings.word_embeddings.weight
            for number in range(len(words)):
                rows[len(SPECIAL) + number] = rows[len(SPECIAL) + number % alike]
    net.save_pretrained(folder)
    if pooling is not None:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder
