"""Every command over damaged files and odd options: thousands of cases from a seed, each of which can be run again by its number.

    python -m tests.fuzz --cases 2000              # what the suite runs, here with more said
    python -m tests.fuzz --cases 20000 --jobs 2    # the long run
    python -m tests.fuzz --case 1234               # one case again: what was damaged, what was typed, what came of it

``stock`` makes small true files, ``damage`` breaks copies of them, ``scenarios`` says what is typed, ``case`` runs one
case and judges it, and ``pool`` runs many of them in processes that may hang or die.
"""
