"""Every command over damaged copies of true files, and with odd options: cases from a seed, each run again by its number.

``damage`` breaks a file, ``calls`` says what is typed over which files, ``judge`` runs a call and says what is wrong.
Case 17 alone: ``pytest tests/fuzz -k "case and 17"``; more cases than 80: ``LMMS_PATCH_DEEP=1``.
"""
