"""Every order of the options through the real evaluator, on tasks of a few lines: what is asked, what is refused, and what must not be mixed up."""

from __future__ import annotations

import io
import re

import pyarrow.parquet as pq
import pytest
from PIL import Image

from lmms_patch.harness.asking.journal import Digests, of_request
from lmms_patch.resources import folder
from tests.harness.toys import ChatModel, Model, metrics, rows, run, write_task

TEXTS = ["a cat", "a dog", "a pig", "an ox"]
LISTED = "{{question}}\n{% for one in choices %}({{ 'ABCD'[loop.index0] }}) {{ one }}\n{% endfor %}Answer."
COUNT = 8


def options(doc):
    return [TEXTS[(doc + i) % 4] for i in range(2 + doc % 3)]


def gold(doc):
    return doc % len(options(doc))


def task(place, name="toy", count=COUNT, **config):
    """A task whose docs have two, three or four options in the field ``choices``, and a letter in brackets for gold."""
    columns = {"question": lambda i: f"Which is {i}?", "choices": options, "answer": lambda i: f"({'ABCD'[gold(i)]})"}
    columns |= config.pop("columns", {})
    return write_task(place, name, rows(count, **columns), **{"doc_to_text": LISTED, **config})


def knows(prompt, images):
    """The letter of the right text, wherever it stands."""
    doc = int(re.search(r"Which is (\d+)", prompt)[1])
    return f"({re.search(rf'[(]([A-D])[)] {options(doc)[gold(doc)]}$', prompt, re.MULTILINE)[1]})"


@pytest.fixture(autouse=True)
def no_journal(monkeypatch):
    monkeypatch.setenv("LMMS_PATCH_JOURNAL", "off")


def test_each_doc_is_asked_once_in_each_order(tmp_path):
    model = Model(knows)
    found = metrics(run(model, "toy_rotate", task(tmp_path)), "toy_rotate")
    asked = [prompt for *_, prompt in model.seen]
    assert len(asked) == len(set(asked)) == sum(len(options(doc)) for doc in range(COUNT))
    assert (found["rotate_every"], found["exact_match"], found["patch"]["n_rotated"]) == (1, 1, COUNT)


def test_the_image_is_the_docs_own_in_every_order(tmp_path):
    model = Model(knows)
    run(model, "toy_rotate", task(tmp_path))
    for _, _, (image,), prompt in model.seen:
        assert image.getpixel((0, 0))[2] == int(re.search(r"Which is (\d+)", prompt)[1])


def test_an_adapter_that_reads_the_doc_itself_finds_the_options_as_asked(tmp_path):
    class Reads(Model):
        def generate_until(self, requests):
            docs = [self.task_dict[request.args[4]][request.args[5]][request.args[3]] for request in requests]
            self.read = [(request.args[0], doc["choices"]) for request, doc in zip(requests, docs, strict=True)]
            return super().generate_until(requests)

    model = Reads(knows)
    run(model, "toy_rotate", task(tmp_path))
    assert model.read
    assert all(re.findall(r"\) (.*)$", prompt, re.MULTILINE) == choices for prompt, choices in model.read)


def test_filters_read_the_options_of_the_order_that_was_asked(tmp_path):
    """lmms-eval's own filter turns an answer in words into its letter, by the field ``choices``."""

    def says_the_text(prompt, images):
        doc = int(re.search(r"Which is (\d+)", prompt)[1])
        return options(doc)[gold(doc)]

    steps = [{"function": "multi_choice_regex", "regex_pattern": "(never)"}, {"function": "take_first"}]
    made = task(tmp_path, filter_list=[{"name": "words", "filter": steps}])
    found = metrics(run(Model(says_the_text), "toy_rotate", made), "toy_rotate")
    assert found["rotate_every"] == 1


def test_likelihoods_of_letters_that_the_prompt_lists(tmp_path):
    """The options move in the prompt, the letters whose likelihood is asked stay."""

    def liked(prompt, images):
        doc = int(re.search(r"Which is (\d+)", prompt)[1])
        return (
            "0"
            if prompt.endswith(re.search(rf"[(]([A-D])[)] {options(doc)[gold(doc)]}$", prompt, re.MULTILINE)[1])
            else "9"
        )

    columns = {"answer": gold}
    config = {
        "output_type": "multiple_choice",
        "doc_to_choice": "{{ ['A', 'B', 'C', 'D'][:choices | length] }}",
        "generation_kwargs": None,
    }
    made = task(tmp_path, columns=columns, metric_list=[{"metric": "acc"}], **config)
    model = Model(liked)
    found = metrics(run(model, "toy_rotate", made), "toy_rotate")
    assert (found["rotate_every"], found["patch"]["n_rotated"]) == (1, COUNT)
    assert len(model.seen) == sum(len(options(doc)) ** 2 for doc in range(COUNT))


def test_an_answer_is_kept_under_its_order(tmp_path):
    """The keys of saved answers differ from order to order, for chat models too, whose request does not hold the prompt."""
    for adapter in (Model, ChatModel):
        model = adapter(knows)
        seen = {}

        def note(requests, ask=model.generate_until, seen=seen):
            for request in requests:
                table = request.arguments[3].table
                owner = getattr(request.arguments[2 if adapter is Model else 1], "__self__")  # noqa: B009, B023 - __self__ is the task of the bound method; called within its turn of the loop
                key = of_request("model", request, seen.setdefault("digests", Digests(owner)))
                assert table is owner.table
                seen.setdefault("keys", []).append(key)
            return ask(requests)

        model.generate_until = note
        run(model, "toy_rotate", task(tmp_path))
        assert len(set(seen["keys"])) == len(seen["keys"]) == sum(len(options(doc)) for doc in range(COUNT))


def test_chat_models_are_told_the_options_in_each_order(tmp_path):
    model = ChatModel(knows)
    found = metrics(run(model, "toy_rotate", task(tmp_path)), "toy_rotate")
    assert found["rotate_every"] == 1
    assert len({prompt for *_, prompt in model.seen}) == sum(len(options(doc)) for doc in range(COUNT))


def test_a_doc_that_cannot_be_moved_is_asked_once_and_counted(tmp_path, caplog):
    columns = {"choices": lambda i: ["a cat", "a cat"] if i == 3 else options(i)}
    made = task(tmp_path, columns=columns)
    model = Model(lambda prompt, images: "(A)")
    results = run(model, "toy_rotate", made)
    found = metrics(results, "toy_rotate")
    assert sum("Which is 3" in prompt for *_, prompt in model.seen) == 1
    assert found["patch"]["analysis"]["turned"]["left_out"] == {"two of its options are the same": 1}
    (line,) = (one for one in results["samples"]["toy_rotate"] if one["doc_id"] == 3)
    assert line["patch"]["excluded"] == {"turns": "two of its options are the same"}
    assert found["patch"]["n_docs"] == COUNT


def test_a_failed_call_in_one_order_costs_the_doc(tmp_path):
    def fails(prompt, images):
        broken = "Which is 2" in prompt and prompt.index("an ox") < prompt.index("a pig")
        return "[LMMS_EVAL_REQUEST_FAILED after 3 retries] timeout" if broken else knows(prompt, images)

    found = metrics(run(Model(fails), "toy_rotate", task(tmp_path)), "toy_rotate")["patch"]
    assert found["analysis"]["turned"]["left_out"] == {"a call failed": 1}
    assert (found["n_rotated"], found["rotate_every"]) == (COUNT - 1, 1)


# --- planted models on the embedded benchmark ---------------------------------------------------------


@pytest.fixture(scope="module")
def sheets():
    """Each doc of ``mosaic_count`` with its number, by the pixels of its image, and whether it has options: images are shared."""
    stored = pq.read_table(folder("tasks") / "mosaic" / "data" / "mosaic_count.parquet").to_pylist()
    pixels = [Image.open(io.BytesIO(row["image"]["bytes"])).convert("RGB").tobytes() for row in stored]
    return {
        (shown, row["answer"] in "ABCD"): (doc, row)
        for doc, (shown, row) in enumerate(zip(pixels, stored, strict=True))
    }


def text_at(question, letter):
    return re.search(rf"^{letter}\. (.*)$", question, re.MULTILINE)[1]


def asked_on_mosaic(sheets, choose):
    """A run in which ``choose`` names a text of the question, or a letter, by the doc's number and row."""

    def answer(prompt, images):
        doc, row = sheets[images[0].tobytes(), "A. " in prompt]
        said = choose(doc, row) if "A. " in prompt else row["answer"]
        listed = re.search(rf"^([A-D])\. {re.escape(said)}$", prompt, re.MULTILINE)
        return listed[1] if listed and said not in "ABCD" else said

    return metrics(run(Model(answer), "mosaic_count_rotate"), "mosaic_count_rotate")


@pytest.mark.parametrize(
    ("choose", "once", "every", "places"),
    [
        (lambda doc, row: text_at(row["question"], row["answer"]), 1, 1, [1, 1, 1, 1]),
        (lambda doc, row: "A", 0.25, 0, [1, 0, 0, 0]),
        (lambda doc, row: text_at(row["question"], "A"), 0.25, 0.25, [0.25] * 4),
        (
            lambda doc, row: text_at(row["question"], row["answer"]) if row["answer"] in "AB" else "D",
            0.75,
            0.5,
            [0.5, 0.5, 0.5, 1],
        ),
    ],
    ids=["knows", "always A", "one text", "knows half, else D"],
)
def test_planted_models_score_what_was_planted(sheets, choose, once, every, places):
    """Of 60 docs with options, 15 have each letter for gold.

    Golds that are no letters count in the native metric alone.
    """
    found = asked_on_mosaic(sheets, choose)
    assert found["patch"]["n_rotated"] == 60
    assert (found["rotate_once"], found["rotate_every"]) == (once, every)
    assert [found["patch"][f"rotate_at{place}"] for place in range(1, 5)] == places
    assert found["acc"] == pytest.approx((60 + 60 * once) / 120)
