"""What the docs of a task are drawn with and counted by: clusters, categories and classes of answers. NumPy only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from lmms_patch.runs.record import Record
from lmms_patch.stats.resample import Ints, cluster_numbers

T = TypeVar("T")
LEAST_CLASS = 20
"""Docs that an answer class of its own needs."""


@dataclass(frozen=True)
class Groups:
    """The clusters, categories and answer classes of docs.

    Attributes:
        records: the docs.
        cluster: a key of ``fields`` in the records, or None: docs are independent.
        whole: the aggregation works on whole clusters (MME's pairs): all docs of a cluster are used or none.
    """

    records: Sequence[Record]
    cluster: str | None
    whole: bool

    @cached_property
    def labels(self) -> list[Hashable] | None:
        """The label of each doc's cluster; None where docs are independent.

        A doc without a label is a cluster of its own.
        """
        return None if self.cluster is None else drawn_with([one.fields.get(self.cluster) for one in self.records])

    @cached_property
    def clusters(self) -> Ints | None:
        """Cluster numbers of the docs; None where docs are independent."""
        return cluster_numbers(self.labels)

    def clusters_of(self, docs: Any, *, renumbered: bool = False) -> Ints | None:
        """Return the cluster numbers of some docs, as they are or from 0 on; None where docs are independent."""
        if self.clusters is None:
            return None
        return cluster_numbers(self.clusters[docs].tolist()) if renumbered else self.clusters[docs]

    def complete(self, of_docs: Sequence[T | None]) -> list[T | None]:
        """Return what there is of each doc, and None for a doc that cannot be used.

        Where the aggregation works on whole clusters, a doc of which there is nothing takes the rest of its cluster along.
        """
        if not self.whole or self.labels is None:
            return list(of_docs)
        pairs = list(zip(self.labels, of_docs, strict=True))
        halved = {label for label, of_doc in pairs if of_doc is None}
        return [None if label in halved else of_doc for label, of_doc in pairs]

    @cached_property
    def categories(self) -> list[Hashable] | None:
        """Category of each doc, as text; None where a doc has none."""
        values = [record.fields.get("category") for record in self.records]
        return None if not values or None in values else [repr(value) for value in values]

    @cached_property
    def category_numbers(self) -> Ints | None:
        """Number of each doc's category; None where a doc has none."""
        return cluster_numbers(self.categories)

    @cached_property
    def merged(self) -> tuple[int, ...]:
        """For each category, the number of its group, as ``stats.forms.on`` takes them; () where each counts by itself."""
        into: dict[int, tuple[str, str]] = {}
        numbers = self.category_numbers
        for record, number in zip(self.records, () if numbers is None else numbers.tolist(), strict=False):
            name = record.fields.get("merged")
            into[number] = ("alone", str(number)) if name is None else ("merged", str(name))
        if all(how == "alone" for how, _ in into.values()):
            return ()
        return tuple(np.unique([repr(into[number]) for number in sorted(into)], return_inverse=True)[1].tolist())

    @cached_property
    def answer_classes(self) -> tuple[Ints, tuple[str, ...]]:
        """Number of each doc's answer class, and the classes' names; rare answers go by their format alone."""
        answers = [record.answer for record in self.records]
        often = Counter(answer.label for answer in answers)
        names, numbers = np.unique(
            np.array([one.label if often[one.label] >= LEAST_CLASS else one.format for one in answers], str),
            return_inverse=True,
        )
        return numbers, tuple(names.tolist())


def drawn_with(labels: Sequence[Any]) -> list[Hashable] | None:
    """Return what each doc is drawn with; a doc without a label is alone. None where no doc has a label."""
    if all(label is None for label in labels):
        return None
    return [f"doc {i}" if label is None else repr(label) for i, label in enumerate(labels)]
