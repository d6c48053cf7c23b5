"""Each question to a judge in a call: tests ask many."""

from lmms_patch.magic.score.verdicts import full_inquiry, heal_inquiry, short_inquiry, steps_inquiry


def short(judge, *said):
    """Whether an answer is right by the short gold answer."""
    return judge.ask(short_inquiry(*said))[0]


def full(judge, *said):
    """Whether a response is right by the full gold answer."""
    return judge.ask(full_inquiry(*said))[0]


def heal(judge, *said):
    """Whether a continuation takes a mistake back."""
    return judge.ask(heal_inquiry(*said))[0]


def steps(judge, *said):
    """Whether each step of a chain is right."""
    return list(judge.ask(steps_inquiry(*said)))
