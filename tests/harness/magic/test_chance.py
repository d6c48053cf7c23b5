"""Self-Heal by words against chance: models that heal nothing, and an honest one, on the embedded data."""

import pytest

from lmms_patch.harness.magic import docs as magic_docs
from lmms_patch.harness.magic import tasks
from lmms_patch.magic.score import results, selfheal
from tests.harness.magic.truth import told_by_words

COLOURS = ("red", "green", "blue", "grey", "black", "yellow")


@pytest.fixture(scope="module")
def asked():
    """The 45 (or so) docs of Self-Heal on the embedded data, without their images."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MAGIC_DATA", "MAGIC_JUDGE", "MAGIC_SEED"):
            patch.delenv(name, raising=False)
        return list(magic_docs.docs("selfheal", magic_docs.MOSAIC).remove_columns("image"))


@pytest.fixture
def heals(asked, monkeypatch):
    """Returns the metric, what is behind it, and how many docs words call healed, of a model ``says(doc)``."""
    monkeypatch.delenv("MAGIC_JUDGE", raising=False)

    def run(says):
        made = [tasks.process_results(doc, [says(doc)]) for doc in asked]
        records = [results.Record(**one["magic"]) for one in made]
        found = results.numbers(records, "selfheal", judged=False, draws=200)["self_heal_words"]
        assert tasks.healed_by_words([one["self_heal_words"] for one in made]) == found.value
        assert (results.withheld(records, "self_heal_words") == "") == (found.value is not None)
        return found, results.by_words(records), sum(bool(one.healed_words) for one in records)

    return run


def boxes(doc):
    return range(1, sum(number > 0 for number in doc["drawn"]) + 1)


def listed(doc):
    return f"Actually, it could be any of these: {', '.join(map(str, range(21)))}, {', '.join(COLOURS)}, yes, no.\n**Answer**: yes"


def listed_one_by_one(doc):
    return "Wait. " + " ".join(f"It is {word}." for word in [*range(20, -1, -1), *COLOURS, "yes", "no"]) + "\n**Answer**: yes"


def every_box(doc):
    return "Not so fast. " + " ".join(f"It is actually in R{box}." for box in boxes(doc)) + "\n**Answer**: yes"


def every_box_at_once(doc):
    return f"Actually I look at {', '.join(f'R{box}' for box in boxes(doc))} and not at one alone.\n**Answer**: yes"


def every_other_box(doc):
    """Knows the wrong step, which is in the prompt, and names every box that it does not name."""
    wrong = " ".join(doc["wrong"])
    return "Actually it is in one of " + ", ".join(f"R{box}" for box in boxes(doc) if f"R{box}" not in wrong) + ".\n**Answer**: yes"


def everything(doc):
    return listed(doc).replace("\n", " ") + " " + every_box(doc)


def question_again(doc):
    return f"Actually, wait. {doc['question']} {doc['question'].replace('?', '.')}\n**Answer**: yes"


def repeats(doc):
    return f"As I said. {' '.join(doc['wrong'])} So it is.\n**Answer**: yes"


HOSTILE = (listed, listed_one_by_one, every_box, every_box_at_once, every_other_box, everything, question_again, repeats)

DENIALS = (
    "It is not true that {}.",
    "It is false that {}.",
    "It is not the case that {}.",
    "I do not think that {}.",
    "I don't believe {}.",
    "I deny that {}.",
    "I doubt that {}.",
    "No, it isn't so that {}.",
    "It would be wrong to say that {}.",
    "The claim that {} is false.",
    "That {} is simply not true.",
    "Someone may say {}, but that is wrong.",
    "{}? No.",
    "{}. That is not true.",
    "{} \u2014 no, that is false.",
    "It is far from true that {}.",
)


def as_clause(correction):
    return correction.rstrip(".")


@pytest.mark.parametrize("says", HOSTILE, ids=lambda one: one.__name__)
def test_what_would_heal_any_mistake_heals_none(heals, says):
    found, words, _ = heals(says)
    assert found.value is None
    assert not words.reported
    assert "by words" in found.reason
    assert words.above.low is None or words.above.low <= 0


@pytest.mark.parametrize("form", DENIALS)
def test_a_denial_is_no_correction(asked, form):
    """Every correction is denied in turn. Said plainly, each of them heals (``honest``)."""
    for doc in asked:
        said = selfheal.read_sentences(" ".join(form.format(as_clause(one)) for one in doc["corrections"]))
        assert not selfheal.healed_by_words(said, selfheal.claims(doc["corrections"], doc["wrong"], doc["question"])), doc["id"]


def honest(doc):
    return f"Wait, that was a mistake. {' '.join(doc['corrections'])} Now it is settled.\n**Answer**: yes"


def sometimes(doc):
    return honest(doc) if hash_of(doc) % 3 == 0 else repeats(doc)


def hash_of(doc):
    return sum(map(ord, doc["id"]))


def against_the_mistake(doc):
    """Names the mistake too, as people do."""
    told = [f"No, that is not right: {wrong.rstrip('.')} is wrong. {right}" for right, wrong in zip(doc["corrections"], doc["wrong"], strict=True)]
    return " ".join(told) + "\n**Answer**: yes"


@pytest.mark.parametrize("says", [honest, against_the_mistake])
def test_who_corrects_every_mistake_is_reported(heals, says):
    found, words, healed = heals(says)
    assert (found.value, words.reported) == (1.0, True)
    assert healed == found.n == len(told_by_words())
    assert words.chance < 0.3


def test_who_corrects_some_mistakes_is_reported(heals, asked):
    found, words, healed = heals(sometimes)
    judged = told_by_words()
    assert healed == sum(hash_of(doc) % 3 == 0 for doc in asked if doc["id"] in judged)
    assert found.value == pytest.approx(healed / len(judged))
    assert words.reported
