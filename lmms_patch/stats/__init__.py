"""Arrays in, estimates out: index, chance floors, gate, composition, intervals, resampling.

NumPy and SciPy at most; neither lmms_eval nor torch.
"""
