"""Docs of MAGIC tasks to look at, picked by rule and never by hand: where did the model look, and was it right? Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from lmms_patch.magic.method import read
from lmms_patch.magic.score.results import Record
from lmms_patch.present.report.data import BoxUse, RegionExample
from lmms_patch.present.report.examples import ANSWER, QUESTION, by_rule
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


def warnings(result: Result) -> list[str]:
    """Return a run's warnings of a result."""
    return [] if result.magic is None else result.magic.warnings


def picked(result: Result, count: int) -> dict[str, list[Record]]:
    """Return a few docs of each rule (``pick``)."""
    return pick(read(result).values(), count)


def pick(records: Iterable[Record], count: int) -> dict[str, list[Record]]:
    """Return a few docs of each rule, by the smallest hash of the item's name, so that models share their docs.

    Args:
        records: the docs.
        count: docs per rule; 0: none.

    Returns:
        Rule -> docs.
    """

    def rank(record: Record) -> tuple[str, str]:
        return hashlib.sha256(record.item.encode("utf-8", "backslashreplace")).hexdigest(), record.id

    return by_rule([(rule_of(record), record) for record in records], RULES, count, rank)


def example(entry: str, rule: str, record: Record, image: str | None = None) -> RegionExample:
    """Return a picked doc in the form for display.

    Args:
        entry: id of its result in the report.
        rule: see ``RULES``.
        record: the doc.
        image: what the model saw, as a ``data:`` URI.
    """
    is_right, by = right(record)
    count = record.boxes
    return RegionExample(
        entry,
        rule,
        record.id,
        cut(record.question.strip(), QUESTION),
        cut(record.target, ANSWER),
        cut(record.answer, ANSWER),
        cut(record.response.strip(), RESPONSE),
        is_right,
        by,
        record.healed,
        tuple(BoxUse(number, number in record.relevant, number in record.used) for number in range(1, count + 1)),
        tuple(sorted(record.invented)),
        image,
        f"doc {record.id}, with {count} numbered {'box' if count == 1 else 'boxes'} drawn on it",
    )


def asked(record: Record) -> str | None:
    """Return the digest of a doc's contents, by which the image is found again; None where there is none."""
    digest = record.asked.get("doc")
    return str(digest) if digest else None
