"""What a run took: calls, tokens and time counted by hand, and nothing where the files do not say."""

import json

import pytest

from lmms_patch.errors import RecordError
from lmms_patch.runs import costs
from lmms_patch.runs import run as runs
from tests.making.runs import one_cell_knows, world_run, write_run
from tests.making.tst import write_tst

ABOUT = {"total_evaluation_time_seconds": "300.0", "n-samples": {"a_rci2": {"original": 20, "effective": 20}}}


def made(folder, tokens=None, names=("a",), **about):
    """A run on 20 docs a benchmark; ``tokens`` gives the counts of each line."""
    tasks = {f"{name}_rci2": world_run(one_cell_knows, n=20, base=name) for name in names}
    path = write_run(folder, tasks, **{**ABOUT, **about})
    for number, name in enumerate(names):
        log = next(folder.glob(f"*_samples_{name}_rci2.jsonl"))
        lines = [{**json.loads(line), "filtered_resps": ["A"] * 10} for line in log.read_text().splitlines()]
        given = [line if tokens is None else {**line, "token_counts": tokens(number)} for line in lines]
        log.write_text("".join(json.dumps(line) + "\n" for line in given))
    return path


def of(path, *bases):
    return costs.cost(runs.read(path), bases)


def test_calls_tokens_and_time_are_what_the_files_say(tmp_path):
    """Two benchmarks, 20 docs each, 10 calls a doc: the first has 100 tokens in and 4 out a call, the second 300 and 8."""
    path = made(
        tmp_path, lambda n: [{"input_tokens": 100 + 200 * n, "output_tokens": 4 + 4 * n}] * 10, names=("a", "b")
    )
    both, one = of(path), of(path, "b")
    assert (both.calls, both.seconds, both.why) == (400, 300.0, "")
    assert (both.input_tokens, both.output_tokens) == (200, 6)
    assert (one.calls, one.tasks, one.input_tokens, one.output_tokens) == (400, ("b_rci2",), 300, 8)
    assert of(path, "c").tasks == ("a_rci2", "b_rci2"), "of none of these: of all"


def test_answers_that_a_cache_had_are_no_calls(tmp_path):
    """Of 10 answers a doc 4 have no count: the time is that of the others."""
    found = of(made(tmp_path, lambda n: [{"output_tokens": 3}] * 6 + [None] * 4))
    assert (found.calls, found.seconds, found.output_tokens, found.input_tokens) == (120, 300.0, 3, None)


@pytest.mark.parametrize(
    ("count", "known"),
    [(0, True), (3, True), (2.5, True), (-1, False), (True, False), ("3", False), (None, False)],
)
def test_a_count_is_a_number_of_0_or_more(tmp_path, count, known):
    """0 tokens is a count; a truth value, a text, and less than none are none."""
    found = of(made(tmp_path, lambda n: [{"output_tokens": count, "input_tokens": 7}] * 10))
    assert (found.output_tokens, found.input_tokens) == (count if known else None, 7)
    assert [costs._is_count(one) for one in (float("nan"), float("inf"))] == [False, False]


def test_an_adapter_that_counts_nothing(tmp_path):
    found = of(made(tmp_path, lambda n: [None] * 10))
    assert (found.calls, found.seconds, found.output_tokens) == (200, 300.0, None)
    found = of(made(tmp_path / "older"))
    assert (found.calls, found.output_tokens) == (200, None)


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({"config": {"use_cache": "cache"}}, "it used a response cache (--use_cache), whose answers took no time"),
        ({"n-samples": {**ABOUT["n-samples"], "gqa": {}}}, "gqa has no sample log"),
        (
            {"throughput": {"total_gen_tokens": 300}},
            "its process made 300 tokens, its logs have 600: a part is from a journal, or from other processes",
        ),
        ({"total_evaluation_time_seconds": "None"}, "its results file has no time"),
        ({"total_evaluation_time_seconds": None}, "its results file has no time"),
        ({"total_evaluation_time_seconds": "inf"}, "its results file has no time"),
    ],
)
def test_a_time_that_is_not_of_these_calls_is_none(tmp_path, about, why):
    found = of(made(tmp_path, lambda n: [{"output_tokens": 3}] * 10, **about))
    assert (found.seconds, found.why, found.output_tokens) == (None, why, 3)


def test_a_run_that_made_all_its_tokens_has_a_time(tmp_path):
    assert (
        of(made(tmp_path, lambda n: [{"output_tokens": 3}] * 10, throughput={"total_gen_tokens": 600})).seconds == 300.0
    )


def test_a_text_only_model_and_a_run_without_logs_say_nothing_of_calls(tmp_path):
    assert of(write_tst(tmp_path / "tst")) is None
    path = made(tmp_path / "bare")
    next(path.parent.glob("*.jsonl")).unlink()
    assert of(path) is None


def test_a_log_that_is_cut_is_one_line(tmp_path):
    path = made(tmp_path)
    log = next(tmp_path.glob("*.jsonl"))
    log.write_text(log.read_text()[:-20])
    with pytest.raises(RecordError, match="line 20: cut or not JSON"):
        of(path)
