"""The tables of a page: numbers of rows × the catalogue, which says of each number title, sentence and sign. Pure.

A table is lines of cells; ``HEADS`` and the catalogue say of each key what stands over its column.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lmms_patch.ask.kinds import RCI, Kind
from lmms_patch.compare.magic import Contrast
from lmms_patch.present import ranking
from lmms_patch.present.page.published import TYPES
from lmms_patch.present.page.rows import Entry, Part, Row, date_order, key_of, numbers_of
from lmms_patch.present.ranking import BY, By
from lmms_patch.present.sheets import Column, Sheet, levels_in
from lmms_patch.present.sheets import Row as Line
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
RUNS, COMMAND = 200, 20_000
"""Runs that a page lists, and characters of a command, which must be whole to be of use."""
SCALE = "on the metric's own scale"
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
_GATE = "whether the full image beats chance, and a wrong image, by two standard errors; if not, there is no index"
HEADS = {
    column.key: column
    for column in (
        Column("n", aside=True),
        Column("rank", "Rank", help="the range of places that the intervals leave open"),
        Column("docs", "Docs", help="docs that were asked"),
        Column(
            "band",
            "Band",
            help="the bands (RCI paper, 3.2) that the interval of the index to go by reaches",
            aside=True,
        ),
        Column("excluded", "Left out", help="docs that MPP and index leave out"),
        Column("fip_used", help="the score over the docs that are not left out: index = 1 - MPP / this", aside=True),
        Column("gate", "Gate", help=_GATE),
        Column("group", "Group", help="rows of one group differ in the model alone"),
        *(Column(key, aside=True) for key in ("why", "kind", "task", "metric", "type", "runs", "date", "source")),
        Column("of", "Task type"),
        Column("mean", "Mean score", help="the mean score on full images, over the same benchmarks; fractions"),
        Column("size", "Mean |index|", help="mean distance of the index from 0: nearer 0 is more robust"),
        Column("index", "Mean index", True, help="with its sign: benchmarks of both signs cancel", index=True),
        Column("lacks", "Lacks", help="benchmarks that it has no such number for, so that it has no rank"),
        Column("first", "Mean index, coarse", True, index=True),
        Column("second", "Mean index, fine", True, index=True),
        Column(
            "change",
            "Change, %",
            True,
            0,
            help="(fine − coarse) / |coarse|; the paper's 'relative drop' has the other sign",
        ),
        Column("r", "Pearson r", help="-1..1, with Fisher's interval"),
        Column("rho", "Spearman rho", help="of the ranks, -1..1"),
        Column("share", "Share", percent=True, help="of the score that all cells earn in isolation"),
        Column("wins", "Wins", percent=True, help="share of docs whose best cell it is; ties split"),
        Column("p", "p", help="that the share is even, Holm-corrected: random turns of each doc's cells"),
        Column("even", "p, all even", aside=True),
        Column("chance", "Chance", help=f"what the best uninformed answer scores, {SCALE}"),
        Column("tst", "TsT", help=f"a text-only model, cross-validated on the test set, {SCALE}"),
        Column("blind", "Blind", help=f"this model without image, {SCALE}"),
        Column(
            "gain",
            "Full less blind",
            True,
            help="what the image adds, paired by doc; wider where docs cannot be paired",
        ),
        Column("se", "SE"),
        Column("gain_share", "Share of gain", percent=True),
        Column("lost", "Score lost when shuffled", True),
        Column("s_minus_chance", "s(x) above chance", True),
        Column("gold_share", "Share of this gold", percent=True),
    )
}
"""What stands over the columns that are no numbers of one result; of others the key."""


def sheet(
    name: str, title: str, lines: Sequence[Line], note: str = "", heads: Mapping[str, Column] = {}
) -> Sheet | None:
    """Return a table whose columns are the keys of its lines that are not empty; None without lines.

    Args:
        name: of its files.
        title: for people.
        lines: its rows; the order of their keys is that of the columns.
        note: what to know to read it.
        heads: of its own columns.
    """
    keys = dict.fromkeys(key for line in lines for key in line)
    there = [key for key in keys if any(line.get(key) is not None for line in lines)]
    known = {**HEADS, **heads}
    return (
        Sheet(name, title, tuple(known.get(key) or Column(key, key.capitalize()) for key in there), lines, note)
        if lines
        else None
    )


# --- numbers × catalogue --------------------------------------------------------------------------


def column(number: catalogue.Number, key: Any, n: int | None, kind: Kind) -> Column:
    """Return the column of a number of the catalogue, in a table of rows of any grid."""
    name = key_of(number, key, n, kind)
    of_any = n is not None and name != number.named(kind, key)
    title = "Score" if name == "score" else number.index(kind) if number.words and of_any else number.called(kind, key)
    if of_any and not number.words:
        words = number.label.format(key="", part=kind.words.part, letter="", shows="").rstrip(", ")
        title = words or number.title.format(key="").strip()
    told = number.help if number.scale != "metric" else f"{number.help}, {SCALE}"
    aside = name == "ceiling" or (n is not None and name not in FIRST)
    percent, index = name in (*SHARES, "needs_whole"), bool(number.words)
    return Column(name, f"{title[:1].upper()}{title[1:]}", number.signed, 3, told, index, percent, aside)


def columns(kind: Kind, grids: Sequence[int], n: int | None) -> dict[str, Column]:
    """Return the columns of the numbers of a kind, by their names in a row."""
    if kind.folds:
        return {
            key: Column(key, title, key in ("tst_above", "tst_over_chance", "tst_leakage", "tst_delta"))
            for key, title in TST.items()
        }
    if kind.name == "magic":
        return {key: Column(key, title, help=f"{words}; a fraction, 0..1") for key, (title, words) in MAGIC.items()}
    known = catalogue.keyed(kind, grids if n is None else [n]).values()
    out = [column(number, key, n, kind) for number, key in known if number.measured and number.name != "fip"]
    hidden = grids if kind.per_cell and not kind.has_index else ()
    out += [Column(f"drop{g}", f"Worst cell hidden, {kind.words.size(g)}", True) for g in hidden]
    return {one.key: one for one in out}


def _heads(rows: Iterable[Row]) -> dict[str, Column]:
    """Return the columns of all numbers in some rows of a way, ``FIRST`` first."""
    found: dict[str, Column] = {}
    for row in rows:
        for key, one in columns(row.kind, row.entry.result.grids if row.entry else [], row.n).items():
            if key in row.numbers:
                known = found.setdefault(key, one)
                if one.title.lower() not in known.title.lower():  # RCI and PCRI are one number
                    found[key] = dataclasses.replace(known, title=f"{known.title} / {one.title}")
    return {key: found[key] for key in dict.fromkeys([*FIRST, *found]) if key in found}


def results(rows: Sequence[Row]) -> list[Sheet]:
    """Return every number of every row: a table for each kind of task."""
    by_way: dict[str, list[Row]] = {}
    for row in rows:
        by_way.setdefault(row.kind.way, []).append(row)
    return [one for way, some in by_way.items() if (one := _results(way, some))]


def _results(way: str, rows: Sequence[Row]) -> Sheet | None:
    heads, ranks = _heads(rows), any(row.place is not None and row.place.of > 1 for row in rows)
    lines = [_line(row, heads, ranks) for row in rows]
    lower = sorted({clean(row.benchmark) for row in rows if row.entry and not row.entry.result.higher_is_better})
    note = levels_in("{} intervals in brackets. ", (cell for line in lines for cell in line.values()))
    note += f"Scores are {SCALE}." + f" Lower is better for {', '.join(lower)}." * bool(lower)
    note += " A rank is a range: 2–3 means that the intervals cannot separate second from third." * ranks
    if way in ("index", "trci"):
        note += " Shares are of all docs, luck removed by asking again; the colours of an index are its bands."
    name, title = ("results", RCI.heading) if way == "index" else (f"results_{way}", rows[0].kind.heading)
    aside = dataclasses.replace(HEADS["group"], aside=all(row.group == 1 for row in rows))
    return sheet(name, title, lines, note, {**heads, "group": aside})


def _line(row: Row, heads: Mapping[str, Column], ranks: bool) -> Line:
    entry, rank = row.entry, str(row.place) if row.place and ranks else None
    grid = entry.result.grid(row.n) if entry and row.n else None
    left_out = (grid.excluded, grid.fip) if grid and grid.excluded else (None, None)
    line: Line = {
        "benchmark": clean(row.benchmark),
        "model": row.model,
        "n": row.n,
        "grid": row.size or None,
        "rank": rank,
        "docs": row.docs,
        **{key: row.numbers.get(key) for key in heads},
        "band": band_text(row.index),
        "excluded": left_out[0],
        "fip_used": left_out[1],
        "gate": (entry and entry.gate) or None,
        "group": row.group,
        "why": row.why or None,
        "kind": row.kind.way,
        "type": row.type or None,
        "source": row.source or None,
    }
    if entry:
        result = entry.result
        line |= {"task": clean(result.label), "metric": clean(result.metric), "runs": row.runs, "date": result.run.date}
    return line


def band_text(estimate: Estimate | None) -> str | None:
    """Return the bands within reach of an interval; without an interval, the band of the value."""
    if estimate is None or estimate.value is None:
        return None
    return band(estimate.value) if estimate.low is None or estimate.high is None else span(estimate.low, estimate.high)


def categories(entries: Sequence[Entry]) -> Sheet | None:
    """Return the numbers of each category of some results; None where there are none."""
    rows = [
        (name, part, row)
        for entry in entries
        for name, part in entry.categories.items()
        for row in _of_part(entry, part)
    ]
    heads, lines = _heads(row for _, _, row in rows), list[Line]()
    for name, part, row in rows:
        gate = reading.gate_word(part.analysis.gate) if part.analysis and row.kind.index else None
        lines.append(
            {
                "category": clean(name) or "(none)",
                "benchmark": clean(row.benchmark),
                "model": row.model,
                "n": row.n,
                "grid": row.size or None,
                "docs": row.docs,
                **{key: row.numbers.get(key) for key in heads},
                "gate": gate,
            }
        )
    note = "Each category with its own chance, gate and interval. Many categories at once: one in twenty intervals misses by luck alone."
    return sheet("categories", "By category", lines, note, heads)


def _of_part(entry: Entry, part: Part) -> Iterator[Row]:
    for n in entry.result.indexed or (None,):
        found = numbers_of(part.measures, entry.kind, entry.result.grids, n)
        yield Row(entry.result.base, entry.model, entry.kind, n, found, part.docs, entry=entry)


# --- models over benchmarks -----------------------------------------------------------------------


def first_rows(rows: Iterable[Row], way: str) -> list[Row]:
    """Return the rows of a way with an index, of the first group of each benchmark and grid."""
    return [row for row in rows if row.kind.way == way and row.n is not None and row.group == 1]


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


def overall(rows: Sequence[Row], by: By, over: Collection[str] = ()) -> list[Sheet]:
    """Return models over the benchmarks shared by all ranked models, at each grid of cells and of segments, and by task type.

    Args:
        rows: all of them.
        by: what to rank by.
        over: the benchmarks to take means over; none: chosen by who has what (``ranking.shared_benchmarks``).
    """
    out = []
    for way, end in (("index", ""), ("trci", "_time")):
        some = first_rows(rows, way)
        types = tuple(TYPES) if way == "index" and len({row.type for row in some}) > 1 else ()
        for name, title, of in (("overall", "Models over benchmarks", ("",)), ("types", "Models by task type", types)):
            parts = [[row for row in some if row.n == n and kind in ("", row.type)] for kind in of for n in grids(some)]
            made = [_over(part, by, over, name == "types") for part in parts if part]
            lines = [line for of_part, _ in made for line in of_part]
            note = f"Ranked by {by.words}. {' '.join(dict.fromkeys(told for _, told in made))} Intervals take benchmarks as independent; "
            note += "lmms-patch compare pairs docs, and tells two models apart better."
            shown = sheet(
                f"{name}{end}",
                f"{title}{', in time' * bool(end)}",
                lines,
                note,
                {**_shares(some), "n": Column("n", "Grid n")},
            )
            out += [shown] if shown and len({line["model"] for line in lines}) > 1 else []
    return out


def _shares(rows: Sequence[Row]) -> dict[str, Column]:
    return {key: one for row in rows[:1] for key, one in columns(row.kind, [], row.n).items() if key in SHARES}


def _over(rows: Sequence[Row], by: By, over: Collection[str], typed: bool) -> tuple[list[Line], str]:
    """Return a line for each model at a grid, the best first, and over what the means go.

    Each number has a mean over the benchmarks of which all models that have it at all share it.
    """
    if all(row.entry is None for row in rows):
        by = BY["index"]  # a published table has indices alone
    size = "steady" if by.key == "steady" or by_steady(rows) else "index"
    keys = ("score", *SHARES, size)
    found = {key: by_model(rows, BY.get(key, By(key, False, False, ""))) for key in dict.fromkeys((by.key, *keys))}
    if not all(map(_is_fraction, rows)) and len({row.benchmark for row in rows}) > 1:
        # a mean of scores on different scales says nothing
        found |= {key: {model: {} for model in found[key]} for key in ("score", "mpp") if key in found}
    given = tuple(sorted(set(over) & {row.benchmark for row in rows}))
    shared = {key: given or ranking.shared_benchmarks(cells) for key, cells in found.items()}
    lines: list[Line] = []
    for one in ranking.standings(found[by.key], shared[by.key], by):
        have = {
            key: [found[key][one.model][name] for name in shared[key] if name in found[key].get(one.model, ())]
            for key in keys
        }
        means = {key: ranking.mean(some) for key, some in have.items() if shared[key] and len(some) == len(shared[key])}
        lines.append(
            {
                "model": one.model,
                "of": TYPES.get(rows[0].type) if typed else None,
                "n": rows[0].n,
                "rank": str(one.place or "") or None,
                "mean": means.get("score"),
                **{key: means.get(key) for key in SHARES},
                "size": ranking.mean_size(have[size]) if size in means else None,
                "index": means.get(size),
                "lacks": ", ".join(one.lacks) or None,
            }
        )
    called = {by.key: "rank", "score": "score", size: reading.name("index", steady=size == "steady"), "one": "shares"}
    told: dict[tuple[str, ...], list[str]] = {}
    for key, name in called.items():
        if shared[key] and any(found[key].values()):
            told.setdefault(shared[key], []).append(name)
    means_of = (f"{' and '.join(names)}: {len(of)} ({', '.join(map(clean, of))})" for of, names in told.items())
    return lines, f"At {rows[0].size}, benchmarks that the means are over: {'; '.join(means_of)}." if told else ""


def _is_fraction(row: Row) -> bool:
    ceiling = row.numbers.get("ceiling")
    higher = row.entry is None or row.entry.result.higher_is_better
    return row.entry is None or (higher and ceiling is not None and 0 < (ceiling.value or 0.0) <= 1 + 1e-9)


def changes(rows: Sequence[Row]) -> Sheet | None:
    """Return how the mean index of each model moves from the coarsest grid to finer grids (PCRI paper, figure 7)."""
    some, lines = first_rows(rows, "index"), list[Line]()
    for fine in grids(some)[1:]:
        coarse = grids(some)[0]
        both = [row for row in some if row.n in (coarse, fine)]
        by = BY["steady" if by_steady(both) else "index"]
        first, second = (by_model([row for row in both if row.n == n], by) for n in (coarse, fine))
        have = {model: [name for name in of if name in second.get(model, {})] for model, of in first.items()}
        shared = ranking.shared_benchmarks({model: names for model, names in have.items() if names})
        for model in sorted(model for model in have if shared and set(shared) <= set(have[model])):
            means = [ranking.mean([of[model][name] for name in shared]) for of in (first, second)]
            moved = ranking.change(means[0], means[1], any(row.source for row in both if row.model == model))
            lines.append(
                {
                    "model": model,
                    "coarse": coarse,
                    "fine": fine,
                    "first": means[0],
                    "second": means[1],
                    "change": None if moved.value is None else 100 * moved.value,
                    "over": ", ".join(map(clean, shared)),
                    "no change since": moved.reason or None,
                }
            )
    note = (
        "Relative change of the mean index (PCRI paper, A.4.6), no interval: both grids share their docs. Where the coarse index "
        "is small, a large change is still a small one."
    )
    return sheet("grids", "From coarse to fine cells", lines, note)


# --- benchmarks -----------------------------------------------------------------------------------


def benchmarks(rows: Sequence[Row]) -> list[Sheet]:
    """Return the index of each benchmark with each model (RCI paper, Table 2), which fit an application, and how models agree."""
    out: list[Sheet | None] = []
    for way in ("index", "trci"):
        some = first_rows(rows, way)
        if len({row.model for row in some}) > 1:
            keys = [key for key in ("index", "steady") if any(key in row.numbers for row in some)]
            out += [_table2(some, key) for key in keys if len(_pairs(some)) <= WIDEST]
            out += [_correlations(some), _fit(some) if way == "index" else None]
    return [one for one in out if one]


def _pairs(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """Return the (model, n) pairs of some rows: models in order of appearance, grids from coarse to fine."""
    there, models = {(row.model, row.n) for row in rows}, dict.fromkeys(row.model for row in rows)
    return [(model, n) for model in models for n in grids(rows) if (model, n) in there]


def _label(model: str, n: int | None, kind: Kind) -> str:
    """Return ``<model>, n=<grid>``, which ``published.read`` reads back; in time ``<model>, 4 segments``."""
    return f"{model}, {kind.words.size(n or 0)}" if kind.needs_video else f"{model}, n={n}"


def _table2(rows: Sequence[Row], key: str) -> Sheet | None:
    kind = rows[0].kind
    index = "TRCI" if kind.needs_video else "RCI"
    lines: dict[str, Line] = {}
    heads = {
        _label(*pair, kind): Column(_label(*pair, kind), f"{pair[0]}, {kind.words.size(pair[1])}", True, index=True)
        for pair in _pairs(rows)
    }
    for row in rows:
        line = lines.setdefault(row.benchmark, {"benchmark": row.benchmark, **dict.fromkeys(heads)})
        line[_label(row.model, row.n, kind)] = row.numbers.get(key)
    told = {
        "index": "1 - MPP/FIP, of one pass. Below 0 one cell beats the whole image, above 0 the task needs more than one cell. Contradicted: "
        "the steady index lies in a band that does not touch. Its file can be given back with --from-csv",
        "steady": "Of the docs answered with their image, the share that needs all of it",
    }
    fragments = [] if kind.needs_video else [text for n in grids(rows) if (text := fragmentation(n))]
    note = ". ".join([kind.words.say(told[key]), "N/A: refused by its gate, or not defined", *fragments])
    name = reading.name(index, steady=key == "steady")
    title = f"{name[0].upper()}{name[1:]} by benchmark and model"
    return sheet(f"{index.lower()}{'_steady' * (key == 'steady')}", title, [*lines.values()], f"{note}.", heads)


def _correlations(rows: Sequence[Row]) -> Sheet | None:
    """Return Pearson's r and Spearman's rho of each pair of models and grids, over benchmarks (RCI paper, figures 2 and 5)."""
    kind, lines = rows[0].kind, list[Line]()
    known: dict[str, dict[str, float]] = {_label(*pair, kind): {} for pair in _pairs(rows)[: 2 * WIDEST]}
    for row in rows:
        index, label = row.number(BY["index"]), _label(row.model, row.n, kind)
        if label in known and index is not None and index.value is not None:
            known[label][row.benchmark] = index.value
    for (one, x), (other, y) in itertools.combinations(known.items(), 2):
        sides = [[side[name] for name in x if name in y] for side in (x, y)]
        r, rho = pearson(*sides), spearman(*sides)
        lines.append(
            {"one": one, "other": other, "r": r, "rho": rho, "benchmarks": r.n, "no r since": r.reason or None}
        )
    note = (
        f"Pearson's r of the index over benchmarks, {100 * LEVEL:g} % interval by Fisher's z: as if the benchmarks were a random sample of such, "
        "which they are not quite. Columns of one model share its answers to the full images, so they agree by construction."
    )
    return sheet(f"correlations{'_time' * kind.needs_video}", "Do models agree on benchmarks?", lines, note)


def fits(row: Row, domain: str) -> str:
    """Return whether an index fits a domain: its whole interval, or the number where there is none, lies in the domain's bands."""
    index, allowed = row.number(BY["index"]), set(DOMAINS[domain][2])
    if index is None or index.value is None or reading.contradicted(index):
        return "unclear"
    ends = (index.value, index.value) if index.low is None or index.high is None else (index.low, index.high)
    first, last = (_BANDS.index(band(end)) for end in ends)
    reached = set(_BANDS[first : last + 1])
    return "fits" if reached <= allowed else "does not" if not reached & allowed else "unclear"


def _fit(rows: Sequence[Row]) -> Sheet | None:
    """Return which benchmarks fit which application (RCI paper, Table 6): by every model's interval."""
    lines: list[Line] = []
    for n, name in itertools.product(grids(rows), dict.fromkeys(row.benchmark for row in rows)):
        if some := [row for row in rows if row.n == n and row.benchmark == name and row.index is not None]:
            said = {domain: {fits(row, domain) for row in some} for domain in DOMAINS}
            agreed: Line = {
                domain: next(iter(found)) if len(found) == 1 else "unclear" for domain, found in said.items()
            }
            lines.append({"benchmark": name, "n": n, "models": len(some), **agreed})
    heads = {
        key: Column(key, title, help=f"recommended: {advice}; taken as {cut}")
        for key, (title, advice, _, cut) in DOMAINS.items()
    }
    cuts = "; ".join(f"{title}: {cut}" for title, _, _, cut in DOMAINS.values())
    note = (
        f"After the RCI paper's Table 6, which gives only signs (>> 0, near 0, ...); the cut points are ours, from its bands: {cuts}. "
        "Fits, does not: by the whole interval of every model; unclear: an interval reaches over the cut, models disagree, or the "
        "steady index contradicts the other."
    )
    return sheet("fit", "Fit for an application", lines, note, {**heads, "n": Column("n", "Grid n")})


def cells(entries: Sequence[Entry]) -> Sheet | None:
    """Return where in image or clip the score comes from: a line for each cell of each result and grid (RCI paper, 3.3)."""
    lines: list[Line] = []
    for entry, n in [(one, n) for one in entries for n in one.result.indexed]:
        found = (grid := entry.result.grid(n)) and grid.shares
        if not found or found.score is None:
            continue
        for at, share in enumerate(found.score):
            row, col = divmod(at, entry.kind.shape(n)[1])
            lines.append(
                {
                    "benchmark": clean(entry.result.base),
                    "model": entry.model,
                    "grid": entry.words.size(n),
                    "row": row + 1,
                    "column": col + 1,
                    "share": float(share),
                    "wins": float(found.win[at]) if found.win is not None else None,
                    "p": float(found.p_cells[at]) if found.p_cells is not None else None,
                    "even": found.p,
                }
            )
    return sheet(
        "cells",
        "Where the score comes from",
        lines,
        "Row 1, column 3 is the top right of 3×3; of clips the column is the segment.",
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
    lines: list[Line] = []
    for entry in without_looking(entries):
        measures = entry.result.measures
        unpaired = paired.unpaired(entry.blind, measures["score"]).estimate if entry.blind is not None else None
        lines.append(
            {
                "benchmark": clean(entry.result.base),
                "model": entry.model,
                "docs": entry.result.docs,
                "chance": measures.get("chance"),
                "tst": entry.tst,
                "blind": entry.blind,
                "full image": measures["score"],
                "gain": entry.gain or unpaired,
            }
        )
    note = f"What is scored without the image, above chance, the text gives away; {SCALE}."
    return sheet("without_image", "With and without the image", lines, note)


def contrasts(found: Sequence[Contrast]) -> Sheet | None:
    """Return the effects of changed boxes, paired by item: a line for each model and contrast."""
    lines: list[Line] = []
    for one in found:
        numbers = {number.name: number.difference for number in one.found.numbers}
        lines.append(
            {
                "model": one.model,
                "contrast": CONTRASTS[one.name][0],
                "tasks": f"{one.found.second} − {one.found.first}",
                "items": one.found.docs,
                **{key: numbers.get(key) for key in MAGIC},
                "mind": "; ".join(one.minds) or None,
            }
        )
    how = "; ".join(f"{name}: {words}" for name, words in CONTRASTS.values())
    heads = {
        key: Column(key, title, True, help=f"difference of: {words}; a fraction, 0..1")
        for key, (title, words) in MAGIC.items()
    }
    sure = levels_in(
        ", with {} intervals from a bootstrap over images", (cell for line in lines for cell in line.values())
    )
    note = f"{how[0].upper()}{how[1:]}. Differences paired by item{sure}. "
    note += "Precision and F1 are not contrasted: without adversarial boxes they rise by construction."
    return sheet("magic_contrasts", "What other boxes cost or give", lines, note, heads)


def made(found: Sequence[Run], names: Mapping[tuple[str, str, str], str]) -> Sheet | None:
    """Return the newest runs, with commands to ask the same again."""
    newest = sorted(found, key=lambda run: date_order(run.date), reverse=True)
    lines: list[Line] = []
    for run in newest[:RUNS]:
        tasks = list(dict.fromkeys(result.task for result in run.results))
        limit = str(run.results[0].fingerprint.get("limit") or "all")
        again = cut(command(run.adapter, run.model_args, tasks, limit), COMMAND)
        lines.append(
            {
                "when": run.date,
                "model": names[run.identity],
                "tasks": clean(", ".join(tasks)),
                "limit": limit,
                "command": again,
                "file": run.path.name,
            }
        )
    older = f" {len(newest) - RUNS} older runs are not listed." * (len(newest) > RUNS)
    note = "The commands ask the same again as far as the tables say it: keys and passwords are taken out, and environment "
    return sheet("made", "Runs and the commands that made them", lines, f"{note}variables are not known.{older}")


# --- one result -----------------------------------------------------------------------------------


def numbers(entry: Entry) -> Sheet | None:
    """Return all numbers of a result, each under a single name."""
    result, lines = entry.result, list[Line]()
    known = catalogue.keyed(entry.kind, result.grids)
    for name, one in result.measures.items():
        if name in ("fip", result.metric) and not result.magic:
            continue  # the score, under another name
        number, key = known.get(name, (None, None))
        title = (
            MAGIC[name][0]
            if name in MAGIC
            else TST.get(name, name)
            if number is None
            else number.called(entry.kind, key)
        )
        note = None if one.reason in ("", catalogue.NO_INTERVAL) else one.reason
        clusters = one.clusters if one.clusters != one.n else None
        lines.append(
            {
                "number": title,
                "name": name,
                "value": one,
                "se": one.se,
                "docs": one.n,
                "clusters": clusters,
                "note": note,
            }
        )
    return sheet("numbers", "Numbers", lines)


_CAUSE = ("words", "category", "rank", "docs", "s_minus_chance", "gold", "gold_share", "mean", "sd")


def of_text(entry: Entry) -> list[Sheet]:
    """Return which features a text-only cross-validation leans on, and what gives answers away (TsT paper, Table 10)."""
    found = entry.result.tst
    important = (found.importance if found else None) or ()
    lines: list[Line] = [
        {"feature": one.feature, "of": one.kind, "gain_share": one.gain, "lost": one.permutation}
        for one in important[:40]
    ]
    causes: list[Line] = [{key: getattr(one, key) for key in _CAUSE} for one in (found.causes if found else None) or ()]
    heads = {"of": Column("of", "Of"), "rank": Column("rank", "Rank"), "mean": Column("mean", "Mean")}
    made_of = (
        sheet("importance", "What the diagnostic leans on", lines, heads=heads),
        sheet("causes", "What gives the answer away", causes, heads=heads),
    )
    return [one for one in made_of if one]
