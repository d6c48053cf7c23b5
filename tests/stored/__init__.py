"""Runs of every kind, and every number that the commands made of them: the numbers must stay.

They stay up to rounding: sums of NumPy's BLAS differ in the last digits between processors (with and without AVX-512,
for example).

``runs.tar.xz`` holds the runs. Of the first version are

- ``mosaic``: the embedded model on the mosaic benchmark; ``damaged``: the same with a cut log, a missing log and an
  edited number
- ``tst``: a Test-set Stress-Test
- ``world``, ``magic``, ``regions``: two made models each, on five made benchmarks, on MAGIC's four tasks, on docs with
  boxes

and of the first version that keeps objects in a file beside the results, all with ``--batch_size 16`` and a limit of 24
docs, where nothing else is said,

- ``turned``: ``mosaic_center_crci2,mosaic_count_rotate``
- ``parts``: ``mosaic_count_{pcri3,shuffle3,blank,blind,swap}``, ``mosaic_local_{pcri3,lowres,swap2}``,
  ``mosaic_sum_occlude2``
- ``boxes``: ``_hidden`` and ``_regions`` of 30 docs of ``mosaic_local``, with the cell of the 3 x 3 grid that holds the
  digit as the relevant box, and two other cells as adversarial ones; each tenth doc has one of the two sets alone
- ``less``: all docs of ``mosaic_local`` at grids 2 and 3 with ``exit: true, pilot: 12``, and of ``mosaic_center`` at
  grid 3 with ``quick: true, pilot: 40, precision: 0.15, null: 40``
- ``curve``: ``rcicurve`` of 30 docs of ``mosaic_local`` with ``pilot: 10, null: 12``
- ``clips``: ``mosaic_video_order_{trci2,tshuffle4,treverse}``, ``mosaic_video_moment_trci4``,
  ``mosaic_video_count_frames``, ``mosaic_video_still_frame``, by ``mosaic_reader``
- ``told``: ``mosaic_text_blindguess,mosaic_count_blindguess``
- ``focus``: ``magic_mosaic,magic_mosaic_relevant,magic_mosaic_nobox,magic_mosaic_selfheal``

``turned_b``, ``parts_b`` and ``boxes_b`` are of the embedded model whose image processor got a smaller budget
(``longest_edge`` 19600 in place of 28224). ``board`` is the memory of a board of ``world`` and ``mosaic``, by a version
that did not keep ``looks``, ``marginal`` and ``sampled``.

``numbers.json.xz`` holds what the commands of ``commands`` wrote or printed of them. A deliberate change of a number is
named in CHANGELOG.md, and ``python -m tests.stored`` writes the file anew. ``python -m tests.stored.pack`` adds runs: a
new kind gets one.
"""

from __future__ import annotations

import contextlib
import io
import json
import lzma
import math
import re
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lmms_patch.compare.audit_file import NO_COUNT, UNPROVEN
from tests.places import ROOT

HERE = Path(__file__).parent
NUMBERS = HERE / "numbers.json.xz"
RUNS = HERE / "runs.tar.xz"
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
OF_KINDS = {
    "turned": ("kind: [rotate], metric: rotate_every, min: 0.6", "kind: [crci], metric: 'crci2*', max: 0.1"),
    "parts": (
        "kind: [lowres], metric: lowres4, min: 0.5",
        "kind: [blind, blank, swap], metric: score, max: 0.3",
        "kind: [shuffle, occlude], metric: score, min: 0.9",
        "kind: [pcri], metric: 'pcri?_adj', max: 0.5",
    ),
    "boxes": ("kind: [hidden], metric: 'drop_*', min: 0.3", "kind: [regions], metric: 'rci_*', min: 0.5"),
    "less": ("kind: [rci], metric: 'rci?', max: 0", "kind: [rci], metric: 'rci?_adj', min: -0.4"),
    "lines": ("kind: [shift], metric: 'on_lines?', max: 0.5", "kind: [shift], metric: 'between?', max: 0.5"),
    "words": ("kind: [caption], metric: caption, max: 0.5", "kind: [caption], metric: drop, min: 0.1"),
    "curve": ("kind: [rcicurve], metric: 'rci?', max: 0.5",),
    "clips": (
        "kind: [frames], metric: 'frames?', min: 0.5",
        "kind: [trci], metric: 'trci?_adj', min: 0.1",
        "kind: [frame, tshuffle], metric: acc, min: 0.5",
    ),
    "focus": ("kind: [magic], metric: 'acc*', min: 0.01",),
}
"""By run, rules about the numbers of its kinds."""
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
    "retrieved_timestamp",
    "evaluation_id",
}


def unpack(folder: Path) -> Path:
    """Unpack the stored runs below a folder, and return where they lie."""
    with tarfile.open(RUNS) as archive:
        archive.extractall(folder, filter="data")
    return folder / "runs"


def demo(folder: Path) -> Path:
    """Unpack the demo's run, which ``scripts/docs/outputs.py`` says how to make, below a folder, and return where it lies."""
    with tarfile.open(ROOT / "scripts" / "docs" / "runs.tar.xz") as archive:
        archive.extractall(folder, [one for one in archive if one.name.startswith("out/demo/")], filter="data")
    return folder / "out" / "demo"


FIRST = ("world", "regions", "magic")
"""Two made models each, of the first version."""
PAIRS = ("turned", "parts", "boxes")
"""The embedded model with its own and with a smaller budget, each."""
ALONE = tuple(name for name in OF_KINDS if name not in PAIRS)


def commands(runs: Path, out: Path) -> Iterator[tuple[str, list[str], Path | None]]:
    """Yield a name, a command line, and the file that it writes, for everything that makes numbers of a finished run.

    No file: it prints.
    """
    for name in (*(f"{pair}_{model}" for pair in FIRST for model in "ab"), "mosaic", "tst", "damaged"):
        yield from _of_run(runs, out, name, RULES)
        yield (
            f"report {name}",
            ["report", str(runs / name), "--quiet", "--output", f"{out}/r-{name}"],
            out / f"r-{name}" / "report.json",
        )
    for name in (*(f"{pair}_{model}" for pair in PAIRS for model in "ab"), *ALONE):
        of_kinds = (
            f"  - {{name: rule {at}, {rule}, allow_limit: true}}\n"
            for at, rule in enumerate(OF_KINDS[name.partition("_")[0]])
        )
        yield from _of_run(runs, out, name, "schema: 1\nrules:\n" + "".join(of_kinds))
        yield f"show {name}", ["show", str(runs / name), "--cells", "--chance", "--wide"], None
    yield "show tst", ["show", str(runs / "tst"), "--causes", "--wide"], None
    (out / "drops.yaml").write_text(DROPS, encoding="utf-8")
    for pair in (*FIRST, *PAIRS):
        a, b = str(runs / f"{pair}_a"), str(runs / f"{pair}_b")
        yield f"compare {pair}", ["compare", a, b, "--quiet", "--json", f"{out}/c-{pair}.json"], out / f"c-{pair}.json"
        drop = ["gate", b, "--baseline", a, "--config", f"{out}/drops.yaml", "--json", f"{out}/d-{pair}.json"]
        yield f"gate {pair} against a baseline", drop, out / f"d-{pair}.json"
        yield (
            f"leaderboard {pair}",
            ["leaderboard", a, b, "--quiet", "--output", f"{out}/b-{pair}"],
            out / f"b-{pair}" / "leaderboard.json",
        )
    for title, names in (
        ("all", [f"{pair}_{m}" for pair in FIRST for m in "ab"]),
        ("kinds", [*(f"{pair}_{m}" for pair in PAIRS for m in "ab"), *ALONE]),
    ):
        folder = out / f"r-of-{title}"
        yield (
            f"report of {title}",
            ["report", *(str(runs / name) for name in names), "--quiet", "--output", str(folder)],
            folder / "report.json",
        )
    yield (
        "magic show",
        ["magic", "show", str(runs / "magic_a"), str(runs / "magic_b"), "--json", f"{out}/m.json"],
        out / "m.json",
    )
    yield (
        "magic show focus",
        ["magic", "show", str(runs / "focus"), "--json", f"{out}/m-focus.json"],
        out / "m-focus.json",
    )
    for pair in ("world", "parts"):
        models = [str(runs / f"{pair}_{model}") for model in "ab"]
        yield (
            f"analyze {pair} of two models",
            ["analyze", "--ensemble", *models, "--quiet", "--json", f"{out}/e-{pair}.json"],
            out / f"e-{pair}.json",
        )
    again = shutil.copytree(runs / "world_b", out / "again", dirs_exist_ok=True)
    for file in again.glob("*_results.json"):  # as if the first model had been run once more
        file.write_text(
            file.read_text(encoding="utf-8")
            .replace("org/model-b", "org/model-a")
            .replace("pretrained=b", "pretrained=a"),
            encoding="utf-8",
        )
    yield (
        "analyze world run twice",
        ["analyze", str(runs / "world_a"), str(again), "--quiet", "--json", f"{out}/twice.json"],
        out / "twice.json",
    )
    yield "gap", ["gap", str(runs / "parts_a"), str(runs / "parts_a"), "--task", "mosaic_count"], None
    for name in ("turned_a", "boxes_a", "less", "curve", "clips", "tst"):
        yield (
            f"export {name}",
            ["export", str(runs / name), "--output", f"{out}/x-{name}.jsonl"],
            out / f"x-{name}.jsonl",
        )
    for name in ("parts_a", "clips"):
        site = ["export", str(runs / name), "--to", "every-eval-ever", "--output", f"{out}/s-{name}.json"]
        yield f"export {name} to a site", site, out / f"s-{name}.json"
    shutil.copytree(runs / "board", out / "b-earlier", dirs_exist_ok=True)
    for file in ("leaderboard.json", "board.json"):
        yield (
            f"leaderboard of an earlier version: {file}",
            ["leaderboard", "--quiet", "--output", f"{out}/b-earlier"],
            out / "b-earlier" / file,
        )


def _of_run(runs: Path, out: Path, name: str, rules: str) -> Iterator[tuple[str, list[str], Path]]:
    """Yield the commands that compute every number of a run again, and hold the run against rules."""
    if not name.startswith(("magic", "focus")):
        yield (
            f"analyze {name}",
            ["analyze", str(runs / name), "--by-category", "--quiet", "--json", f"{out}/a-{name}.json"],
            out / f"a-{name}.json",
        )
    (out / "rules.yaml").write_text(rules, encoding="utf-8")
    yield (
        f"gate {name}",
        ["gate", str(runs / name), "--config", f"{out}/rules.yaml", "--json", f"{out}/g-{name}.json"],
        out / f"g-{name}.json",
    )


def repeats(name: str) -> bool:
    """Say whether the numbers of a command stand in another command's file too: those of a second model in comparisons and boards, for example."""
    what, _, run = name.partition(" ")
    return (what in ("analyze", "gate", "report", "show") and run.endswith("_b")) or (
        what == "report" and run.removesuffix("_a") in FIRST
    )


def numbers(runs: Path, out: Path, main: Callable[[list[str]], Any], few: bool = False) -> dict[str, Any]:
    """Run every command, and return by its name the exit status and what it wrote.

    Args:
        runs: the unpacked runs.
        out: an empty folder.
        main: the command line as a function.
        few: leave out commands that repeat others' numbers.
    """
    made = {}
    for name, arguments, file in commands(runs, out):
        if few and repeats(name):
            continue
        status: Any = 0
        with contextlib.redirect_stdout(io.StringIO()) as stdout, contextlib.redirect_stderr(io.StringIO()):
            try:
                status = main(arguments) or 0
            except SystemExit as end:
                status = end.code or 0
        text = stdout.getvalue() if file is None else file.read_text(encoding="utf-8") if file.is_file() else "null"
        text = text.replace(str(runs), "runs").replace(str(out), "out")
        made[name] = {
            "status": status,
            "wrote": text if file is None else columns(text) if file.suffix == ".jsonl" else steady(json.loads(text)),
        }
    return made


def columns(text: str) -> dict[str, Any]:
    """Sum up a table of docs and views, given as a line of JSON for each row: of each column how many values there are, their sum, and a checksum."""
    rows = [json.loads(line) for line in text.splitlines()]
    made: dict[str, Any] = {"rows": len(rows)}
    for name in dict.fromkeys(key for row in rows for key in row):
        values = [row[name] for row in rows if row.get(name) is not None]
        made[name] = {"values": len(values)}
        if all(isinstance(value, (int, float)) for value in values):
            made[name]["sum"] = float(sum(values))
            made[name]["square"] = float(sum(value * value * at for at, value in enumerate(values, 1)))
        else:
            made[name]["checksum"] = zlib.crc32(json.dumps(values).encode())
    return made


def steady(value: Any) -> Any:
    """Leave out what differs from run to run: times, versions, where files lie.

    Also left out are notes on the harness's count of docs: the world's runs were made without the harness, and the
    other runs before the log's digest covered the count.
    """
    if isinstance(value, dict):
        return {key: steady(inner) for key, inner in value.items() if key not in _VOLATILE}
    return (
        [steady(inner) for inner in value if not str(inner).endswith((f"not checked: {NO_COUNT}", f": {UNPROVEN}"))]
        if isinstance(value, list)
        else value
    )


def differences(old: Any, new: Any, where: str = "$") -> Iterator[str]:
    """Yield where two values differ: in a number, a word, a key.

    Of sentences only their decimal numbers count, so that prose may be bettered.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            if key not in old or key not in new:
                yield f"{where}.{key} is only in the {'new' if key in new else 'old'}"
            else:
                yield from differences(old[key], new[key], f"{where}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for at, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, f"{where}[{at}]")
    elif isinstance(old, str) and isinstance(new, str) and " " in old.strip() + new.strip():
        if (before := _DECIMAL.findall(old)) != (now := _DECIMAL.findall(new)):
            long = len(old) + len(new) > 2000  # a whole page: the first of its numbers that differ
            at = next(
                (at for at, (one, other) in enumerate(zip(before, now, strict=False)) if one != other),
                min(len(before), len(now)),
            )
            yield f"{where}: {before[at : at + 6] if long else old!r} is now {now[at : at + 6] if long else new!r}"
    elif isinstance(old, float) and isinstance(new, float):
        if not math.isclose(old, new, rel_tol=ROUNDING, abs_tol=ROUNDING):
            yield f"{where}: {old!r} is now {new!r}"
    elif type(old) is not type(new) or old != new:
        yield f"{where}: {str(old)[:200]!r} is now {str(new)[:200]!r}"


def stored() -> dict[str, Any]:
    """Return the numbers of the first version."""
    return dict(json.loads(lzma.decompress(NUMBERS.read_bytes())))
