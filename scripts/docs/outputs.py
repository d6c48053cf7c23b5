"""What the commands on the pages print: each ``console`` block is typed again, in a folder with the runs of ``runs.tar.xz``.

``python scripts/docs/outputs.py`` prints what differs, and ``--write`` writes it into the pages. A line ``...`` stands
for lines left out, and `` ...`` at the end of a line for the rest of it; of such a block the lines that are most like
those shown are taken, as many as there are: look at what it wrote. A ``yaml`` block with a title is a file that the
commands read.

Runs are not made again: ``demo`` and ``tst`` find theirs, and show them. The four runs in the archive are

- ``out/demo``: ``lmms-patch demo``
- ``out/next``: ``mosaic_local_rci,mosaic_count_rci`` of the same model after its image processor got a smaller budget
  (``longest_edge`` 19600 in place of 28224)
- ``out/tst``: ``lmms-patch tst mosaic_text --output out/tst``
- ``out/texts``: ``mosaic_text_tst5,mosaic_count_tst5`` of ``tst_rf``

each the samples tables alone.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import io
import os
import re
import shlex
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from lmms_patch.app import cli
from lmms_patch.app.commands import demo, show, tst

ROOT = Path(__file__).parents[2]
RUNS = Path(__file__).parent / "runs.tar.xz"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
FILE = re.compile(r'^```yaml title="([\w.-]+)"\n(.*?)^```$', re.M | re.S)
"""A file that the commands of the page read."""
WIDTH = 80


def pages() -> list[Path]:
    """List the pages that have ``console`` blocks."""
    return [path for path in sorted((ROOT / "docs").rglob("*.md")) if BLOCK.search(path.read_text(encoding="utf-8"))]


def unpacked(folder: Path) -> Path:
    """Unpack the runs into a folder, and return the folder ``out`` that holds them."""
    with tarfile.open(RUNS) as archive:
        archive.extractall(folder, filter="data")
    return folder / "out"


def typed(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of the ``console`` blocks of a page, and what is printed below it."""
    for block in BLOCK.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, printed = part.partition("\n")
            yield command, printed.rstrip("\n")


def written(text: str, folder: Path) -> None:
    """Write the files that a page shows, for its commands to read."""
    for name, content in FILE.findall(text):
        (folder / name).write_text(content, encoding="utf-8")


def printed(command: str, folder: Path) -> str:
    """Return what a command of ours prints when it is typed in a folder.

    Raises:
        ValueError: it is no command of ours.
    """
    program, *words = shlex.split(command)
    if program != "lmms-patch":
        raise ValueError(f"{command!r}: a console block has commands of lmms-patch only; put others into a bash block")
    stdout, before = io.StringIO(), Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(io.StringIO()) as stderr, _finished_runs():
            status = cli.main(words)
    finally:
        os.chdir(before)
    said = stderr.getvalue() if status == cli.MISTAKE else stdout.getvalue()
    return said.replace(f"{ROOT}/", "").rstrip("\n")  # where this checkout lies is nobody's business


def agrees(shown: str, output: str) -> bool:
    """Return whether a page shows an output.

    A line ``...`` stands for any lines, and `` ...`` at the end of a line for the rest of it.
    """
    parts = [
        re.escape(part).replace("\\ \\.\\.\\.\\\n", " .*\n")
        for part in re.split(r"^\.\.\.\n", f"{shown}\n", flags=re.M)
    ]
    return re.fullmatch(r"[\s\S]*".join(parts), f"{output}\n") is not None


def mended(shown: str, output: str) -> str:
    """Return what a page is to show of an output: the lines most like those it shows now, left out what it leaves out."""
    lines, parts = output.splitlines(), re.split(r"^\.\.\.$", shown, flags=re.M)
    out = []
    for part in parts if len(parts) > 1 else []:
        old = part.strip("\n").splitlines()
        places = range(len(lines) - len(old) + 1)
        if not old or not places:
            out.append("")
            continue
        like = [
            difflib.SequenceMatcher(None, "\n".join(lines[i : i + len(old)]), "\n".join(old)).ratio() for i in places
        ]
        found = lines[max(places, key=like.__getitem__) :][: len(old)]
        kept = [
            f"{new[: len(was) - 4]} ..." if was.endswith(" ...") else new for new, was in zip(found, old, strict=True)
        ]
        out.append("\n".join(kept))
    return "\n...\n".join(out).strip("\n") if out else output


@contextlib.contextmanager
def _finished_runs() -> Iterator[None]:
    """Let ``demo`` and ``tst`` show a run that is there, at a width of 80 columns."""

    def stands_in(command: Any) -> Any:
        return functools.wraps(command)(lambda output, **_: show.show(output))

    with (
        mock.patch.object(demo, "demo", stands_in(demo.demo)),
        mock.patch.object(tst, "tst", stands_in(tst.tst)),
        mock.patch.dict(os.environ, {"COLUMNS": str(WIDTH)}),
    ):
        yield


def main() -> int:
    """Compare every page with what its commands print; with ``--write``, mend the pages."""
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        unpacked(Path(folder))
        for page in pages():
            text = page.read_text(encoding="utf-8")
            written(text, Path(folder))
            for command, shown in typed(text):
                output = printed(command, Path(folder))
                if agrees(shown, output):
                    continue
                different += 1
                print(f"{page.relative_to(ROOT)}: $ {command}")
                print(
                    "\n".join(
                        difflib.unified_diff(shown.splitlines(), output.splitlines(), "page", "printed", lineterm="")
                    )
                )
                if "--write" in sys.argv:
                    new = mended(shown, output)
                    text = text.replace(
                        f"$ {command}\n{shown}\n" if shown else f"$ {command}\n", f"$ {command}\n{new}\n"
                    )
            if "--write" in sys.argv:
                page.write_text(text, encoding="utf-8")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
