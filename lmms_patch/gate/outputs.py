"""What a gate leaves: lines for people, JSON and JUnit XML for machines, a line of a job summary and an annotation for GitHub.

Everywhere the first line is the verdict with the fact that matters most, then come the counts, what did not pass, and
what passed. Names come from files that anybody may have written: ``lmms_patch.text`` makes them harmless for each form.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from lmms_patch import __version__, files
from lmms_patch.gate import limits
from lmms_patch.gate.formats import Verdict
from lmms_patch.gate.judge import BAD_INPUT, FAILED, INCONCLUSIVE, PASSED, Judgement
from lmms_patch.present.sheets import number as number_text
from lmms_patch.runs import reading
from lmms_patch.runs.numbers import to_json as as_json
from lmms_patch.text import harmless, line, markdown, printed

WORDS = {PASSED: "pass", FAILED: "fail", BAD_INPUT: "bad input", INCONCLUSIVE: "inconclusive"}
"""The words for the exit statuses; in capitals they begin the first line."""
DIGITS = 12
"""The most decimals of a number: limits are held to 1e-12."""
_HELD = {
    "gate": "the index can be read",
    "looks": "the answers depend on what is shown",
    "complete": "it is there, whole",
}
"""Requirements in words."""


# --- one verdict ----------------------------------------------------------------------------------


def fact(one: Verdict, judged: Judgement) -> str:
    """Return a verdict's finding in a line.

    For example ``gqa: accuracy 0.690 → 0.607 (-0.083, 95 % -0.151 to -0.016; allowed >= -0.02)``.
    """
    several = len({other.model for other in judged.verdicts}) > 1
    return line(f"{one.task}{f' of {one.model}' * several}: {_found(one)}")


def _found(one: Verdict) -> str:
    """Return a verdict's number with interval, baseline and limit, or the state demanded by a rule."""
    number, compares = one.number, one.difference is not None
    if one.metric in _HELD:
        said = {"pass": "yes", "fail": "no", "inconclusive": "not known"}[one.verdict]
        return ": ".join(filter(None, [f"{_HELD[one.metric]}: {said}", one.reason]))
    if number.value is None:
        return f"{one.measure}: {one.reason} ({_allowed(one)})"
    sure = [_say(one, number.value)] * compares
    if number.low is not None and number.high is not None and one.level is not None:
        sure.append(f"{100 * one.level:.4g} % {_say(one, number.low)} to {_say(one, number.high)}")
    inside = [*filter(None, [", ".join(sure)]), _allowed(one)]
    value = _say(one, one.value.value, False)
    before = f"{_say(one, one.baseline, False)} → " if compares else ""
    noted = ", ".join([value, *reading.words(one.value)])
    return ": ".join(filter(None, [f"{one.measure} {before}{noted} ({'; '.join(inside)})", one.reason]))


def _allowed(one: Verdict) -> str:
    """Return the ends of what is allowed, as ``allowed >= -0.02``."""
    ends = ((">=", one.least), ("<=", one.most))
    return f"allowed {' and '.join(f'{sign} {end:.12g}' for sign, end in ends if end is not None)}"


def _say(one: Verdict, value: float | None, signed: bool | None = None) -> str:
    """Return a number with three decimals, or more where three would hide a miss.

    With three decimals 0.69996 reads as 0.700, which keeps "at least 0.7".
    """
    if one.metric == "n_docs" and value is not None:
        return f"{value:,.0f}"
    ends, numbers = (
        [value for value in of if value is not None]
        for of in ((one.least, one.most), (one.number.value, one.number.low, one.number.high))
    )
    kept = (
        decimals
        for decimals in range(3, DIGITS)
        if all((round(number, decimals) < end) == (number < end) for number in numbers for end in ends)
    )
    return number_text(value, one.difference is not None if signed is None else signed, next(kept, 3))


def ordered(judged: Judgement) -> list[Verdict]:
    """Return the verdicts, worst first; in each kind the primary numbers of comparisons first."""
    return sorted(judged.verdicts, key=lambda one: (limits.ORDER.index(one.word), one.primary is not True))


def headline(judged: Judgement) -> str:
    """Return the first line of every output: the verdict, which agrees with the exit status, and the main fact."""
    start = WORDS[judged.status].upper()
    if judged.status == BAD_INPUT:
        return line(f"{start}: {judged.error or 'nothing was judged'}")
    worst = ordered(judged)[0]
    alike = sum(one.word == worst.word for one in judged.verdicts) - 1
    warned = ", but warned of" if judged.status == PASSED and worst.warned else ""
    return f"{start}{warned} {fact(worst, judged)}{f', and {alike} more' if alike else ''}"


# --- for people ----------------------------------------------------------------------------------


def summary(judged: Judgement) -> str:
    """Return the line of a GitHub job summary, in Markdown."""
    return f"{markdown(headline(judged))} ({markdown(judged.counts)})\n\n"


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
        "notes": [*map(line, judged.notes)],
        "verdicts": judged.verdicts,
    }
    return dict(harmless(as_json(told)))


def junit(judged: Judgement) -> str:
    """Return JUnit XML: a testcase per verdict, the worst first; bad input is a case with an error.

    The message of a failure is its line elsewhere.
    """
    parts = {"pass": "system-out", "warned": "skipped"}
    cases = [
        (one.rule, f"{one.task} of {one.model}: {one.metric}", parts.get(one.word, "failure"), fact(one, judged))
        for one in ordered(judged)
    ] or [("gate", "input", "error", headline(judged))]
    counts = Counter(part for _, _, part, _ in cases)
    given = {"name": "lmms-patch gate", "tests": str(len(cases))}
    given |= {
        name: str(counts[part]) for name, part in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    }
    root = ElementTree.Element("testsuites", given)
    suite = ElementTree.SubElement(root, "testsuite", given)
    for rule, name, part, said in cases:
        case = ElementTree.SubElement(suite, "testcase", classname=line(rule), name=line(name))
        ElementTree.SubElement(case, part, {} if part == "system-out" else {"message": said}).text = said
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
    # NaN is no JSON: better to fail here than to write a file that other readers refuse
    as_text = json.dumps(to_json(judged), indent=2, allow_nan=False) + "\n"
    files.write_all({path: text for path, text in ((json_file, as_text), (junit_file, junit(judged))) if path})
