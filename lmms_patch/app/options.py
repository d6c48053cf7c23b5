"""The options of ``lmms-patch prune``, declared once: for the command line (typer's part of each field) and for Python."""

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


def options_of(model: type[BaseModel]) -> Callable[[F], F]:
    """Give a command the fields of a model as options in place of the command's ``**options``."""

    def marked(function: F) -> F:
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
        function.__signature__ = inspect.Signature(fields)  # type: ignore[attr-defined] # in place of the real one
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
    include_path: Annotated[
        Path | None, typer.Option("--include-path", metavar="DIR", help="A folder with more task files.")
    ] = None
    budget: Annotated[
        float, typer.Option("--budget", metavar="N", help="Docs to remove: a number, or a share below 1.")
    ] = 0.3
    batch: Annotated[
        float | None,
        typer.Option("--batch", metavar="N", help="Docs per round, likewise; a fifth of the budget if left out."),
    ] = None
    tau: Annotated[float | None, typer.Option("--tau", help="Stop when no score is this high.")] = None
    near_chance_stop: Annotated[
        bool,
        typer.Option("--near-chance-stop/--no-near-chance-stop", help="Stop when what would go is no more than luck."),
    ] = True
    by: Annotated[Literal["s_minus_chance", "s", "delta"], typer.Option("--by", help="The score that ranks.")] = (
        "s_minus_chance"
    )
    strategy: Annotated[
        Literal["top", "weighted", "balanced"],
        typer.Option("--strategy", help="Top, weighted draw, or balanced over golds."),
    ] = "top"
    allocate: Annotated[
        str | dict[str, float],
        must("global, format, category, or budgets by category, such as {'a': 0.3, 'b': 20}"),
        typer.Option("--allocate", metavar="HOW", help="global, format, category, or budgets by category: a=0.3,b=20."),
    ] = "global"
    scores_of: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="OUT",
            help="Single pass by the scores of a finished _tst run.",
        ),
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
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin anew where an earlier call was interrupted.")] = False
    push: Annotated[
        str | None,
        typer.Option(
            "--push", metavar="OWNER/NAME", help="Also send the folder to a dataset repository of the Hugging Face hub."
        ),
    ] = None

    @property
    def folder(self) -> Path:
        """The folder for all written files."""
        return self.output or Path("out/pruned") / self.task

    @property
    def judge_model(self) -> str:
        """The model class for judging: boosting after a linear model, else linear, so that features differ."""
        return "boosting" if self.model == "linear" else "linear"

    @property
    def about(self) -> str:
        """What a history depends on beside docs and settings."""
        return f"{self.model}/{self.folds}/{self.grouping}/{self.by}"
