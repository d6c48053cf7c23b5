"""``lmms-patch magic check``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_patch.app.commands.common import JsonFile, answer, counting, examples

if TYPE_CHECKING:
    from lmms_patch.magic.dataset import Checked
    from lmms_patch.magic.rows import Fault

# warnings of one kind; a file without adversarial boxes has one on every line
_SHOWN = 20


@examples(
    "# the embedded data, in a checkout",
    "lmms-patch magic check tasks/magic/mosaic",
    "# your own, all faults also into a file",
    "lmms-patch magic check data/items.jsonl --json faults.json",
)
def magic_check(
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help="A .jsonl or .parquet file, a folder with one, or a name on the hub."),
    ],
) -> Checked:
    """List every fault of a dataset, with its line; the exit status says whether there is an error.

    0: none (there may be warnings). 1: errors; runs leave those items out. 2: there is no such dataset, or it cannot be
    read. docs/magic.md has the form.
    """
    from lmms_patch.magic import dataset

    with counting("check") as tell:
        return dataset.inspect(data, tell=lambda lines: tell(lines, None))


def display(
    checked: Checked,
    json_file: JsonFile = None,
) -> int:
    """Print the faults, and return 1 where there is an error."""
    answer(lambda: text(checked), checked.to_json, json_file)
    return int(bool(checked.level("error")))


def text(checked: Checked) -> str:
    """Tell errors and warnings, both counted by kind, and what is in the dataset."""
    from lmms_patch.present.sheets import table

    blocks = []
    errors, warnings = checked.level("error"), checked.level("warning")
    if errors:
        what = f"{checked.total - checked.usable} of {_some(checked.total, 'item')} will be left out of runs"
        blocks.append(
            "\n".join([f"errors ({what}):" if checked.total else "errors:", *(f"  {_at(one)}" for one in errors)])
        )
    if warnings:
        blocks.append("\n".join(["warnings (the items are used):", *_warned(warnings)]))
    if checked.faults:
        rows = [[level, kind, str(many), str(lines)] for level, kind, many, lines in checked.kinds()]
        blocks.append(table(["level", "what", "faults", "items"], rows).to_text())
    blocks.append("\n".join([_verdict(checked), *_inside(checked)]))
    return "\n\n".join(blocks)


def _at(fault: Fault) -> str:
    """Return a fault without its level, which stands above."""
    return str(fault).replace(": error: ", ": ", 1).replace(": warning: ", ": ", 1)


def _warned(warnings: Sequence[Fault]) -> list[str]:
    """List the warnings in the order of their lines, the first of each kind."""
    seen: Counter[str] = Counter()
    lines = []
    for one in warnings:
        seen[one.kind] += 1
        if seen[one.kind] <= _SHOWN:
            lines.append(f"  {_at(one)}")
    more = [
        f"  ... and {count - _SHOWN} more of: {kind} (--json FILE has all)"
        for kind, count in seen.items()
        if count > _SHOWN
    ]
    return [*lines, *more]


def _verdict(checked: Checked) -> str:
    """Say in a line how many items and faults a dataset has."""
    errors, warnings = len(checked.level("error")), len(checked.level("warning"))
    if not errors and not warnings:
        return f"{checked.name}: {_some(checked.total, 'item')}, no fault"
    what = " and ".join(
        [*([_some(errors, "error")] if errors else []), *([_some(warnings, "warning")] if warnings else [])]
    )
    return f"{checked.name}: {_some(checked.total, 'item')}, {checked.usable} of them can be used; {what}"


def _inside(checked: Checked) -> list[str]:
    """Tell what is in the usable items."""
    n = checked.counts
    if not checked.usable:
        return []
    boxes = (
        f"{_some(n['images'], 'image')}; {n['relevant boxes']} relevant and {n['adversarial boxes']} adversarial boxes"
    )
    if not n["items with steps"]:
        return [f"in it: {boxes}; no annotated steps, so nothing for Self-Heal"]
    steps = f"{_some(n['steps'], 'step')} of {_some(n['items with steps'], 'item')}, {n['wrong steps']} of them wrong"
    why = {
        "wrong runs at the start": "at the start",
        "wrong runs near the end": "near the end",
        "wrong runs without correction": "without correction",
    }
    out = ", ".join(f"{n[name]} {said}" for name, said in why.items() if n[name])
    return [
        f"in it: {boxes}; {steps}",
        f"Self-Heal: {_some(n['wrong runs to test'], 'run')} of wrong steps to test{f' (left out: {out})' if out else ''}",
    ]


def _some(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
