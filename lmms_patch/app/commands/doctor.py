"""``lmms-patch doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lmms_patch.app.commands.common import examples, say
from lmms_patch.text import printed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmms_patch.app.doctor.lines import Line


@examples(
    "# is everything set up?",
    "lmms-patch doctor",
    "# does this adapter show each view? No weights are loaded",
    "lmms-patch doctor --model qwen2_5_vl",
    "# is this run whole, and what does it lack?",
    "lmms-patch doctor out",
    "# for a program",
    "lmms-patch doctor --format json",
)
def command(
    run: Annotated[
        Path | None,
        typer.Argument(metavar="OUT", help="The --output_path of a run, or one *_results.json: it is checked too."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="Check this adapter of lmms-eval, from its code.")
    ] = None,
    form: Annotated[
        Literal["text", "json"],
        typer.Option("--format", help="Lines to read, or JSON (lmms-patch config schemas/doctor)."),
    ] = "text",
) -> int:
    """Check the installation, the machine, and a run: a line for each thing, with what to type where it is not ok.

    The exit status is 1 where something is wrong, else 0; a warning is not wrong.
    """
    from lmms_patch.app import api
    from lmms_patch.app.doctor.lines import status, to_json

    found = api.doctor(run, model=model)
    if form == "json":
        import msgspec

        print(printed(msgspec.json.format(msgspec.json.encode(to_json(found)), indent=2).decode()))
    else:
        say(text(found))
    return status(found)


def text(found: Sequence[Line]) -> str:
    """Return the lines as text, each with what to type below it; the last line counts how many are ok, warnings and wrong."""
    out = []
    for one in found:
        out.append(f"{one.state:<7}  {one.about}: {one.said}")
        out += [f"{'':<7}  type: {one.type}"] if one.type else []
    counts = {state: sum(one.state == state for one in found) for state in ("ok", "warning", "wrong")}
    told = f"{counts['ok']} ok, {counts['warning']} warning{'s' * (counts['warning'] != 1)}, {counts['wrong']} wrong"
    return "\n".join([*out, "", told])
