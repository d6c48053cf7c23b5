"""Everything that touches lmms-eval: a new version of the host means reading this folder."""
