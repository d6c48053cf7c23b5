"""The place of the data folders that travel with the package: ``tasks`` and ``configs``."""

from __future__ import annotations

from pathlib import Path


def folder(name: str) -> Path:
    """Return the absolute path of a data folder of this project.

    An installed wheel carries it inside the package; a checkout (editable install) has it beside
    the package.

    Args:
        name: ``"tasks"`` or ``"configs"``.

    Raises:
        FileNotFoundError: the folder is in neither place (a broken installation).
    """
    package = Path(__file__).resolve().parent
    for candidate in (package / "_data" / name, package.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(
        f"lmms-patch is not installed whole: no folder {name!r} in {package / '_data'} or {package.parent}"
    )
