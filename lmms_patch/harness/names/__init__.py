"""Names of tasks: what the harness knows, what a name means, and whether it can be wrapped."""
