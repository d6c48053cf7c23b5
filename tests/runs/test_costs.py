"""What a run took: calls, tokens and time counted by hand, and nothing where the files do not say."""

import pytest

from lmms_patch.runs import costs
from lmms_patch.runs import run as runs
from tests.making.runs import one_cell_knows, world_run, write_run
from tests.making.tst import write_tst

ABOUT = {"total_evaluation_time_seconds": "300.0", "n-samples": {"a_rci2": {"original": 20, "effective": 20}}}


def made(folder, tokens=None, names=("a",), **about):
    """A run on 20 docs a benchmark; ``tokens`` gives the counts (in, out) of the ten calls of each doc."""
    tasks = {}
    for number, name in enumerate(names):
        spec, records, plan = world_run(one_cell_knows, n=20, base=name)
        for one in records:
            # one call a view: five of the doc's own image, five of a wrong one
            views = [*one["views"], *one["wrong_image"]["views"]]
            for view, (given, out) in zip(views, tokens(number) if tokens else (), strict=False):
                view |= {"tokens_in": given, "tokens_out": out}
        tasks[f"{name}_rci2"] = spec, records, plan
    return write_run(folder, tasks, **{**ABOUT, **about})


def of(path, *bases):
    return costs.cost(runs.read(path), bases)


def test_calls_tokens_and_time_are_what_the_files_say(tmp_path):
    """Two benchmarks, 20 docs each, 10 calls a doc: the first has 100 tokens in and 4 out a call, the second 300 and 8."""
    path = made(tmp_path, lambda n: [(100 + 200 * n, 4 + 4 * n)] * 10, names=("a", "b"))
    both, one = of(path), of(path, "b")
    assert (both.calls, both.seconds, both.why) == (400, 300.0, "")
    assert (both.input_tokens, both.output_tokens) == (200, 6)
    assert (one.calls, one.tasks, one.input_tokens, one.output_tokens) == (400, ("b_rci2",), 300, 8)
    assert of(path, "c").tasks == ("a_rci2", "b_rci2"), "of none of these: of all"


def test_answers_that_a_cache_had_are_no_calls(tmp_path):
    """Of 10 answers a doc 4 have no count: the time is that of the others."""
    found = of(made(tmp_path, lambda n: [(None, 3)] * 6 + [(None, None)] * 4))
    assert (found.calls, found.seconds, found.output_tokens, found.input_tokens) == (120, 300.0, 3, None)


def test_an_adapter_that_counts_nothing(tmp_path):
    found = of(made(tmp_path, lambda n: [(None, None)] * 10))
    assert (found.calls, found.seconds, found.output_tokens) == (200, 300.0, None)
    found = of(made(tmp_path / "older"))
    assert (found.calls, found.output_tokens) == (200, None)


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({"config": {"use_cache": "cache"}}, "it used a response cache (--use_cache), whose answers took no time"),
        (
            {"throughput": {"total_gen_tokens": 300}},
            "its process made 300 tokens, its tables have 600: a part is from a journal, or from other processes",
        ),
        ({"total_evaluation_time_seconds": "None"}, "the run does not say how long it took"),
        ({"total_evaluation_time_seconds": None}, "the run does not say how long it took"),
        ({"total_evaluation_time_seconds": "inf"}, "the run does not say how long it took"),
    ],
)
def test_a_time_that_is_not_of_these_calls_is_none(tmp_path, about, why):
    found = of(made(tmp_path, lambda n: [(None, 3)] * 10, **about))
    assert (found.seconds, found.why, found.output_tokens) == (None, why, 3)


def test_a_run_that_made_all_its_tokens_has_a_time(tmp_path):
    assert of(made(tmp_path, lambda n: [(None, 3)] * 10, throughput={"total_gen_tokens": 600})).seconds == 300.0


def test_a_text_only_model_says_nothing_of_calls(tmp_path):
    assert of(write_tst(tmp_path / "tst")) is None
