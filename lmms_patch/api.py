"""The public name of ``lmms_patch.app.api``."""

from lmms_patch.app.api import *  # noqa: F403
from lmms_patch.app.api import __getattr__ as __getattr__
