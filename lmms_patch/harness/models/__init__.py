"""The models that the plugin adds to lmms-eval. Those of the embedded benchmarks lie beside their weights and clips, as no code of the package."""

from lmms_patch.resources import folder

__path__ += [str(folder("tasks") / name) for name in ("mosaic", "mosaic_video")]
