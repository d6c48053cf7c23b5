"""Docs of MAGIC tasks to look at, picked by rule and never by hand: where did the model look, and was it right? Pure."""

from __future__ import annotations

import hashlib

from lmms_patch.magic.method import read
from lmms_patch.magic.score.results import Record
from lmms_patch.present.page.examples import ANSWER, QUESTION, Example, by_rule
from lmms_patch.runs.run import Result
from lmms_patch.text import cut

RULES = {
    "invented": "A box is named that does not exist.",
    "no box used": "No box is named, though the answer needs one.",
    "every box used": "Every box is used, the adversarial ones too: no focus.",
    "focused": "Exactly the relevant boxes are used, and the answer is right.",
    "focused, wrong": "Exactly the relevant boxes are used, and the answer is wrong all the same.",
    "distracted": "An adversarial box is used, and the answer is wrong.",
    "distracted, right": "An adversarial box is used, and the answer is right all the same.",
    "looked at a part": "Only relevant boxes are used, but not all of them.",
    "healed": "The continuation corrects the injected error.",
    "not healed": "The continuation does not correct the injected error.",
    "right without boxes": "No box is drawn, and the answer is right.",
    "wrong without boxes": "No box is drawn, and the answer is wrong.",
}
"""The rules; of those of its task, the first that holds is the doc's."""
RESPONSE = 1_900
"""Characters that are shown of a response."""


def right(record: Record) -> tuple[bool, str]:
    """Return whether the final answer is right, and who says so: the judge where there is a verdict, else synonyms."""
    return (record.synonym, "by synonyms") if record.short is None else (record.short, "by the judge")


def rule_of(record: Record) -> str | None:
    """Return the rule of a doc; None for a doc without a known answer."""
    is_right, _ = right(record)
    if record.failed is not None:
        return None
    if record.variant == "selfheal":
        return None if record.healed is None else "healed" if record.healed else "not healed"
    if record.invented:
        return "invented"
    if not record.boxes:
        return "right without boxes" if is_right else "wrong without boxes"
    used, relevant = set(record.used), set(record.relevant)
    if not used:
        return "no box used" if relevant else None
    if len(used) == record.boxes > len(relevant):
        return "every box used"
    if used == relevant:
        return "focused" if is_right else "focused, wrong"
    if used - relevant:
        return "distracted, right" if is_right else "distracted"
    return "looked at a part"


def picked(entry: str, result: Result, count: int) -> dict[str, list[Example]]:
    """Return a few docs of each rule, by the smallest hash of the item's name: models share docs.

    Args:
        entry: label of the result on the page.
        result: the result.
        count: docs per rule; 0: none.
    """

    def rank(record: Record) -> tuple[str, str]:
        return hashlib.sha256(record.item.encode("utf-8", "backslashreplace")).hexdigest(), record.id

    found = by_rule([(rule_of(record), record) for record in read(result).values()], RULES, count, rank)
    return {rule: [_example(entry, rule, record) for record in records] for rule, records in found.items()}


def _example(entry: str, rule: str, record: Record) -> Example:
    """Return a picked doc in the form for display."""
    is_right, by = right(record)
    lines: list[tuple[bool | None, str]] = [(is_right, f"answer, {by}")]
    lines += [] if record.healed is None else [(record.healed, "correction of the injected error")]
    for number in range(1, record.boxes + 1):
        relevant, used = number in record.relevant, number in record.used
        told = f"R{number}: {'relevant' if relevant else 'adversarial'}, {'used' if used else 'not used'}"
        lines.append((relevant if used else False if relevant else None, told))
    lines += [(False, f"R{number}: does not exist") for number in sorted(record.invented)]
    texts = cut(record.question.strip(), QUESTION), cut(record.target, ANSWER), cut(record.answer, ANSWER)
    response, key = cut(record.response.strip(), RESPONSE), record.asked.get("doc")
    return Example(
        *(entry, rule, record.id, *texts, is_right),
        lines=tuple(lines),
        response=response,
        key=str(key) if key else None,
    )
