"""The tables of a page: numbers of rows × the catalogue, which says of each number title, sentence and sign. Pure.

A table is a choice of numbers and rows; ``present.sheets`` writes it.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from lmms_patch.ask.kinds import RCI, TRCI, Kind
from lmms_patch.compare.magic import Contrast
from lmms_patch.present import ranking
from lmms_patch.present.page.published import TYPES
from lmms_patch.present.page.rows import Entry, Row, date_order, key_of, numbers_of
from lmms_patch.present.ranking import BY, By
from lmms_patch.present.sheets import Column, Sheet, levels_in, used
from lmms_patch.present.sheets import Row as Cells
from lmms_patch.runs import catalogue, reading
from lmms_patch.runs.run import Run, command
from lmms_patch.stats import paired
from lmms_patch.stats.correlation import pearson, spearman
from lmms_patch.stats.index import band, fragmentation, span
from lmms_patch.stats.resample import LEVEL, Estimate
from lmms_patch.text import clean, cut

SHARES = ("text", "one", "whole", "unsolved")
"""The composition: what the docs of a row are solved by."""
FIRST = ("score", *SHARES, "steady", "index", "mpp", "gap")
"""The numbers of a row with an index, as a page shows them; files have all."""
WIDEST = 12
"""Columns of models beyond which a table of benchmarks by models is left out: the table of results has its numbers."""
SCALE = "on the metric's own scale"
NEARER = "nearer 0 is more robust"
RUNS = 200
"""Runs that a page lists; the newest of more."""
COMMAND = 20_000
"""Characters of a command, which must be whole to be of use; of a longer one its length is said."""
TST = {
    "tst": "TsT",
    "tst_majority": "Majority answer",
    "tst_above": "TsT above majority",
    "tst_over_chance": "TsT above chance",
    "tst_leakage": "Leakage (random folds less by source)",
    "tst_zero_shot": "Zero-shot",
    "tst_delta": "TsT above zero-shot",
    "tst_s": "Mean bias score s(x)",
}
"""What numbers of text-only cross-validations are called."""
_OF_DIFFERENCES = ("tst_above", "tst_over_chance", "tst_leakage", "tst_delta")
_SHARE = "a fraction, 0..1"
MAGIC: dict[str, tuple[str, str]] = {
    "acc_full": ("Acc, full", "response judged against the full gold answer, by a judge (MAGIC paper, 4.2)"),
    "acc_short": ("Acc, short", "final answer judged against the short gold answer, by a judge (MAGIC paper, 4.2)"),
    "acc_exact": ("Acc, exact", "final answer is the short gold answer word for word; no judge"),
    "acc_synonym": ("Acc, synonym", "final answer is the short gold answer or a listed synonym; no judge"),
    "magiscore_precision_macro": (
        "P macro",
        "of the boxes used, the share that is relevant; mean over docs (MAGIC paper, 4.1)",
    ),
    "magiscore_recall_macro": ("R macro", "of the relevant boxes, the share that is used; mean over docs"),
    "magiscore_f1_macro": ("F1 macro", "2 TP / (2 TP + FP + FN) of each doc; mean over docs"),
    "magiscore_precision_micro": ("P micro", "relevant boxes used over boxes used, both summed over docs"),
    "magiscore_recall_micro": ("R micro", "relevant boxes used over relevant boxes, both summed over docs"),
    "magiscore_f1_micro": ("F1 micro", "2 TP / (2 TP + FP + FN), summed over docs"),
    "self_heal": (
        "Self-Heal",
        "share of injected wrong runs of steps that the continuation corrects, by a judge (MAGIC paper, 4.3)",
    ),
    "regions_exhaustive": (
        "all used",
        "share of docs with a box on which every box is used; where adversarial boxes are drawn, lower is better (MAGIC paper, 5.3)",
    ),
    "regions_unused": ("none used", "share of docs with a box on which no box is used; lower is better"),
    "regions_dismissed": (
        "dismissed",
        "share of docs with a box on which a box is named only to be ruled out; such boxes count as used, as in the MAGIC paper, 4.1",
    ),
    "regions_invented": ("invented", "share of docs on which a box is named that does not exist; lower is better"),
    "answer_found": ("answer marked", "share of responses that mark an answer"),
}
"""Numbers of MAGIC tasks, in the order of the MAGIC paper's Table 2: title, and what each is."""
CONTRASTS = {
    "distraction": ("cost of distraction", "relevant boxes − all boxes: what the adversarial boxes cost"),
    "boxes": ("gain from boxes", "all boxes − no boxes: what the drawn boxes give, adversarial ones included"),
    "hints": ("gain from hints", "relevant boxes − no boxes: what the relevant boxes alone give"),
}
"""``compare.magic.CONTRASTS``, in words."""
COUNTS = {
    "docs": "docs",
    "answer_not_found": "responses that mark no answer",
    "no_box": "docs without a box",
    "no_relevant_box": "docs without a relevant box: no part of recall and F1",
    "precision_zero": "docs with a relevant box on which none was used: their precision counts 0",
    "boxes_invented": "boxes named that do not exist",
    "unjudged_acc_short": "responses without a verdict on the short answer",
    "unjudged_acc_full": "responses without a verdict on the full answer",
    "unjudged_self_heal": "continuations without a verdict",
    "without_gold_acc_full": "of those without a verdict on the full answer, docs without a full gold answer",
}
"""``MagicNumbers.counts``, in words."""
_BENCHMARK, _MODEL = Column("benchmark", "Benchmark"), Column("model", "Model")
_N, _GRID = Column("n", aside=True), Column("grid", "Grid")
_DOCS = Column("docs", "Docs", help="docs that were asked")


# --- numbers × catalogue --------------------------------------------------------------------------


def column(number: catalogue.Number, key: Any, n: int | None, kind: Kind) -> Column:
    """Return the column of a number of the catalogue, in a table of rows of any grid."""
    name = key_of(number, key, n, kind)
    of_any = n is not None and name != number.named(kind, key)
    if number.words and of_any:
        title = number.index(kind)
    elif of_any:
        title = (
            number.label.format(key="", part=kind.words.part, letter="", shows="").rstrip(", ")
            or number.title.format(key="").strip()
        )
    else:
        title = "Score" if name == "score" else number.called(kind, key)
    return Column(
        name,
        f"{title[:1].upper()}{title[1:]}",
        number.signed,
        help=number.help if number.scale != "metric" else f"{number.help}, {SCALE}",
        index=bool(number.words),
        percent=name in (*SHARES, "needs_whole"),
        aside=name == "ceiling" or (n is not None and name not in FIRST),
    )


def columns(kind: Kind, grids: Sequence[int], n: int | None) -> dict[str, Column]:
    """Return the columns of the numbers of a kind, by their names in a row."""
    known = catalogue.keyed(kind, grids if n is None else [n]).values()
    out = [column(number, key, n, kind) for number, key in known if number.measured and number.name != "fip"]
    if kind.folds:
        out = [Column(key, title, key in _OF_DIFFERENCES) for key, title in TST.items()] + [
            one for one in out if one.key == "chance"
        ]
    if kind.name == "magic":
        out = [Column(key, title, help=f"{words}; {_SHARE}") for key, (title, words) in MAGIC.items()]
    if kind.per_cell and not kind.has_index:
        out += [Column(f"drop{g}", f"Worst cell hidden, {kind.words.size(g)}", True) for g in grids]
    return {one.key: one for one in out}


def _numbers(rows: Iterable[Row]) -> list[Column]:
    """Return the columns of all numbers in some rows of a way, ``FIRST`` first."""
    found: dict[str, Column] = {}
    for row in rows:
        grids = row.entry.result.grids if row.entry else []
        for key, one in columns(row.kind, grids, row.n).items():
            if key in row.numbers:
                known = found.setdefault(key, one)
                if one.title.lower() not in known.title.lower():  # RCI and PCRI are one number
                    found[key] = dataclasses.replace(known, title=f"{known.title} / {one.title}")
    order = [key for key in FIRST if key in found]
    return [found[key] for key in [*order, *(key for key in found if key not in order)]]


def results(rows: Sequence[Row]) -> list[Sheet]:
    """Return every number of every row: a table for each kind of task."""
    by_way: dict[str, list[Row]] = {}
    for row in rows:
        by_way.setdefault(row.kind.way, []).append(row)
    return [_results(way, some) for way, some in by_way.items()]


def _results(way: str, rows: Sequence[Row]) -> Sheet:
    numbers = _numbers(rows)
    several = any(row.group > 1 for row in rows)
    heads = (
        _BENCHMARK,
        _MODEL,
        _N,
        _GRID,
        Column("rank", "Rank", help="the range of places that the intervals leave open"),
        _DOCS,
        *numbers,
        Column(
            "band",
            "Band",
            help="the bands (RCI paper, 3.2) that the interval of the index to go by reaches",
            aside=True,
        ),
        Column("excluded", "Left out", help="docs that MPP and index leave out"),
        Column("fip_used", help="the score over the docs that are not left out: index = 1 - MPP / this", aside=True),
        Column(
            "gate",
            "Gate",
            help="whether the full image beats chance, and a wrong image, by two standard errors; if not, there is no index",
        ),
        Column("group", "Group", help="rows of one group differ in the model alone", aside=not several),
        Column("why", "No rank since", aside=True),
        *(Column(key, aside=True) for key in ("kind", "task", "metric", "type", "runs", "date", "source")),
    )
    cells = [_cells(row) for row in rows]
    title = (RCI if way == "index" else rows[0].kind).heading
    sure = levels_in("{} intervals in brackets. ", (cell for row in cells for cell in row.values()))
    lower = sorted({clean(row.benchmark) for row in rows if row.entry and not row.entry.result.higher_is_better})
    note = f"{sure}Scores are {SCALE}." + f" Lower is better for {', '.join(lower)}." * bool(lower)
    if any(row.place is not None and row.place.of > 1 for row in rows):
        note += " A rank is a range: 2–3 means that the intervals cannot separate second from third."
    if way in ("index", "trci"):
        note += " Shares are of all docs, luck removed by asking again; the colours of an index are its bands."
    name = "results" if way == "index" else f"results_{way}"
    single = {"rank"} if all(row.place is None or row.place.of < 2 for row in rows) else set()
    kept = tuple(one for one in used(heads, cells) if one.key not in single)
    return Sheet(name, title, kept, cells, note)


def _cells(row: Row) -> Cells:
    entry, index = row.entry, row.index
    about: Cells = {
        "benchmark": clean(row.benchmark),
        "model": row.model,
        "n": row.n,
        "grid": row.size or None,
        "docs": row.docs,
    }
    about |= {
        "rank": str(row.place or "") or None,
        "why": row.why or None,
        "source": row.source or None,
        "type": row.type or None,
    }
    about |= {
        "band": band_text(index),
        "gate": (entry and entry.gate) or None,
        "group": row.group,
        "kind": row.kind.way,
    }
    if entry:
        result, grid = entry.result, entry.result.grid(row.n) if row.n else None
        if grid and grid.excluded:
            about |= {"excluded": grid.excluded, "fip_used": grid.fip}
        about |= {
            "task": clean(result.label),
            "metric": clean(result.metric),
            "runs": row.runs,
            "date": result.run.date,
        }
    return {**about, **row.numbers}


def band_text(estimate: Estimate | None) -> str | None:
    """Return the bands within reach of an interval; without an interval, the band of the value."""
    if estimate is None or estimate.value is None:
        return None
    if estimate.low is None or estimate.high is None:
        return band(estimate.value)
    return span(estimate.low, estimate.high)


def categories(entries: Sequence[Entry], name: str = "categories") -> Sheet | None:
    """Return the numbers of each category of some results; None where there are none."""
    rows = [
        Row(
            entry.result.base,
            entry.model,
            entry.kind,
            n,
            numbers_of(part.measures, entry.kind, entry.result.grids, n),
            part.docs,
            entry=entry,
        )
        for entry in entries
        for part in entry.categories.values()
        for n in entry.result.indexed or (None,)
    ]
    of = [
        (key, part)
        for entry in entries
        for key, part in entry.categories.items()
        for _ in entry.result.indexed or (None,)
    ]
    cells: list[Cells] = []
    for row, (key, part) in zip(rows, of, strict=True):
        gate = reading.gate_word(part.analysis.gate) if part.analysis and row.kind.index else None
        cells.append(
            {
                **row.numbers,
                "category": clean(key) or "(none)",
                "benchmark": clean(row.benchmark),
                "model": row.model,
                "n": row.n,
                "grid": row.size or None,
                "docs": row.docs,
                "gate": gate,
            }
        )
    heads = (
        Column("category", "Category"),
        _BENCHMARK,
        _MODEL,
        _N,
        _GRID,
        _DOCS,
        *_numbers(rows),
        Column("gate", "Gate"),
    )
    note = "Each category with its own chance, gate and interval. Many categories at once: one in twenty intervals misses by luck alone."
    return Sheet(name, "By category", used(heads, cells), cells, note) if cells else None


# --- models over benchmarks -----------------------------------------------------------------------


def first_rows(rows: Iterable[Row], way: str) -> list[Row]:
    """Return the rows of a way with an index, of the first group of each benchmark and grid."""
    return [row for row in rows if row.kind.way == way and row.n is not None and row.group == 1]


def overall(rows: Sequence[Row], by: By, over: Collection[str] = ()) -> list[Sheet]:
    """Return models over the benchmarks shared by all ranked models, at each grid of cells and of segments.

    Args:
        rows: all of them.
        by: what to rank by.
        over: the benchmarks to take means over; none: chosen by who has what (``ranking.shared_benchmarks``).
    """
    out = []
    for way in ("index", "trci"):
        some = first_rows(rows, way)
        for name, types in (("overall", ("",)), ("types", tuple(TYPES))):
            if name == "types" and (way == "trci" or len({row.type for row in some}) < 2):
                continue
            made = [
                _over(of_type, n, kind, by, over)
                for kind in types
                for n in grids(some)
                if (of_type := [row for row in some if row.n == n and kind in ("", row.type)])
            ]
            cells, notes = (
                [cell for lines, _ in made for cell in lines],
                dict.fromkeys(note for _, note in made if note),
            )
            if len({cell["model"] for cell in cells}) > 1:
                out.append(_overall_sheet(f"{name}{'_time' * (way == 'trci')}", name, way, cells, notes, by))
    return out


def grids(rows: Iterable[Row]) -> list[int]:
    """Return the grids of some rows, from coarse to fine."""
    return sorted({row.n for row in rows if row.n is not None})


def by_steady(rows: Iterable[Row]) -> bool:
    """Return whether every readable index of some rows has a steady index, as means of steady indices need."""
    known = [row.numbers.get("steady") for row in rows if row.index is not None]
    return bool(known) and all(one is not None and one.value is not None for one in known)


def by_model(rows: Iterable[Row], by: By) -> dict[str, dict[str, Estimate]]:
    """Return a number to rank by, by model and benchmark; a model without the number has an empty mapping."""
    out: dict[str, dict[str, Estimate]] = {}
    for row in rows:
        of = out.setdefault(row.model, {})
        if (number := row.number(by)) is not None:
            of[row.benchmark] = number
    return out


def _over(rows: Sequence[Row], n: int, kind: str, by: By, over: Collection[str]) -> tuple[list[Cells], str]:
    """Return a line for each model at a grid, the best first, and over what the means go.

    Each number has a mean over the benchmarks of which all models that have it at all share it.
    """
    if all(row.entry is None for row in rows):
        by = BY["index"]  # a published table has indices alone
    size = "steady" if by.key == "steady" or by_steady(rows) else "index"
    alike = all(map(_is_fraction, rows)) or len({row.benchmark for row in rows}) == 1
    given = tuple(sorted(set(over) & {row.benchmark for row in rows}))
    found = {
        key: by_model(rows, BY.get(key, By(key, False, False, "")))
        for key in dict.fromkeys((by.key, "score", *SHARES, size))
    }
    for key in ("score", "mpp"):  # a mean of scores on different scales says nothing
        if key in found and not alike:
            found[key] = {model: {} for model in found[key]}
    shared = {key: given or ranking.shared_benchmarks(cells) for key, cells in found.items()}
    lines: list[Cells] = []
    for one in ranking.standings(found[by.key], shared[by.key], by):
        line: Cells = {"of": TYPES.get(kind), "n": n, "rank": str(one.place or "") or None, "model": one.model}
        line["lacks"] = ", ".join(one.lacks) or None
        for key in ("score", *SHARES, size):
            have = found[key].get(one.model, {})
            if shared[key] and set(shared[key]) <= set(have):
                every = [have[name] for name in shared[key]]
                line["index" if key == size else key] = ranking.mean(every)
                if key == size:
                    line["size"] = ranking.mean_size(every)
        lines.append(line)
    called = {
        by.key: "the rank" if by.key != size else "",
        "score": "score",
        size: reading.name("index", steady=size == "steady"),
        "one": "shares",
    }
    told: dict[tuple[str, ...], list[str]] = {}
    for key, name in called.items():
        if name and shared[key] and any(found[key].values()):
            told.setdefault(shared[key], []).append(name)
    means = (f"{' and '.join(names)}: {len(of)} ({', '.join(map(clean, of))})" for of, names in told.items())
    return (
        lines,
        f"At {rows[0].kind.words.size(n)}, benchmarks that the means are over: {'; '.join(means)}." if told else "",
    )


def _is_fraction(row: Row) -> bool:
    ceiling = row.numbers.get("ceiling")
    higher = row.entry is not None and row.entry.result.higher_is_better
    return row.entry is None or (higher and ceiling is not None and 0 < (ceiling.value or 0.0) <= 1 + 1e-9)


def _overall_sheet(file: str, name: str, way: str, cells: Sequence[Cells], notes: Iterable[str], by: By) -> Sheet:
    index = "TRCI" if way == "trci" else "index"
    known = {one.key: one for one in columns(TRCI if way == "trci" else RCI, [3], 3).values()}
    heads = (
        _MODEL,
        Column("of", "Task type"),
        Column("n", "Grid n"),
        Column("rank", "Rank", help=f"by the mean of {by.words}; the range of places that the intervals leave open"),
        Column("score", "Mean score", help="the mean score on full images, over the same benchmarks; fractions"),
        *(known[key] for key in SHARES),
        Column("size", f"Mean |{index}|", help=f"mean distance of the index from 0: {NEARER}"),
        Column("index", f"Mean {index}", True, help="with its sign: benchmarks of both signs cancel", index=True),
        Column("lacks", "Lacks", help="benchmarks that it has no such number for, so that it has no rank"),
    )
    note = f"Ranked by {by.words}. {' '.join(notes)} "
    note += (
        "Intervals take benchmarks as independent; lmms-patch compare pairs docs, and tells two models apart better."
    )
    title = "Models over benchmarks" if name == "overall" else "Models by task type"
    return Sheet(file, f"{title}{', in time' * (way == 'trci')}", used(heads, cells), cells, note)


def changes(rows: Sequence[Row]) -> Sheet | None:
    """Return how the mean index of each model moves from the coarsest grid to finer grids (PCRI paper, figure 7)."""
    some = first_rows(rows, "index")
    cells: list[Cells] = []
    for coarse, fine in ((grids(some)[:1] * len(grids(some)))[k : k + 1] + [n] for k, n in enumerate(grids(some)[1:])):
        both = [row for row in some if row.n in (coarse, fine)]
        by = BY["steady" if by_steady(both) else "index"]
        first, second = (by_model([row for row in both if row.n == n], by) for n in (coarse, fine))
        have = {model: [name for name in of if name in second.get(model, {})] for model, of in first.items()}
        shared = ranking.shared_benchmarks({model: names for model, names in have.items() if names})
        for model in sorted(have):
            if shared and set(shared) <= set(have[model]):
                means = [ranking.mean([of[model][name] for name in shared]) for of in (first, second)]
                moved = ranking.change(means[0], means[1], any(row.source for row in both if row.model == model))
                change = None if moved.value is None else 100 * moved.value
                line: Cells = {
                    "model": model,
                    "coarse": coarse,
                    "fine": fine,
                    "first": means[0],
                    "second": means[1],
                    "change": change,
                }
                cells.append({**line, "benchmarks": ", ".join(map(clean, shared)), "why": moved.reason or None})
    heads = (
        _MODEL,
        Column("coarse", "Coarse n"),
        Column("fine", "Fine n"),
        Column("first", "Mean index, coarse", True, index=True),
        Column("second", "Mean index, fine", True, index=True),
        Column(
            "change",
            "Change, %",
            True,
            0,
            help="(fine − coarse) / |coarse|; the paper's 'relative drop' has the other sign",
        ),
        Column("benchmarks", "Over"),
        Column("why", "No change since"),
    )
    note = (
        "Relative change of the mean index (PCRI paper, A.4.6), no interval: both grids share their docs. Where the coarse index "
        "is small, a large change is still a small one."
    )
    return Sheet("grids", "From coarse to fine cells", used(heads, cells), cells, note) if cells else None


# --- benchmarks -----------------------------------------------------------------------------------


def pairs(rows: Iterable[Row]) -> list[tuple[str, int]]:
    """Return the (model, n) pairs of some rows: models in order of appearance, grids from coarse to fine."""
    some = list(rows)
    there = {(row.model, row.n) for row in some}
    models = dict.fromkeys(row.model for row in some)
    return [(model, n) for model in models for n in grids(some) if (model, n) in there]


def _label(pair: tuple[str, int], kind: Kind) -> str:
    """Return ``<model>, n=<grid>``, which ``published.read`` reads back; in time ``<model>, 4 segments``."""
    return f"{pair[0]}, {kind.words.size(pair[1])}" if kind.needs_video else f"{pair[0]}, n={pair[1]}"


def benchmarks(rows: Sequence[Row]) -> list[Sheet]:
    """Return the index of each benchmark with each model (RCI paper, Table 2), which fit an application, and how models agree."""
    out: list[Sheet | None] = []
    for way in ("index", "trci"):
        some = first_rows(rows, way)
        if len({row.model for row in some}) > 1:
            kinds = [key for key in ("index", "steady") if any(key in row.numbers for row in some)]
            out += [_table2(some, key) for key in kinds if len(pairs(some)) <= WIDEST]
            out.append(_correlations(some))
    fits = first_rows(rows, "index")
    return [one for one in (*out, _fit(fits) if len({row.model for row in fits}) > 1 else None) if one]


def _table2(rows: Sequence[Row], key: str) -> Sheet:
    kind = rows[0].kind
    index = "TRCI" if kind.needs_video else "RCI"
    name = reading.name(index, steady=key == "steady")
    cells: dict[str, Cells] = {}
    for row in rows:
        cells.setdefault(row.benchmark, {"benchmark": row.benchmark})[_label((row.model, row.n or 0), kind)] = (
            row.numbers.get(key)
        )
    heads = [
        Column(_label(pair, kind), f"{pair[0]}, {kind.words.size(pair[1])}", True, index=True) for pair in pairs(rows)
    ]
    told = {
        "index": "1 - MPP/FIP, of one pass. Below 0 one cell beats the whole image, above 0 the task needs more than one cell. Contradicted: "
        "the steady index lies in a band that does not touch. Its file can be given back with --from-csv",
        "steady": "Of the docs answered with their image, the share that needs all of it",
    }
    fragments = [] if kind.needs_video else [text for n in grids(rows) if (text := fragmentation(n))]
    note = ". ".join([kind.words.say(told[key]), "N/A: refused by its gate, or not defined", *fragments])
    file = f"{index.lower()}{'_steady' * (key == 'steady')}"
    return Sheet(
        file,
        f"{name[0].upper()}{name[1:]} by benchmark and model",
        used((_BENCHMARK, *heads), [*cells.values()]),
        [*cells.values()],
        f"{note}.",
    )


def _correlations(rows: Sequence[Row]) -> Sheet | None:
    """Return Pearson's r and Spearman's rho of each pair of models and grids, over benchmarks (RCI paper, figures 2 and 5)."""
    known: dict[tuple[str, int], dict[str, float]] = {pair: {} for pair in pairs(rows)[: 2 * WIDEST]}
    for row in rows:
        index = row.numbers.get("index")
        if (row.model, row.n or 0) in known and index is not None and index.value is not None and not row.refused:
            known[row.model, row.n or 0][row.benchmark] = index.value
    cells: list[Cells] = []
    for (first, x), (second, y) in itertools.combinations(known.items(), 2):
        both = [name for name in x if name in y]
        r = pearson([x[name] for name in both], [y[name] for name in both])
        rho = spearman([x[name] for name in both], [y[name] for name in both])
        kind = rows[0].kind
        cells.append(
            {
                "first": _label(first, kind),
                "second": _label(second, kind),
                "r": r,
                "rho": rho,
                "benchmarks": r.n,
                "why": r.reason or None,
            }
        )
    heads = (
        Column("first", "First"),
        Column("second", "Second"),
        Column("r", "Pearson r", help="-1..1, with Fisher's interval"),
        Column("rho", "Spearman rho", help="of the ranks, -1..1"),
        Column("benchmarks", "Benchmarks", help="that both have"),
        Column("why", "No r since"),
    )
    note = (
        f"Pearson's r of the index over benchmarks, {100 * LEVEL:g} % interval by Fisher's z: as if the benchmarks were a random sample of such, "
        "which they are not quite. Columns of one model share its answers to the full images, so they agree by construction."
    )
    file = f"correlations{'_time' * rows[0].kind.needs_video}"
    return Sheet(file, "Do models agree on benchmarks?", used(heads, cells), cells, note) if cells else None


DOMAINS = {
    "scene": ("driving, remote sensing, diagnostics", "high (>> 0)", ("strong global",), "0.30 or more"),
    "document": (
        "documents, charts, visual analytics",
        "medium to high (0 or a little less, and up)",
        ("balanced", "moderate global", "strong global"),
        "above -0.10",
    ),
    "inspection": (
        "faces, fine-grained inspection, defects",
        "low (0 or a little more, and down)",
        ("strong local", "moderate local", "balanced"),
        "up to 0.10",
    ),
    "general": ("general VQA, open world", "medium (near 0)", ("balanced",), "above -0.10, up to 0.10"),
}
"""The rows of the RCI paper's Table 6: application, the paper's advice, the bands that we take it for, and the same as numbers."""
_BANDS = ("strong local", "moderate local", "balanced", "moderate global", "strong global")


def fits(row: Row, domain: str) -> str:
    """Return whether an index fits a domain: its whole interval, or the number where there is none, lies in the domain's bands."""
    index, allowed = row.numbers.get("index"), set(DOMAINS[domain][2])
    if index is None or index.value is None or row.refused or reading.contradicted(index):
        return "unclear"
    ends = (index.value, index.value) if index.low is None or index.high is None else (index.low, index.high)
    first, last = (_BANDS.index(band(end)) for end in ends)
    reached = set(_BANDS[first : last + 1])
    return "fits" if reached <= allowed else "does not" if not reached & allowed else "unclear"


def _fit(rows: Sequence[Row]) -> Sheet | None:
    """Return which benchmarks fit which application (RCI paper, Table 6): by every model's interval."""
    cells: list[Cells] = []
    for n, name in itertools.product(grids(rows), dict.fromkeys(row.benchmark for row in rows)):
        some = [row for row in rows if row.n == n and row.benchmark == name and row.index is not None]
        if some:
            said = {domain: {fits(row, domain) for row in some} for domain in DOMAINS}
            agreed: Cells = {
                domain: next(iter(found)) if len(found) == 1 else "unclear" for domain, found in said.items()
            }
            cells.append({"benchmark": name, "n": n, "models": len(some), **agreed})
    heads = [
        Column(key, title, help=f"recommended: {advice}; taken as {cut}")
        for key, (title, advice, _, cut) in DOMAINS.items()
    ]
    cuts = "; ".join(f"{title}: {cut}" for title, _, _, cut in DOMAINS.values())
    note = (
        f"After the RCI paper's Table 6, which gives only signs (>> 0, near 0, ...); the cut points are ours, from its bands: {cuts}. "
        "Fits, does not: "
        "by the whole interval of every model; unclear: an interval reaches over the cut, models disagree, or the steady index contradicts the other."
    )
    return (
        Sheet(
            "fit",
            "Fit for an application",
            (_BENCHMARK, Column("n", "Grid n"), Column("models", "Models"), *heads),
            cells,
            note,
        )
        if cells
        else None
    )


def cells(entries: Sequence[Entry]) -> Sheet | None:
    """Return where in image or clip the score comes from: a line for each cell of each result and grid (RCI paper, 3.3)."""
    lines: list[Cells] = []
    for entry in entries:
        for n in entry.result.indexed:
            grid = entry.result.grid(n)
            found = grid.shares if grid else None
            for at, share in enumerate(found.score if found is not None and found.score is not None else ()):
                row, col = divmod(at, entry.kind.shape(n)[1])
                about: Cells = {
                    "benchmark": clean(entry.result.base),
                    "model": entry.model,
                    "n": n,
                    "row": row + 1,
                    "col": col + 1,
                }
                win = None if found is None or found.win is None else float(found.win[at])
                p = float(found.p_cells[at]) if found is not None and found.p_cells is not None else None
                lines.append({**about, "share": float(share), "win": win, "p": p, "even": found.p if found else None})
    heads = (
        _BENCHMARK,
        _MODEL,
        Column("n", "Grid n"),
        Column("row", "Row"),
        Column("col", "Column", help="of clips the segment"),
        Column("share", "Share", percent=True, help="of the score that all cells earn in isolation"),
        Column("win", "Wins", percent=True, help="share of docs whose best cell it is; ties split"),
        Column("p", "p", help="that the share is even, Holm-corrected: random turns of each doc's cells"),
        Column("even", "p, all even", aside=True),
    )
    return (
        Sheet(
            "cells", "Where the score comes from", used(heads, lines), lines, "Row 1, column 3 is the top right of 3×3."
        )
        if lines
        else None
    )


# --- without looking, MAGIC, and what was run -----------------------------------------------------


def without_looking(entries: Sequence[Entry]) -> list[Entry]:
    """Return each benchmark's and model's first result on full images, where a score without looking is known."""
    firsts: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        if entry.kind.full:
            firsts.setdefault((entry.result.base, entry.model), entry)
    return [one for one in firsts.values() if one.blind is not None or one.tst is not None]


def blind(entries: Sequence[Entry]) -> Sheet | None:
    """Return each model's scores without and with the image."""
    lines: list[Cells] = []
    for entry in without_looking(entries):
        measures = entry.result.measures
        unpaired = paired.unpaired(entry.blind, measures["score"]).estimate if entry.blind is not None else None
        about: Cells = {
            "benchmark": clean(entry.result.base),
            "model": entry.model,
            "docs": entry.result.docs,
            "chance": measures.get("chance"),
        }
        lines.append(
            {**about, "tst": entry.tst, "blind": entry.blind, "full": measures["score"], "gain": entry.gain or unpaired}
        )
    heads = (
        _BENCHMARK,
        _MODEL,
        _DOCS,
        Column("chance", "Chance", help=f"what the best uninformed answer scores, {SCALE}"),
        Column("tst", "TsT", help=f"a text-only model, cross-validated on the test set, {SCALE}"),
        Column("blind", "Blind", help=f"this model without image, {SCALE}"),
        Column("full", "Full image", help=SCALE),
        Column(
            "gain",
            "Full less blind",
            True,
            help="what the image adds, paired by doc; where docs cannot be paired as if on other docs, which is wider",
        ),
    )
    note = "What is scored without the image, above chance, the text gives away."
    return Sheet("without_image", "With and without the image", used(heads, lines), lines, note) if lines else None


def contrasts(found: Sequence[Contrast]) -> Sheet | None:
    """Return the effects of changed boxes, paired by item: a line for each model and contrast."""
    lines: list[Cells] = []
    for one in found:
        about: Cells = {
            "model": one.model,
            "contrast": CONTRASTS[one.name][0],
            "tasks": f"{one.found.second} − {one.found.first}",
            "items": one.found.docs,
        }
        lines.append(
            {
                **about,
                **{number.name: number.difference for number in one.found.numbers},
                "mind": "; ".join(one.minds) or None,
            }
        )
    how = "; ".join(f"{name}: {words}" for name, words in CONTRASTS.values())
    numbers = [
        Column(key, title, True, help=f"difference of: {words}; {_SHARE}") for key, (title, words) in MAGIC.items()
    ]
    heads = (
        _MODEL,
        Column("contrast", "Contrast"),
        Column("tasks", "Tasks"),
        Column("items", "Items", help="that both tasks have"),
        *numbers,
        Column("mind", "Mind"),
    )
    sure = levels_in(
        ", with {} intervals from a bootstrap over images", (cell for line in lines for cell in line.values())
    )
    note = f"{how[0].upper()}{how[1:]}. Differences paired by item{sure}. "
    note += "Precision and F1 are not contrasted: without adversarial boxes they rise by construction."
    return Sheet("magic_contrasts", "What other boxes cost or give", used(heads, lines), lines, note) if lines else None


def counts(entries: Sequence[Entry]) -> Sheet | None:
    """Return how many docs of MAGIC tasks each convention touches."""
    lines: list[Cells] = [
        {
            "model": entry.model,
            "task": clean(entry.result.label),
            "judge": found.judge or "none",
            "dataset": found.dataset,
            **{key: found.counts.get(key) for key in COUNTS},
            "left_out": found.left_out.items,
        }
        for entry in entries
        if (found := entry.result.magic)
    ]
    heads = (_MODEL, Column("task", "Task"), Column("judge", "Judge"), Column("dataset", "Dataset"))
    told = [
        *(Column(key, words) for key, words in COUNTS.items()),
        Column("left_out", "items of the dataset that cannot be used"),
    ]
    note = "What is behind the numbers (docs/magic.md): which docs a convention decides, and what could not be judged."
    return (
        Sheet("magic_counts", "Counts behind the conventions", used((*heads, *told), lines), lines, note)
        if lines
        else None
    )


def made(found: Sequence[Run], names: Mapping[tuple[str, str, str], str]) -> Sheet:
    """Return the newest runs, with commands to ask the same again."""
    newest = sorted(found, key=lambda run: date_order(run.date), reverse=True)
    lines: list[Cells] = []
    for run in newest[:RUNS]:
        tasks = list(dict.fromkeys(result.task for result in run.results))
        limit = str(run.results[0].fingerprint.get("limit") or "all")
        again = command(run.adapter, run.model_args, tasks, limit)
        lines.append(
            {
                "date": run.date,
                "model": names[run.identity],
                "tasks": clean(", ".join(tasks)),
                "limit": limit,
                "file": run.path.name,
                "command": cut(again, COMMAND),
            }
        )
    heads = (
        Column("date", "Date"),
        _MODEL,
        Column("tasks", "Tasks"),
        Column("limit", "Docs"),
        Column("command", "Command"),
        Column("file", "File"),
    )
    older = f" {len(newest) - RUNS} older runs are not listed." * (len(newest) > RUNS)
    note = "The commands ask the same again as far as the tables say it: keys and passwords are taken out, and environment "
    note += f"variables are not known.{older}"
    return Sheet("made", "Runs and the commands that made them", heads, lines, note)


# --- one result -----------------------------------------------------------------------------------


def numbers(entry: Entry) -> Sheet:
    """Return all numbers of a result, each under a single name."""
    result, lines = entry.result, list[Cells]()
    known = catalogue.keyed(entry.kind, result.grids)
    for name, one in result.measures.items():
        if name in ("fip", result.metric) and name != "score" and "score" in result.measures and not result.magic:
            continue  # the same number under another name
        number, key = known.get(name, (None, None))
        title = (
            MAGIC[name][0]
            if name in MAGIC
            else TST.get(name, name)
            if number is None
            else number.called(entry.kind, key)
        )
        note = "" if one.reason == catalogue.NO_INTERVAL else one.reason
        clusters = one.clusters if one.clusters != one.n else None
        lines.append(
            {
                "name": title,
                "key": name,
                "value": one,
                "se": one.se,
                "docs": one.n,
                "clusters": clusters,
                "note": note or None,
            }
        )
    heads = (
        Column("name", "Number"),
        Column("key", "Name"),
        Column("value", "Value"),
        Column("se", "SE"),
        _DOCS,
        Column("clusters", "Clusters"),
        Column("note", "Note"),
    )
    return Sheet("numbers", "Numbers", used(heads, lines), lines)


_FLOORS = {
    "uniform": "a random option",
    "constant": "one answer to all docs of a format, the best one",
    "stratum": "the most frequent gold among docs that are asked alike",
    "other": "another doc’s gold",
}


def floors(entry: Entry) -> Sheet | None:
    """Return what uninformed answers score; None where nobody knows."""
    if entry.result.analysis is None or not entry.result.analysis.chance.floors:
        return None
    chance = entry.result.analysis.chance
    best = ", ".join(f"{form} “{answer}”" for form, answer in chance.constants.items())
    lines: list[Cells] = [
        {
            "name": name + " (the floor)" * (name == chance.floor),
            "score": chance.floors[name],
            "what": what + f": {best}" * (name == "constant" and bool(best)),
        }
        for name, what in _FLOORS.items()
        if name in chance.floors
    ]
    if chance.published is not None:
        lines.append(
            {
                "name": "the papers’ rule",
                "score": chance.published,
                "what": "1 / number of options; for yes/no the larger of 0.5 and the majority",
            }
        )
    return Sheet(
        "floors",
        "Uninformed answers",
        (Column("name", "Answer"), Column("score", "Score"), Column("what", "What it is")),
        lines,
    )


def of_text(entry: Entry) -> list[Sheet]:
    """Return the numbers of a text-only cross-validation by folds, the features behind them, and what gives answers away (TsT paper, Table 10)."""
    found = entry.result.tst
    if found is None:
        return []
    by = [
        {"folds": name, "tst": one.accuracy, "majority": one.majority, "above": one.above, "p": one.p, "sd": one.sd}
        for name, one in found.by_grouping.items()
    ]
    heads = (
        Column("folds", "Kept together"),
        Column("tst", "TsT"),
        Column("majority", "Majority"),
        Column("above", "Above majority", True),
        Column("p"),
        Column("sd", "SD over seeds"),
    )
    out = [Sheet("folds", "By what stays in one fold", heads, by)]
    if found.importance:
        lines = [
            {"feature": one.feature, "of": one.kind, "gain": one.gain, "lost": one.permutation}
            for one in found.importance[:40]
        ]
        of = (
            Column("feature", "Feature"),
            Column("of", "Of"),
            Column("gain", "Share of gain", percent=True),
            Column("lost", "Score lost when shuffled", True),
        )
        out.append(Sheet("importance", "What the diagnostic leans on", of, lines))
    if found.causes:
        told = ("words", "category", "rank", "docs", "s_minus_chance", "gold", "gold_share", "mean", "sd")
        rows: list[Cells] = [{key: getattr(one, key) for key in told} for one in found.causes]
        titles = (
            "Words",
            "Category",
            "Rank",
            "Docs",
            "s(x) above chance",
            "Most frequent gold",
            "Its share",
            "Mean",
            "SD",
        )
        out.append(Sheet("causes", "What gives the answer away", tuple(map(Column, told, titles)), rows))
    return out
