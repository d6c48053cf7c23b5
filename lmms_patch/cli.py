"""``lmms-patch <command>``: wires the parts, computes nothing."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lmms_patch import __version__, records, show
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
    shown.set_defaults(run=_show)
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
    path = args.folder if args.folder.is_file() else records.results_files(args.folder)[-1]
    shown = show.load(path)
    if not shown:
        raise RecordError(f"{path}: no wrapped task in this run; ask for one, such as --tasks gqa_rci3")
    print(show.table(shown))
    print()
    if args.cells:
        print(show.cell_tables(shown))
        print()
    print(show.meaning(shown))


if __name__ == "__main__":
    sys.exit(main())
