"""The public name of ``lmms_patch.app.api``."""

from lmms_patch.app.api import *  # noqa: F403 - an alias: every public name of that module, also those to come
from lmms_patch.app.api import __dir__ as __dir__
from lmms_patch.app.api import __getattr__ as __getattr__
