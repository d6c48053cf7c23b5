"""What every page of a report and of a board is made with: its frame, style, script and policy, tables and numbers.

A page is one HTML file with everything in it, for any browser, from disk, without a network. Its policy
(Content-Security-Policy) allows nothing but the one style sheet and the one script that are in it, by their hashes, and
pictures that are in it. Every string is escaped by jinja2, after ``text.block`` took out what acts on its neighbours.
"""

from __future__ import annotations

import functools
from typing import Any

import jinja2
from markupsafe import Markup

from lmms_patch.present import look
from lmms_patch.present.page import markup, wording
from lmms_patch.text import block, cut

ANSWER, NAME, LONGEST = 600, 160, 2_000
"""Characters that a page shows of an answer, of a name, and of any text."""


def _finalize(value: Any) -> Any:
    """Return each string on its way into a page: of a bearable length, readable.

    What is markup already was made here.
    """
    return block(cut(value, LONGEST)) if type(value) is str else value


@functools.cache
def environment(package: str, *sheets: str) -> jinja2.Environment:
    """Return the templates of a package beside those of this package: escaping always on, an unknown name is an error.

    Pages extend ``base.html.j2``, are given a ``title``, and take ``macros.html.j2``.

    Args:
        package: the package with the folder ``templates``.
        sheets: names of the package's own style sheets there.

    Raises:
        ValueError: a style sheet or the script closes its own element.
    """
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package), jinja2.PackageLoader(__name__)]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )

    def source(name: str) -> str:
        assert made.loader is not None
        return made.loader.get_source(made, name)[0].replace("\r\n", "\n")

    made.filters |= {
        "name": lambda text: cut(str(text), NAME),
        "answer": lambda text: cut(str(text), ANSWER),
        "head": lambda title: markup.text(title).replace("_", Markup("_<wbr>")),
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
        "gate": lambda word: Markup(markup.gate(word)),
        "with_ends": lambda number, signed: Markup(markup.estimate(number, signed)),
    }
    css, js = "".join([look.css(), *map(source, ("page.css", *sheets))]), source("page.js")
    if "</style" in css.lower() or "</script" in js.lower():
        raise ValueError("a style sheet or script that closes its own element")
    policy = f"default-src 'none'; img-src data:; style-src '{look.hashed(css)}'; script-src '{look.hashed(js)}'; base-uri 'none'; form-action 'none'"
    made.globals |= {"css": Markup(css), "js": Markup(js), "policy": policy}
    made.globals |= {"sheet_rows": markup.rows, "numeric": markup.numeric}
    return made
