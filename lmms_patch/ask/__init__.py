"""What is asked and what is scored beside it: from a task name and its docs to views, boxes, golds and uninformed answers."""
