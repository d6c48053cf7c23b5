"""Finished runs of every kind, for tests of what reads them: ``python -m tests.stored`` makes them anew.

They are replays of the scenes of ``tests.golden``, which holds the answers, so a change of a file's form costs a minute. A
run is called as its scene.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

from tests.places import ROOT

RUNS = Path(__file__).parent / "runs.tar.xz"


def unpack(folder: Path) -> Path:
    """Unpack the stored runs below a folder, and return where they lie."""
    with tarfile.open(RUNS) as archive:
        archive.extractall(folder, filter="data")
    return folder / "runs"


def demo(folder: Path) -> Path:
    """Unpack the whole demo behind the pages (``scripts/docs/outputs.py`` says how it is made) below a folder, and return where it lies."""
    with tarfile.open(ROOT / "scripts" / "docs" / "runs.tar.xz") as archive:
        archive.extractall(folder, [one for one in archive if one.name.startswith("out/demo/")], filter="data")
    return folder / "out" / "demo"
