"""``lmms-patch prune`` and ``lmms-patch gap``: wires loading, pruning, judging and writing."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmms_patch import records
from lmms_patch.errors import OptionError, RecordError
from lmms_patch.show import aligned
from lmms_patch.spec import GROUPINGS, KINDS
from lmms_patch.tst import controls, gap, locality, pruned, sides
from lmms_patch.tst.diagnosis import Diagnose, diagnose, in_threads
from lmms_patch.tst.folds import Grouping
from lmms_patch.tst.items import Item, Places
from lmms_patch.tst.prune import Pruned, fingerprint, prune
from lmms_patch.tst.selection import ALLOCATIONS, BY, STRATEGIES, PruneSettings, Selector
from lmms_patch.tst.shuffle import shuffle_golds

if TYPE_CHECKING:
    from lmms_patch.harness.text_only import TextOnly
    from lmms_patch.tst.rewards import Rewards

JUDGE_TREES = 50
_MATCH = "random removals keep the counts of category and format, of format alone, or of nothing (default: category)"


def add_prune_parser(commands: Any) -> Any:
    """The arguments of ``lmms-patch prune``."""
    parser = commands.add_parser("prune", help="remove what can be answered without looking, and say whether that was more than noise")
    parser.add_argument("task", help="a base task, such as gqa")
    parser.add_argument("--output", type=Path, metavar="DIR", help="folder for lists, history and the pruned task (default: out/pruned/TASK)")
    parser.add_argument("--include-path", metavar="DIR", help="a folder with more task files")
    parser.add_argument("--budget", type=float, default=0.3, metavar="N", help="docs to remove: a number, or a share below 1 (default: 0.3)")
    parser.add_argument("--batch", type=float, metavar="N", help="docs per round, likewise (default: a fifth of the budget)")
    parser.add_argument("--tau", type=float, help="stop when no score is this high")
    parser.add_argument("--no-near-chance-stop", action="store_true", help="go on when text-only answers are no better than the majority answer")
    parser.add_argument("--by", choices=(*BY, "locality"), default="s_minus_chance", help="the score that ranks (default: s_minus_chance)")
    parser.add_argument("--strategy", choices=STRATEGIES, default="top", help="top, weighted draw, or balanced over golds (default: top)")
    parser.add_argument(
        "--allocate", default="global", metavar="HOW", help=f"{', '.join(ALLOCATIONS)}, or budgets by category: a=0.3,b=20 (default: global)"
    )
    parser.add_argument("--floor", type=float, default=0, metavar="N", help="docs that every category keeps: a number, or a share below 1")
    parser.add_argument(
        "--from", dest="scores_of", type=Path, metavar="OUT", help="single pass by the scores of a finished _tst run, or for locality of an _rci run"
    )
    parser.add_argument("--grid", type=int, metavar="N", help="for --by locality: the grid (default: the finest of the run)")
    parser.add_argument("--folds", type=int, default=5, metavar="K")
    parser.add_argument("--fold-seeds", type=int, default=3, metavar="R", help="fold seeds per round (default: 3)")
    parser.add_argument("--grouping", choices=GROUPINGS, default="auto", help="what stays in one fold")
    parser.add_argument("--key", metavar="FIELD", help="doc field with a stable id (default: the task's option key, else a hash of the doc)")
    parser.add_argument(
        "--model", choices=("boosting", "forest"), default="boosting", help="the diagnostic that selects; the judge is the other (default: boosting)"
    )
    parser.add_argument("--controls", type=int, default=controls.CONTROLS, metavar="N", help="matched-random removals (default: 5)")
    parser.add_argument(
        "--shuffles", type=int, default=controls.SHUFFLES, metavar="N", help="prunings of shuffled golds (default: 20; 0: no verdict)"
    )
    parser.add_argument("--match", choices=controls.MATCHES, default="category", help=_MATCH)
    parser.add_argument("--against", metavar="FIELD", help="a true/false doc field: how far the removed docs are those")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fresh", action="store_true", help="begin anew where an earlier call was interrupted")
    return parser


def add_gap_parser(commands: Any) -> Any:
    """The arguments of ``lmms-patch gap``."""
    parser = commands.add_parser("gap", help="vision-blind gap of two finished runs, on all docs, a pruned set and random ones")
    parser.add_argument("full", type=Path, metavar="FULL", help="run with images: of the plain task, or a wrapped one that asks the full image")
    parser.add_argument("blind", type=Path, metavar="BLIND", help="run of the _blind task")
    parser.add_argument("--subset", type=Path, metavar="KEPT", help="folder of lmms-patch prune, its kept_ids.txt, or a file of doc ids")
    parser.add_argument("--task", help="the base task, where the runs have several")
    parser.add_argument("--metric", help="the metric (default: the primary one)")
    parser.add_argument("--match", choices=controls.MATCHES, default="category", help=_MATCH)
    return parser


def _allocation(text: str) -> str | dict[str, float]:
    """``category``, or ``a=0.3,b=20`` as a mapping.

    Raises:
        OptionError: neither.
    """
    if "=" not in text:
        return text
    out = {}
    for part in text.split(","):
        name, _, number = part.rpartition("=")
        try:
            out[name.strip()] = float(number)
        except ValueError:
            raise OptionError(f"--allocate: {part!r} is no budget; write category=share, such as counting=0.3,size=20") from None
    return out


def settings_of(args: argparse.Namespace) -> PruneSettings:
    """The settings of ``lmms-patch prune``."""
    return PruneSettings(
        budget=args.budget,
        batch=args.batch,
        tau=args.tau,
        near_chance=not args.no_near_chance_stop,
        by="s" if args.by == "locality" else args.by,
        strategy=args.strategy,
        allocation=_allocation(args.allocate),
        floor=args.floor,
        seed=args.seed,
        fold_seeds=args.fold_seeds,
    )


@dataclasses.dataclass(frozen=True)
class _Work:
    """What is pruned, and by which model class."""

    items: Sequence[Item]
    grouping: Grouping
    folds: int

    def diagnose(self, items: Sequence[Item], rewards: Rewards, model: str) -> Diagnose:
        """A diagnostic of these items (their golds may be others) as a function of places and fold seeds."""
        from lmms_patch.tst.models import ModelSettings
        from lmms_patch.tst.rf import RfDiagnostic

        prepared = RfDiagnostic(ModelSettings(model, JUDGE_TREES if model == "forest" else None)).prepare(items, rewards)
        workers = in_threads(os.cpu_count() or 1)
        return lambda places, seeds: diagnose(prepared, items, rewards, places, self.grouping, k=self.folds, seeds=seeds, runner=workers)


def run_prune(args: argparse.Namespace) -> None:
    """Prune, judge, write.

    Raises:
        PatchError: a user's mistake.
    """
    from lmms_patch.harness import pruned_task
    from lmms_patch.harness.load import text_only

    settings = settings_of(args)
    if args.by in ("locality", "delta") and args.scores_of is None:
        raise OptionError(f"--by {args.by} needs --from OUT, a finished {'_rci run' if args.by == 'locality' else '_tst run with --model tst_lora'}")
    if args.controls < 1:
        raise OptionError("--controls: at least one matched-random removal is needed to compare with")
    if args.shuffles < 0:
        raise OptionError(f"--shuffles must be 0 or more, not {args.shuffles}")
    out = args.output or Path("out/pruned") / args.task
    _check_output(out)
    pruned_task.check(args.task, out / "task", include_path=args.include_path)
    task = text_only(args.task, folds=args.folds, include_path=args.include_path, grouping=args.grouping)
    items = task.keyed_items(args.key)
    against = None if args.against is None else _marks(task, args.against)
    _check_budget(items, settings, args.folds)
    given = None if args.scores_of is None else given_scores(args, items)
    work = _Work(items, task.headline, args.folds)
    judge_model = "forest" if args.model == "boosting" else "boosting"
    about = f"{args.model}/{args.folds}/{args.grouping}/{args.by}"
    selector = None if given is not None else work.diagnose(items, task.rewards, args.model)
    found = prune(items, settings, selector, given=given, state=out / "history.json", about=about, fresh=args.fresh, tell=_tell)
    print(f"{args.task}: {len(found.removed)} of {len(items)} docs removed; stopped: {found.stopped}")
    more: dict[str, Any] = {}
    if len(found.removed) and args.by != "locality":
        more["judged"] = controls.to_json(_judge(args, work, task, settings, found, judge_model, given, out, about))
        print(more["judged"]["sentence"])
    if against is not None and len(found.removed):
        more["overlap"] = _overlap(args, items, found, against)
    described = {
        **dataclasses.asdict(settings),
        "by": args.by,
        "model": args.model,
        "judge": judge_model,
        "folds": args.folds,
        "grouping": task.headline.name,
    }
    pruned.write(out, args.task, items, found, described, more)
    print("\n" + _category_table(items, found))
    kept = [items[int(i)].key for i in found.kept]
    written = pruned_task.write(args.task, kept, out / "task", include_path=args.include_path, key=args.key or task.spec.options.key)
    print(f"\nwritten: {out}\nto run the kept docs: lmms-eval --tasks {written.stem} --include_path {written.parent} ...")


def _judge(
    args: argparse.Namespace, work: _Work, task: TextOnly, settings: PruneSettings, found: Pruned, model: str, given: Any, out: Path, about: str
) -> controls.Judged:
    if args.fresh and (out / "judge.json").exists():
        (out / "judge.json").unlink()

    def world(seed: int) -> tuple[Places, Diagnose]:
        items = shuffle_golds(work.items, seed)
        rewards = task.rewards.regold(items)
        alike = dataclasses.replace(settings, near_chance=False, over_pruned=False, tau=None, seed=seed, **_same_number(settings, found))
        select = work.diagnose(items, rewards, args.model)
        if given is not None:  # a single pass by scores of golds that mean something has no shuffled counterpart but one round of our own
            alike = dataclasses.replace(alike, batch=float(max(1, len(found.removed))), by="s_minus_chance")
        return prune(items, alike, select).removed, work.diagnose(items, rewards, model)

    print_ = fingerprint(work.items, settings, f"{about}/{model}/{args.match}", given)
    return controls.judge(
        work.items,
        found.removed,
        work.diagnose(work.items, task.rewards, model),
        world,
        controls=args.controls,
        shuffles=args.shuffles,
        match=args.match,
        seed=args.seed,
        state=out / "judge.json",
        fingerprint=print_,
        tell=_tell,
    )


def _same_number(settings: PruneSettings, found: Pruned) -> Mapping[str, Any]:
    return {"budget": float(len(found.removed))} if isinstance(settings.allocation, str) else {}


def _has_scores(result: records.TaskResult, by: str) -> bool:
    kind = KINDS[result.described["kind"]]
    return bool(kind.index if by == "locality" else kind.folds)


def given_scores(args: argparse.Namespace, items: Sequence[Item]) -> Any:
    """The scores of a finished run, in the order of the items; nan for docs without.

    Raises:
        RecordError: the run is of another task or kind, or has no such scores.
    """
    path = args.scores_of if args.scores_of.is_file() else records.results_files(args.scores_of)[-1]
    wanted = [r for r in records.read_results(path) if r.described["base"] == args.task and _has_scores(r, args.by)]
    if not wanted:
        kind = "rci" if args.by == "locality" else "tst5"
        raise RecordError(f"{path}: no {args.task}_{kind} in this run")
    log = records.samples_file(path, wanted[0].task)
    if log is None:
        raise RecordError(f"{path}: no sample log of {wanted[0].task} beside it; run it with --log_samples")
    found = list(records.read_samples(log, 0))
    if found and len(found) != wanted[0].docs:
        raise RecordError(f"{log}: {len(found)} docs, but the run scored {wanted[0].docs}; the file is cut, or of another run")
    _check_golds(log, found, items)
    if args.by == "locality":
        told = locality.locality(found, args.grid, wanted[0].described["metric"])
        for line in told.warnings:
            _tell(line)
        by_doc: Mapping[int, float | None] = told.scores
    else:
        by_doc = {r["doc_id"]: r.get("tst", {}).get(args.by) for r in found}
    scores = np.array([np.nan if (value := by_doc.get(item.doc_id)) is None else value for item in items], float)
    if not np.isfinite(scores).any():
        raise RecordError(f"{log}: no doc has a score {args.by!r}")
    return scores


def _check_golds(log: Path, found: Sequence[Mapping[str, Any]], items: Sequence[Item]) -> None:
    """Whether the docs of a run are those of the task as it is now; they are joined by their numbers."""
    golds = {item.doc_id: item.golds[0] for item in items if item.golds}
    for record in found:
        gold, doc_id = (record.get("answer") or {}).get("gold"), record["doc_id"]
        if gold is not None and doc_id in golds and golds[doc_id] != gold:
            raise RecordError(
                f"{log}: doc {doc_id} has the gold {gold!r} in this run and {golds[doc_id]!r} in the task: the dataset has changed since"
            )


def _marks(task: TextOnly, name: str) -> NDArray[np.bool_]:
    values = task.column(name)
    if not all(isinstance(value, (bool, np.bool_)) for value in values):
        raise OptionError(f"--against {name}: not a field with true or false for every doc")
    return np.array(values, bool)


def _check_output(out: Path) -> None:
    there = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise OptionError(f"--output {out}: {there} is no folder that can be written to; give another --output")


def _check_budget(items: Sequence[Item], settings: PruneSettings, folds: int) -> None:
    left = len(items) - Selector(items, settings).budget
    if left < folds:
        raise OptionError(
            f"a budget that leaves {left} of {len(items)} docs leaves nothing to cross-validate in {folds} folds; give a smaller --budget"
        )


def _overlap(args: argparse.Namespace, items: Sequence[Item], found: Pruned, marked: NDArray[np.bool_]) -> dict[str, Any]:
    compared = controls.overlap(controls.group_keys(items, args.match), found.removed, marked)
    print(
        f"of the removed docs {100 * compared.share:.1f} % are marked {args.against} "
        f"(matched-random removal: {100 * compared.expected:.1f} %, p = {compared.p:.3f}; Jaccard index {compared.jaccard:.2f})"
    )
    return dataclasses.asdict(compared)


def _category_table(items: Sequence[Item], found: Pruned) -> str:
    rows = [[name, str(a), str(b), f"{c:.1f} %", str(d)] for name, a, b, c, d in pruned.categories(items, found)]
    return aligned([["question category", "original", "removed", "percent", "final"], *rows])


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def run_gap(args: argparse.Namespace) -> None:
    """Print the gap.

    Raises:
        PatchError: the runs cannot be compared.
    """
    full, blind = sides.read_pair(args.full, args.blind, task=args.task, metric=args.metric)
    found = gap.gap(full, blind, None if args.subset is None else sides.read_subset(args.subset, full.base), match=args.match)
    print(aligned(gap.rows(found)))
    for line in (found.verdict, *found.warnings):
        if line:
            print(line)
