"""A response and its scores."""
