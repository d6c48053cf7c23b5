"""What the ``lmms-patch init`` commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lmms_patch.app.api_init import Written

Force = Annotated[bool, typer.Option("--force", help="Replace files that are there.")]


def text(made: Written) -> str:
    """Say what was written, what to know, and what to type next."""
    return "\n".join(
        [*(f"written: {path}" for path in made.files), *made.notes, *(f"next: {line}" for line in made.type)]
    )
