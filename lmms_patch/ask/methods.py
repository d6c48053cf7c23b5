"""Methods of other packages: each brings kinds of views, their pixels, numbers and sentences, by an entry point of the group ``GROUP``."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

if TYPE_CHECKING:
    from PIL import Image

    from lmms_patch.ask.kinds import Kind
    from lmms_patch.ask.views import View

GROUP = "lmms_patch.methods"
T = TypeVar("T")


class Method(Protocol):
    """What an entry point names: an object, or a module, with these functions.

    The functions import lmms_patch inside, since lmms_patch itself calls them while its modules load.
    """

    def kinds(self) -> Sequence[Kind]:
        """Return the kinds of views: their suffixes must not be taken."""

    def cut(self, image: Image.Image, view: View) -> Image.Image:
        """Return a new image that shows a view of these kinds; the given image stays as it is."""

    def numbers(self) -> Sequence[Any]:
        """Return rows of the catalogue (``runs.catalogue.Number``), made of a task's analysis."""

    def finding(self, case: Any) -> str:
        """Return what a task of these kinds shows (``present.findings.Case``), as a sentence with ``{}`` for the names of tasks."""


@functools.cache
def methods() -> tuple[Method, ...]:
    """Return the methods of other packages. A method that cannot be loaded is left out, with a line on stderr."""
    return tuple(
        method
        for point in metadata.entry_points(group=GROUP)
        if (method := _left_out(point.name, point.load)) is not None
    )


def brought(part: Literal["kinds", "numbers"]) -> Iterator[Any]:
    """Yield the kinds, or the numbers, that all methods bring. What raises is left out, with a line on stderr."""
    for method in methods():
        yield from _left_out(getattr(method, "__name__", repr(method)), getattr(method, part)) or ()


def method_of(kind: Kind) -> Method | None:
    """Return the method of another package that brought a kind; None for kinds of our own."""
    return next((method for method in methods() if kind in method.kinds()), None)


def _left_out(name: str, make: Callable[[], T]) -> T | None:
    """Return what a function makes; None where it raises, which a line says: code of others must not stop runs without its kinds."""
    try:
        return make()
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"lmms-patch: the method {name} is left out: {said}", file=sys.stderr)
        return None
