"""The tasks of the plugin; ``benchmarks/here.py`` writes the docs that they read."""
