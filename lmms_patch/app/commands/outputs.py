"""Files that commands write beside what they print: everything as JSON, and a table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from lmms_patch.present.sheets import Sheet

JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write everything as JSON.")]
SheetFile = Annotated[
    Path | None,
    typer.Option("--sheet", metavar="FILE", help="Write the table: .csv, .md, .tex or .json, by the file's ending."),
]


def check_names(json_file: Path | None, sheet_file: Path | None) -> None:
    """Refuse equal file names, and a table of unknown form, before anything is computed.

    Raises:
        OptionError: both are one file, or the table's ending is not known.
    """
    from lmms_patch.errors import OptionError
    from lmms_patch.present.sheets import FORMS

    if sheet_file is not None and sheet_file.suffix.removeprefix(".").lower() not in FORMS:
        ending = repr(sheet_file.suffix) if sheet_file.suffix else "a file without ending"
        raise OptionError(
            f"--sheet {sheet_file}: a table cannot be written as {ending}; allowed: {', '.join('.' + form for form in FORMS)}"
        )
    if sheet_file is not None and sheet_file == json_file:
        raise OptionError(f"--json and --sheet name the same file, {json_file}; give each its own")


def write(
    everything: Callable[[], Any],
    json_file: Path | None,
    sheet: Callable[[], Sheet] | None = None,
    sheet_file: Path | None = None,
) -> list[str]:
    """Write both requested files or none.

    Args:
        everything: gives the content of the JSON file.
        json_file: the JSON file; None: not asked for.
        sheet: gives the table.
        sheet_file: the file of the table; None: not asked for.

    Returns:
        A line to print for each file.

    Raises:
        RecordError: a file cannot be written.
    """
    from lmms_patch.files import write_all
    from lmms_patch.text import harmless

    files: dict[Path, str] = {}
    if json_file is not None:
        files[json_file] = json.dumps(harmless(everything()), indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    if sheet_file is not None and sheet is not None:
        files[sheet_file] = sheet().written(sheet_file.suffix.removeprefix(".").lower())
    write_all(files)
    return [f"written: {path}" for path in files]
