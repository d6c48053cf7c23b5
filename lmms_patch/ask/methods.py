"""The methods that other packages bring: each an object behind an entry point of the group ``lmms_patch.methods``.

Such an object is loaded with ``ask.kinds``, before most of lmms-patch is. So the head of its module may import this
module alone, and its functions import what they need (CONTRIBUTING.md shows a method).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container, Iterable, Sequence
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
        values: from the records (``runs.tables.Table``) to a value of each doc, shape (docs,); nan where there is none.
        title: the head of its column in ``lmms-patch show --wide``.
        scale: ``metric`` or ``difference`` (``runs.catalogue.Number``).
    """

    name: str
    help: str
    values: Callable[[Any], Any]
    title: str
    scale: Any = "metric"


class Method:
    """A method of evaluation that another package brings: its kinds of views, their pixels, numbers, a sentence and tables.

    Attributes:
        sentence: what findings say of tasks of its kinds, with a place for the tasks and their numbers.
    """

    sentence = "shown otherwise: {}"

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
            for kind in method.kinds():
                if not kind.name.isalpha() or kind.name in known:
                    raise ValueError(f"the kind {kind.name} is taken, or not of letters alone")
                out[kind.name] = dataclasses.replace(kind, method=method, own=tuple(method.numbers()))
        except Exception as error:
            log().warning(
                f"the method {entry.name} ({entry.value}) is left out: {type(error).__name__}: {line(str(error))}"
            )
    return out
