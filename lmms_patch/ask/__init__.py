"""From a task's name to what is asked: views, boxes, golds, uninformed answers."""
