"""The page itself: one HTML file with everything in it, for any browser, from disk, without a network.

Its policy (Content-Security-Policy) allows nothing but the one style sheet and the one script that are in it, by their
hashes, and pictures that are in it. Every string is escaped by jinja2 or ``markupsafe``, after ``text.block`` took out
what acts on its neighbours. Rows of tables are made here and not in a template: a page has tens of thousands of cells.
"""

from __future__ import annotations

import functools
from typing import Any

import jinja2
from markupsafe import Markup, escape

from lmms_patch.present import look, text_only
from lmms_patch.present.page import examples, magic_examples, tables
from lmms_patch.present.page.report import Report
from lmms_patch.present.page.rows import Entry
from lmms_patch.present.page.safe import drawing, picture
from lmms_patch.present.sheets import NOT_DEFINED, Cell, Column, Sheet, ends_in_percent, number, said
from lmms_patch.runs import reading
from lmms_patch.stats.gate import DELTA
from lmms_patch.stats.index import BANDS, band
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import block, cut

LONGEST, WORDY, NAME, ANSWER = 2_000, 40, 160, 600
"""Characters that a page shows of any text; from which on a cell is wrapped; that it shows of a name, and of an answer."""
LINKS = 8
"""Results that are linked below a finding."""
SECTIONS = {
    "results": ("Results", ""),
    "models": (
        "Models",
        "Read as a property of the model (PCRI): how well does it score, and how much does what it sees beside the point disturb it?",
    ),
    "benchmarks": (
        "Benchmarks",
        "Read as a property of the benchmark (RCI): does it need the whole image or clip, or is one part enough?",
    ),
    "text": (
        "Without looking",
        "How much can be answered from the text alone: by a text-only model, cross-validated on the questions (TsT), or by the "
        "same model without the image (blind).",
    ),
    "magic": (
        "MAGIC",
        "Boxes are drawn on the image, relevant and adversarial ones, and the model thinks aloud: which boxes does it use, is its "
        "answer right, and does it recover from an injected error?",
    ),
}
"""The sections of a page with tables and figures: heading, and what they are about."""


def page(report: Report) -> str:
    """Return the page as HTML, to be written as UTF-8.

    Raises:
        ValueError: a drawing with more in it than shapes (``safe.drawing``).
    """
    drawn = {one.name: Markup(drawing(one.svg, f"f{at}")) for at, one in enumerate(report.figures)}
    entries = {entry.label: entry for entry in report.entries}
    rules = {**examples.RULES, **magic_examples.RULES}
    order = list(rules)
    shown = sorted(
        (one for one in report.examples if one.entry in entries),
        key=lambda one: order.index(one.rule) if one.rule in order else len(order),
    )
    return _templates().get_template("page.html.j2").render(
        report=report, drawn=drawn, entries=entries, examples=shown, rules=rules, sections=SECTIONS, links=LINKS
    )  # fmt: skip


@functools.cache
def _templates() -> jinja2.Environment:
    """Return the templates: escaping always on, an unknown name is an error."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("lmms_patch.present.page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: block(cut(value, LONGEST)) if type(value) is str else value,
    )
    assert made.loader is not None
    css, js = (made.loader.get_source(made, name)[0].replace("\r\n", "\n") for name in ("page.css", "page.js"))
    css = look.css() + css
    if "</style" in css.lower() or "</script" in js.lower():
        raise ValueError("a style sheet or script that closes its own element")
    policy = f"default-src 'none'; img-src data:; style-src '{look.hashed(css)}'; script-src '{look.hashed(js)}'; base-uri 'none'; form-action 'none'"
    made.filters |= {
        "name": lambda text: cut(str(text), NAME),
        "answer": lambda text: cut(str(text), ANSWER),
        "gate": gate,
    }
    made.globals |= {
        "css": Markup(css),
        "js": Markup(js),
        "policy": policy,
        "table": table,
        "bands": [(name, f"up to {said(end, True, 2)}") for end, name in BANDS]
        + [("strong global", f"from {said(BANDS[-1][0], True, 2)}")],
        "delta": f"{100 * DELTA:g} %",
        "gate_lines": gate_lines,
        "detail_sheets": detail_sheets,
        "text_notes": lambda entry: text_only.notes(entry.result.tst) if entry.result.tst else [],
        # ``safe.picture`` has checked that the text is base64 and nothing else
        "picture": lambda one: Markup(picture(one.image) or ""),
    }
    return made


def detail_sheets(entry: Entry) -> list[Sheet]:
    """Return the tables of a result's own section: its numbers, its text-only test, its categories."""
    known = tables.numbers(entry), *tables.of_text(entry), tables.categories([entry])
    return [sheet for sheet in known if sheet]


def gate_lines(entry: Entry) -> list[str]:
    """Say what the gate asked for and found, a line each; nothing without an index."""
    analysis = entry.result.analysis
    if analysis is None or not entry.kind.index:
        return []
    g = analysis.gate
    sign = "?" if g.threshold is None or g.fip is None else "≥" if g.fip >= g.threshold else "<"
    margin = (
        f"2 · SE of FIP − chance {said(g.se)}"
        if g.se is not None or g.se_fip is None
        else f"2 · max(SE of FIP {said(g.se_fip)}, SE of chance {said(g.se_chance)})"
    )
    out = [
        f"FIP {number(g.fip)} {sign} {number(g.threshold)} = chance {number(g.chance)} + max(δ {number(g.delta)}, {margin})",
        g.reason,
        reading.MARGINAL_PASS * g.marginal,
    ]
    for one in g.looks:
        other = "another doc’s image" if one.against == "wrong images" else "no image"
        out.append(
            entry.words.say(
                f"{one.docs} docs asked on {other}: full image {number(one.full)}, {other} {number(one.other)}; "
                f"difference {said(one.difference, True)}"
            )
        )
    if not g.looks and g.valid is not False:
        out.append(entry.words.say(reading.NOT_CHECKED))
    return [one for one in out if one]


# --- tables ---------------------------------------------------------------------------------------


def table(sheet: Sheet, identifier: str, of: str = "") -> Markup:
    """Return a table whose columns sort, and whose rows the search box filters.

    Args:
        sheet: the table; columns that stand in files alone are left out.
        identifier: its id on the page.
        of: the result that it is about, where there are several of its title.
    """
    named = {"model", "benchmark"} if of else {"model"}
    same = {key for key in named if len({row.get(key) for row in sheet.rows}) == 1}
    columns = [one for one in sheet.columns if not one.aside and one.key not in same]
    numeric = {
        one.key for one in columns if any(isinstance(row.get(one.key), (int, float, Estimate)) for row in sheet.rows)
    }
    heads = "".join(_head(one, one.key in numeric) for one in columns)
    lines = []
    for row in sheet.rows:
        cells = (_cell(row.get(one.key), one, not at) for at, one in enumerate(columns))
        lines.append(f"<tr>{''.join(cells)}</tr>")
    title = _text(f"{sheet.title}, {of}" if of else sheet.title)
    tall = " tall" * (len(lines) > 20)
    return Markup(
        f'<div class="scroll{tall}" role="region" tabindex="0" aria-label="Table: {title}">'
        f'<table class="sortable" id="{escape(identifier)}">'
        f'<caption class="sr">{title}</caption><thead><tr>{heads}</tr></thead><tbody>\n'
        + "\n".join(lines)
        + "\n</tbody></table></div>"
    )


def _head(column: Column, numeric: bool) -> str:
    told = f' title="{_text(column.help)}"' if column.help else ""
    return f'<th scope="col"{" class=num" * numeric}{told}>{_text(column.title)}</th>'


def _cell(cell: Cell, column: Column, head: bool) -> str:
    """Return a cell as HTML with its sort key; only columns of indices are coloured, by band."""
    value = cell.value if isinstance(cell, Estimate) else cell
    raw = "" if value is None else repr(value)
    key = f' data-value="{raw}"' if isinstance(cell, (Estimate, float)) else ""
    style = ""
    if isinstance(cell, (int, float, Estimate)) and not isinstance(cell, bool):
        shown, style = _number(cell, column), "num"
        if (
            column.index
            and isinstance(value, (int, float))
            and not (isinstance(cell, Estimate) and reading.contradicted(cell))
        ):
            style += f" {band(value).replace(' ', '-')}"
    elif column.key == "gate" and cell:
        shown = gate(str(cell))
    else:
        shown, style = (
            _text(("yes" if cell else "no") if isinstance(cell, bool) else cell or ""),
            "wordy" * (len(str(cell or "")) > WORDY),
        )
    tag, more = ("th", ' scope="row"') if head else ("td", f' class="{style}"' * bool(style))
    return f"<{tag}{more}{key}>{shown}</{tag}>"


def _number(cell: int | float | Estimate, column: Column) -> str:
    """Return a number with interval and notes below; an undefined number is N/A, and says why to a pointer."""
    if not isinstance(cell, Estimate):
        plain = (
            f"{number(100 * cell, digits=0)} %"
            if column.percent
            else f"{cell:,}"
            if isinstance(cell, int)
            else said(cell, column.signed, column.digits)
        )
        return f"<b>{plain}</b>"
    if cell.value is None:
        return f'<b class="na" title="{_text(cell.reason)}">{NOT_DEFINED}</b>'
    if column.percent:
        value, ends = f"{100 * cell.value:.0f} %", ends_in_percent(cell).strip()
    else:
        value, _, ends = said(
            Estimate(cell.value, None, cell.low, cell.high, 0, 0, 0), column.signed, column.digits
        ).partition(" ")
    parts = [
        f"<b>{value}</b>",
        f"<small>{ends}</small>" * bool(ends),
        *(f"<small>{_text(word)}</small>" for word in reading.words(cell)),
    ]
    return "".join(parts)


def gate(word: str) -> Markup:
    """Return the state of a gate: a mark and a word (``reading.gate_word``), never colour alone."""
    marks = {reading.VALID: ("right", "✓"), reading.UNKNOWN: ("unknown", "?")}
    style, mark = marks.get(word) or (("unknown", "!") if word.startswith(reading.VALID) else ("wrong", "✕"))
    return Markup(f'<span class="mark {style}"><span aria-hidden="true">{mark}</span> {_text(word)}</span>')


def _text(words: Any) -> Markup:
    return escape(block(cut(str(words), LONGEST)))
