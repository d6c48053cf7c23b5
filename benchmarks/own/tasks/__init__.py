"""Tasks for lmms-eval, on docs that ``benchmarks/here.py`` writes."""
