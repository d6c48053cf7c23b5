"""``lmms-patch doctor``: is everything set up, and is a run whole? One line for each thing that is looked at."""
