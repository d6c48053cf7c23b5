"""The command line and the Python API. They wire the parts and compute nothing."""
