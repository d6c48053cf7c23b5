"""A clip as a file on disk."""

from lmms_patch import files
from lmms_patch.harness.video.writing import encode


def write(clip, path):
    """Write a clip as an mp4 file; return why its sound was lost."""
    encoded = encode(clip)
    files.write(path, encoded.data)
    return encoded.lost
