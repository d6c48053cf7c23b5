"""What a gate leaves: a table for people, JSON and JUnit XML for machines, a job summary and annotations for GitHub.

Names come from files that anybody may have written: ``lmms_patch.text`` makes them harmless for each form.
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
from lmms_patch.present import sheets
from lmms_patch.present.sheets import Cell, Column, Sheet, shown, used
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import line, markdown, printed

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
    """Return the verdict as the table says it."""
    return "warned" if one.warned else one.call


def sheet(judged: Judgement) -> Sheet:
    """Return the verdicts as a table."""
    rows = [_row(one) for one in judged.verdicts]
    always = ("verdict", "rule", "task", "value")
    columns = used(COLUMNS, [*rows, dict.fromkeys(always, "")])
    return Sheet("gate", "Gate", columns, tuple(rows), " ".join(map(line, judged.notes)))


def _row(one: Verdict) -> Mapping[str, Cell]:
    texts = {"verdict": word(one), "rule": one.rule, "task": one.task, "model": one.model, "metric": one.metric, "limit": one.limit}
    numbers: dict[str, Cell] = {"value": one.value, "baseline": one.baseline, "difference": one.difference}
    numbers["docs"] = one.difference.n if one.difference is not None and one.basis == "paired" else None
    how: dict[str, Cell] = {"detectable": one.detectable, "claim": _CLAIMS[one.primary], "level": one.level, "basis": one.basis}
    return {**{key: line(text) for key, text in texts.items()}, **numbers, **how}


def what(one: Verdict) -> str:
    """Return the verdict in one line: what, of what, and why."""
    value = shown(one.value, Column("", "", digits=4))
    change = "" if one.difference is None else f", difference {shown(one.difference, Column('', '', signed=True, digits=4))} ({one.basis})"
    smallest = "" if one.call != "inconclusive" or one.detectable is None else f"; detectable with 80 % power: {one.detectable:.4f} beyond it"
    why = f": {one.reason}" if one.reason else ""
    return line(f"{one.task} of {one.model}: {one.metric} {value}{change}, limit {one.limit}{smallest}{why}")


def text(judged: Judgement) -> str:
    """Return the verdicts for a terminal. The last line says the verdict, in agreement with the exit status."""
    lines = [f"{word(one)}: {line(one.rule)}: {what(one)}" for one in judged.verdicts if one.call != "pass"]
    notes = [f"note: {line(note)}" for note in judged.notes]
    blocks = [sheet(judged).to_text() if judged.verdicts else "", "\n".join([*lines, *notes]), line(judged.sentence)]
    return "\n\n".join(block for block in blocks if block)


def to_json(judged: Judgement) -> dict[str, Any]:
    """Return what ``--json`` writes (schema ``gate``)."""
    return {
        "schema": SCHEMA,
        "status": judged.status,
        "verdict": WORDS[judged.status],
        "sentence": line(judged.sentence),
        "error": line(judged.error) or None,
        "config": line(judged.config),
        "out": line(judged.out),
        "baseline": line(judged.baseline) or None,
        "made": {"lmms_patch": __version__},
        "notes": [line(note) for note in judged.notes],
        "verdicts": [_verdict_json(one) for one in judged.verdicts],
    }


def _verdict_json(one: Verdict) -> dict[str, Any]:
    out: dict[str, Any] = {field.name: getattr(one, field.name) for field in dataclasses.fields(one)}
    for key, value in out.items():
        if isinstance(value, str):
            out[key] = line(value)
        elif isinstance(value, Estimate):
            out[key] = sheets.to_json(value, sheets.ESTIMATE)  # the verdict has the reason
    out["baseline_model"] = out["baseline_model"] or None
    return {("verdict" if key == "call" else key): value for key, value in out.items()}


def junit(judged: Judgement) -> str:
    """Return JUnit XML: one testcase per verdict."""
    cases = judged.verdicts
    blocked = [one for one in cases if one.call != "pass" and not one.warned]
    counts = {
        "tests": len(cases) or 1,
        "failures": len(blocked),
        "errors": int(judged.status == BAD_INPUT),
        "skipped": sum(one.warned for one in cases),
    }
    numbers = {key: str(value) for key, value in counts.items()}
    root = ElementTree.Element("testsuites", {"name": "lmms-patch gate", **numbers})
    suite = ElementTree.SubElement(root, "testsuite", {"name": "lmms-patch gate", **numbers})
    if judged.status == BAD_INPUT:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "gate", "name": "input", "time": "0"})
        ElementTree.SubElement(case, "error", {"type": WORDS[BAD_INPUT], "message": line(judged.sentence)}).text = line(judged.sentence)
    for one in cases:
        name = line(f"{one.task} of {one.model}: {one.metric} {one.limit}")
        case = ElementTree.SubElement(suite, "testcase", {"classname": line(one.rule), "name": name, "time": "0"})
        if one.warned:
            ElementTree.SubElement(case, "skipped", {"message": f"inconclusive: {what(one)}"})
        elif one.call != "pass":
            ElementTree.SubElement(case, "failure", {"type": one.call, "message": what(one)}).text = what(one)
        else:
            ElementTree.SubElement(case, "system-out").text = what(one)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def summary(judged: Judgement) -> str:
    """Return Markdown for a GitHub job summary."""
    mark = {0: ":white_check_mark:", 1: ":x:", 2: ":x:", 3: ":grey_question:"}[judged.status]
    lines = [f"### {mark} {markdown(judged.sentence)}", ""]
    if judged.verdicts:
        lines += [sheet(judged).to_markdown()]
    lines += [f"- **{word(one)}**, {markdown(one.rule)}: {markdown(what(one))}" for one in judged.verdicts if one.call != "pass"]
    lines += [f"- {markdown(note)}" for note in judged.notes]
    return "\n".join(lines) + "\n\n"


def workflow_commands(judged: Judgement) -> list[str]:
    """Return GitHub workflow commands: an error for what blocks, a warning for what is only warned of."""
    if judged.status == BAD_INPUT:
        return [_annotation("error", "lmms-patch gate: bad input", line(judged.sentence))]
    return [
        _annotation("warning" if one.warned else "error", f"lmms-patch gate: {line(one.rule)}: {one.call}", what(one))
        for one in judged.verdicts
        if one.call != "pass"
    ]


def _annotation(command: str, title: str, message: str) -> str:
    """Return ``::error title=...::...``, with what GitHub wants escaped (actions/toolkit, command.ts)."""

    def data(said: str) -> str:
        return printed(said).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")

    return f"::{command} title={data(title).replace(':', '%3A').replace(',', '%2C')}::{data(message)}"


# --- writing --------------------------------------------------------------------------------------


def write(judged: Judgement, *, json_file: Path | None = None, junit_file: Path | None = None, summary_file: Path | None = None) -> None:
    """Write the files that were asked for: all of them, each whole, or none.

    Args:
        judged: the judgement.
        json_file: takes the JSON; replaced where it is there, of a link the link.
        junit_file: takes the JUnit XML; replaced likewise.
        summary_file: takes the summary at its end, as GitHub wants it; no link.

    Raises:
        RecordError: one of them cannot be written.
    """
    texts = [(json_file, json.dumps(to_json(judged), indent=2, allow_nan=False) + "\n"), (junit_file, junit(judged))]
    wanted = [(path, content) for path, content in texts if path is not None]
    if len({os.path.abspath(path) for path in (json_file, junit_file, summary_file) if path is not None}) < len(wanted) + (summary_file is not None):
        raise RecordError(f"{wanted[-1][0]}: two outputs cannot go to one file")
    with files.staged(dict(wanted)):
        if summary_file is not None:
            files.append(summary_file, summary(judged))
    for folder in {path.parent for path, _ in wanted}:
        files.sweep(folder)
