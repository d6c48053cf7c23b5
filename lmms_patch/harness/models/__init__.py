"""Models that the plugin registers with the harness."""
