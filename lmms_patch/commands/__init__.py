"""The commands of ``lmms-patch``, one file each: options in, ``lmms_patch.api`` called, text out."""
