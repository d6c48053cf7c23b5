"""The explorer: every doc of one or two runs, with its image, its cells and every answer."""
