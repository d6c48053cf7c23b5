"""The tables of the results themselves: each result and grid, each category, text only against the image. Pure."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lmms_patch.ask.spec import KINDS, Words
from lmms_patch.present.report.data import Entry, Part
from lmms_patch.present.report.points import counted
from lmms_patch.present.sheets import Cell, Column, Sheet, levels
from lmms_patch.runs import reading
from lmms_patch.runs.need import Need
from lmms_patch.stats import paired
from lmms_patch.stats.index import band, span
from lmms_patch.stats.intervals import of_file
from lmms_patch.stats.resample import Estimate

SCALE = "on the metric's own scale"


def band_text(estimate: Estimate | None) -> str | None:
    """Return the bands that the interval reaches; the band of the number itself where there is none."""
    if estimate is None or estimate.value is None:
        return None
    if estimate.low is None or estimate.high is None:
        return band(estimate.value)
    return span(estimate.low, estimate.high)


def runs(entries: Sequence[Entry]) -> list[Sheet]:
    """Return each result and grid; the categories; the necessity map; the excluded docs. MAGIC tasks have tables of their own (``magic``)."""
    entries = [entry for entry in entries if not entry.magic]
    out = [_runs(entries)] if entries else []
    if any(entry.categories for entry in entries):
        out.append(_categories(entries))
    if any(entry.whole.analysis.get("necessity") for entry in entries):
        out.append(_necessity(entries))
    if any(any(reasons.values()) for entry in entries for reasons in entry.excluded.values()):
        out.append(_excluded(entries))
    return out


_INDEX_HELP = "1 - MPP/FIP, without unit: RCI, or PCRI for a _pcri task, CRCI or TRCI"
_INDEX_COLUMNS = (
    Column("mpp", "MPP", help=f"native metric when each doc keeps the answer of its best cell, {SCALE}"),
    Column("index", "index", signed=True, index=True, help=_INDEX_HELP),
    Column("band", "band", help="the bands (RCI paper, 3.2) that the interval reaches: of the luck-corrected index where luck is measured"),
    Column(
        "adj",
        "luck-corrected index",
        signed=True,
        index=True,
        help="both sides corrected by what answers earn without the right picture, measured on another doc's; assumed null: by other docs' answers",
    ),
    Column("mark", "contradicted", help="where the luck-corrected index lies on the other side of 0, or in a band that does not touch"),
    Column("gap", "FIP - MPP", signed=True, help=SCALE),
)
_RUN_COLUMNS = (
    Column("model", "model"),
    Column("benchmark", "benchmark"),
    Column("task", "task"),
    Column("kind", "kind", help="what was shown: full image and cells (rci, pcri), full clip and segments (trci), no image (blind), ..."),
    Column("metric", "metric"),
    Column("n", "grid n", help="n x n cells; of trci: n segments"),
    Column("docs", "docs", help="docs that were scored"),
    Column("excluded", "excluded", help="docs that MPP and index leave out at this grid"),
    Column("failed", "views failed", help="views without a score, of all views: the call or the scorer failed"),
    Column("empty", "empty answers", help="empty answers to the first view"),
    Column("chance", "chance", help=f"what the best uninformed answer scores, {SCALE}"),
    Column("ceiling", "ceiling", help=f"what the gold answers score, {SCALE}"),
    Column("score", "score", help=f"native metric of the task's own view, {SCALE}; on full images it is FIP"),
    Column("fip_used", "FIP, docs used", help="FIP over the docs that are not excluded: what the index is made of"),
    *_INDEX_COLUMNS,
    Column("wrong", "wrong image", help=f"the same questions on another doc's image, {SCALE}"),
    Column("looks", "full - wrong", signed=True, help=f"what the right image adds to the score, paired by doc, {SCALE}"),
    Column("asked", "docs asked so", help="docs that were asked on another doc's image"),
    Column("gate", "gate", help="whether the full image beats chance, and a wrong image, by two standard errors; if not, there is no index"),
    Column("blind", "blind", help=f"the same model without image, {SCALE}"),
    Column("tst", "TsT", help=f"a text-only model, cross-validated on the test set, {SCALE}"),
    Column("warnings", "warnings", help="how many; the page lists them"),
    Column("date", "date"),
)


def _runs(entries: Sequence[Entry]) -> Sheet:
    """Return the table of all results and grids."""
    rows = [row for entry in entries for row in _rows(entry)]
    level = levels(cell for row in rows for cell in row.values())
    sure = f"In brackets: {level} interval, from a bootstrap over docs, questions on one image together. " if level else ""
    numbers = (
        (entry.whole.measures.get(f"{entry.index}{n}_adj"), entry.words)
        for entry in entries
        for n in entry.grids
        if entry.index and reading.null_of(entry.whole.of_grid(n)) == reading.MEASURED
    )
    note = " ".join([f"{sure}{SCALE.capitalize()}, not percent.", *(f"{said}." for said in above_one(numbers))])
    return Sheet("runs", "Results", _used(_RUN_COLUMNS, rows, entries), tuple(rows), note)


def above_one(numbers: Iterable[tuple[Estimate | None, Words]]) -> list[str]:
    """Return why intervals of luck-corrected indices with measured nulls reach above 1, a sentence each without its full stop."""
    told = [reading.above_one(adj.low, adj.high, words) for adj, words in numbers if adj is not None]
    return [f"{said[0].upper()}{said[1:]}" for said in dict.fromkeys(told) if said]


def _rows(entry: Entry) -> list[dict[str, Cell]]:
    """Return the rows of a result: one for each of its grids, or one where it has none."""
    measures, failures = entry.whole.measures, entry.failures
    base: dict[str, Cell] = {
        **_named(entry),
        "kind": entry.kind,
        "metric": entry.metric,
        "docs": entry.whole.docs,
        "failed": failures.get("full", 0) + failures.get("cells", 0) if failures else None,
        "empty": failures.get("empty", 0) if failures else None,
        "chance": measures.get("chance"),
        "ceiling": _bare(measures.get("ceiling")),
        "score": measures.get("score"),
        "blind": entry.blind,
        "tst": entry.tst,
        "warnings": len(entry.warnings),
        "date": entry.date,
    }
    if not entry.index:
        return [base]
    base |= {"gate": entry.whole.gate_word, **_of_image(entry.whole)}
    return [{**base, "n": n, "excluded": sum(entry.excluded.get(n, {}).values()), **_of_grid(entry, entry.whole, n)} for n in entry.grids] or [base]


def _of_image(part: Part) -> dict[str, Cell]:
    """Return what was answered on wrong images; empty where nothing was asked so."""
    for looks in part.typed.gate.looks if part.typed else ():
        if looks.against == "wrong images":
            return {"wrong": looks.other, "looks": looks.difference, "asked": looks.docs}
    return {}


def _of_grid(entry: Entry, part: Part, n: int) -> dict[str, Cell]:
    """Return the numbers of some docs of a result at one grid."""
    name, measures = f"{entry.index}{n}", part.measures
    grid = part.grid(n)
    used = grid.get("fip")
    full = measures.get("fip")
    return {
        "fip_used": used if full is not None and used != full.value else None,
        "mpp": measures.get(f"mpp{n}"),
        "index": measures.get(name),
        "band": band_text(reading.headline(measures.get(name), measures.get(f"{name}_adj"), reading.null_of(part.of_grid(n)))),
        "adj": measures.get(f"{name}_adj"),
        "mark": reading.told(reading.mark_of(part.of_grid(n)), reading.null_of(part.of_grid(n))) or None,
        "gap": measures.get(f"gap{n}"),
    }


def _named(entry: Entry) -> dict[str, Cell]:
    return {"model": entry.model, "benchmark": entry.base, "task": entry.task}


def _bare(estimate: Estimate | None) -> Cell:
    return None if estimate is None else estimate.value


def _used(columns: Sequence[Column], rows: Sequence[Mapping[str, Cell]], entries: Sequence[Entry] = ()) -> tuple[Column, ...]:
    """Return the columns that say anything; the two indices by the names that they have in these results."""
    index = " / ".join(dict.fromkeys(entry.index for entry in entries if entry.index)) or "index"
    titles = {key: reading.name(index, corrected=which) for key, which in (("index", False), ("adj", True))}
    there = (c for c in columns if any(row.get(c.key) is not None for row in rows))
    return tuple(dataclasses.replace(c, title=titles.get(c.key, c.title)) for c in there)


def _categories(entries: Sequence[Entry]) -> Sheet:
    """Return the table of all categories of all results."""
    rows: list[dict[str, Cell]] = []
    for entry in entries:
        for name, part in entry.categories.items():
            base: dict[str, Cell] = {**_named(entry), "category": name, "docs": part.docs, "chance": part.measures.get("chance")}
            base |= {"score": part.measures.get("score"), "majority": _bare(part.measures.get("tst_majority"))}
            if entry.index:
                rows += [{**base, "n": n, **_of_grid(entry, part, n), "gate": part.gate_word} for n in entry.grids]
            else:
                rows.append(base)
    columns = (
        *_RUN_COLUMNS[:3],
        Column("category", "category"),
        *(column for column in _RUN_COLUMNS if column.key in ("n", "docs", "chance", "score")),
        Column("majority", "majority", help="of a text-only cross-validation: the frequency baseline"),
        *_INDEX_COLUMNS,
        *(column for column in _RUN_COLUMNS if column.key == "gate"),
    )
    note = "Each category with its own chance, gate and interval. Many categories at once: one in twenty intervals misses by luck alone."
    return Sheet("categories", "By category", _used(columns, rows, entries), tuple(rows), note)


NEED_WORDS: Mapping[Need, str] = {
    "text": "right without its image, on another doc's or on none",
    "one cell": "right on some cell alone",
    "whole image": "right on the full image only",
    "unsolved": "wrong on the full image and on every cell",
}
"""The classes of the necessity map (``numbers.Necessity``), and what they are; each doc is in the first that holds."""


def in_each(words: Iterable[Words], sentence: str) -> str:
    """Return a sentence in the words of each medium, once where they are the same.

    >>> in_each([KINDS["rci"].words, KINDS["trci"].words, KINDS["pcri"].words], "one cell")
    'one cell / one segment'
    """
    return " / ".join(dict.fromkeys(one.say(sentence) for one in words))


def _necessity(entries: Sequence[Entry]) -> Sheet:
    """Return what each doc needs: shares of the four classes, of each result and grid, and of each category."""
    media = [entry.words for entry in entries if entry.whole.analysis.get("necessity")]
    rows: list[dict[str, Cell]] = []
    for entry in entries:
        for name, part in ((None, entry.whole), *entry.categories.items()):
            for stored in part.analysis.get("necessity") or ():
                luck = stored.get("luck")
                rows.append(
                    {
                        **_named(entry),
                        "category": name,
                        "n": stored["n"],
                        "docs": stored["docs"],
                        **{need: of_file(stored["shares"][need]) for need in NEED_WORDS},
                        "checked": stored["checked"],
                        **{f"docs {need}": stored["counts"][need] for need in NEED_WORDS},
                        "luck": None if luck is None else of_file(luck),
                        "unscored": stored["unscored"] or None,
                    }
                )
    columns = (
        *_RUN_COLUMNS[:3],
        Column("category", "category", help="empty: all docs"),
        Column("n", "grid n", help="n x n cells; of trci: n segments"),
        Column("docs", "docs", help="that the shares are of"),
        *(Column(need, in_each(media, need), help=in_each(media, words)) for need, words in NEED_WORDS.items()),
        Column("checked", "docs checked", help=in_each(media, "docs that were asked without their image")),
        *(Column(f"docs {need}", f"docs, {in_each(media, need)}", help="docs whose class is known") for need in NEED_WORDS),
        Column("luck", "by luck", help=in_each(media, "share of docs that a cell of a wrong image answers where the whole wrong image does not")),
        Column("unscored", "unscored", help="docs without a class: a view has no score"),
    )
    level = levels(row[need] for row in rows for need in NEED_WORDS)
    note = (
        f"Shares of the docs{f' with {level} intervals' if level else ''}. Right is at least half of what the doc's gold scores (docs/statistics.md)."
    )
    return Sheet("necessity", "What each question needs", _used(columns, rows), tuple(rows), note)


def _excluded(entries: Sequence[Entry]) -> Sheet:
    """Return the table of docs that a grid leaves out, by the reason."""
    rows = [
        {**_named(entry), "n": n, "reason": reason, "docs": count}
        for entry in entries
        for n, reasons in sorted(entry.excluded.items())
        for reason, count in Counter(reasons).most_common()
        if count
    ]
    columns = (*_RUN_COLUMNS[:3], Column("n", "grid n"), Column("reason", "why"), Column("docs", "docs"))
    return Sheet(
        "excluded",
        "Docs that MPP and index leave out",
        columns,
        tuple(rows),
        "They are scored on the full image, and counted there, unless that call failed.",
    )


# --- text only ------------------------------------------------------------------------------------


def tst(entries: Sequence[Entry]) -> list[Sheet]:
    """Return text-only cross-validations, and what each model scores without the image."""
    tables = [_tst(entries), _blind(entries)]
    return [sheet for sheet in tables if sheet.rows]


def _tst(entries: Sequence[Entry]) -> Sheet:
    """Return the table of text-only cross-validations."""
    rows: list[dict[str, Cell]] = []
    for entry in entries:
        if not KINDS[entry.kind].folds:
            continue
        details, measures = entry.tst_details, entry.whole.measures
        grouping = details.get("headline")
        rows.append(
            {
                "benchmark": entry.base,
                "model": entry.model,
                "folds": details.get("folds"),
                "grouping": str(grouping) if grouping is not None else None,
                "docs": entry.whole.docs,
                "chance": _chance(details.get("chance"), measures),
                **{key: measures.get(f"tst_{key}") for key in ("above", "over_chance", "leakage", "zero_shot", "delta")},
                "majority": _bare(measures.get("tst_majority")),
                "tst": measures.get("tst"),
                "s": _bare(measures.get("tst_s")),
                "p": details.get("by_grouping", {}).get(grouping, {}).get("p"),
            }
        )
    columns = (
        Column("benchmark", "benchmark"),
        Column("model", "diagnostic"),
        Column("folds", "folds"),
        Column("grouping", "kept together", help="docs that stay in one fold: of one source, of one text, or none"),
        Column("docs", "docs"),
        Column("chance", "chance", help=SCALE),
        Column("majority", "majority", help=f"the most frequent training gold, {SCALE}"),
        Column("tst", "TsT", help=f"native score of held-out answers of a text-only model, {SCALE}"),
        Column("above", "above majority", signed=True, help="paired by doc"),
        Column("p", "p", help="of TsT above majority, signs of whole sources flipped"),
        Column("over_chance", "over chance", signed=True, help="TsT less chance; the interval is TsT's"),
        Column("leakage", "leakage", signed=True, help="random folds less folds by source"),
        Column("zero_shot", "zero-shot", help="the language model before training"),
        Column("delta", "delta", signed=True, help="what training on the test set adds"),
        Column("s", "s(x)", help="mean bias score of the docs, 0..1"),
    )
    note = "What the text alone gives away. Intervals: new items of the same sources, given the folds (docs/tst.md)."
    return Sheet("tst", "Can it be answered without looking?", _used(columns, rows), tuple(rows), note)


def _chance(known: Any, measures: Mapping[str, Estimate]) -> Cell:
    return float(known) if isinstance(known, (int, float)) else measures.get("chance")


def _blind(entries: Sequence[Entry]) -> Sheet:
    """Return the table of what each model scores without the image, beside its score with it."""
    full: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        if KINDS[entry.kind].full and (entry.base, entry.model) not in full:
            full[entry.base, entry.model] = entry
    rows: list[dict[str, Cell]] = []
    for entry in full.values():
        if entry.blind is None and entry.tst is None:
            continue
        score = entry.whole.measures["score"]
        rows.append(
            {
                "benchmark": entry.base,
                "model": entry.model,
                "docs": entry.whole.docs,
                "chance": entry.whole.measures.get("chance"),
                "tst": entry.tst,
                "blind": entry.blind,
                "full": score,
                "gain": entry.gain or (paired.unpaired(entry.blind, score).estimate if entry.blind is not None else None),
            }
        )
    columns = (
        Column("benchmark", "benchmark"),
        Column("model", "model"),
        Column("docs", "docs"),
        Column("chance", "chance", help=SCALE),
        Column("tst", "TsT", help=f"the text-only model, {SCALE}"),
        Column("blind", "blind", help=f"this model without image, {SCALE}"),
        Column("full", "full image", help=SCALE),
        Column(
            "gain",
            "full - blind",
            signed=True,
            help="what the image adds, paired by doc; without the sample logs of both as if on other docs, which is wider",
        ),
    )
    note = f"{counted(len(rows), 'result')} with a blind run or a text-only cross-validation beside it."
    return Sheet("blind", "With and without the image", _used(columns, rows), tuple(rows), note)
