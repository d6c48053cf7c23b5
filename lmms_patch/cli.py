"""``lmms-patch <command>``: wires the parts, computes nothing."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lmms_patch import __version__, outcome, pooling, prune_commands, recompute, records, show, show_tst, tst_commands
from lmms_patch.errors import PatchError, RecordError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0: done, 2: a user's mistake, told in one line."""
    args = _parser().parse_args(argv)
    try:
        args.run(args)
    except PatchError as error:
        print(f"lmms-patch: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 0
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lmms-patch", description="Which part of the image does a benchmark, or a model, really use?")
    parser.add_argument("--version", action="version", version=f"lmms-patch {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)

    tasks = commands.add_parser("tasks", help="what can be wrapped, what cannot and why, and what it costs")
    tasks.add_argument("pattern", nargs="?", help="a base task, group, tag or wildcard (gqa*), or a wrapped name (gqa_rci3); default: all")
    tasks.add_argument("--as", dest="kind", metavar="SUFFIX", help="the way of wrapping to price: rci3, rci, pcri, blind, ... (default: rci3)")
    tasks.add_argument("--include-path", metavar="DIR", help="a folder with more task files")
    tasks.set_defaults(run=_tasks)

    coverage = commands.add_parser("coverage", help="which tasks of the installed lmms-eval wrap")
    coverage.add_argument("--write", metavar="FILE", type=Path, help="write the whole list as Markdown")
    coverage.set_defaults(run=_coverage)

    shown = commands.add_parser("show", help="the table of a finished run")
    shown.add_argument("folder", type=Path, help="the --output_path of the run, or one *_results.json")
    shown.add_argument("--cells", action="store_true", help="also where in the image the score comes from")
    shown.add_argument("--causes", action="store_true", help="for text-only cross-validations: which features, and what questions, give answers away")
    shown.add_argument("--chance", action="store_true", help="also every chance floor, and what the gate asked for")
    shown.set_defaults(run=_show)

    tst_commands.add_parser(commands)
    commands.choices["tst"].set_defaults(run=_tst)
    prune_commands.add_prune_parser(commands).set_defaults(run=prune_commands.run_prune)
    prune_commands.add_gap_parser(commands).set_defaults(run=prune_commands.run_gap)

    analyze = commands.add_parser("analyze", help="recompute a finished run's numbers with other settings; average several runs")
    analyze.add_argument("folders", type=Path, nargs="+", metavar="OUT", help="the --output_path of a run, or one *_results.json; several: averaged")
    analyze.add_argument("--draws", type=_at_least(200), metavar="B", help="bootstrap draws (default: as the run, 1000)")
    analyze.add_argument("--level", type=_fraction, help="coverage of the intervals, between 0.5 and 1 (default: 0.95)")
    analyze.add_argument("--delta", type=float, help="the gate's margin on the metric's own scale (default: 1 %% of the scale)")
    analyze.add_argument("--seed", type=_at_least(0), help="of the bootstrap (default: as the run)")
    analyze.add_argument("--chance", type=_chance, metavar="FLOOR", help="a documented chance floor on the metric's own scale, or 'majority'")
    analyze.add_argument("--metric", help="build the index on another metric of the task")
    analyze.add_argument("--cluster", metavar="FIELD", help="the field that names clusters, or 'none' for independent docs")
    analyze.add_argument("--category", help="only docs of this category")
    analyze.add_argument("--by-category", action="store_true", help="also each category by itself")
    analyze.add_argument("--cells", action="store_true", help="also where in the image the score comes from")
    analyze.add_argument("--json", type=Path, metavar="FILE", help="write all numbers as JSON")
    analyze.set_defaults(run=_analyze)
    return parser


def _tasks(args: argparse.Namespace) -> None:
    from lmms_patch.harness import catalog
    from lmms_patch.spec import parse

    manager = catalog.task_manager(args.include_path)
    pattern, kind = args.pattern, args.kind or "rci3"
    if pattern is not None and pattern not in manager.all_tasks and args.kind is None and (spec := parse(pattern)):
        pattern, kind = spec.base, spec.suffix
    asked = catalog.requests_per_doc(catalog.spec_of_suffix(kind))
    found = catalog.entries(manager, pattern, kind)
    for e in found:
        cost = "" if e.docs is None else f", {e.docs:,} docs, {e.docs * asked:,} requests"
        verdict = {"wraps": "wraps", "judge": "needs allow_judge", "data": "the data decides", "no": "does not wrap"}[e.verdict]
        name = e.name if e.verdict == "no" else f"{e.name}_{kind}"
        print(f"{name}  [{e.type}] {verdict}{cost}{': ' + e.reason if e.reason else ''}")
    print(f"\n{_tally(catalog.counts(found))}. As {kind}, each doc is asked {asked}x (times its choices, for multiple_choice).")


def _coverage(args: argparse.Namespace) -> None:
    from lmms_patch.harness import catalog

    found = catalog.coverage(catalog.task_manager())
    print(f"{len(found)} tasks: {_tally(catalog.counts(found))}.")
    if args.write:
        args.write.write_text(catalog.coverage_page(found), encoding="utf-8")
        print(f"written: {args.write}")


def _tally(counts: dict[str, int]) -> str:
    words = {"wraps": "wrap", "judge": "wrap with allow_judge", "data": "are decided by the first doc", "no": "do not wrap"}
    return ", ".join(f"{n} {words[verdict]}" for verdict, n in counts.items())


def _show(args: argparse.Namespace) -> None:
    files = [args.folder] if args.folder.is_file() else records.results_files(args.folder)
    path = files[-1]
    if len(files) > 1:
        print(f"{path}: the newest of {len(files)} runs here", file=sys.stderr)
    shown = show.load(path)
    tested = [result for result in records.read_results(path) if result.details.get("tst_details")]
    if not shown and not tested:
        asked = ", ".join(result.task for result in records.read_results(path))
        none = f"nothing of {asked} was scored" if asked else "no wrapped task in this run; ask for one, such as --tasks gqa_rci3"
        raise RecordError(f"{path}: {none}")
    if shown:
        blocks = [show.table(shown), *([show.chances(shown)] if args.chance else []), *([show.cell_tables(shown)] if args.cells else [])]
        print("\n\n".join([*blocks, *(["\n".join(lines)] if (lines := show.warnings(shown)) else []), show.meaning(shown)]))
    if tested:
        print("\n\n".join(block for block in _stress_blocks(tested, args.causes) if block))


def _tst(args: argparse.Namespace) -> None:
    _show(argparse.Namespace(folder=tst_commands.run(args), chance=False, cells=False, causes=True))


def _stress_blocks(tested: Sequence[records.TaskResult], causes: bool) -> list[str]:
    blocks = [show_tst.stress_table(tested), "\n".join(line for result in tested for line in show_tst.notes(result))]
    for result in tested:
        blocks.append(show_tst.categories(result))
        if causes:
            blocks += [show_tst.importances(result), show_tst.causes(result)]
    return blocks


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}, not {text!r}")
        return int(text)

    return number


def _fraction(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.5 <= value < 1:
        raise argparse.ArgumentTypeError(f"must be a fraction from 0.5 to below 1, such as 0.95, not {text!r}")
    return value


def _chance(text: str) -> float | str:
    try:
        return "majority" if text == "majority" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number on the metric's own scale, or 'majority', not {text!r}") from None


def _analyze(args: argparse.Namespace) -> None:
    names = ("draws", "level", "delta", "seed", "chance", "metric", "cluster", "category")
    changes = recompute.Changes(**{name: getattr(args, name) for name in names})
    runs = [[recompute.recompute(run, changes, args.by_category) for run in recompute.load(folder)] for folder in args.folders]
    pooled = [pooling.groups(folder, run, changes) for folder, run in zip(args.folders, runs, strict=True)]
    averaged = pooling.average(runs, changes) if len(runs) > 1 else []
    if args.json:
        recompute.write(args.json, analysis_json(runs, pooled, averaged))
    for run, groups in zip(runs, pooled, strict=True):
        print("\n\n".join(_blocks(run, groups, args.cells)))
        print()
    if averaged:
        print(show.averaged_table(averaged))
    if args.json:
        print(f"written: {args.json}")


def _blocks(run: Sequence[recompute.Analyzed], groups: Sequence[pooling.Pooled], cells: bool) -> list[str]:
    shown = show.recomputed(run)
    blocks = [show.table(shown), show.chances(shown), *([show.cell_tables(shown)] if cells else [])]
    blocks += [show.pooled_table(groups)] if groups else []
    for one in run:
        if one.categories:
            blocks.append(show.category_table(one))
    lines = [*(one.note for one in run if one.note), *show.warnings(shown)]
    return [*blocks, *(["\n".join(lines)] if lines else []), show.meaning(shown)]


def analysis_json(
    runs: Sequence[Sequence[recompute.Analyzed]], pooled: Sequence[Sequence[pooling.Pooled]], averaged: Sequence[pooling.Averaged]
) -> dict[str, Any]:
    """What ``analyze --json`` writes (docs/records.md)."""
    found = [{"tasks": [a.to_json() for a in run], "groups": outcome.to_json(groups)} for run, groups in zip(runs, pooled, strict=True)]
    return {"schema": records.SCHEMA, "runs": found, **({"average": outcome.to_json(averaged)} if averaged else {})}


if __name__ == "__main__":
    sys.exit(main())
