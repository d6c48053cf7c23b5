"""The records of a sample log."""

from lmms_patch.runs.logs import read_lines


def read_samples(path, filter_place=None, *, lean=False):
    """Yield the records alone; the arguments are those of ``read_lines``."""
    return (line.record for line in read_lines(path, filter_place, lean=lean))
