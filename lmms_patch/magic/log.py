"""Another name of ``logs.response_of``."""

from lmms_patch.magic.logs import response_of

__all__ = ["response_of"]
