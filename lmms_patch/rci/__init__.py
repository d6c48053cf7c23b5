"""The spatial index: from the records of a task to its numbers."""
