"""A native task, wrapped: views as requests, one scored doc, and the numbers of the task."""
