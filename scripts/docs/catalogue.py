"""The table of all numbers in docs/metrics.md, made of ``lmms_patch.runs.catalogue``: ``python scripts/docs/catalogue.py --write`` writes it anew."""

import sys
from pathlib import Path

from lmms_patch.runs import catalogue

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
FIRST, LAST = "<!-- numbers of the catalogue -->\n", "<!-- end -->\n"


def written(text: str) -> str:
    """Return the page with the table as the catalogue has it."""
    rows = "".join(f"| {names} | {said} |\n" for names, said in catalogue.documented().items())
    before, _, rest = text.partition(FIRST)
    return f"{before}{FIRST}\n| name | what it is |\n|---|---|\n{rows}\n{LAST}{rest.partition(LAST)[2]}"


if __name__ == "__main__":
    old = PAGE.read_text(encoding="utf-8")
    new = written(old)
    if "--write" in sys.argv:
        PAGE.write_text(new, encoding="utf-8")
    print(
        "the table is as the catalogue has it"
        if new == old
        else "written"
        if "--write" in sys.argv
        else "the table differs; --write writes it"
    )
