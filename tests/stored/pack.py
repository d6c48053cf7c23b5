"""Add finished runs to the stored ones: ``python -m tests.stored.pack NAME=FOLDER ...``.

A run of that name is replaced.

Kept are the results file, the file of objects beside it and the logs; left out are the Parquet files, which a later
version would not read. Paths of this machine become paths in the checkout, or the last part of their names. The digest
of the results file covers these paths, so it becomes that of the file as it is kept.
"""

import io
import json
import lzma
import re
import sys
import tarfile
import tempfile
from pathlib import Path

from lmms_patch.runs.digests import of_file
from tests.places import ROOT
from tests.stored import RUNS, unpack

TIME = 1_700_000_000
"""When all files of the archive were written, so that packing them twice makes the same archive."""
_PATH = re.compile(r'(?<=["=])/(?:[\w.-]+/)+([\w.-]+)')


def plain(text: str) -> str:
    """Return the text of a file without paths of this machine."""
    text = _PATH.sub(r"\1", text.replace(f"{ROOT}/", ""))
    told = re.search(r'"digest": "([0-9a-f]{16})"', text)
    return text.replace(told[0], f'"digest": "{of_file(json.loads(text))}"') if told else text


def pack(folder: Path) -> None:
    """Write the archive of a folder of runs."""
    with lzma.open(RUNS, "wb", preset=9 | lzma.PRESET_EXTREME) as out, tarfile.open(fileobj=out, mode="w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".json", ".jsonl"):
                data = path.read_bytes()
                member = tarfile.TarInfo(str(path.relative_to(folder.parent)))
                member.size, member.mtime = len(data), TIME
                archive.addfile(member, io.BytesIO(data))


def add(runs: Path, name: str, folder: Path) -> None:
    """Copy the files of one run to the others."""
    for path in folder.rglob("*.json*"):
        (runs / name).mkdir(exist_ok=True)
        (runs / name / path.name).write_text(plain(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        runs = unpack(Path(place))
        for name, _, folder in (one.partition("=") for one in sys.argv[1:]):
            for old in (runs / name).glob("*"):
                old.unlink()
            add(runs, name, Path(folder))
        pack(runs)
