"""``lmms-patch schema``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from lmms_patch.app import api
from lmms_patch.app.commands.common import examples, say


@examples(
    "# which files have a schema",
    "lmms-patch schema",
    "# that of the object in each line of a sample log, into a file",
    "lmms-patch schema patch > patch.schema.json",
)
def command(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Of one schema; their list if left out.")] = None,
) -> None:
    """Print the JSON schemas (draft 2020-12) of the files that lmms-patch reads and writes."""
    say(listing() if name is None else json.dumps(api.schema(name), indent=2, ensure_ascii=False))


def listing() -> str:
    """Return one line per schema: its name and description."""
    schemas = api.schema()
    width = max(map(len, schemas))
    return "\n".join(f"{name:<{width}}  {one['description']}" for name, one in schemas.items())
