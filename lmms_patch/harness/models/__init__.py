"""The models that the plugin adds to lmms-eval. ``mosaic_reader`` lies beside the clips that it reads, as no code of the package."""

from lmms_patch.resources import folder

__path__.append(str(folder("tasks") / "mosaic_video"))
