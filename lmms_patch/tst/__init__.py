"""The Test-set Stress-Test and Iterative Bias Pruning: what of a benchmark can be answered without looking."""
