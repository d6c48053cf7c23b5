"""MAGIC: does a model look at the right regions while it reasons? Pure parts; the tasks that run it lie in tasks/magic."""
