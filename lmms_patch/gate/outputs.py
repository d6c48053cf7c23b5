"""What a gate leaves: lines for people, JSON and JUnit XML for machines, a line of a job summary and an annotation for GitHub.

Everywhere the first line is the verdict with the fact that matters most, then come the counts, what did not pass, and
what passed. Names come from files that anybody may have written: ``lmms_patch.text`` makes them harmless for each form.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from lmms_patch import __version__, files
from lmms_patch.ask.kinds import KINDS
from lmms_patch.errors import RecordError
from lmms_patch.gate import limits
from lmms_patch.gate.formats import Verdict
from lmms_patch.gate.judge import BAD_INPUT, FAILED, INCONCLUSIVE, PASSED, Judgement
from lmms_patch.present.sheets import number as number_text
from lmms_patch.present.terminal.folding import fold
from lmms_patch.runs import reading
from lmms_patch.runs.numbers import to_json as as_json
from lmms_patch.text import harmless, line, markdown, printed

WORDS: dict[Any, Any] = {PASSED: "passed", FAILED: "failed", BAD_INPUT: "bad input", INCONCLUSIVE: "inconclusive"}
"""The words for the exit statuses."""
CALLS = {PASSED: "PASS", FAILED: "FAIL", BAD_INPUT: "BAD INPUT", INCONCLUSIVE: "INCONCLUSIVE"}
"""The first word of the first line, by exit status."""
LEAST = 40
"""Cells that a line may always take: in a narrower terminal every word would stand alone."""
DIGITS = 12
"""The most decimals of a number: limits are held to 1e-12."""
_ORDER = ("fail", "inconclusive", "warned", "pass")
_HELD = {
    "gate": ("the index can be read", "the index cannot be read"),
    "looks": ("the answers depend on the image", "it is not shown that the answers depend on the image"),
    "complete": ("it is there", "it is not there as it must be"),
}
"""Of requirements: what is said where they hold, and where not."""
_COUNTS = {"n_docs": "docs", "excluded": "share of the docs left out"}


# --- one verdict ----------------------------------------------------------------------------------


def fact(one: Verdict, judged: Judgement) -> str:
    """Return a verdict's finding in a line.

    For example ``gqa: accuracy 0.690 → 0.607 (-0.083, 95 % -0.151 to -0.016; allowed -0.02)``.
    """
    models = {other.model for other in judged.verdicts}
    tasks = {other.task for other in judged.verdicts if other.base == one.base}
    name = one.base if one.base and len(tasks) == 1 else one.task
    return line(f"{name}{f' of {one.model}' if len(models) > 1 else ''}: {_found(one)}")


def _found(one: Verdict) -> str:
    """Return a verdict's number with interval, baseline and limit, or the state demanded by a rule."""
    number, compares = one.number, one.difference is not None
    if one.metric in _HELD:
        said = KINDS[one.kind].words.say(_HELD[one.metric][number.value != 1])
        said = f"not known whether {_HELD[one.metric][0]}" if one.verdict == "inconclusive" else said
        return ": ".join(filter(None, [said, one.reason]))
    name = _COUNTS.get(one.metric, one.measure)
    if number.value is None:
        return f"{name}: {one.reason or 'not defined'} ({_allowed(one)})"
    sure = ""
    if number.low is not None and number.high is not None and one.level is not None and not reading.misleads(number):
        sure = f"{100 * one.level:.4g} % {_say(one, number.low)} to {_say(one, number.high)}"
    inside = [", ".join(filter(None, [_say(one, number.value) if compares else "", sure])), _allowed(one)]
    value = reading.IN_PLACE if reading.misleads(one.value) else _say(one, one.value.value, False)
    before = f"{_say(one, one.baseline, False)} → " if compares else ""
    noted = ", ".join([value, *reading.words(one.value)])
    label = "" if one.metric == "n_docs" else f"{name} "
    return ": ".join(filter(None, [f"{label}{before}{noted} ({'; '.join(filter(None, inside))})", one.reason]))


def _allowed(one: Verdict) -> str:
    """Return the ends of what is allowed: of a difference, as ``allowed -0.02``; of a number, as ``at least 0.65``."""
    ends, compares = [end for end in (one.least, one.most) if end is not None], one.difference is not None
    if compares and ends == [0]:
        return "no drop allowed" if one.least is not None else "no rise allowed"
    said = " to ".join(("+" if compares and end > 0 else "") + limits.plain(end or 0.0) for end in ends)
    if compares or len(ends) > 1:
        return f"allowed {said}"
    return f"{'at least' if one.least is not None else 'at most'} {said}"


def _say(one: Verdict, value: float | None, signed: bool | None = None) -> str:
    """Return a number with three decimals, or more where the limit has more or where three would hide a miss.

    With three decimals 0.69996 reads as 0.700, which keeps "at least 0.7".
    """
    if one.metric == "n_docs" and value is not None:
        return f"{value:,.0f} docs"
    ends = [(end, sign) for end, sign in ((one.least, 1), (one.most, -1)) if end is not None]
    numbers = [number for number in (one.number.value, one.number.low, one.number.high) if number is not None]

    def hides(some: int) -> bool:
        return any(
            sign * round(number, some) >= sign * end > sign * number + limits.TOLERANCE
            for number in numbers
            for end, sign in ends
        )

    fewest = max([3, *(len(limits.plain(end).partition(".")[2]) for end, _ in ends)])
    decimals = next((some for some in range(fewest, DIGITS) if not hides(some)), DIGITS)
    return number_text(value, one.difference is not None if signed is None else signed, decimals)


def details(one: Verdict) -> str:
    """Return further facts of a verdict with a limit: the limit as written, the basis, and the power."""
    if one.metric in {**_HELD, **_COUNTS}:
        return ""
    basis = {
        "paired": f"paired over {one.number.n:,} docs",
        "unpaired": "unpaired: as if on other docs",
        "number": "no interval decides",
    }
    claim = {True: "the primary number", False: "not the primary number", None: ""}[one.primary]
    power = ""
    if one.verdict == "inconclusive" and one.detectable is not None:
        power = f"fails in 80 % of runs where the truth is {limits.plain(one.detectable, 2)} beyond what is allowed"
    return line("; ".join(filter(None, [f"{one.metric} {one.limit}", claim, basis.get(one.basis, ""), power])))


def ordered(judged: Judgement) -> list[Verdict]:
    """Return the verdicts, worst first.

    Failures come first, then what is inconclusive, warned of, passed; in each the primary numbers of comparisons first,
    then those farthest beyond what is allowed. What was measured says more than a number that is not defined.
    """

    def key(one: Verdict) -> tuple[int, bool, float]:
        value, ends = one.number.value, ((one.least, -1), (one.most, 1))
        beyond = [sign * (value - end) for end, sign in ends if end is not None and value is not None]
        return _ORDER.index(one.word), one.primary is not True, -max(beyond, default=-math.inf)

    return sorted(judged.verdicts, key=key)


def headline(judged: Judgement) -> str:
    """Return the first line of every output: the verdict, which agrees with the exit status, and the main fact."""
    start = CALLS[judged.status]
    if judged.status == BAD_INPUT:
        return line(f"{start}: {judged.error or 'nothing was judged'}")
    worst = ordered(judged)[0]
    alike = sum(one.word == worst.word for one in judged.verdicts) - 1
    warned = ", but warned of" if judged.status == PASSED and worst.warned else ""
    return f"{start}{warned} {fact(worst, judged)}{f', and {alike} more' if alike else ''}"


# --- for people -----------------------------------------------------------------------------------


def text(judged: Judgement, *, every: bool = False, width: int | None = None) -> str:
    """Return the verdicts for a terminal: the first line, the counts, what did not pass, and the notes.

    Args:
        judged: the judgement.
        every: list what passed, too.
        width: of the terminal; None: lines are not broken.
    """
    most = None if width is None else max(width, LEAST)
    listed = []
    for place, one in enumerate(ordered(judged)):
        if every or one.verdict != "pass":
            # the fact of the first stands in the headline
            said = fact(one, judged) if place else line(one.task)
            below = [fold(part, most, "  ", "    ") for part in (said, details(one)) if part]
            listed.append("\n".join([fold(f"{one.word}: {line(one.rule)}", most, rest="    "), *below]))
    passed = 0 if every else sum(one.verdict == "pass" for one in judged.verdicts)
    blocks = [f"{fold(headline(judged), most)}\n{judged.counts}", "\n".join(listed)]
    blocks += ["\n".join(fold(f"note: {line(note)}", most) for note in judged.notes)]
    return "\n\n".join(filter(None, [*blocks, f"{passed} pass; --all lists what passed" if passed else ""]))


def summary(judged: Judgement) -> str:
    """Return the line of a GitHub job summary, in Markdown."""
    mark = {PASSED: ":white_check_mark:", INCONCLUSIVE: ":grey_question:"}.get(judged.status, ":x:")
    return f"{mark} {markdown(headline(judged))} ({markdown(judged.counts)})\n\n"


def annotation(judged: Judgement) -> str:
    """Return a GitHub workflow command with the first line; empty where all rules hold."""
    if judged.status == PASSED and not any(one.warned for one in judged.verdicts):
        return ""
    # what GitHub wants escaped (actions/toolkit, command.ts)
    said = printed(headline(judged)).replace("%", "%25")
    return f"::{'warning' if judged.status == PASSED else 'error'} title=lmms-patch gate::{said}"


# --- for machines ---------------------------------------------------------------------------------


def to_json(judged: Judgement) -> dict[str, Any]:
    """Return what ``--json`` writes: every verdict, and the exit status."""
    told = {
        "schema": 1,
        "status": judged.status,
        "verdict": WORDS[judged.status],
        "sentence": headline(judged),
        "counts": judged.counts,
        "error": line(judged.error) or None,
        "config": judged.config,
        "out": judged.out,
        "baseline": judged.baseline or None,
        "lmms_patch": __version__,
        "notes": [line(note) for note in judged.notes],
        "verdicts": judged.verdicts,
    }
    found: dict[str, Any] = harmless(as_json(told))
    return found


def junit(judged: Judgement) -> str:
    """Return JUnit XML: a testcase per verdict, the worst first; bad input is a case with an error.

    The message of a failure begins as the first line elsewhere does.
    """
    cases = ordered(judged)
    counts = {
        "tests": len(cases) or 1,
        "failures": sum(one.word in ("fail", "inconclusive") for one in cases),
        "errors": int(judged.status == BAD_INPUT),
        "skipped": sum(one.warned for one in cases),
    }
    about = {"name": "lmms-patch gate", **{key: str(value) for key, value in counts.items()}}
    root = ElementTree.Element("testsuites", about)
    suite = ElementTree.SubElement(root, "testsuite", about)

    def case(rule: str, name: str, inside: str, text: str, **told: str) -> None:
        found = ElementTree.SubElement(suite, "testcase", {"classname": rule, "name": name, "time": "0"})
        ElementTree.SubElement(found, inside, told).text = text

    if judged.status == BAD_INPUT:
        case("gate", "input", "error", headline(judged), message=headline(judged), type=WORDS[BAD_INPUT])
    for one in cases:
        said = f"{one.verdict.upper()} {fact(one, judged)}"
        name, text = line(f"{one.task} of {one.model}: {one.metric} {one.limit}"), f"{said}\n{details(one)}".strip()
        if one.verdict == "pass":
            case(line(one.rule), name, "system-out", text)
        elif one.warned:
            case(line(one.rule), name, "skipped", text, message=said)
        else:
            case(line(one.rule), name, "failure", text, message=said, type=one.verdict)
    told = [headline(judged), judged.counts, *map(line, judged.notes)]
    ElementTree.SubElement(suite, "system-out").text = "\n".join(told)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def write(judged: Judgement, json_file: Path | None = None, junit_file: Path | None = None) -> None:
    """Write the files asked for, each whole, or none of them.

    Args:
        judged: the judgement.
        json_file: takes the JSON; replaced where it is there, of a link the link.
        junit_file: takes the JUnit XML; replaced likewise.

    Raises:
        RecordError: one of them cannot be written.
    """
    if json_file is not None and junit_file is not None and os.path.abspath(json_file) == os.path.abspath(junit_file):
        raise RecordError(f"{junit_file}: two outputs cannot go to one file")
    # NaN is no JSON: better to fail here than to write a file that other readers refuse
    texts = [(json_file, json.dumps(to_json(judged), indent=2, allow_nan=False) + "\n"), (junit_file, junit(judged))]
    files.write_all({path: content for path, content in texts if path is not None})
