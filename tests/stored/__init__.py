"""Five runs of the first version, and every number that its commands made of them: the numbers must stay.

They stay up to rounding: sums of NumPy's BLAS differ in the last digits between processors (with and without AVX-512, for example).

``runs.tar.xz`` holds the runs: the embedded model on the mosaic benchmark (``mosaic``), the same run with a cut log, a missing log and an edited
number (``damaged``), a Test-set Stress-Test (``tst``), and two made models each on five made benchmarks (``world``), on MAGIC's four tasks
(``magic``) and on docs with boxes (``regions``). ``numbers.json.xz`` holds what ``analyze``, ``gate``, ``compare``, ``leaderboard``, ``report`` and
``magic show`` wrote of them. A deliberate change of a number is named in CHANGELOG.md, and ``python -m tests.stored`` writes the file anew.
"""

from __future__ import annotations

import contextlib
import io
import json
import lzma
import math
import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lmms_patch.compare.audit import NO_COUNT
from tests.places import ROOT

HERE = Path(__file__).parent
NUMBERS = HERE / "numbers.json.xz"
RULES = "schema: 1\nrules:\n" + "".join(
    f"  - {{name: {name}, {rule}}}\n"
    for name, rule in {
        "valid": "kind: [rci], require: valid gate",
        "looks": "kind: [rci], require: looks",
        "whole": "kind: [rci], metric: 'rci?', min: 0.1",
        "adjusted": "kind: [rci], metric: 'rci?_adj', min: 0.1",
        "score": "metric: fip, min: 0.3",
        "magic": "kind: [magic], metric: acc, min: 0.3",
        "text": "kind: [tst], metric: tst_above, max: 0.1",
    }.items()
)
DROPS = "schema: 1\nrules:\n  - {name: kept, metric: fip, max_drop: 0.05}\n"
ROUNDING = 1e-9
"""How far two machines may be apart: far more than rounding gives, far less than another formula would."""
_DECIMAL = re.compile(r"-?\d+\.\d+")
_VOLATILE = {
    "seconds",
    "made",
    "date",
    "written",
    "created",
    "title",
    "path",
    "file",
    "files",
    "run",
    "source",
    "$schema",
    "lmms_patch",
    "digest",
    "log",
}


def unpack(folder: Path) -> Path:
    """Unpack the stored runs below a folder, and return where they lie."""
    with tarfile.open(HERE / "runs.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "runs"


def demo(folder: Path) -> Path:
    """Unpack the demo's run, which ``scripts/docs/outputs.py`` says how to make, below a folder, and return where it lies."""
    with tarfile.open(ROOT / "scripts" / "docs" / "runs.tar.xz") as archive:
        archive.extractall(folder, [one for one in archive if one.name.startswith("out/demo/")], filter="data")
    return folder / "out" / "demo"


def commands(runs: Path, out: Path) -> Iterator[tuple[str, list[str], Path]]:
    """Yield a name, a command line, and the JSON file that it writes, for everything that makes numbers of a finished run."""
    pairs = ("world", "regions", "magic")
    for name in (*(f"{pair}_{model}" for pair in pairs for model in "ab"), "mosaic", "tst", "damaged"):
        run = str(runs / name)
        if not name.startswith("magic"):
            yield f"analyze {name}", ["analyze", run, "--by-category", "--quiet", "--json", f"{out}/a-{name}.json"], out / f"a-{name}.json"
        (out / "rules.yaml").write_text(RULES, encoding="utf-8")
        yield f"gate {name}", ["gate", run, "--config", f"{out}/rules.yaml", "--json", f"{out}/g-{name}.json"], out / f"g-{name}.json"
        yield f"report {name}", ["report", run, "--quiet", "--output", f"{out}/r-{name}"], out / f"r-{name}" / "report.json"
    (out / "drops.yaml").write_text(DROPS, encoding="utf-8")
    for pair in pairs:
        a, b = str(runs / f"{pair}_a"), str(runs / f"{pair}_b")
        yield f"compare {pair}", ["compare", a, b, "--quiet", "--json", f"{out}/c-{pair}.json"], out / f"c-{pair}.json"
        drop = ["gate", b, "--baseline", a, "--config", f"{out}/drops.yaml", "--json", f"{out}/d-{pair}.json"]
        yield f"gate {pair} against a baseline", drop, out / f"d-{pair}.json"
        yield f"leaderboard {pair}", ["leaderboard", a, b, "--quiet", "--output", f"{out}/b-{pair}"], out / f"b-{pair}" / "leaderboard.json"
    yield (
        "report of all",
        ["report", *(str(runs / f"{pair}_{m}") for pair in pairs for m in "ab"), "--quiet", "--output", f"{out}/r"],
        out / "r" / "report.json",
    )
    yield "magic show", ["magic", "show", str(runs / "magic_a"), str(runs / "magic_b"), "--json", f"{out}/m.json"], out / "m.json"


def numbers(runs: Path, out: Path, main: Callable[[list[str]], Any]) -> dict[str, Any]:
    """Run every command, and return by its name the exit status and what it wrote.

    Args:
        runs: the unpacked runs.
        out: an empty folder.
        main: the command line as a function.
    """
    made = {}
    for name, arguments, file in commands(runs, out):
        status: Any = 0
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            try:
                status = main(arguments) or 0
            except SystemExit as end:
                status = end.code or 0
        text = file.read_text(encoding="utf-8").replace(str(runs), "runs").replace(str(out), "out") if file.is_file() else "null"
        made[name] = {"status": status, "wrote": steady(json.loads(text))}
    return made


def steady(value: Any) -> Any:
    """Leave out what differs from run to run: times, versions, where files lie.

    Also left out is the note that a file lacks the harness's count of its samples: the world's runs were made without the harness.
    """
    if isinstance(value, dict):
        return {key: steady(inner) for key, inner in value.items() if key not in _VOLATILE}
    return [steady(inner) for inner in value if not str(inner).endswith(f"not checked: {NO_COUNT}")] if isinstance(value, list) else value


def differences(old: Any, new: Any, where: str = "$") -> Iterator[str]:
    """Yield where two values differ: in a number, a word, a key. Of sentences only their decimal numbers count, so that prose may be bettered."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old.keys() | new.keys():
            if key not in old or key not in new:
                yield f"{where}.{key} is only in the {'new' if key in new else 'old'}"
            else:
                yield from differences(old[key], new[key], f"{where}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for at, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, f"{where}[{at}]")
    elif isinstance(old, str) and isinstance(new, str) and " " in old.strip() + new.strip():
        if _DECIMAL.findall(old) != _DECIMAL.findall(new):
            yield f"{where}: {old!r} is now {new!r}"
    elif isinstance(old, float) and isinstance(new, float):
        if not math.isclose(old, new, rel_tol=ROUNDING, abs_tol=ROUNDING):
            yield f"{where}: {old!r} is now {new!r}"
    elif type(old) is not type(new) or old != new:
        yield f"{where}: {str(old)[:200]!r} is now {str(new)[:200]!r}"


def stored() -> dict[str, Any]:
    """Return the numbers of the first version."""
    return dict(json.loads(lzma.decompress(NUMBERS.read_bytes())))
