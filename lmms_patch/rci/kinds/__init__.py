"""What kinds add to the numbers of a task, each part in a module of its own; a kind has every part that says so (``Part.of``)."""

from lmms_patch.rci.kinds import hidden, lines, orders, points, regions
from lmms_patch.rci.kinds.part import Part

PARTS: tuple[Part, ...] = (points, hidden, orders, regions, lines)
"""All parts, in the order in which their warnings stand."""
