"""What prompts say beside questions and options: hints, passages, histories. Pure text work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lmms_patch.ask.answers import without_listed

_SHARED = 0.5
"""A line in more than this share of the prompts is an instruction."""


def contexts(prompts: Sequence[str], questions: Sequence[str]) -> list[str]:
    r"""Return what each prompt says beside its question, its listed options, and the lines that most prompts have.

    A benchmark may put a hint or a passage into the prompt that stands in no field of its own. The model reads it, so a
    text-only model must, too.

    Args:
        prompts: the whole prompt of each doc.
        questions: the question of each doc; what stands of it in the prompt is left out.

    >>> contexts(["Look: red?\nHint: it is.\nAnswer yes or no.", "Look: blue?\nAnswer yes or no."], ["red?", "blue?"])
    ['Hint: it is.', '']
    """
    rest = [
        without_listed(prompt.replace(question, "\n", 1) if question else prompt)
        for prompt, question in zip(prompts, questions, strict=True)
    ]
    lines = [[line for one in text.splitlines() if (line := one.strip())] for text in rest]
    times = Counter(line for own in lines for line in set(own))
    shared = {line for line, count in times.items() if count > max(1, _SHARED * len(prompts))}
    return ["\n".join(line for line in own if line not in shared) for own in lines]
