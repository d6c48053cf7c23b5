"""All figures of a report. matplotlib is imported only when one is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from lmms_patch.present.report.data import Entry, Figure
from lmms_patch.present.report.figures import canvas, curves, forests, heatmaps, indices, models, regions, scores
from lmms_patch.present.report.points import Point, distinct, of_medium

MOST_HEATMAPS = 30
"""Results with a drawing of their own; the others are in the overviews."""
FEW = 8
"""Of more results, these drawings have no PDFs: the overviews have."""


def figures(
    entries: Sequence[Entry], points: Sequence[Point], folder: Path, tell: Callable[[str], None] = lambda line: None
) -> tuple[Figure, ...]:
    """Draw what there is to draw, and write the files of each (``canvas.write``).

    Args:
        entries: the results of our runs; may be empty.
        points: their indices, and those of published tables.
        folder: is there, and takes the files.
        tell: is handed a line before drawing, and one on what is not drawn.

    Returns:
        What the page shows, in the order of its sections; the headline first.
    """
    tell("drawing figures")
    with canvas.style():
        return tuple(canvas.write(sketch, folder) for sketch in sketches(entries, distinct(points), tell))


def sketches(
    entries: Sequence[Entry], points: Sequence[Point], tell: Callable[[str], None] = lambda line: None
) -> Iterator[canvas.Sketch]:
    """Yield every figure, not drawn yet."""
    alone = [entry for entry in entries if any(map(entry.whole.shares, entry.grids))]
    if len(alone) > MOST_HEATMAPS:
        tell(f"heatmaps of their own: the first {MOST_HEATMAPS} of {len(alone)} results; all are in the overviews")
    space, time = of_medium(points, False), of_medium(points, True)
    yield from chain(forests.drawings(space), forests.drawings(time))
    yield from scores.whole_and_best(entries)
    papers = (canvas.ONE,) if len(alone) <= FEW else ()
    yield from (made for entry in alone[:MOST_HEATMAPS] if (made := heatmaps.heatmap(entry, papers)))
    yield from chain(indices.maps(space), indices.matrices(space), heatmaps.overview(entries), heatmaps.boxes(entries))
    yield from curves.drawings(entries)
    yield from scores.boxes_hidden(entries)
    yield from chain(models.drawings(space), models.drawings(time))
    yield from scores.without_image(entries)
    yield from regions.drawings(entries)
