"""The commands of ``lmms-patch``, one file each: options in, ``lmms_patch.app.api`` called, text out."""
