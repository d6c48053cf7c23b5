"""The MAGIC tasks inside the harness."""
