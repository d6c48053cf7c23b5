"""The faults of a dataset."""

from lmms_patch.magic.dataset import inspect


def check(path, **options):
    """Return every fault, in the order of its lines."""
    return list(inspect(path, **options).faults)
