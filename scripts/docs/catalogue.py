"""Tables of the docs that are made of code: all numbers (docs/metrics.md), all columns of the samples (docs/tables.md).

``python scripts/docs/catalogue.py --write`` writes them anew.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from lmms_patch.ask.kinds import KINDS
from lmms_patch.runs import catalogue, schema
from lmms_patch.runs.catalogue import Keys

DOCS = Path(__file__).parents[2] / "docs"
LAST = "<!-- end -->\n"


def numbers() -> Iterator[tuple[str, str]]:
    """Yield the rows of docs/metrics.md."""
    yield "name", "what it is"
    told: dict[str, dict[str, None]] = {}
    for number in catalogue.NUMBERS:
        of = [kind for kind in KINDS.values() if list(number.keys(kind, Keys.asked(kind, kind.sizes[:1], (1,))))]
        names = [number.name.format(index=kind.prefix, kind=kind.name, key="" if kind.beside else "<n>") for kind in of]
        sides = ["low", "high"] * number.ends
        # only the ends of its interval have a name
        if not (number.columns or number.measured):
            names, sides = [f"{name}_{sides[0]}" for name in names], sides[1:]
        ends = "; " * bool(sides) + ", ".join(f"`_{side}`" for side in sides)
        # numbers of the same meaning share a row
        told.setdefault(number.help, {})[", ".join(f"`{name}`" for name in dict.fromkeys(names)) + ends] = None
    yield from ((names, said) for said, several in told.items() for names in several)


def columns() -> Iterator[tuple[str, str, str]]:
    """Yield the rows of docs/tables.md."""
    yield "column", "type", "meaning"
    for name, kind, meaning in schema.COLUMNS:
        yield f"`{name}`", typed(kind), re.sub(r"docs/(\w+\.md)", r"[\1](\1)", meaning)
    yield "`score.<metric>`", typed(schema.REAL), "by each other metric"
    yield "`doc.<name>`", "any", "short fields of the doc"


def typed(kind: pl.DataType) -> str:
    """Return a type as the docs say it; fields of a method's struct stand on the page of the method."""
    if isinstance(kind, pl.Struct):
        return "struct" if len(kind.fields) > 7 else " ".join(field.name for field in kind.fields)
    return f"[{typed(kind.inner)}]" if isinstance(kind, pl.List) else str(kind)


MADE = {
    DOCS / "metrics.md": ("<!-- numbers of the catalogue -->\n", numbers),
    DOCS / "tables.md": ("<!-- columns of the samples -->\n", columns),
}


def written(page: Path) -> str:
    """Return a page with its table as the code has it."""
    first, rows = MADE[page]
    head, *body = (f"| {' | '.join(row)} |\n" for row in rows())
    table = f"{head}{'|---' * (head.count(' | ') + 1)}|\n{''.join(body)}"
    before, _, rest = page.read_text(encoding="utf-8").partition(first)
    return f"{before}{first}\n{table}\n{LAST}{rest.partition(LAST)[2]}"


if __name__ == "__main__":
    for page in MADE:
        new, old = written(page), page.read_text(encoding="utf-8")
        if "--write" in sys.argv:
            page.write_text(new, encoding="utf-8")
        state = "as the code has it" if new == old else "written" if "--write" in sys.argv else "differs; --write"
        print(f"{page.name}: {state}")
