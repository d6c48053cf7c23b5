"""The tables of the results themselves: each result and grid, each category, text only against the image. Pure."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from lmms_patch.ask.kinds import Words
from lmms_patch.present.report.data import Entry, Part
from lmms_patch.present.report.points import counted
from lmms_patch.present.sheets import Cell, Column, Row, Sheet, column_of, levels_in, used
from lmms_patch.runs import reading
from lmms_patch.runs.need import Need
from lmms_patch.runs.numbers import Necessity
from lmms_patch.stats import paired
from lmms_patch.stats.index import band, span
from lmms_patch.stats.resample import Estimate

SCALE = "on the metric's own scale"


def band_text(estimate: Estimate | None) -> str | None:
    """Return the bands within reach of an interval; without an interval, the band of the value."""
    if estimate is None or estimate.value is None:
        return None
    if estimate.low is None or estimate.high is None:
        return band(estimate.value)
    return span(estimate.low, estimate.high)


def runs(entries: Sequence[Entry]) -> list[Sheet]:
    """Return each result and grid; the categories; the necessity map; the excluded docs.

    MAGIC tasks have tables of their own (``magic``).
    """
    entries = [entry for entry in entries if not entry.result.magic]
    out = [_runs(entries)] if entries else []
    if any(entry.categories for entry in entries):
        out.append(_categories(entries))
    if any(maps_of(entry.whole) for entry in entries):
        out.append(_necessity(entries))
    if any(any(reasons.values()) for entry in entries for reasons in entry.excluded.values()):
        out.append(_excluded(entries))
    return out


_INDEX_HELP = "1 - MPP/FIP, without unit: RCI, or PCRI for a _pcri task, CRCI or TRCI"
_ON_SCALE = f", {SCALE}"
_CHANCE = column_of("chance", "chance", _ON_SCALE)
_INDEX_COLUMNS = (
    column_of("mpp{key}", "MPP", _ON_SCALE),
    Column("index", signed=True, index=True, help=_INDEX_HELP),
    Column(
        "band",
        help="the bands (RCI paper, 3.2) that the interval reaches: of the steady index where docs were asked again",
    ),
    Column(
        "steady",
        "steady index",
        signed=True,
        index=True,
        help="of the docs answered with their image, the share that needs all of it: docs were asked again",
    ),
    Column(
        "mark",
        "contradicted",
        help="where the steady index lies in a band that does not touch that of the index, of which less than 0 counts as 0",
    ),
    column_of("gap{key}", "FIP - MPP", _ON_SCALE),
)
_RUN_COLUMNS = (
    Column("model"),
    Column("benchmark"),
    Column("task"),
    Column(
        "kind",
        help="what was shown: full image and cells (rci, pcri), full clip and segments (trci), no image (blind), ...",
    ),
    Column("metric"),
    Column("n", "grid n", help="n x n cells; of trci: n segments"),
    Column("docs", help="docs that were scored"),
    Column("excluded", help="docs that MPP and index leave out at this grid"),
    Column("failed", "views failed", help="views without a score, of all views: the call or the scorer failed"),
    Column("empty", "empty answers", help="empty answers to the first view"),
    _CHANCE,
    column_of("ceiling", "ceiling", _ON_SCALE),
    column_of("score", "score", f"{_ON_SCALE}; on full images it is FIP"),
    Column("fip_used", "FIP, docs used", help="FIP over the docs that are not excluded: what the index is made of"),
    *_INDEX_COLUMNS,
    Column("wrong", "wrong image", help=f"the same questions on another doc's image, {SCALE}"),
    Column(
        "looks", "full - wrong", signed=True, help=f"what the right image adds to the score, paired by doc, {SCALE}"
    ),
    Column("asked", "docs asked so", help="docs that were asked on another doc's image"),
    Column(
        "gate",
        help="whether the full image beats chance, and a wrong image, by two standard errors; if not, there is no index",
    ),
    Column("blind", help=f"the same model without image, {SCALE}"),
    Column("tst", "TsT", help=f"a text-only model, cross-validated on the test set, {SCALE}"),
    Column("warnings", help="how many; the page lists them"),
    Column("date"),
)


def _some(*keys: str) -> list[Column]:
    """Return some columns of the table of all results."""
    return [column for column in _RUN_COLUMNS if column.key in keys]


def _runs(entries: Sequence[Entry]) -> Sheet:
    """Return the table of all results and grids."""
    rows = [row for entry in entries for row in _rows(entry)]
    cells = (cell for row in rows for cell in row.values())
    sure = levels_in("In brackets: {} interval, from a bootstrap over docs, questions on one image together. ", cells)
    note = f"{sure}{SCALE.capitalize()}, not percent."
    return Sheet("runs", "Results", _used(_RUN_COLUMNS, rows, entries), rows, note)


def _rows(entry: Entry) -> list[Row]:
    """Return the rows of a result, a row per grid; a single row for a result without grids."""
    measures, failures = entry.whole.measures, entry.failures
    base: Row = {
        **_named(entry),
        "kind": entry.kind.name,
        "metric": entry.result.metric,
        "docs": entry.whole.docs,
        "failed": failures.get("full", 0) + failures.get("cells", 0) if failures else None,
        "empty": failures.get("empty", 0) if failures else None,
        "chance": measures.get("chance"),
        "ceiling": _bare(measures.get("ceiling")),
        "score": measures.get("score"),
        "blind": entry.blind,
        "tst": entry.tst,
        "warnings": len(entry.warnings),
        "date": entry.result.run.date,
    }
    if not entry.kind.index:
        return [base]
    base |= {"gate": entry.whole.gate_word, **_of_image(entry.whole)}
    return [
        {**base, "n": n, "excluded": sum(entry.excluded.get(n, {}).values()), **_of_grid(entry, entry.whole, n)}
        for n in entry.grids
    ] or [base]


def _of_image(part: Part) -> Row:
    """Return what was answered on wrong images; empty where nothing was asked so."""
    looks = part.analysis.gate.looks if part.analysis else ()
    of_wrong = (one for one in looks if one.against == "wrong images")
    return next(({"wrong": one.other, "looks": one.difference, "asked": one.docs} for one in of_wrong), {})


def _of_grid(entry: Entry, part: Part, n: int) -> Row:
    """Return the numbers of some docs of a result at a grid."""
    at, full = entry.index(n, part), part.measures.get("fip")
    return {
        "fip_used": at.grid.fip if at.grid and full is not None and at.grid.fip != full.value else None,
        "mpp": at.mpp,
        "index": at.raw,
        "band": band_text(at.headline),
        "steady": at.steady,
        "mark": at.mark or None,
        "gap": at.gap,
    }


def _named(entry: Entry) -> Row:
    return {"model": entry.model, "benchmark": entry.base, "task": entry.result.label}


def _bare(estimate: Estimate | None) -> Cell:
    return None if estimate is None else estimate.value


def _used(
    columns: Sequence[Column], rows: Sequence[Mapping[str, Cell]], entries: Sequence[Entry] = ()
) -> tuple[Column, ...]:
    """Return the columns with any value; the two indices named as in these results."""
    index = " / ".join(dict.fromkeys(entry.kind.index for entry in entries if entry.kind.index)) or "index"
    titles = {key: reading.name(index, steady=which) for key, which in (("index", False), ("steady", True))}
    return tuple(dataclasses.replace(c, title=titles.get(c.key, c.title)) for c in used(columns, rows))


def _categories(entries: Sequence[Entry]) -> Sheet:
    """Return the table of all categories of all results."""
    rows: list[Row] = []
    for entry in entries:
        for name, part in entry.categories.items():
            base: Row = {
                **_named(entry),
                "category": name,
                "docs": part.docs,
                "chance": part.measures.get("chance"),
            }
            base |= {"score": part.measures.get("score"), "majority": _bare(part.measures.get("tst_majority"))}
            if entry.kind.index:
                rows += [{**base, "n": n, **_of_grid(entry, part, n), "gate": part.gate_word} for n in entry.grids]
            else:
                rows.append(base)
    columns = (
        *_RUN_COLUMNS[:3],
        Column("category"),
        *_some("n", "docs", "chance", "score"),
        Column("majority", help="of a text-only cross-validation: the frequency baseline"),
        *_INDEX_COLUMNS,
        *_some("gate"),
    )
    note = "Each category with its own chance, gate and interval. Many categories at once: one in twenty intervals misses by luck alone."
    return Sheet("categories", "By category", _used(columns, rows, entries), rows, note)


NEED_WORDS: Mapping[Need, str] = {
    "text": "right without its image, on another doc's or on none",
    "one cell": "right on some cell alone",
    "whole image": "right on the full image only",
    "unsolved": "wrong on the full image and on every cell",
}
"""The classes of the necessity map (``numbers.Necessity``), and what they are; each doc is in the first that holds."""


def maps_of(part: Part) -> tuple[Necessity, ...]:
    """Return the necessity maps of some docs, the finest grid first."""
    return part.analysis.necessity if part.analysis else ()


def in_each(words: Iterable[Words], sentence: str) -> str:
    """Return a sentence in the words of each medium, once where they are the same.

    >>> from lmms_patch.ask.kinds import OF_CLIPS, OF_IMAGES
    >>> in_each([OF_IMAGES, OF_CLIPS, OF_IMAGES], "one cell")
    'one cell / one segment'
    """
    return " / ".join(dict.fromkeys(one.say(sentence) for one in words))


def _necessity(entries: Sequence[Entry]) -> Sheet:
    """Return what each doc needs: shares of the four classes, of each result and grid, and of each category."""
    media = [entry.words for entry in entries if maps_of(entry.whole)]
    rows: list[Row] = [
        {
            **_named(entry),
            "category": name,
            "n": found.n,
            "docs": found.docs,
            **{need: found.shares[need] for need in NEED_WORDS},
            "whole": found.whole,
            "steady": found.index,
            "again": found.again,
            "why": found.shares["text"].reason or None,
        }
        for entry in entries
        for name, part in ((None, entry.whole), *entry.categories.items())
        for found in maps_of(part)
    ]
    columns = (
        *_RUN_COLUMNS[:3],
        Column("category", help="empty: all docs"),
        *_some("n"),
        Column("docs", help="that the shares are of"),
        *(Column(need, in_each(media, need), help=in_each(media, words)) for need, words in NEED_WORDS.items()),
        Column("whole", in_each(media, "whole image, of what is solved"), help="share of the docs that are solved"),
        Column("steady", "steady index", help=in_each(media, "whole image, of what is solved with the image")),
        Column("again", "asked again", help="docs that were asked again, to tell knowledge from luck"),
        Column("why", "no shares since", help="why there are none"),
    )
    sure = levels_in(" with {} intervals", (row[need] for row in rows for need in NEED_WORDS))
    note = f"Shares of the docs{sure}, luck removed by asking again (docs/statistics.md)."
    return Sheet("necessity", "What each question needs", _used(columns, rows), rows, note)


def _excluded(entries: Sequence[Entry]) -> Sheet:
    """Return the table of docs left out by a grid, by reason."""
    rows = [
        {**_named(entry), "n": n, "reason": reason, "docs": count}
        for entry in entries
        for n, reasons in sorted(entry.excluded.items())
        for reason, count in Counter(reasons).most_common()
        if count
    ]
    columns = (*_RUN_COLUMNS[:3], Column("n", "grid n"), Column("reason", "why"), Column("docs"))
    return Sheet(
        "excluded",
        "Docs that MPP and index leave out",
        columns,
        rows,
        "They are scored on the full image, and counted there, unless that call failed.",
    )


# --- text only ------------------------------------------------------------------------------------


def tst(entries: Sequence[Entry]) -> list[Sheet]:
    """Return text-only cross-validations, and what each model scores without the image."""
    tables = [_tst(entries), _blind(entries)]
    return [sheet for sheet in tables if sheet.rows]


def _tst(entries: Sequence[Entry]) -> Sheet:
    """Return the table of text-only cross-validations."""
    rows: list[Row] = []
    for entry in entries:
        if not entry.kind.folds:
            continue
        found, measures = entry.result.tst, entry.whole.measures
        rows.append(
            {
                "benchmark": entry.base,
                "model": entry.model,
                "folds": found.folds or None if found else None,
                "grouping": found.headline if found else None,
                "docs": entry.whole.docs,
                "chance": measures.get("chance") if found is None or found.chance is None else found.chance,
                **{
                    key: measures.get(f"tst_{key}") for key in ("above", "over_chance", "leakage", "zero_shot", "delta")
                },
                "majority": _bare(measures.get("tst_majority")),
                "tst": measures.get("tst"),
                "s": _bare(measures.get("tst_s")),
                "p": found.by_grouping[found.headline].p if found else None,
            }
        )
    columns = (
        Column("benchmark"),
        Column("model", "diagnostic"),
        Column("folds"),
        Column("grouping", "kept together", help="docs that stay in one fold: of one source, of one text, or none"),
        Column("docs"),
        _CHANCE,
        Column("majority", help=f"the most frequent training gold, {SCALE}"),
        Column("tst", "TsT", help=f"native score of held-out answers of a text-only model, {SCALE}"),
        Column("above", "above majority", signed=True, help="paired by doc"),
        Column("p", help="of TsT above majority, signs of whole sources flipped"),
        Column("over_chance", "over chance", signed=True, help="TsT less chance; the interval is TsT's"),
        Column("leakage", signed=True, help="random folds less folds by source"),
        Column("zero_shot", "zero-shot", help="the language model before training"),
        Column("delta", signed=True, help="what training on the test set adds"),
        Column("s", "s(x)", help="mean bias score of the docs, 0..1"),
    )
    note = "What the text alone gives away. Intervals: new items of the same sources, given the folds (docs/tst.md)."
    return Sheet("tst", "Can it be answered without looking?", _used(columns, rows), rows, note)


def without_looking(entries: Sequence[Entry]) -> list[Entry]:
    """Return each benchmark's and model's first result on full images, where a score without looking is known."""
    full = {(entry.base, entry.model): entry for entry in reversed(entries) if entry.kind.full}
    firsts = dict.fromkeys((entry.base, entry.model) for entry in entries if entry.kind.full)
    return [full[key] for key in firsts if full[key].blind is not None or full[key].tst is not None]


def _blind(entries: Sequence[Entry]) -> Sheet:
    """Return the table of each model's scores without and with the image."""
    rows: list[Row] = []
    for entry in without_looking(entries):
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
                "gain": entry.gain
                or (paired.unpaired(entry.blind, score).estimate if entry.blind is not None else None),
            }
        )
    columns = (
        Column("benchmark"),
        Column("model"),
        Column("docs"),
        _CHANCE,
        Column("tst", "TsT", help=f"the text-only model, {SCALE}"),
        Column("blind", help=f"this model without image, {SCALE}"),
        Column("full", "full image", help=SCALE),
        Column(
            "gain",
            "full - blind",
            signed=True,
            help="what the image adds, paired by doc; without the sample logs of both as if on other docs, which is wider",
        ),
    )
    note = f"{counted(len(rows), 'result')} with a blind run or a text-only cross-validation beside it."
    return Sheet("blind", "With and without the image", _used(columns, rows), rows, note)
