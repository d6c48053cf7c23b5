from lmms_patch.records import TaskResult
from lmms_patch.show import meaning, table
from lmms_patch.spec import parse


def result(base, fip, mpp2, mpp3, docs=100):
    spec = parse(f"{base}_rci")
    rci = [None if not fip else 1 - m / fip for m in (mpp2, mpp3)]
    metrics = {"acc": fip, "acc_mpp2": mpp2, "acc_mpp3": mpp3, "rci2": rci[0], "rci3": rci[1], "patch": docs}
    return TaskResult(spec.name, {**spec.described(), "metric": "acc"}, metrics, "none")


RUN = [result("local", 0.8, 0.9, 0.88), result("count", 0.9, 0.1, 0.0), result("larger", 0.55, 0.0, 0.0), result("zero", 0.0, 0.5, 0.5)]
MAJORITY = {"local_rci": 0.1, "count_rci": 0.2, "larger_rci": 0.5}


def test_table_shows_every_number():
    lines = table(RUN, MAJORITY).splitlines()
    assert lines[2].split() == ["local_rci", "acc", "0.100", "0.800", "0.900", "0.880", "-0.125", "-0.100"]
    assert lines[5].split() == ["zero_rci", "acc", "n/a", "0.000", "0.500", "0.500", "n/a", "n/a"]


def test_the_sentence_says_nothing_of_a_task_that_a_constant_answers_as_well():
    """0.55 is within 2 * sqrt(0.5 * 0.5 / 100) = 0.10 of the majority's 0.5."""
    said = meaning(RUN, MAJORITY)
    assert "one cell is enough for local" in said
    assert "only the whole image answers count" in said
    assert "the index of larger means nothing" in said
    assert "zero" not in said


def test_the_sentence_of_an_unclear_run():
    assert "no task is clearly" in meaning([result("middle", 0.8, 0.7, 0.7)], {})
