"""The MAGIC tasks as tasks of lmms-eval, and the judge that they may call."""
