"""``tst_rf`` and ``tst_lora``: text-only diagnostics as harness models. They answer ``_tst<k>`` tasks and nothing else.

A request says which table its doc is of, and the table knows the docs as items: so the model cross-validates the
whole task at its first request, and answers each doc by the model that was not trained on it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from accelerate import Accelerator
from lmms_eval.api.instance import Instance
from lmms_eval.api.model import lmms
from pydantic import BaseModel, ConfigDict, Field

from lmms_patch.ask.spec import parse
from lmms_patch.errors import CannotWrapError, OptionError, PatchError, must, read_as
from lmms_patch.harness.refuse import refuse
from lmms_patch.harness.wrap.calls import one_line
from lmms_patch.harness.wrap.docs import ViewId
from lmms_patch.harness.wrap.text_only import TextOnly, diagnosed
from lmms_patch.text import log
from lmms_patch.tst.diagnosis import Runner, in_threads
from lmms_patch.tst.items import Diagnostic
from lmms_patch.tst.null import SHUFFLES

Groupings = Literal["all", "headline"]
_AtLeast1 = Annotated[int, Field(ge=1), must("a whole number of at least 1")]


class _TextOnlyModel(lmms):
    """A harness model around a diagnostic, which cross-validates whole tasks."""

    is_simple = True

    def __init__(
        self, diagnostic: Diagnostic, described: Mapping[str, Any], runner: Callable[[str], Runner], **asked: Any
    ) -> None:
        """Take a diagnostic, its settings for the record, what does the folds of a task, and what ``diagnosed`` is asked for."""
        super().__init__()
        self.accelerator = Accelerator()
        self._rank, self._world_size = self.accelerator.process_index, self.accelerator.num_processes
        self._diagnostic, self._described, self._runner, self._asked = diagnostic, described, runner, asked

    @property
    def device(self) -> Any:
        """The device where the host gathers the counts of all ranks."""
        return self.accelerator.device

    def _found(self, request: Instance) -> TextOnly:
        """Return the task of a request, diagnosed."""
        # only the ids of wrapped tasks know their table
        doc_id = next((argument for argument in request.args if isinstance(argument, ViewId)), None)
        text_only = doc_id.table.text_only if doc_id is not None else None
        if text_only is None:
            wrapped = parse(request.task_name)
            base = wrapped.base if wrapped else request.task_name
            refuse(
                CannotWrapError(
                    f"{request.task_name}: a text-only diagnostic answers text-only cross-validations; type --tasks {base}_tst5"
                )
            )
        if not text_only.found.answers:
            try:
                runner = self._runner(text_only.spec.name)
                text_only.found = diagnosed(text_only, self._diagnostic, self._described, runner, **self._asked)
            except PatchError as error:
                refuse(error)
            except Exception as error:
                # the host would print it and end with status 0
                log().exception("the text-only diagnostic failed")
                refuse(CannotWrapError(f"{text_only.spec.name}: the text-only diagnostic failed: {one_line(error)}"))
        return text_only

    def generate_until(self, requests: list[Instance]) -> list[str]:
        """Return the held-out answers at the first fold seed, in the order of the requests."""
        return [self._found(request).found.answers[request.doc_id] for request in requests]

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """Return 0 for the answered option, else 1: the host takes log-likelihoods for losses, and answers the lowest."""
        answers = zip(self.generate_until(requests), requests, strict=True)
        chosen = [answer == str(request.metadata["choice"]) for answer, request in answers]
        return [(0.0 if one else 1.0, one) for one in chosen]

    def generate_until_multi_round(self, requests: list[Instance]) -> list[str]:
        raise NotImplementedError("a wrapped task has one round")


class _RfArguments(BaseModel):
    # strict, or pydantic would take the text "5" for a number
    model_config = ConfigDict(extra="forbid", strict=True)

    model: Literal["boosting", "forest", "linear"] = "boosting"
    trees: _AtLeast1 | None = None
    depth: _AtLeast1 = 20
    groupings: Groupings = "all"
    workers: _AtLeast1 | None = None
    check: bool = False
    shuffles: Annotated[int, Field(ge=0), must("a whole number of at least 0")] = SHUFFLES


class TstRf(_TextOnlyModel):
    """``--model tst_rf``: generic features and trees; on the CPU, in seconds.

    Model arguments: ``model``, ``trees``, ``depth``, ``groupings`` (all, or headline for the one number), ``workers``
    (folds at the same time; default: the number of cores), ``check`` (True: see first that nothing leaks), ``shuffles``
    (cross-validations on shuffled golds, where categories are many).
    """

    def __init__(self, **given: Any) -> None:
        from lmms_patch.tst.tree_diagnostic import RfDiagnostic
        from lmms_patch.tst.trees import ModelSettings

        own = {key: value for key, value in given.items() if key not in _FROM_HOST}
        try:
            asked = read_as(_RfArguments, own, "--model_args of tst_rf")
            settings = ModelSettings(asked.model, asked.trees, asked.depth)
            diagnostic = RfDiagnostic(settings)
        except PatchError as error:
            refuse(error)
        workers = asked.workers or os.cpu_count() or 1
        described = {"model": settings.model, "trees": settings.size, "depth": settings.depth}
        everything = asked.groupings == "all"
        super().__init__(
            diagnostic,
            described,
            lambda name: in_threads(workers, f"{name}: folds"),
            everything=everything,
            check=asked.check,
            shuffles=asked.shuffles,
        )


class TstLora(_TextOnlyModel):
    """``--model tst_lora``: LoRA on a causal language model.

    Model arguments: ``preset`` and every field of ``tst.lora.settings.LoraSettings``; ``groupings`` (headline, or all
    for the side-by-side numbers, at three times the cost). Finished folds are kept in ``cache`` (default:
    ``lmms-patch/tst_lora`` in the user's cache folder; ``none``: nowhere), so that a run that died goes on where it
    was.
    """

    def __init__(self, groupings: str = "headline", **given: Any) -> None:
        from lmms_patch.tst.lora.diagnostic import LoraDiagnostic, run_folds
        from lmms_patch.tst.lora.settings import LoraSettings

        folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "lmms-patch" / "tst_lora"
        # the host hands some arguments to every model; they count only where the settings have them too
        own = {key: value for key, value in given.items() if key in LoraSettings.model_fields or key not in _FROM_HOST}
        own["cache"] = "" if own.get("cache") == "none" else own.get("cache", str(folder))
        try:
            if groupings not in get_args(Groupings):
                raise OptionError(f"--model_args of tst_lora: groupings must be all or headline, not {groupings!r}")
            settings = LoraSettings.from_mapping(own, "--model_args of tst_lora")
            diagnostic = LoraDiagnostic(settings)
        except PatchError as error:
            refuse(error)

        def run(prepared: Any, jobs: Any, groups: Any) -> Any:
            return run_folds(prepared, jobs, self.rank, self.world_size)

        super().__init__(diagnostic, settings.described(), lambda name: run, everything=groupings == "all")


_FROM_HOST = {"batch_size", "max_batch_size", "device"}
"""Arguments that the host hands to every model, and that have no use here."""
