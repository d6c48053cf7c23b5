"""Prompts of MAGIC: the reasoning prompt and its Self-Heal form, in our own words to the paper's conditions. Pure text.

Source: MAGIC paper, figure 13 (reasoning and answer), figure 14 (self-correction), §4.3, §5.3 (only the regions that
the answer needs).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

VERSION = 1
"""The version of the prompts. Raise it when a prompt's words change."""


@dataclass(frozen=True)
class Example:
    """An in-context example.

    Attributes:
        question: the question.
        boxes: number of boxes drawn on its image.
        steps: the reasoning; boxes by the numbers drawn.
        answer: the answer as a sentence.
    """

    question: str
    boxes: int
    steps: tuple[str, ...]
    answer: str


def ask(
    question: str, boxes: int, examples: Sequence[Example] = (), *, images: bool = False, correct: bool = False
) -> str:
    """Return the prompt: examples, conditions, question, and the beginning of the thought process.

    Args:
        question: the question.
        boxes: number of boxes drawn, R1 .. R<boxes>; 0: none is drawn or mentioned.
        examples: shown first.
        images: whether the examples' images are shown too: they come before the question's image, in this order.
        correct: whether to also ask for corrections of earlier mistakes (paper, figure 14).
    """
    parts = [
        (
            _heading(f"## Image {number}", one.boxes)
            if images
            else _heading(f"## Example {number}, without its image", one.boxes)
        )
        + f"\n**Question**: {one.question}{_thoughts(one.steps)}\n**Answer**: {one.answer}"
        for number, one in enumerate(examples, 1)
    ]
    shown = (
        ["Here are examples of a person's thought process over an image, and of the answer it led to.", *parts]
        if parts
        else []
    )
    own = _heading(f"## Image {len(parts) + 1 if images else 1}", boxes) + f"\n**Question**: {question}"
    return "\n\n".join([*shown, _task(boxes, bool(parts), images and bool(parts), correct), own])


def go_on(prefix: Sequence[str]) -> str:
    """Return the thought process so far, which a response is to continue (paper, figure 14)."""
    return _thoughts(prefix).lstrip("\n")


def ask_to_go_on(prompt: str, prefix: Sequence[str]) -> str:
    """Return the Self-Heal prompt with the steps included, for models without the means to continue a turn.

    Args:
        prompt: from ``ask``.
        prefix: the injected steps, s_1 .. s_j.
    """
    return (
        f"{prompt}\n{go_on(prefix)}\n\n"
        "The thought process above is not finished. Continue it from where it stops, without repeating it, "
        "and end with a line that begins with **Answer**: and gives the answer."
    )


def _heading(name: str, boxes: int) -> str:
    return name + (f" ({boxes} outlined region{'s' if boxes != 1 else ''})" if boxes else "")


def _thoughts(steps: Sequence[str]) -> str:
    return "\n**Thought Process**: " + " ".join(steps)


def _task(boxes: int, examples: bool, several: bool, correct: bool) -> str:
    """Return the conditions of figure 13, with the additional condition of figure 14 for Self-Heal."""
    look = "the last image" if several else "the image"
    if boxes:
        one = boxes == 1
        names = "`R1`" if one else f"`R1` to `R{boxes}`"
        opening = (
            f"On {look}, {boxes} region{'' if one else 's'} {'is' if one else 'are'} outlined in red and numbered {names}. "
            "A person may have looked at some of them to answer the question below."
        )
        middle = [
            "Say which outlined regions narrow the search down, by their numbers (such as `R1`), and what in the layout of the image leads to them.",
            "Use only the regions that the question needs, and leave out the others.",
            f"Name no region that is not drawn: the numbers have no gap, so there {'is' if one else 'are'} {names} and no other.",
            "For each region that you use, say what is seen inside it, and what this tells about the question.",
        ]
    else:
        opening = f"A person looked at {look} to answer the question below."
        middle = [
            "Say where in the image the search goes, and why.",
            "For each place that matters, say what is seen there, and what this tells about the question.",
        ]
    lines = ["Begin with the whole image, and how it tells where to look.", *middle]
    lines.append("Lead from what was seen to the answer, so that it is clear why it follows.")
    if correct:
        lines.append(
            "If something written earlier in the thought process turns out to be wrong, say so and correct it."
        )
    style = " in the style of the examples," if examples else ""
    closing = (
        f"Write as this person,{style} in the first person and in short sentences. "
        "Begin with **Thought Process**: and end with a line that begins with **Answer**: and gives the answer."
    )
    return "\n".join(
        [f"{opening} Imagine this person's thought process.", "", *(f"- {line}" for line in lines), "", closing]
    )
