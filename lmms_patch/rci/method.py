"""RCI as a method (``ask.methods``): all its numbers are those of the analysis, so nothing stands beside it."""

from lmms_patch.ask.methods import Method

METHOD = Method()
