"""The outputs of a gate: a table for people, JSON and JUnit XML for machines, a job summary and annotations for GitHub. Pure, but ``write``.

Names come from files that anybody may have written, so ``lmms_patch.text`` makes them harmless for each format.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from lmms_patch import __version__, files
from lmms_patch.errors import RecordError
from lmms_patch.gate.judge import BAD_INPUT, WORDS, Judgement, Verdict
from lmms_patch.present.sheets import Cell, Column, Sheet, shown
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import line as clean
from lmms_patch.text import markdown, printed

SCHEMA = 1
_CLAIMS = {True: "primary", False: "other", None: None}

COLUMNS = (
    Column("verdict", "verdict", help="pass, fail or inconclusive; warned: inconclusive, and the rule lets it pass"),
    Column("rule", "rule"),
    Column("task", "task"),
    Column("model", "model"),
    Column("metric", "metric", help="bars: its distance from 0"),
    Column("limit", "limit", help="on the metric's own scale"),
    Column("value", "value", digits=4, help="with its interval at the level beside it; without, where a difference is not over all docs of the run"),
    Column("baseline", "baseline", digits=4, help="over the docs of the difference"),
    Column("difference", "difference", signed=True, digits=4, help="value - baseline, with its interval"),
    Column("docs", "docs", help="that are paired: value, baseline and difference are over these"),
    Column("detectable", "detectable", digits=4, help="how far beyond limit and margin the truth must be to fail in 80 % of runs"),
    Column("claim", "claim", help="primary: the number of a comparison that carries the claim; other: corrected with all others together"),
    Column("level", "level", digits=4, help="of this one interval, after the correction for how many are judged together"),
    Column("basis", "basis", help="paired: doc by doc; unpaired: as if on other docs; interval: the number's own; number: no interval decides"),
)


def word(one: Verdict) -> str:
    """Return the word for a verdict in the table."""
    return "warned" if one.warned else one.call


def sheet(judgement: Judgement) -> Sheet:
    """Return the verdicts as a table."""
    rows = [_row(one) for one in judgement.verdicts]
    used = [c for c in COLUMNS if any(row.get(c.key) is not None for row in rows) or c.key in ("verdict", "rule", "task", "value")]
    return Sheet("gate", "Gate", tuple(used), tuple(rows), " ".join(map(clean, judgement.notes)))


def _row(one: Verdict) -> Mapping[str, Cell]:
    texts = {"verdict": word(one), "rule": one.rule, "task": one.task, "model": one.model, "metric": one.metric, "limit": one.limit}
    numbers: dict[str, Cell] = {"value": one.value, "baseline": one.baseline, "difference": one.difference}
    numbers["docs"] = one.difference.n if one.difference is not None and one.basis == "paired" else None
    how: dict[str, Cell] = {"detectable": one.detectable, "claim": _CLAIMS[one.primary], "level": one.level, "basis": one.basis}
    return {**{key: clean(text) for key, text in texts.items()}, **numbers, **how}


def what(one: Verdict) -> str:
    """Return a verdict in one line: the number, its limit, and why."""
    value = shown(one.value, Column("", "", digits=4))
    change = "" if one.difference is None else f", difference {shown(one.difference, Column('', '', signed=True, digits=4))} ({one.basis})"
    smallest = "" if one.call != "inconclusive" or one.detectable is None else f"; detectable with 80 % power: {one.detectable:.4f} beyond it"
    why = f": {one.reason}" if one.reason else ""
    return clean(f"{one.task} of {one.model}: {one.metric} {value}{change}, limit {one.limit}{smallest}{why}")


def text(judgement: Judgement) -> str:
    """Return the text for a terminal; its last line is the verdict that the exit status gives, too."""
    lines = [f"{word(one)}: {clean(one.rule)}: {what(one)}" for one in judgement.verdicts if one.call != "pass"]
    notes = [f"note: {clean(note)}" for note in judgement.notes]
    blocks = [sheet(judgement).to_text() if judgement.verdicts else "", "\n".join([*lines, *notes]), clean(judgement.sentence)]
    return "\n\n".join(block for block in blocks if block)


def to_json(judgement: Judgement) -> dict[str, Any]:
    """Return what ``--json`` writes (schema ``gate``)."""
    return {
        "schema": SCHEMA,
        "status": judgement.status,
        "verdict": WORDS[judgement.status],
        "sentence": clean(judgement.sentence),
        "error": clean(judgement.error) or None,
        "config": clean(judgement.config),
        "out": clean(judgement.out),
        "baseline": clean(judgement.baseline) or None,
        "made": {"lmms_patch": __version__},
        "notes": [clean(note) for note in judgement.notes],
        "verdicts": [_verdict_json(one) for one in judgement.verdicts],
    }


def _verdict_json(one: Verdict) -> dict[str, Any]:
    out: dict[str, Any] = {field.name: getattr(one, field.name) for field in dataclasses.fields(one)}
    for key, value in out.items():
        if isinstance(value, str):
            out[key] = clean(value)
        elif isinstance(value, Estimate):
            out[key] = {name: getattr(value, name) for name in ("value", "se", "low", "high", "n", "clusters", "level")}
    out["baseline_model"] = out["baseline_model"] or None
    return {("verdict" if key == "call" else key): value for key, value in out.items()}


def junit(judgement: Judgement) -> str:
    """Return JUnit XML with one testcase per verdict."""
    cases = judgement.verdicts
    blocked = [one for one in cases if one.call != "pass" and not one.warned]
    counts = {
        "tests": len(cases) or 1,
        "failures": len(blocked),
        "errors": int(judgement.status == BAD_INPUT),
        "skipped": sum(one.warned for one in cases),
    }
    numbers = {key: str(value) for key, value in counts.items()}
    root = ElementTree.Element("testsuites", {"name": "lmms-patch gate", **numbers})
    suite = ElementTree.SubElement(root, "testsuite", {"name": "lmms-patch gate", **numbers})
    if judgement.status == BAD_INPUT:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "gate", "name": "input", "time": "0"})
        ElementTree.SubElement(case, "error", {"type": WORDS[BAD_INPUT], "message": clean(judgement.sentence)}).text = clean(judgement.sentence)
    for one in cases:
        name = clean(f"{one.task} of {one.model}: {one.metric} {one.limit}")
        case = ElementTree.SubElement(suite, "testcase", {"classname": clean(one.rule), "name": name, "time": "0"})
        if one.warned:
            ElementTree.SubElement(case, "skipped", {"message": f"inconclusive: {what(one)}"})
        elif one.call != "pass":
            ElementTree.SubElement(case, "failure", {"type": one.call, "message": what(one)}).text = what(one)
        else:
            ElementTree.SubElement(case, "system-out").text = what(one)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def summary(judgement: Judgement) -> str:
    """Return Markdown for a GitHub job summary."""
    mark = {0: ":white_check_mark:", 1: ":x:", 2: ":x:", 3: ":grey_question:"}[judgement.status]
    lines = [f"### {mark} {markdown(judgement.sentence)}", ""]
    if judgement.verdicts:
        lines += [sheet(judgement).to_markdown()]
    lines += [f"- **{word(one)}**, {markdown(one.rule)}: {markdown(what(one))}" for one in judgement.verdicts if one.call != "pass"]
    lines += [f"- {markdown(note)}" for note in judgement.notes]
    return "\n".join(lines) + "\n\n"


def workflow_commands(judgement: Judgement) -> list[str]:
    """Return GitHub workflow commands: an error for a verdict that blocks, a warning for one that does not."""
    if judgement.status == BAD_INPUT:
        return [_annotation("error", "lmms-patch gate: bad input", clean(judgement.sentence))]
    return [
        _annotation("warning" if one.warned else "error", f"lmms-patch gate: {clean(one.rule)}: {one.call}", what(one))
        for one in judgement.verdicts
        if one.call != "pass"
    ]


def _annotation(command: str, title: str, message: str) -> str:
    """Return ``::error title=...::...``, escaped as GitHub asks (actions/toolkit, command.ts)."""

    def data(said: str) -> str:
        return printed(said).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")

    return f"::{command} title={data(title).replace(':', '%3A').replace(',', '%2C')}::{data(message)}"


# --- writing --------------------------------------------------------------------------------------


def write(judgement: Judgement, *, json_file: Path | None = None, junit_file: Path | None = None, summary_file: Path | None = None) -> None:
    """Write the files that were asked for: all of them, each whole, or none.

    Args:
        judgement: the judgement.
        json_file: replaced if it exists; a link is replaced itself.
        junit_file: the same.
        summary_file: appended to, as GitHub asks; not a link.

    Raises:
        RecordError: one of them cannot be written.
    """
    texts = [(json_file, json.dumps(to_json(judgement), indent=2, allow_nan=False) + "\n"), (junit_file, junit(judgement))]
    wanted = [(path, content) for path, content in texts if path is not None]
    if len({os.path.abspath(path) for path in (json_file, junit_file, summary_file) if path is not None}) < len(wanted) + (summary_file is not None):
        raise RecordError(f"{wanted[-1][0]}: two outputs cannot go to one file")
    with files.staged(dict(wanted)):
        if summary_file is not None:
            files.append(summary_file, summary(judgement))
    for folder in {path.parent for path, _ in wanted}:
        files.sweep(folder)
