"""The files of a run: read in one place, written in one place."""
