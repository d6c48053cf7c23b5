"""What a task's name and its config tell before anything is loaded."""
