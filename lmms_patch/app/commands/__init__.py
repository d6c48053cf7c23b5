"""The commands of ``lmms-patch``, one file each: a typed function that returns data, and ``display``, which prints that data."""
