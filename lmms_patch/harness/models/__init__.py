"""The models that the plugin adds to lmms-eval."""
