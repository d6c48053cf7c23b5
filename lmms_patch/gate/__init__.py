"""``lmms-patch gate``: rules over the numbers of finished runs, and a verdict that a build can stop on."""
