"""A native task, shown view by view and scored by its own scorer."""
