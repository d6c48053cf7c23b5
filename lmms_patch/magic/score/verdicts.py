"""The questions to a judge, and the reading of its replies. Pure text work; ``harness.magic.judge`` sends and receives.

Four questions: is a short answer right, is a whole response right, is an injected mistake corrected, is each step of a
reasoning chain right. Prompts are in our own words, to the conditions of the MAGIC paper's figures 16, 15 and 17; the
last question is ours, since the paper's step labels come from people (5.2). Each prompt gives a few worked examples and
the form of the reply.

Reading is strict: a reply without the requested line, with two verdicts, or with other words in their place gives no
verdict (None and the fault in words), never a guess.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_patch.magic.score.verdict_prompts import FULL, HEAL, NOTES, SHORT, STEPS, VERSION

NO_GOLD = "no gold answer to compare with"
"""The error of a verdict that needs no judge to be missing."""
_LONG = 600
"""The most characters of a judge's reasons stored beside the verdict; the whole reply is stored too."""


@dataclass(frozen=True)
class JudgeVerdict:
    """A judge's verdict on a question, or the reason for having none.

    Attributes:
        value: the verdict (correct, healed); None: unjudged.
        reason: the judge's reasons, on one line, cut at 600 characters.
        error: why there is no verdict, on one line; "" where there is one.
        raw: the last reply as it came; "" where none came.
        cached: whether the verdict comes from an earlier call.
        model: the model that answered, as its server names it; "" where none was asked.
    """

    value: bool | None
    reason: str = ""
    error: str = ""
    raw: str = ""
    cached: bool = False
    model: str = ""


@dataclass(frozen=True)
class Inquiry:
    """A question to a judge.

    Attributes:
        kind: ``short``, ``full``, ``heal`` or ``steps``.
        prompt: the text that is sent.
        count: number of verdicts that the reply must give.
        known: verdicts that need no judge (nothing was answered; there is no gold answer); empty: the judge is asked.
    """

    kind: str
    prompt: str
    count: int = 1
    known: tuple[JudgeVerdict, ...] = ()

    def again(self, time: int) -> str:
        """Return the text to send after an unreadable reply: the same text, with a note on the form.

        Args:
            time: number of unreadable replies so far, from 1. The note differs each time: with greedy decoding the same
                text brings the same reply.
        """
        notes = NOTES["steps" if self.kind == "steps" else "heal" if self.kind == "heal" else "answer"]
        return f"{self.prompt}\n\nNote: {notes[min(time, len(notes)) - 1].format(n=self.count)}" + (
            f" (reminder {time})" if time > len(notes) else ""
        )


@dataclass(frozen=True)
class Reading:
    """A reply as read.

    Attributes:
        values: the verdicts; None where the reply cannot be read.
        reason: the judge's reasons.
        fault: why it cannot be read; "" where it can.
    """

    values: tuple[bool, ...] | None
    reason: str = ""
    fault: str = ""


def short_inquiry(question: str, answer: str, gold: str) -> Inquiry:
    """Ask whether an answer says what the short gold answer says (Acc_short; paper, 4.2, figure 16).

    Args:
        question: as asked.
        answer: the model's final answer; empty: incorrect, without asking.
        gold: the short gold answer; empty: no verdict.
    """
    return _answer_inquiry("short", SHORT, question, answer, gold)


def full_inquiry(question: str, response: str, gold_full: str) -> Inquiry:
    """Ask whether a response, reasoning and answer, concludes what the full gold answer says (Acc_full; paper, 4.2, figure 15).

    Args:
        question: as asked.
        response: what the model wrote; empty: incorrect, without asking.
        gold_full: the gold answer as a sentence; empty: no verdict.
    """
    return _answer_inquiry("full", FULL, question, response, gold_full)


def _answer_inquiry(kind: str, template: str, question: str, output: str, gold: str) -> Inquiry:
    if not gold.strip():
        return Inquiry(kind, "", 1, (JudgeVerdict(None, error=NO_GOLD),))
    if not output.strip():
        return Inquiry(kind, "", 1, (JudgeVerdict(False, reason="nothing was answered"),))
    return Inquiry(kind, _filled(template, question=question, output=output, gold=gold))


def heal_inquiry(prefix: Sequence[str] | str, corrections: Sequence[str], continuation: str) -> Inquiry:
    """Ask whether a continuation corrects an injected mistake (Self-Heal; paper, 4.3, figure 17).

    Args:
        prefix: the injected steps, up to the last wrong one (or their text).
        corrections: what annotators wrote for the wrong steps; saying one of them is enough. Without any text in them:
        no verdict.
        continuation: what the model wrote after the prefix; empty: not healed, without asking.
    """
    written = [one.strip() for one in corrections if one.strip()]
    if not written:
        return Inquiry("heal", "", 1, (JudgeVerdict(None, error="no correction to compare with"),))
    if not continuation.strip():
        return Inquiry("heal", "", 1, (JudgeVerdict(False, reason="nothing was written after the injected steps"),))
    before = prefix if isinstance(prefix, str) else "\n".join(prefix)
    listed = written[0] if len(written) == 1 else "\n".join(f"- {one}" for one in written)
    return Inquiry("heal", _filled(HEAL, prefix=before, corrections=listed, continuation=continuation))


def steps_inquiry(question: str, gold: str, steps: Sequence[str]) -> Inquiry:
    """Ask whether each step of a reasoning chain is right, as far as text shows (StepSense labels by a judge; paper, 5.2, has people label them).

    Args:
        question: as asked.
        gold: the gold answer, short or full; empty: no verdicts.
        steps: the chain, in order.
    """
    if not gold.strip():
        return Inquiry("steps", "", len(steps), tuple(JudgeVerdict(None, error=NO_GOLD) for _ in steps))
    listed = "\n".join(f"Step {number}: {' '.join(step.split())}" for number, step in enumerate(steps, 1))
    return Inquiry("steps", _filled(STEPS, question=question, gold=gold, steps=listed), len(steps))


def _filled(template: str, **fields: str) -> str:
    """Fill a prompt with each field as a quoted block: no text in a field can pass for a further field.

    The template is processed in one pass: a field that contains ``{gold}`` stays as it is.
    """
    # As quoted blocks, so that text in a field cannot pass for an instruction to the judge.
    blocks = {
        name: "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines()) for name, text in fields.items()
    }
    return re.sub(
        r"\{(question|output|gold|prefix|corrections|continuation|steps)\}", lambda match: blocks[match[1]], template
    )


def read(inquiry: Inquiry, reply: str | None) -> Reading:
    r"""Read the verdicts from a reply.

    Args:
        inquiry: what was asked.
        reply: the judge's text; None and empty text are faults.

    >>> read(short_inquiry("What?", "sofa", "couch"), "Reasoning: the same thing.\nCorrectness: Correct")
    Reading(values=(True,), reason='the same thing.', fault='')
    >>> read(short_inquiry("What?", "sofa", "couch"), "Yes, I think so.").fault
    'no line "Correctness: Correct" or "Correctness: Incorrect"'
    """
    text, fault = _said(reply)
    if fault:
        return Reading(None, "", fault)
    if inquiry.kind == "steps":
        return _read_steps(text, inquiry.count)
    if inquiry.kind == "heal":
        return _read_line(
            text,
            r"(?:final[ ])?judge?ment|correctness",
            {"yes": True, "no": False},
            "Final judgement: YES",
            "Final judgement: NO",
        )
    return _read_line(
        text, "correctness", {"correct": True, "incorrect": False}, "Correctness: Correct", "Correctness: Incorrect"
    )


def _said(reply: str | None) -> tuple[str, str]:
    """Return a reply without the judge's thoughts, and the fault if nothing is left."""
    text = reply or ""
    parts = re.split(r"</think(?:ing)?>", text, flags=re.I)
    # A reply that only begins to think was cut by the token limit.
    if len(parts) == 1 and re.match(r"\s*<think(?:ing)?>", text, re.I):
        return "", "the reply ends while the judge is thinking; a larger MAGIC_JUDGE_TOKENS may help"
    text = parts[-1].strip()
    return text, "" if text else "the reply is empty"


_MARKS = r"[\s>#*_`\"'“”\[\](){}<>.!-]"
_MARKS_ON_LINE = rf"(?:(?!\n){_MARKS})*"
_NEXT_LINE = re.compile(r"\s*\n\s*(\S[^\n]*)")
_AROUND = re.compile(rf"^{_MARKS}+|(?<!{_MARKS}){_MARKS}+$")
_MARK = re.compile(_MARKS)


def _begins(text: str, place: int, least: int, after: str) -> int | None:
    """Return where a line or sentence begins whose first word is at ``place``, including the marks before the word.

    None where the word is not first.

    Args:
        text: a reply.
        place: of a word.
        least: where to stop looking.
        after: characters, besides the line's end, after which it may begin.
    """
    start = place
    while start > least and _MARK.match(text, start - 1):
        start -= 1
    ends = after + "\n"
    if start == 0 or text[start - 1] in ends:
        return start
    return next((at + 1 for at in range(start, place) if text[at] in ends), None)


def _labelled(text: str, label: str) -> list[tuple[int, int, int]]:
    """Find each ``label:`` at the beginning of a line or sentence.

    Returns:
        For each: where it begins, including the marks before it; where its colon ends; where its line ends.
    """
    places: list[tuple[int, int, int]] = []
    done = 0
    for match in re.finditer(rf"(?:{label})[*_\"'` ]*[:：]", text, re.I):
        if match.start() >= done and (start := _begins(text, match.start(), done, ".!?")) is not None:
            done = end if (end := text.find("\n", match.end())) >= 0 else len(text)
            places.append((start, match.end(), done))
    return places


def _read_line(text: str, label: str, words: Mapping[str, bool], *forms: str) -> Reading:
    """Read the verdict of ``label: word``, on a separate line or after the end of a sentence.

    It may be repeated but not contradicted, and no text may follow it.
    """
    labelled = _labelled(text, label)
    if not labelled:
        return Reading(None, "", "no line " + " or ".join(f'"{form}"' for form in forms))
    values = set()
    for _, colon, end in labelled:
        said = text[colon:end]
        # the word is on the next line
        if not re.sub(_MARKS, "", said):
            following = _NEXT_LINE.match(text, end)
            said, end = (following[1], following.end()) if following else ("", end)
        word = _AROUND.sub("", said)
        if word.lower() not in words:
            return Reading(None, "", f"the verdict reads {word[:60]!r}, not one of: {', '.join(words)}")
        values.add(words[word.lower()])
    # A judge that gives both verdicts has given none.
    if len(values) > 1:
        return Reading(None, "", "both verdicts are given")
    # Text after the verdict may take it back.
    if re.search(r"\w", text[end:]):
        return Reading(None, "", "the reply goes on after its verdict")
    return Reading((values.pop(),), _reason(text[: labelled[0][0]]))


def _reason(text: str) -> str:
    return " ".join(re.sub(r"^[\s*_#]*reason(?:ing|s)?[*_ ]*:[*_ ]*", "", text.strip(), flags=re.I).split())[:_LONG]


_STEP_LINE = re.compile(
    rf"^{_MARKS_ON_LINE}(?P<name>(?:step[ ]?)?#?(?P<step>\d{{1,4}}))[*_\"'` ]*(?![*_\"'` ])[:：.)–-]*(?![:：.)–-]){_MARKS}*"
    rf"(?P<word>correct|incorrect){_MARKS_ON_LINE},?$",
    re.I | re.M,
)
_LABELS = {"correct": True, "incorrect": False}


def _read_steps(text: str, count: int) -> Reading:
    """Read a label for each step, each once: lines ``Step 3: Correct``, or JSON."""
    data = _json(text)
    pairs: list[tuple[int, bool]]
    if data is not None:
        listed = _pairs(data)
        if listed is None:
            return Reading(None, "", "the JSON does not say which step is correct or incorrect")
        pairs, reason = listed, ""
    else:
        matches = list(_STEP_LINE.finditer(text))
        if not matches:
            return Reading(None, "", 'no line like "Step 1: Correct" or "Step 1: Incorrect"')
        if re.search(r"\w", text[matches[-1].end() :]):
            return Reading(None, "", "the reply goes on after its last label")
        pairs, reason = (
            [(int(match["step"]), _LABELS[match["word"].lower()]) for match in matches],
            _reason(text[: _begins(text, matches[0].start("name"), 0, "")]),
        )
    labels = dict(pairs)
    # A label may be repeated, but not contradicted.
    if len(set(pairs)) > len(labels):
        both = sorted({step for step, value in pairs if labels[step] != value})
        return Reading(None, "", f"both labels for step {both[0]}")
    if extra := sorted(set(labels) - set(range(1, count + 1))):
        return Reading(None, "", f"a label for step {extra[0]}, where there are {count} steps")
    if missing := sorted(set(range(1, count + 1)) - set(labels)):
        return Reading(None, "", f"no label for step {missing[0]} of {count}")
    return Reading(tuple(labels[step] for step in range(1, count + 1)), reason)


def _json(text: str) -> Any:
    """Return the JSON of which a reply consists, in a code fence or not.

    None where it is not JSON, or repeats a key.
    """
    fence = re.search(r"```(?:json)?\s*\n", text)
    close = re.compile(r"\n[^\S\n]*```").search(text, fence.end()) if fence else None
    try:
        data = json.loads(text[fence.end() : close.start()] if fence and close else text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, (dict, list)) else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    # JSON's reader would keep the last of them and say nothing
    if len(out) < len(pairs):
        raise ValueError("a key is named twice")
    return out


def _pairs(data: Any) -> list[tuple[int, bool]] | None:
    """Return step and label of each entry: a list of labels, a list of objects with step and label, or an object of labels by step."""
    if isinstance(data, dict) and isinstance(data.get("steps"), (dict, list)):
        data = data["steps"]
    entries: list[tuple[Any, Any]]
    if isinstance(data, dict):
        entries = [(re.sub(r"(?i)^step[ _]?", "", str(key)), value) for key, value in data.items()]
    elif all(isinstance(entry, dict) for entry in data):
        entries = [(entry.get("step"), entry.get("correct", entry.get("label"))) for entry in data]
    else:
        entries = list(enumerate(data, 1))
    out = []
    for step, said in entries:
        value = said if isinstance(said, bool) else _LABELS.get(said.strip().lower()) if isinstance(said, str) else None
        if (
            # JSON's true is an integer to Python, and no step's number.
            isinstance(step, bool)
            or not isinstance(step, (int, str))
            or not re.fullmatch(r"[0-9]{1,4}", str(step))
            or value is None
        ):
            return None
        out.append((int(step), value))
    return out or None


__all__ = [
    "NO_GOLD",
    "VERSION",
    "Inquiry",
    "JudgeVerdict",
    "Reading",
    "full_inquiry",
    "heal_inquiry",
    "read",
    "short_inquiry",
    "steps_inquiry",
]
