"""What a method is asked: an object of ours, or of another package behind an entry point of the group ``lmms_patch.methods``.

An object of another package is loaded with ``ask.kinds``, before most of lmms-patch is. So the head of its module may import this
module alone, and its functions import what they need (CONTRIBUTING.md shows a method).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from lmms_patch.text import line, log

if TYPE_CHECKING:
    from PIL.Image import Image

    from lmms_patch.ask.kinds import Kind

GROUP = "lmms_patch.methods"
"""The group of entry points."""


@dataclasses.dataclass(frozen=True)
class Own:
    """A number of a method: the mean of a value of each doc.

    Attributes:
        name: what it is called.
        help: what it is, in one sentence.
        values: from the docs (``runs.tables.Table``) to a value of each doc, shape (docs,); nan where there is none.
        title: the head of its column in ``lmms-patch show --wide``.
        scale: ``metric`` or ``difference`` (``runs.catalogue.Number``).
    """

    name: str
    help: str
    values: Callable[[Any], Any]
    title: str
    scale: Any = "metric"


class Method:
    """A method of evaluation: what it computes beside the analysis, and what another package brings.

    ``METHOD`` in the modules ``rci.method``, ``tst.method`` and ``magic.method`` are ours. Comparison, gate, report and the run
    ask a kind for its method, so that none of them imports one by name.

    Attributes:
        sentence: what findings say of tasks of kinds that another package brings, with a place for the tasks and their numbers.
        rows: the columns beside the catalogue's that are rows of the harness's table.
    """

    sentence = "shown otherwise: {}"
    rows: tuple[str, ...] = ()

    def recompute(self, samples: Any, about: Mapping[str, Any], *, seed: int) -> Any:
        """Return the numbers that stand beside the analysis, from the rows of the samples; None: there are none.

        Args:
            samples: a polars frame.
            about: what a text-only diagnostic found out about the task as a whole.
            seed: of the bootstrap.
        """
        return None

    def flat(self, found: Any) -> Mapping[str, float | None]:
        """Return the columns of these numbers by name; None gives none."""
        return {}

    def better(self, result: Any, metric: str) -> bool:
        """Return whether a native metric of a result (``runs.run.Result``) is better when higher."""
        return bool(result.better(metric))

    def numbers_of(self, result: Any) -> Any:
        """Return the numbers of a finished task that is not wrapped (``runs.run.Result``), from its table."""
        raise NotImplementedError("only kinds of ours are not wrapped")

    def beside(self, result: Any) -> Any:
        """Return the same numbers of a finished result (``runs.run.Result``), from its table; None: there are none."""
        return None

    def kinds(self) -> Iterable[Kind]:
        """Return its kinds; a kind that brings a view of its own calls it by the kind's name (``Kind.view``)."""
        raise NotImplementedError("a method must have kinds()")

    def cut(self, image: Image, view: Any) -> Image:
        """Return a view (``ask.views.View``) of an image as a new image."""
        raise NotImplementedError("a method whose kind has a view of its own must have cut()")

    def numbers(self) -> Iterable[Own]:
        """Return the numbers of each of its kinds."""
        return ()

    def sheets(self, shown: Sequence[Any]) -> Iterable[Any]:
        """Return tables (``present.sheets.Sheet``) of results of its kinds (``runs.run.Labelled``)."""
        return ()


def others(known: Container[str]) -> dict[str, Kind]:
    """Return the kinds of other packages by name; of a package that is left out the log says why.

    Args:
        known: names of kinds that are taken.
    """
    out: dict[str, Kind] = {}
    for entry in entry_points(group=GROUP):
        # whatever another package raises, runs of our kinds must open
        try:
            method = entry.load()
            if not isinstance(method, Method):
                raise TypeError("not a lmms_patch.ask.methods.Method")
            for kind in method.kinds():
                # a digit in it would be read as the number that follows a kind in names (``gqa_rci3``)
                if not kind.name.isalpha() or kind.name in known:
                    raise ValueError(f"the kind {kind.name} is taken, or not of letters alone")
                if kind.folds or not kind.suffix:
                    raise ValueError(f"the kind {kind.name} has folds or no suffix, as only kinds of ours may")
                out[kind.name] = dataclasses.replace(kind, brought=method, own=tuple(method.numbers()))
        except (Exception, SystemExit) as error:
            log().warning(
                f"the method {entry.name} ({entry.value}) is left out: {type(error).__name__}: {line(str(error))}"
            )
    return out
