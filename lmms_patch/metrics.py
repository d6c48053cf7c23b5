"""The public name of ``lmms_patch.app.metric``."""

from lmms_patch.app.metric import RCI as RCI
