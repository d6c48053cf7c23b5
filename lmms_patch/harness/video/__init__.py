"""Videos of a doc: read exactly, cut into views in time or space, written for adapters, and kept within a limit on disk."""
