"""The Test-set Stress-Test and pruned tasks inside the harness."""
