"""Statistics of the index. NumPy at most; neither lmms_eval nor torch."""
