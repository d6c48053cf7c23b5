"""Prompts and answers as token ids, alike in training and in inference.

A prompt is the item's whole prompt inside the model's chat template, up to where the assistant begins. An answer is its
own tokens and the end of the turn. Both are tokenized apart and joined as ids: the prompt's tokens are the same
whatever follows.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import Any

from lmms_patch.errors import OptionError

# a word that no chat template has, to find what a template puts behind an answer
_MARK = "lmmspatchanswer"


@dataclass(frozen=True)
class Row:
    """A sequence as token ids.

    Attributes:
        prompt: what the model is shown.
        answer: what it is trained to say, or is asked the probability of; with the end of the turn.
    """

    prompt: tuple[int, ...]
    answer: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.prompt) + len(self.answer)


class Encoder:
    """A tokenizer, and how its model is spoken to.

    With a chat template, the prompt is the user's message, and the answer ends with what the template puts after an
    assistant's message, up to its first control token (``<|im_end|>``). Without a template, the prompt is the text and
    a line break, and the answer ends with the tokenizer's end token. Thinking is switched off in templates that have
    such a switch.

    Attributes:
        end: ids that end an answer.
        stops: ids that end a generated answer.
        pad: id that fills up batches; it is always masked.
    """

    def __init__(self, tokenizer: Any, *, max_length: int, system: str = "") -> None:
        self.tokenizer = tokenizer
        self._max_length, self._system = max_length, system
        self.end = self._end()
        # a model may stop by its template's end of a turn, or by its tokenizer's own end
        self.stops = sorted({self.end[-1], tokenizer.eos_token_id} - {None})
        # Llama's tokenizers have no token for padding; it is masked, so that any will do
        self.pad: int = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.end[-1]

    def prompt(self, text: str) -> tuple[int, ...]:
        """Return the ids of a whole prompt, however long."""
        if self.tokenizer.chat_template:
            return tuple(self._templated(text, add_generation_prompt=True, tokenize=True))
        ids = self.tokenizer(f"{self._system}\n{text}\n" if self._system else f"{text}\n").input_ids
        # Some tokenizers append the end token to every text.
        while ids and ids[-1] == self.tokenizer.eos_token_id:
            ids = ids[:-1]
        return tuple(ids)

    def answer(self, text: str) -> tuple[int, ...]:
        """Return the ids of an answer and of the end of the turn."""
        return (*self._plain(text), *self.end)

    def fitted(self, text: str, room: int) -> tuple[tuple[int, ...], bool]:
        """Return a prompt with ``room`` tokens left for an answer, and whether the prompt had to be cut.

        An over-long text loses its *beginning*: options and instructions stand at the end. The template around it stays
        whole.

        Raises:
            OptionError: not even an empty prompt would fit.
        """
        ids, limit = self.prompt(text), self._max_length - room
        if len(ids) <= limit:
            return ids, False
        frame = len(self.prompt(""))
        if frame > limit:
            raise OptionError(
                f"max_length={self._max_length} leaves no room for a prompt: the chat template takes {frame} tokens "
                f"and the answer {room}; give max_length={frame + room + 64} or more"
            )
        # only tokenizing counts tokens, so the place is searched by bisection
        dropped = bisect.bisect_left(range(len(text)), -limit, key=lambda start: -len(self.prompt(text[start:])))
        return self.prompt(text[dropped:]), True

    def decode(self, ids: list[int]) -> str:
        """Return a generated answer up to its first stop, without control tokens and outer blanks."""
        length = next((at for at, token in enumerate(ids) if token in self.stops), len(ids))
        return str(self.tokenizer.decode(ids[:length], skip_special_tokens=True)).strip()

    def _plain(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False).input_ids)

    def _templated(self, text: str, answer: str = "", **kwargs: Any) -> Any:
        given = {"system": self._system, "user": text, "assistant": answer}
        messages = [{"role": role, "content": content} for role, content in given.items() if content or role == "user"]
        # newer versions of transformers return a mapping unless told otherwise
        return self.tokenizer.apply_chat_template(messages, return_dict=False, enable_thinking=False, **kwargs)

    def _end(self) -> list[int]:
        """Return the ids at the end of an answer.

        Raises:
            OptionError: there are none.
        """
        if self.tokenizer.chat_template:
            after = self._plain(self._templated("?", _MARK, tokenize=False).rpartition(_MARK)[2])
            control = {token for token, added in self.tokenizer.added_tokens_decoder.items() if added.special}
            length = next((at + 1 for at, token in enumerate(after) if token in control), 0)
            if length:
                return after[:length]
        if self.tokenizer.eos_token_id is None:
            raise OptionError(
                "the model's tokenizer has no token that ends an answer; set eos_token in its tokenizer_config.json"
            )
        return [self.tokenizer.eos_token_id]
