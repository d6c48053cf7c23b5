"""Replay the scenes of ``tests.golden``, and store their runs: tables, numbers, and the host's results files."""

import io
import lzma
import tarfile
import tempfile
from pathlib import Path

from tests import golden
from tests.golden.scenes import SCENES
from tests.stored import RUNS

TIME = 1_700_000_000
"""When all files of the archive were written, so that packing them twice makes the same archive."""

with tempfile.TemporaryDirectory() as place:
    answers = golden.stored()
    outs = {name: golden.replay(name, Path(place), answers) for name in SCENES}
    with lzma.open(RUNS, "wb", preset=9 | lzma.PRESET_EXTREME) as out, tarfile.open(fileobj=out, mode="w") as archive:
        for name, folder in outs.items():
            for path in sorted([*folder.rglob("*.parquet"), *folder.rglob("*_results.json")]):
                data = path.read_bytes()
                data = data.replace(place.encode(), b"out") if path.suffix == ".json" else data
                member = tarfile.TarInfo(f"runs/{name}/{path.name}")
                member.size, member.mtime = len(data), TIME
                archive.addfile(member, io.BytesIO(data))
print(RUNS.stat().st_size, "bytes")
