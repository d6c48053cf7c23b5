"""Count the modules and functions of ours that run on two ways: one doc from request to number, one run from file to verdict.

docs/architecture.md walks both, with these counts beside the walks:

    python -m scripts.walk [--list]
"""

from __future__ import annotations

import functools
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = str(ROOT / "lmms_patch") + "/"


def functions(work: Callable[[], Any]) -> set[tuple[str, str]]:
    """Return the functions of lmms_patch that run in some work, imports not counted, as pairs of module path and qualified name.

    Bodies of modules, lambdas and comprehensions are no functions here.
    """
    seen: set[CodeType] = set()
    importing = threading.local()

    def note(frame: FrameType, event: str, _: object) -> None:
        if frame.f_code.co_name == "_find_and_load":
            importing.depth = getattr(importing, "depth", 0) + {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not getattr(importing, "depth", 0):
            seen.add(frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]  # typeshed does not know that None ends it
    ours = (code for code in seen if code.co_filename.startswith(PACKAGE) and "<" not in code.co_name)
    return {(code.co_filename.removeprefix(PACKAGE), code.co_qualname) for code in ours}


def counts(found: set[tuple[str, str]]) -> tuple[int, int]:
    """Return how many modules and how many functions there are."""
    return len({path for path, _ in found}), len(found)


def one_doc(folder: Path) -> None:
    """Ask the embedded model about one doc, cell by cell, by the harness's own command line."""
    from lmms_eval.__main__ import cli_evaluate

    asked = ["--model", "mosaic_vlm", "--tasks", "mosaic_local_rci2", "--limit", "1", "--log_samples"]
    sys.argv = ["lmms-eval", *asked, "--output_path", str(folder)]
    cli_evaluate()


def one_run(folder: Path) -> None:
    """Judge that run by one rule."""
    from lmms_patch.app.cli import main

    rules = folder / "gate.yaml"
    rules.write_text("schema: 1\nrules:\n  - {name: score, metric: fip, min: 0, allow_limit: true}\n", encoding="utf-8")
    main(["gate", str(folder), "--config", str(rules)])


def main() -> None:
    """Print both counts."""
    # the first walk sets other arguments
    listed = "--list" in sys.argv
    with tempfile.TemporaryDirectory() as name:
        for title, work in (("one doc", one_doc), ("one run", one_run)):
            found = functions(functools.partial(work, Path(name)))
            modules, called = counts(found)
            print(f"{title}: {modules} modules, {called} functions")
            if listed:
                print(*sorted(":".join(one) for one in found), sep="\n", flush=True)


if __name__ == "__main__":
    main()
