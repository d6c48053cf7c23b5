"""A task that wraps another task, its base, and hands on to it what it does not answer itself."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from lmms_eval.api.task import Task


def _of_base(name: str) -> Any:
    """Return a property with the value of the base's attribute of a name."""
    return property(attrgetter(f"_base.{name}"))


class Delegate(Task):
    """A task which hands every undefined attribute to ``_base``; a subclass sets ``_base`` first.

    What ``Task`` defines would hide what the base has, so this class hands it on by name.
    tests/harness/wrap/test_task.py lists what a subclass and this class answer, and what reaches the base
    through ``__getattr__``.
    """

    _base: Any

    def __getattr__(self, name: str) -> Any:
        # while a copy is being made there is no base, and looking for it here would never end
        if name.startswith("__") or name == "_base":
            raise AttributeError(name)
        return getattr(self._base, name)

    VERSION = _of_base("VERSION")
    OUTPUT_TYPE = _of_base("OUTPUT_TYPE")
    DATASET_PATH = _of_base("DATASET_PATH")
    DATASET_NAME = _of_base("DATASET_NAME")
    download = _of_base("download")
    has_training_docs = _of_base("has_training_docs")
    has_validation_docs = _of_base("has_validation_docs")
    has_test_docs = _of_base("has_test_docs")
    training_docs = _of_base("training_docs")
    fewshot_docs = _of_base("fewshot_docs")
    fewshot_examples = _of_base("fewshot_examples")
    fewshot_context = _of_base("fewshot_context")
    doc_to_text = _of_base("doc_to_text")
    doc_to_target = _of_base("doc_to_target")
    doc_to_decontamination_query = _of_base("doc_to_decontamination_query")
    construct_requests = _of_base("construct_requests")
    count_bytes = _of_base("count_bytes")
    set_fewshot_seed = _of_base("set_fewshot_seed")
    _filters = _of_base("_filters")
    """The filter pipelines of the base. The host may put a step in front of each."""
