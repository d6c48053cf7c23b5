"""The page of a report: one HTML file with everything in it, for any browser, from disk, without a network.

Needs no matplotlib.

Its policy (Content-Security-Policy) allows nothing but the one style sheet and the one script that are in it, by their
hashes, and pictures that are in it. Every string is escaped by jinja2, after ``text.block`` took out what acts on its
neighbours.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import jinja2
from markupsafe import Markup

from lmms_patch.present import look, text_only
from lmms_patch.present.report import gallery, markup, safe, shapes, wording
from lmms_patch.present.report.data import Entry, Example, RegionExample, Report
from lmms_patch.present.report.examples import RULES
from lmms_patch.present.report.magic_examples import RULES as REGION_RULES
from lmms_patch.present.sheets import levels
from lmms_patch.runs import reading
from lmms_patch.stats.gate import DELTA
from lmms_patch.text import block, cut

ANSWER, NAME, LONGEST = 600, 160, 2_000
"""Characters that the page shows of an answer, of a name, and of any text."""


@dataclass(frozen=True)
class Assets:
    """What every page of ours carries.

    Attributes:
        css, js: the style sheet and the script.
        policy: the Content-Security-Policy that allows these two and no other.
    """

    css: Markup
    js: Markup
    policy: str


@functools.cache
def assets(more: str = "") -> Assets:
    """Return the style sheet, the script and the policy, for ``base.html.j2``.

    Args:
        more: style rules of a page of its own.
    """
    css, js = look.css() + _source("page.css") + more, _source("page.js")
    if "</style" in css.lower() or "</script" in js.lower():
        raise ValueError("a style sheet or script that closes its own element")
    policy = f"default-src 'none'; img-src data:; style-src '{look.hashed(css)}'; script-src '{look.hashed(js)}'; base-uri 'none'; form-action 'none'"
    return Assets(Markup(css), Markup(js), policy)


def _source(name: str) -> str:
    loader = jinja2.PackageLoader("lmms_patch.present.report")
    return loader.get_source(jinja2.Environment(autoescape=True), name)[0].replace("\r\n", "\n")


def _finalize(value: Any) -> Any:
    """Return each string on its way into a page: of a bearable length, readable.

    What is markup already was made here.
    """
    return block(cut(value, LONGEST)) if type(value) is str else value


@functools.cache
def environment() -> jinja2.Environment:
    """Return the templates of this folder: escaping always on, an unknown name is an error.

    Other pages of ours extend ``base.html.j2`` and take ``macros.html.j2``; they pass ``assets`` and ``title``.
    """
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("lmms_patch.present.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    made.filters |= {
        "name": lambda text: cut(str(text), NAME),
        "answer": lambda text: cut(str(text), ANSWER),
        "num": wording.number,
        "in_words": wording.in_words,
        "value": wording.value,
        "words": wording.words,
        "colour": wording.colour,
        "ends": wording.ends,
        "raw": wording.raw,
        "percent": wording.percent,
        "p_value": wording.p_value,
        "short_reason": wording.short_reason,
        "with_ends": lambda number, signed: Markup(markup.estimate(number, signed)),
    }
    made.globals |= {
        "sheet_rows": markup.rows,
        "numeric": markup.numeric,
        "shares_of": shapes.shares,
        "numbers_of": shapes.numbers,
        "tst_notes": lambda details: [text_only.shortcut(details).sentence, *text_only.copies(details)],
        "marks_of": shapes.marks,
        "said": reading,
    }
    made.globals |= {
        "categories_of": shapes.categories,
        "notes_of": shapes.notes,
        "label_of": shapes.label,
        "bands": wording.bands,
        "delta": f"{100 * DELTA:g} %",
    }
    made.globals |= {"frames_of": gallery.frames, "verdict": gallery.verdict}
    # ``safe.picture`` has checked that the text is base64 and nothing else.
    made.globals["image_of"] = lambda example: Markup(safe.picture(example.image) or "")
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
        environment()
        .get_template("index.html.j2")
        .render(
            assets=assets(),
            title=report.title,
            report=report,
            facts=facts,
            matrix=shapes.matrix(report, facts),
            rows=lines,
            leads=sorted({row.luck_corrected for row in lines if row.has_index}),
            level=levels(number for row in lines for number in row.numbers),
            drawn=drawn,
            narrow=narrow,
            told={i: shapes.told(svg) for i, svg in drawn.items()},
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
    """Return examples with their results, rule by rule; those of a result that is not in the report are left out."""
    entries = {entry.label: entry for entry in report.entries}
    order = {rule: i for i, rule in enumerate(rules)}
    known = [(one, entries[one.entry]) for one in given if one.entry in entries]
    return sorted(known, key=lambda pair: order.get(pair[0].rule, len(order)))
