"""What kinds add to the numbers of a task, each part in a module of its own; a kind has every part that says so (``Part.of``)."""

from lmms_patch.rci.kinds.hidden import HIDDEN
from lmms_patch.rci.kinds.lines import WINDOWS
from lmms_patch.rci.kinds.orders import ORDERS
from lmms_patch.rci.kinds.part import Part
from lmms_patch.rci.kinds.points import POINTS
from lmms_patch.rci.kinds.regions import BOXES

PARTS: tuple[Part, ...] = (POINTS, HIDDEN, ORDERS, BOXES, WINDOWS)
"""All parts, in the order in which their warnings stand."""
