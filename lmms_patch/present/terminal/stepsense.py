"""The table of StepSense, in plain text and for files."""

from __future__ import annotations

from collections.abc import Sequence

from lmms_patch.magic.score.stepsense import MOST_ANNOTATORS, Agreement, StepSense, StepSenses
from lmms_patch.present.sheets import Column, Row, Sheet
from lmms_patch.runs import reading
from lmms_patch.runs.unjudged import A_POINT
from lmms_patch.stats.resample import Estimate


def text(senses: StepSenses) -> str:
    """Return the table, with notes for reading."""
    shown = sheet(senses)
    lines = [shown.to_text(), "", shown.note]
    for one in senses.scores:
        together = len(one.annotators)
        if 1 < together <= MOST_ANNOTATORS and len(one.pairs) < together * (together - 1) // 2:
            alone = sorted(set(one.annotators) - {name for pair in one.pairs for name in pair.annotators})
            who = f"{', '.join(alone)} with nobody" if alone else "some pairs"
            lines.append(f"mind: {one.source}: annotators that share no step have no kappa ({who})")
    lines += [
        f"mind: {count} {source} lines have no verdict yet; they are no part of this"
        for source, count in senses.unlabelled.items()
        if count
    ]
    lines += [f"mind: {note}" for note in senses.notes]
    lines += [f"mind: {line}" for line in _without_interval(shown)]
    if not senses.clustered:
        lines.append(
            "mind: the files do not say which items share an image (key 'group'); items are resampled each for itself"
        )
    return "\n".join(lines)


def sheet(senses: StepSenses) -> Sheet:
    """Return a row per source, per pair of annotators, and per judge and person."""
    level = senses.scores[0].micro.level
    columns = (
        Column("source", help="who labelled: people or a judge model; 'human and judge': how far these agree"),
        Column("annotators"),
        Column("items"),
        Column("steps", help="labelled; of a pair: by both"),
        Column("micro", "StepSense (micro)", help="share of correct steps"),
        Column("macro", help="mean over items of their share of correct steps"),
        Column("disputed", help="steps with both verdicts"),
        Column("agreed", "equal labels", help="share of the steps that both labelled"),
        Column("kappa", "Cohen's kappa", help="-1 to 1; of all: over the label pairs of all pairs of annotators"),
    )
    rows: list[Row] = []
    for one in senses.scores:
        rows.append(_score(one))
        rows += [_pair(one.source, pair) for pair in one.pairs] if len(one.pairs) > 1 else []
    rows += [_pair("human and judge", pair) for pair in senses.across]
    note = (
        f"Fractions with {100 * level:g} % intervals from a bootstrap over {'images' if senses.clustered else 'items'}."
    )
    return Sheet("stepsense", "StepSense", columns, rows, note)


def _without_interval(shown: Sheet) -> list[str]:
    """Say why numbers of the table have no interval, or are not defined: a line for each reason."""
    where: dict[str, list[str]] = {}
    for row in shown.rows:
        for column in shown.columns:
            cell = row.get(column.key)
            if isinstance(cell, Estimate) and cell.low is None and cell.reason:
                why = (
                    cell.reason.replace("docs", "items")
                    .replace("clusters", "images")
                    .replace("1 images are too few", "1 image is too few")
                )
                name = f"{column.title} ({row['source']}{', ' if row['annotators'] else ''}{row['annotators'] or ''})"
                where.setdefault(why if cell.value is None else f"no interval: {why}", []).append(name)
    return [
        f"{', '.join(names[:4])}{f' and {len(names) - 4} more' if len(names) > 4 else ''}: {why}"
        for why, names in where.items()
    ]


def _score(one: StepSense) -> Row:
    """Return the row of a source of labels: StepSense, and agreement where several annotators labelled the same steps."""
    together, micro, macro = one.agreement, one.micro, one.macro
    if one.bounds is not None:
        micro = _bounded(micro, one.bounds.micro_low, one.bounds.micro_high)
        macro = _bounded(macro, one.bounds.macro_low, one.bounds.macro_high)
    return {
        "source": one.source,
        "annotators": _named(one.annotators, ", "),
        "items": one.items,
        "steps": one.steps,
        "micro": micro,
        "macro": macro,
        "disputed": one.disputed if len(one.annotators) > 1 else None,
        "agreed": None if together is None else together.agreed,
        "kappa": None if together is None else together.kappa,
    }


def _bounded(one: Estimate, low: float, high: float) -> Estimate:
    """Return a judge's score with its bounds noted, where they lie more than a point apart."""
    return reading.noted(one, f"{low:.3f} to {high:.3f} with the unjudged") if high - low > A_POINT else one


def _pair(source: str, pair: Agreement) -> Row:
    """Return the row of two annotators who labelled the same steps."""
    return {
        "source": source,
        "annotators": _named(pair.annotators, " and "),
        "items": pair.kappa.n,
        "steps": pair.steps,
        "agreed": pair.agreed,
        "kappa": pair.kappa,
    }


def _named(names: Sequence[str], between: str) -> str:
    return between.join(names) if len(names) <= MOST_ANNOTATORS else f"{len(names)} annotators"
