"""Everything that touches lmms-eval.

For a new version of the host, only this package needs reading; start with ``compat``.
"""
