"""Tables and sentences in plain text."""
