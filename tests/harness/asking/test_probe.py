"""Batches that garble their inputs are told from models that draw at random and from sums that round in another order, and then no number is shown."""

import random
import zlib
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import polars as pl
import pytest

import lmms_patch
from lmms_patch.app.cli import main
from lmms_patch.harness.asking import probe
from lmms_patch.harness.asking import rounds as ranks
from lmms_patch.harness.asking.in_portions import InPortions
from lmms_patch.harness.asking.rounds import Ranks
from tests.harness import toys
from tests.harness.askers import Gathering, clue, written
from tests.harness.toys import Model, rows, write_task
from tests.sizes import size

COUNT = 16
RUNS = size(20, 200)
CELLS = 9
WORDS = [
    "the",
    "a",
    "cat",
    "dog",
    "sits",
    "on",
    "red",
    "blue",
    "mat",
    "house",
    "near",
    "tree",
    "sky",
    "with",
    "of",
    "and",
    "green",
    "ball",
    "man",
    "woman",
]


def asked(docs, batch):
    """Docs and views in the order in which they are asked, and of each view whether it is smaller than the largest of its batch."""
    views = [(doc, view) for doc in range(docs) for view in range(1 + CELLS)]
    batches = [views[start : start + batch] for start in range(0, len(views), batch)]
    return [
        (doc, view, frozenset(view > 0 for _, view in some), place, view > 0 and any(view == 0 for _, view in some))
        for some in batches
        for place, (doc, view) in enumerate(some)
    ]


def found(docs, batch, answer, garbled, seed=0, number=0, world=1):
    """The verdict on a run in which ``garbled`` changes answers in batches, and how often one of its ranks asked."""
    stream, calls = random.Random(seed), []
    answered = [
        probe.Answered(
            SimpleNamespace(task_name=f"toy{seed}", doc_id=doc * 100 + view),
            garbled(stream, (doc, view, place, smaller), answer(stream, doc, view)),
            ((view > 0, beside), view, place),
        )
        for doc, view, beside, place, smaller in asked(docs, batch)
        if doc % world == number
    ]

    def ask(requests):
        calls.extend(requests)
        return [answer(stream, *divmod(request.doc_id, 100)) for request in requests]

    return probe.verdict(ask, answered, COUNT, Ranks(number, world)), len(calls)


def sure(stream, doc, view):
    return "ABCD"[zlib.crc32(f"{doc} {view}".encode()) % 4]


def unsure(share):
    return lambda stream, doc, view: sure(stream, doc, view) if stream.random() < share else stream.choice("ABCD")


def described(share):
    """A description that begins as all do; each of its words is drawn anew with some probability."""

    def answer(stream, doc, view):
        own = random.Random(f"{doc} {view}")
        words = [own.choice(WORDS) if stream.random() < share else stream.choice(WORDS) for _ in range(40)]
        return "The image shows " + " ".join(words)

    return answer


def as_it_is(stream, where, text):
    return text


def rounded(share):
    return lambda stream, where, text: "other" if stream.random() < share else text


def later(stream, where, text):
    """Rounding that changes a long answer from some word on."""
    words, place = text.split(), stream.randrange(9, 30)
    return " ".join([*words[:place], *stream.choices(WORDS, k=len(words) - place)])


def smaller_ones(stream, where, text):
    return stream.choice(["?", described(0)(stream, 0, 0)]) if where[3] else text


def last_ones(batch):
    return lambda stream, where, text: "?" if where[2] == batch - 1 else text


@pytest.mark.parametrize("docs", [30, 45, 60, 120, 300])
@pytest.mark.parametrize("batch", [2, 4, 15])
@pytest.mark.parametrize("answer", [sure, described(1), unsure(0.9)], ids=["short", "long", "random"])
def test_what_garbles_all_but_the_largest_input_is_found_every_time(docs, batch, answer):
    verdicts = [found(docs, batch, answer, smaller_ones, seed)[0] for seed in range(size(3, 20))]
    assert all(one.failed for one in verdicts)
    assert all(one.why.startswith("batches garble answers: ") for one in verdicts)


@pytest.mark.parametrize("batch", [2, 4])
def test_a_place_in_the_batch_that_is_garbled_whatever_its_size_is_found(batch):
    assert sum(found(120, batch, sure, last_ones(batch), seed)[0].failed for seed in range(RUNS)) >= 0.9 * RUNS


@pytest.mark.parametrize(
    ("answer", "changed"),
    [
        (sure, as_it_is),
        (sure, rounded(0.05)),
        (described(1), later),
        *((unsure(share), as_it_is) for share in (0.0, 0.3, 0.7, 0.95)),
        (unsure(0.9), rounded(0.05)),
        (described(0.8), as_it_is),
        (described(0.3), as_it_is),
    ],
)
def test_an_honest_adapter_is_never_accused(answer, changed):
    assert not any(found(60, 4, answer, changed, seed)[0].failed for seed in range(RUNS))


def test_a_model_that_answers_alike_costs_two_calls_for_each_request():
    verdict, calls = found(60, 4, sure, as_it_is)
    assert (verdict.asked, verdict.differed, calls) == (COUNT, 0, 2 * COUNT)


@pytest.mark.parametrize(("docs", "garbled"), [(60, smaller_ones), (61, as_it_is), (1, as_it_is)])
def test_ranks_ask_their_own_answers_equally_often_and_come_to_one_verdict(docs, garbled, monkeypatch):
    gathering = Gathering(2)
    monkeypatch.setattr(ranks, "_distributed", lambda: gathering)

    def work(number):
        gathering.local.number = number
        return found(docs, 4, sure, garbled, number=number, world=2)

    with ThreadPoolExecutor(2) as pool:
        (one, first), (other, second) = pool.map(work, range(2))
    assert one == other
    assert one.failed == (garbled is smaller_ones)
    assert first == second or docs == 1, "a rank without answers has nothing to ask"


def test_what_cannot_be_compared_is_no_verdict():
    assert found(0, 4, sure, as_it_is)[0] == probe.Probe(why="no answer can be compared")


# --- a whole run ----------------------------------------------------------------------------------


class Padding(Model):
    """Answers in batches of 4, and garbles the inputs of a batch that are smaller than the largest."""

    def __init__(self, garbles):
        super().__init__(clue)
        self.garbles = garbles

    def generate_until(self, requests):
        out = []
        for start in range(0, len(requests), 4):
            answers = super().generate_until(requests[start : start + 4])
            widths = [images[0].width for _, _, images, _ in self.seen[-len(answers) :]]
            out += [
                "?" if self.garbles and width < max(widths) else answer
                for width, answer in zip(widths, answers, strict=True)
            ]
        return out


def run(folder, garbles, options, batch, output=""):
    write_task(folder, "toy", rows(30), metadata={"lmms_patch": {"null": 0, **options}})
    cli = Namespace(
        output_path=output,
        process_with_media=False,
        reasoning_tags=None,
        model="Padding",
        model_args="",
        batch_size=batch,
    )
    model = Padding(garbles)
    return toys.run(model, "toy_rci2", folder, cli_args=cli), len(model.seen)


@pytest.mark.parametrize(
    ("garbles", "options", "batch", "more", "said"),
    [
        (False, {}, 4, 2 * COUNT, ""),
        (True, {"probe": 0}, 4, 0, "the option 'probe' is 0"),
        (True, {}, 1, 0, "answers come one by one"),
    ],
)
def test_a_run_says_what_was_asked_again(tmp_path, garbles, options, batch, more, said):
    results, calls = run(tmp_path, garbles, options, batch)
    assert calls == 30 * 5 + more
    assert (results["lmms_patch_probe"].failed, results["lmms_patch_probe"].why) == (False, said)


def test_a_run_that_finds_all_answers_kept_asks_again_how_they_came(tmp_path, monkeypatch):
    """It was killed after its last portion, before anything was asked again."""
    monkeypatch.delenv("LMMS_PATCH_JOURNAL", raising=False)
    with monkeypatch.context() as killed:
        killed.setattr(InPortions, "_probe", lambda *_: None)
        run(tmp_path / "tasks", True, {}, 4, str(tmp_path / "out"))
    results, calls = run(tmp_path / "tasks", True, {}, 4, str(tmp_path / "out"))
    assert 0 < calls < 30 * 5
    assert results["lmms_patch_probe"].failed


def test_no_door_shows_a_number_of_a_run_that_batches_garble(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("LMMS_PATCH_JOURNAL", raising=False)
    results, _ = run(tmp_path / "tasks", True, {}, 4, str(tmp_path / "asked"))
    columns = results["results"]["toy_rci2"]
    assert [columns[f"{name},none"] for name in ("exact_match", "exact_match_mpp2", "rci2", "chance")] == [None] * 4
    assert not list((tmp_path / "asked").rglob("*rank*")), "no later run may find these answers"
    good, _ = run(tmp_path / "tasks", False, {}, 4)
    bad, good = (written(one, tmp_path / name, "toy_rci2") for one, name in ((results, "bad"), (good, "good")))
    capsys.readouterr()
    numbers = lmms_patch.results(bad)
    assert numbers["value"].null_count() == len(numbers) > 0
    assert numbers.select(pl.col("reason").str.starts_with("batches garble answers").all()).item()
    rules = tmp_path / "rules.yaml"
    rules.write_text('schema: 1\nrules:\n  - {name: a, task: "*", metric: rci2, min: -9}\n')
    page = tmp_path / "page"
    doors = {
        "show": (["show", bad], 0),
        "analyze": (["analyze", bad], 0),
        "gate": (["gate", bad, "--config", rules], 1),
        "compare": (["compare", good, bad], 2),
        "report": (["report", bad, "--output", page], 0),
        "leaderboard": (["leaderboard", bad, "--output", tmp_path / "board"], 0),
    }
    for name, (command, status) in doors.items():
        assert main([str(part) for part in command]) == status, name
        printed = " ".join("".join(capsys.readouterr()).split())
        shown = (command[-1] / "index.html").read_text(encoding="utf-8") if "--output" in command else printed
        assert "batches garble answers" in shown, name
