"""A task that wraps another task, its base, and hands on to it what it does not answer itself."""

from __future__ import annotations

import random
from typing import Any

from lmms_eval.api.task import Task


class Delegate(Task):
    """A task which hands every undefined attribute to ``_base``; a subclass sets ``_base`` first.

    Methods that ``Task`` defines would hide those of the base, so this class hands them on by name.
    ``compat.OVERRIDDEN`` lists what a subclass and this class answer, ``compat.DELEGATED`` what reaches the base
    through ``__getattr__``.
    """

    _base: Any

    def __getattr__(self, name: str) -> Any:
        # while a copy is being made there is no base, and looking for it here would never end
        if name.startswith("__") or name == "_base":
            raise AttributeError(name)
        return getattr(self._base, name)

    @property
    def VERSION(self) -> Any:  # noqa: N802 - the host's name
        return self._base.VERSION

    @property
    def OUTPUT_TYPE(self) -> Any:  # noqa: N802 - the host's name
        return self._base.OUTPUT_TYPE

    @property
    def DATASET_PATH(self) -> Any:  # noqa: N802 - the host's name
        return self._base.DATASET_PATH

    @property
    def DATASET_NAME(self) -> Any:  # noqa: N802 - the host's name
        return self._base.DATASET_NAME

    @property
    def _filters(self) -> Any:
        """The filter pipelines of the base. The host may put a step in front of each."""
        return self._base._filters

    def download(self, *args: Any, **kwargs: Any) -> None:
        self._base.download(*args, **kwargs)

    def has_training_docs(self) -> Any:
        return self._base.has_training_docs()

    def has_validation_docs(self) -> Any:
        return self._base.has_validation_docs()

    def has_test_docs(self) -> Any:
        return self._base.has_test_docs()

    def training_docs(self) -> Any:
        return self._base.training_docs()

    def fewshot_docs(self) -> Any:
        return self._base.fewshot_docs()

    def fewshot_examples(self, k: int, rnd: random.Random) -> Any:
        return self._base.fewshot_examples(k, rnd)

    def fewshot_context(self, *args: Any, **kwargs: Any) -> Any:
        return self._base.fewshot_context(*args, **kwargs)

    def doc_to_text(self, doc: Any) -> Any:
        return self._base.doc_to_text(doc)

    def doc_to_target(self, doc: Any) -> Any:
        return self._base.doc_to_target(doc)

    def doc_to_decontamination_query(self, doc: Any) -> Any:
        return self._base.doc_to_decontamination_query(doc)

    def construct_requests(self, doc_id: int, ctx: str, **kwargs: Any) -> Any:
        return self._base.construct_requests(doc_id, ctx, **kwargs)

    def count_bytes(self, doc: Any) -> Any:
        return self._base.count_bytes(doc)

    def set_fewshot_seed(self, seed: int | None = None) -> None:
        self._base.set_fewshot_seed(seed)
