"""Pruned benchmarks as task folders of lmms-eval."""
