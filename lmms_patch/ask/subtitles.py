"""Prompts that hold what is said in the whole clip: subtitles, or a transcript. Pure text work.

A segment shows a part of the clip, but its prompt has the subtitles of all of it. So a question about what is said is
answered by every segment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lmms_patch.ask.answers import without_listed
from lmms_patch.ask.timeline import sentences_of, shared_sentences, skeleton

_NAME = r"(?:\b(?:sub-?titles?|transcripts?|transcriptions?|closed captions?)\b|字幕|台词)"
_HEAD = re.compile(
    rf"{_NAME}[^\n:：.?!。？]{{0,40}}[:：][\s*\]]*\n|^(?:[^\S\n]|[*#\[])*{_NAME}[\s*\]]*[:：]", re.I | re.M
)
"""The end of a line such as "This video's subtitles are listed below:", or a line that begins with "Subtitles:"."""
_NONE = re.compile(rf"^\W*(?:no\s+{_NAME}.*|none|n/?a|not available|null|无|没有)\W*$", re.I)


def with_subtitles(prompts: Sequence[str], questions: Sequence[str]) -> list[bool]:
    r"""Return whether each prompt holds subtitles of its clip.

    Under a heading for subtitles there must be a line that is neither an instruction of all prompts, nor the question,
    nor the words that there are none. A prompt that only speaks of "the video and the subtitles" holds none.

    Args:
        prompts: of all docs of a task.
        questions: the question of each doc; empty where it is not known apart from its prompt.

    >>> with_subtitles(["Subtitles:\nGood morning.\nWho speaks?", "Subtitles:\nNone\nWho speaks?"], ["Who speaks?"] * 2)
    [True, False]
    """
    shared = shared_sentences(prompts, 1.0)
    return [
        _holds(without_listed(prompt), question, shared) for prompt, question in zip(prompts, questions, strict=True)
    ]


def _holds(prompt: str, question: str, shared: frozenset[str]) -> bool:
    asked = skeleton(next(iter(question.strip().splitlines()), ""))
    for head in _HEAD.finditer(prompt):
        first = next((line for line in prompt[head.end() :].splitlines() if skeleton(line)), "")
        own = [one for one in sentences_of(first) if skeleton(one) not in shared]
        if any(map(skeleton, own)) and not _NONE.match(first) and not (asked and asked in skeleton(first)):
            return True
    return False
