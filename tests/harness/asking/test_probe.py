"""Batches that garble their shorter inputs are told from models that draw at random, and from sums that round in another order."""

import random

import pytest
from lmms_eval.api.instance import Instance
from loguru import logger

from lmms_patch.harness.asking import probe
from tests.harness import toys
from tests.harness.askers import clue
from tests.harness.toys import Model, rows, write_task
from tests.sizes import size

COUNT = 16
RUNS = size(60, 400)


def request(number, temperature):
    return Instance(
        "generate_until",
        (f"q{number}", {"temperature": temperature}),
        0,
        {"task": "toy", "doc_id": number, "repeats": 1},
    )


def spoken(answer, temperature, batched=lambda stream, text: text, runs=RUNS):
    """In how many of some runs something is said; and the calls of one run."""
    said, calls = 0, 0
    for seed in range(runs):
        stream = random.Random(seed)
        known = [request(number, temperature) for number in range(200)]
        answers = {one.arguments[0]: (one, batched(stream, answer(stream, one))) for one in known}
        asked = []

        def ask(requests, stream=stream, asked=asked):
            asked.extend(requests)
            return [answer(stream, one) for one in requests]

        said += bool(probe.differences(ask, answers, COUNT))
        calls = len(asked)
    return said / runs, calls


def sure(stream, one):
    return "ABCD"[one.doc_id % 4]


def unsure(share):
    return lambda stream, one: sure(stream, one) if stream.random() < share else stream.choice("ABCD")


def garbled(share):
    return lambda stream, text: "garbage" if stream.random() < share else text


def test_a_model_that_answers_alike_costs_one_call_each_and_nothing_is_said():
    assert spoken(sure, 0) == (0, COUNT)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.95])
def test_what_a_model_draws_is_no_fault_of_batches(share):
    rate, calls = spoken(unsure(share), 0.7)
    assert calls == 2 * COUNT
    assert rate <= probe.SURE + 3 * (probe.SURE / RUNS) ** 0.5


def test_rounding_that_changes_one_answer_in_twenty_is_none_either():
    assert spoken(sure, 0, garbled(0.05))[0] <= 0.01 + 3 * (0.01 / RUNS) ** 0.5


@pytest.mark.parametrize(("answer", "temperature"), [(sure, 0), (unsure(0.9), 0.7)])
def test_batches_that_garble_half_of_their_inputs_are_found(answer, temperature):
    assert spoken(answer, temperature, garbled(0.6))[0] > 0.8


def test_long_answers_and_failed_ones_are_not_compared():
    assert spoken(lambda stream, one: f"{stream.random()} " * 4, 0) == (0, 0)
    assert spoken(lambda stream, one: "", 0) == (0, 0)


class Padding(Model):
    """Answers in batches of 4.

    Of a batch it garbles the inputs that are smaller than the largest, where it pads wrongly.
    """

    def __init__(self, garbles):
        super().__init__(clue)
        self.garbles, self.calls = garbles, 0

    def generate_until(self, requests):
        self.calls += len(requests)
        out = []
        for start in range(0, len(requests), 4):
            answers = super().generate_until(requests[start : start + 4])
            widths = [images[0].width for _, _, images, _ in self.seen[-len(answers) :]]
            out += [
                "?" if self.garbles and width < max(widths) else answer
                for width, answer in zip(widths, answers, strict=True)
            ]
        return out


@pytest.mark.parametrize(("garbles", "options", "batch", "asked", "said"), [(True, {}, 4, COUNT, True), (False, {}, 4, COUNT, False), (True, {"probe": 0}, 4, 0, False),
                                                                            (True, {}, 1, 0, False)])  # fmt: skip
def test_a_run_says_it(tmp_path, garbles, options, batch, asked, said):
    from argparse import Namespace

    lines = []
    sink = logger.add(lines.append, level="WARNING", format="{message}")
    write_task(tmp_path, "toy", rows(12), metadata={"lmms_patch": {"null": 0, **options}})
    cli = Namespace(
        output_path="", process_with_media=False, reasoning_tags=None, model="Padding", model_args="", batch_size=batch
    )
    model = Padding(garbles)
    toys.run(model, "toy_rci2", tmp_path, cli_args=cli)
    logger.remove(sink)
    assert model.calls == 12 * 5 + asked
    assert [line for line in lines if "run it with --batch_size 1" in line] == [
        line for line in lines if "answers differ" in line
    ]
    assert any("answers differ when their requests are asked alone" in line for line in lines) == said
