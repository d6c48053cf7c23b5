"""A task that owns another, its base, and hands it what it does not answer itself."""

from __future__ import annotations

import random
from typing import Any

from lmms_eval.api.task import Task


class Delegate(Task):
    """Hands to ``_base``, which a subclass sets first, every attribute that it does not define.

    What ``Task`` defines would hide the base's, so it is handed on by name (``compat.OVERRIDDEN`` and ``compat.DELEGATED``
    list what a subclass and this class answer, and what reaches the base).
    """

    _base: Any

    def __getattr__(self, name: str) -> Any:
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
        """The base's own pipelines; the host may put one more step in front of each."""
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
