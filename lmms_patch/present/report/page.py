"""The page of a report (``present.page``). Draws nothing."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import TypeVar

import jinja2
from markupsafe import Markup

from lmms_patch.present import text_only
from lmms_patch.present.page import environment, wording
from lmms_patch.present.report import gallery, safe, shapes
from lmms_patch.present.report.data import Entry, Example, RegionExample, Report
from lmms_patch.present.report.examples import RULES
from lmms_patch.present.report.magic_examples import RULES as REGION_RULES
from lmms_patch.present.sheets import levels
from lmms_patch.runs import reading
from lmms_patch.stats.gate import DELTA


@functools.cache
def _templates() -> jinja2.Environment:
    made = environment("lmms_patch.present.report")
    made.globals |= {
        "shares_of": shapes.shares,
        "numbers_of": shapes.numbers,
        "tst_notes": lambda details: [text_only.shortcut(details).sentence, *text_only.copies(details)],
        "marks_of": shapes.marks,
        "said": reading,
        "categories_of": shapes.categories,
        "notes_of": shapes.notes,
        "label_of": shapes.label,
        "bands": wording.bands,
        "delta": f"{100 * DELTA:g} %",
        "frames_of": gallery.frames,
        "verdict": gallery.verdict,
        # ``safe.picture`` has checked that the text is base64 and nothing else.
        "image_of": lambda example: Markup(safe.picture(example.image) or ""),
    }
    return made


def page(report: Report) -> str:
    """Return the page of a report.

    Args:
        report: everything that it shows. Files that it links to lie beside it: ``tables/<sheet>.{csv,json,md,tex}``,
            ``figures/<figure>.{svg,png}``, ``report.json``.

    Returns:
        HTML, to be written as UTF-8.

    Raises:
        ValueError: a drawing with more in it than shapes (``safe.drawing``).
    """
    facts = shapes.facts(report)
    places, tables = shapes.placed(report), shapes.tables(report)
    lines = shapes.rows(report.entries)
    figures = {i: report.figures[i] for i in places.drawn}
    drawn = {i: Markup(safe.drawing(figure.svg, f"f{i}")) for i, figure in figures.items()}
    narrow = {i: Markup(safe.drawing(figure.narrow, f"f{i}n")) for i, figure in figures.items() if figure.narrow}
    return (
        _templates()
        .get_template("index.html.j2")
        .render(
            title=report.title,
            report=report,
            facts=facts,
            matrix=shapes.matrix(report, facts),
            rows=lines,
            leads=sorted({row.steady for row in lines if row.has_index}),
            level=levels(number for row in lines for number in row.numbers),
            drawn=drawn,
            narrow=narrow,
            sentences=shapes.sentences(report),
            tables=tables,
            places=places,
            shown={*tables, *places.sections},
            needs=shapes.needs(report.entries),
            need_words=shapes.need_words(report.entries),
            need_sheets=[sheet for sheet in report.sheets.get("runs", ()) if sheet.name == "necessity"],
            explore=shapes.explore(report),
            examples=_examples(report, report.examples, RULES),
            regions=_examples(report, report.regions, REGION_RULES),
            rules={**RULES, **REGION_RULES},
            model_key={model: f"m{i}" for i, model in enumerate(facts.models)},
            base_key={base: f"b{i}" for i, base in enumerate(facts.benchmarks)},
        )
    )


_One = TypeVar("_One", Example, RegionExample)


def _examples(report: Report, given: Sequence[_One], rules: Iterable[str]) -> list[tuple[_One, Entry]]:
    """Return examples with their results, rule by rule; those of unknown results are left out."""
    entries = {entry.label: entry for entry in report.entries}
    order = {rule: i for i, rule in enumerate(rules)}
    known = [(one, entries[one.entry]) for one in given if one.entry in entries]
    return sorted(known, key=lambda pair: order.get(pair[0].rule, len(order)))
