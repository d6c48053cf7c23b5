"""The options of commands that have many, declared once: for the command line (typer's part of each field) and for Python (``lmms_patch.api``)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import typer
import typer.models
from pydantic import BaseModel, ConfigDict, Field

from lmms_patch.errors import must

F = TypeVar("F", bound=Callable[..., Any])

Grouping = Literal["auto", "source", "text", "joined", "none"]
Match = Literal["category", "format", "none"]

INCLUDE_PATH = typer.Option("--include-path", metavar="DIR", help="A folder with more task files.")
MATCH = typer.Option(
    "--match", help="What random removals keep: counts of category and format, of format alone, or nothing."
)


def options_of(model: type[BaseModel]) -> Callable[[F], F]:
    """Give a command the fields of a model as options in place of the command's ``**options``."""

    def marked(function: F) -> F:
        own = [
            # Python allows no positional parameter behind the fields, which are keywords
            one.replace(kind=one.KEYWORD_ONLY)
            for one in inspect.signature(function, eval_str=True).parameters.values()
        ]
        fields = []
        for name, field in model.model_fields.items():
            info = next((one for one in field.metadata if isinstance(one, typer.models.ParameterInfo)), None)
            if info is None:
                continue
            default = inspect.Parameter.empty if field.is_required() else field.default
            # Nobody can type a mapping on a command line: the option takes a text, parsed later.
            kind = str if str in get_args(field.annotation) and default is not None else field.annotation
            fields.append(
                inspect.Parameter(
                    name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
                )
            )
        # without the last, which is the function's own ``**options``
        function.__signature__ = inspect.Signature([*fields, *own[:-1]])  # type: ignore[attr-defined] # what typer reads in place of the real one
        return function

    return marked


class PruneArguments(BaseModel):
    """What to prune, and how."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: Annotated[str, typer.Argument(metavar="TASK", help="A base task, such as gqa.")]
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="[RUN]...",
            help="With --blind: runs of several models without the right image, folders or results files.",
        ),
    ] = []
    blind: Annotated[
        bool,
        typer.Option("--blind", help="Remove what the models of RUN... know without the image, in place of all else."),
    ] = False
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="DIR",
            help="Folder for lists, history and the pruned task; out/pruned/TASK if left out.",
        ),
    ] = None
    include_path: Annotated[Path | None, INCLUDE_PATH] = None
    budget: Annotated[
        float, typer.Option("--budget", metavar="N", help="Docs to remove: a number, or a share below 1.")
    ] = 0.3
    batch: Annotated[
        float | None,
        typer.Option("--batch", metavar="N", help="Docs per round, likewise; a fifth of the budget if left out."),
    ] = None
    tau: Annotated[float | None, typer.Option("--tau", help="Stop when no score is this high.")] = None
    near_chance_stop: bool = True
    by: Annotated[
        Literal["s_minus_chance", "s", "delta", "locality"], typer.Option("--by", help="The score that ranks.")
    ] = "s_minus_chance"
    strategy: Annotated[
        Literal["top", "weighted", "balanced"],
        typer.Option("--strategy", help="Top, weighted draw, or balanced over golds."),
    ] = "top"
    allocate: Annotated[
        str | dict[str, float],
        must("global, format, category, or budgets by category, such as {'a': 0.3, 'b': 20}"),
        typer.Option("--allocate", metavar="HOW", help="global, format, category, or budgets by category: a=0.3,b=20."),
    ] = "global"
    floor: Annotated[
        float,
        typer.Option("--floor", metavar="N", help="Docs that every category keeps: a number, or a share below 1."),
    ] = 0
    scores_of: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="OUT",
            help="Single pass by the scores of a finished _tst run, or for locality of an _rci run.",
        ),
    ] = None
    grid: Annotated[
        int | None,
        typer.Option("--grid", metavar="N", help="For --by locality: the grid; the finest of the run if left out."),
    ] = None
    folds: Annotated[int, typer.Option("--folds", metavar="K", help="Number of folds, 2 to 50.")] = 5
    fold_seeds: Annotated[int, typer.Option("--fold-seeds", metavar="R", help="Fold seeds per round.")] = 3
    grouping: Annotated[Grouping, typer.Option("--grouping", help="What stays in one fold.")] = "auto"
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="FIELD",
            help="Doc field with a stable id; if left out the task's option key, else a hash of the doc.",
        ),
    ] = None
    model: Annotated[
        Literal["boosting", "forest", "linear"],
        typer.Option(
            "--model",
            help="The diagnostic that selects; the linear model judges the trees, boosting judges the linear model.",
        ),
    ] = "boosting"
    embeddings: Annotated[
        str | None,
        typer.Option(
            "--embeddings",
            metavar="PATH",
            help="A text-embedding model, a folder or a hub id, that the selecting diagnostic reads too.",
        ),
    ] = None
    controls: Annotated[
        int,
        Field(ge=1),
        must("1 or more: at least one matched-random removal is needed to compare with"),
        typer.Option("--controls", metavar="N", help="Random removals, matched and unmatched."),
    ] = 5
    shuffles: Annotated[
        int,
        Field(ge=0),
        must("0 or more"),
        typer.Option("--shuffles", metavar="N", help="Prunings of shuffled golds; 0: no verdict."),
    ] = 20
    match: Annotated[Match, MATCH] = "category"
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="FIELD", help="A true/false doc field: how far the removed docs are those."),
    ] = None
    seed: Annotated[int, typer.Option("--seed", help="Of ties, draws and fold seeds.")] = 0
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin anew where an earlier call was interrupted.")] = False
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="DIR",
            help="Also write a dataset that others can load: a list of the kept ids, unless --copy.",
        ),
    ] = None
    copy_docs: Annotated[
        bool,
        typer.Option(
            "--copy",
            help="Put the kept docs themselves into --to, as Parquet; their licence must allow it (--license).",
        ),
    ] = False
    license: Annotated[
        str | None,
        typer.Option(
            "--license", metavar="NAME", help="Licence of the dataset in --to, as the hub names it: cc-by-4.0."
        ),
    ] = None
    push: Annotated[
        str | None,
        typer.Option(
            "--push",
            metavar="REPO",
            help="Send that dataset to a repository of the Hugging Face hub: OWNER/NAME; private.",
        ),
    ] = None
    public: Annotated[bool, typer.Option("--public", help="Let everybody see the repository of --push.")] = False

    @property
    def folder(self) -> Path:
        """The folder for all written files."""
        return self.output or Path("out/pruned") / self.task

    @property
    def dataset(self) -> Path | None:
        """The folder of the loadable dataset; None where none is asked for."""
        return self.to or (self.folder / "dataset" if self.push is not None else None)

    @property
    def judge_model(self) -> str:
        """The model class for judging: boosting after a linear model, else linear, so that features differ."""
        return "boosting" if self.model == "linear" else "linear"

    @property
    def about(self) -> str:
        """What a history depends on beside docs and settings."""
        return f"{self.model}/{self.folds}/{self.grouping}/{self.by}"


class StressArguments(BaseModel):
    """What to test text-only, and how."""

    # pydantic reserves names with ``model_``, and model_args is an option.
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    task: Annotated[str, typer.Argument(metavar="TASK", help="A base task, group or tag, such as gqa.")]
    diagnostic: Annotated[
        Literal["rf", "lora"],
        typer.Option("--diagnostic", help="rf: features and trees, on the CPU; lora: a language model."),
    ] = "rf"
    folds: Annotated[int, typer.Option("--folds", metavar="K", help="Number of folds, 2 to 50.")] = 5
    fold_seed: Annotated[
        int | None, typer.Option("--fold-seed", metavar="S", help="The first fold seed; 0 if left out.")
    ] = None
    fold_seeds: Annotated[
        int | None,
        typer.Option(
            "--fold-seeds",
            metavar="R",
            help="Number of fold seeds to average over; 5 if left out, or 3 from 5,000 docs on.",
        ),
    ] = None
    grouping: Annotated[
        Grouping | None,
        typer.Option("--grouping", help="What stays in one fold; auto if left out: the source, where it is known."),
    ] = None
    model_args: Annotated[
        str,
        typer.Option(
            "--model-args", metavar="K=V,...", help="Arguments of the diagnostic, such as model=forest,embeddings=PATH."
        ),
    ] = ""
    check: Annotated[
        bool, typer.Option("--check", help="First see on these docs that nothing leaks from held-out ones (rf only).")
    ] = False
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="The first N docs only.")] = None
    include_path: Annotated[Path | None, INCLUDE_PATH] = None
    output: Annotated[Path, typer.Option("--output", metavar="OUT", help="Folder for results and sample log.")] = Path(
        "out/tst"
    )


class BuildOptions(BaseModel):
    """How ``lmms-patch magic build`` makes a dataset; ``magic.build`` checks the values."""

    output: Annotated[Path, typer.Option("--output", metavar="DIR", help="Folder to write, or to go on with.")] = Path(
        "out/magic"
    )
    saliency: Annotated[
        Path | None, typer.Option("--saliency", metavar="DIR", help="Folder with maps <qid>_0.png to <qid>_2.png.")
    ] = None
    weak: Annotated[
        bool,
        typer.Option("--weak", help="The weakly supervised split: relevant boxes are the annotated objects alone."),
    ] = False
    adversarial: Annotated[
        int | None,
        typer.Option(
            "--adversarial", metavar="N", help="Adversarial boxes per item; 3 if left out, and 0 with --weak."
        ),
    ] = None
    apart_from: Annotated[
        Path | None, typer.Option("--apart-from", metavar="DATA", help="A dataset none of whose images is used.")
    ] = None
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", help="At most so many items: a seeded sample.")
    ] = None
    seed: Annotated[
        int, typer.Option("--seed", help="Of adversarial boxes, of the sample, and of the contact sheet.")
    ] = 0
    link: Annotated[
        bool, typer.Option("--link", help="Hard links to the images, on one disk; they are copied if left out.")
    ] = False
    previews: Annotated[bool, typer.Option("--previews", help="Also a picture of each item with its boxes.")] = False
    contact: Annotated[int, typer.Option("--contact", metavar="N", help="Items on the contact sheet; 0: no sheet.")] = (
        24
    )
    threshold: Annotated[
        float, typer.Option("--threshold", help="Of a saliency map, from 0 to 1: what exceeds it is a hotspot.")
    ] = 0.5
    scale: Annotated[
        Literal["peak", "full"],
        typer.Option("--scale", help="What 1 means: the map's own peak, or the full range of its pixels."),
    ] = "peak"
    keep: Annotated[
        Literal["larger", "earlier"], typer.Option("--keep", help="Which of two boxes that overlap too much stays.")
    ] = "larger"
