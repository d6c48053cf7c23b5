"""Every order of the options on lmms-eval's own benchmarks: their prompts, filters and scorers, planted models, docs that must be left out."""

from __future__ import annotations

import argparse
import re
from typing import Any

import datasets
import pytest
from datasets import List, Value
from lmms_eval.tasks import TaskManager

from lmms_patch.errors import CannotWrapError
from tests.harness import toys
from tests.harness.standins import TEXT, WHOLE, StandIn, images, noise, one
from tests.harness.toys import ChatModel, Model, metrics
from tests.sizes import some

WORDS = ["red bird", "blue fish", "green frog", "grey wolf", "black bear"]
LETTERS = "ABCDE"
DOCS = 12
ODD = {4: "All of the above", 9: "Both A and B"}
"""Docs whose last option cannot be moved."""


def options(doc: int) -> list[str]:
    """Two to four options, in another order for each doc."""
    count = 2 + doc % 3 if doc not in ODD else 4
    texts = [WORDS[(doc + i) % 5] for i in range(count)]
    return [*texts[:-1], ODD[doc]] if doc in ODD else texts


def gold(doc: int) -> int:
    return doc * 5 % len(options(doc)) if doc not in ODD else 1


def lines(doc: int, form: str = "{}. {}", between: str = "\n") -> str:
    return between.join(map(form.format, LETTERS, options(doc)))


def rows(make: Any) -> list[dict[str, Any]]:
    return [{"question": f"Which animal is in picture {doc}?", **make(doc)} for doc in range(DOCS)]


def ai2d() -> StandIn:
    columns = images(question=TEXT, options=List(TEXT), answer=TEXT)
    made = rows(lambda doc: {"options": options(doc), "answer": str(gold(doc)), "image": noise(doc)})
    return one("ai2d", "lmms-lab-encoder/ai2d", None, "test", columns, made)


def scienceqa() -> StandIn:
    texts = ("hint", "task", "grade", "subject", "topic", "category", "skill", "lecture", "solution")
    made = rows(
        lambda doc: {**dict.fromkeys(texts, ""), "choices": options(doc), "answer": gold(doc), "image": noise(doc)}
    )
    columns = images(question=TEXT, choices=List(TEXT), answer=Value("int8"), **dict.fromkeys(texts, TEXT))
    return one("scienceqa_img", "lmms-lab-encoder/ScienceQA", "ScienceQA-IMG", "test", columns, made)


def mmstar() -> StandIn:
    kinds = [
        "coarse perception", "fine-grained perception", "instance reasoning", "logical reasoning",
        "science & technology", "math",
    ]  # fmt: skip
    made = rows(
        lambda doc: {
            "index": doc,
            "question": f"Which animal is in picture {doc}?\nOptions: {lines(doc, '{}: {}', ', ')}",
            "image": noise(doc),
            "answer": LETTERS[gold(doc)],
            "category": kinds[doc % 6],
            "l2_category": f"kind {doc % 2}",
        }
    )
    columns = images(index=Value("int64"), question=TEXT, answer=TEXT, category=TEXT, l2_category=TEXT)
    return one("mmstar", "Lin-Chen/MMStar", None, "val", columns, made)


def realworldqa() -> StandIn:
    """The options stand in the question alone, before an instruction."""
    end = "Please answer directly with only the letter of the correct option and nothing else."
    made = rows(
        lambda doc: {
            "question": f"Which animal is in picture {doc}?\n{lines(doc)}\n{end}",
            "answer": LETTERS[gold(doc)],
            "image": noise(doc),
        }
    )
    return one("realworldqa", "lmms-lab-encoder/RealWorldQA", None, "test", images(question=TEXT, answer=TEXT), made)


def mmmu() -> StandIn:
    made = rows(
        lambda doc: {
            "id": f"validation_Art_{doc}",
            "question": f"Which animal is in <image 1>, picture {doc}?",
            "options": str(options(doc)),
            "explanation": "",
            **{f"image_{k}": noise(doc) if k == 1 else None for k in range(1, 8)},
            "img_type": "['Photo']",
            "answer": LETTERS[gold(doc)],
            "topic_difficulty": "Easy",
            "question_type": "multiple-choice",
            "subfield": "x",
        }
    )
    texts = (
        "id", "question", "options", "explanation", "img_type", "answer", "topic_difficulty", "question_type",
        "subfield",
    )  # fmt: skip
    columns = {**dict.fromkeys(texts, TEXT), **{f"image_{k}": datasets.Image() for k in range(1, 8)}}
    return one("mmmu_val", "lmms-lab-encoder/MMMU", None, "validation", columns, made)


def blink() -> StandIn:
    """The prompt is a field of its own, beside the list of choices."""
    made = rows(
        lambda doc: {
            "idx": f"val_Counting_{doc}",
            "sub_task": "Counting",
            "image_1": noise(doc),
            **dict.fromkeys(("image_2", "image_3", "image_4")),
            "choices": options(doc),
            "answer": f"({LETTERS[gold(doc)]})",
            "prompt": f"Which animal is in picture {doc}?\nSelect from the following choices.\n{lines(doc, '({}) {}')}",
        }
    )
    texts = dict.fromkeys(("idx", "question", "sub_task", "answer", "prompt"), TEXT)
    columns = {**texts, "choices": List(TEXT), **{f"image_{k}": datasets.Image() for k in range(1, 5)}}
    return one("blink_counting", "BLINK-Benchmark/BLINK", "Counting", "val", columns, made)


def mmbench() -> StandIn:
    """Columns A to D, of which the last may be "nan"; items have no score, M of one item is their score."""
    made = rows(
        lambda doc: {
            **dict(zip("ABCD", [*options(doc), "nan", "nan"], strict=False)),
            "answer": LETTERS[gold(doc)],
            "hint": "nan",
            "source": "x",
            "split": "dev",
            "category": "c",
            "L2-category": "l",
            "index": doc,
            "image": noise(doc),
        }
    )
    names = ("question", "A", "B", "C", "D", "answer", "hint", "source", "split", "category", "L2-category")
    return one(
        "mmbench_en_dev_static",
        "lmms-lab-encoder/MMBench",
        "en",
        "dev",
        images(index=Value("int64"), **dict.fromkeys(names, TEXT)),
        made,
    )


def seedbench(task: str = "seedbench") -> StandIn:
    """Four options in columns, so no doc has fewer."""

    def make(doc: int) -> dict[str, Any]:
        texts = options(doc) if doc in ODD else [WORDS[(doc + i) % 5] for i in range(4)]
        columns = {f"choice_{letter}": text for letter, text in zip("abcd", texts, strict=True)}
        about = {
            "data_id": str(doc),
            "data_type": "image",
            "question_id": f"q{doc}",
            "question_type_id": 1 + doc % 4,
            "segment": None,
        }
        return {**columns, **about, "answer": LETTERS[gold(doc)], "image": [noise(doc)]}

    texts = (
        "question", "answer", "choice_a", "choice_b", "choice_c", "choice_d", "data_id", "data_type", "question_id",
    )  # fmt: skip
    columns = {
        **dict.fromkeys(texts, TEXT),
        "question_type_id": WHOLE,
        "image": List(datasets.Image()),
        "segment": List(WHOLE),
    }
    return one(task, "lmms-lab-encoder/SEED-Bench", None, "test", columns, rows(make))


BENCHMARKS = {made().task: made for made in (ai2d, scienceqa, mmstar, realworldqa, mmmu, blink, mmbench, seedbench)}
METRIC = {"mmstar": "average", "seedbench": "seed_all"}
OPTION = {"seedbench": "metric: seed_all", "mmbench_en_dev_static": "allow_judge: true"}
"""Tasks that need a file of their own; MMBench's scorer shares a class with the one that calls a judge."""


# --- models -----------------------------------------------------------------------------------------


def doc_of(prompt: str) -> int:
    return int(re.search(r"picture (\d+)", prompt)[1])


def letter_of(prompt: str, text: str) -> str:
    """The letter that the prompt sets before a text."""
    return re.search(rf"\(?([A-E])[.:)]\s*{re.escape(text)}", prompt)[1]


def oracle(prompt: str, _: Any) -> str:
    doc = doc_of(prompt)
    shown = options(doc) if options(doc)[gold(doc)] in prompt else WORDS
    return letter_of(prompt, shown[gold(doc)])


def always_first(prompt: str, _: Any) -> str:
    return "A"


def picks_a_text(prompt: str, _: Any) -> str:
    """A text by the doc's number, wherever it stands."""
    doc = doc_of(prompt)
    return letter_of(prompt, options(doc)[doc // 2 % 2])


# --- runs -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> TaskManager:
    """One for all runs: it reads 1,700 files."""
    folder = tmp_path_factory.mktemp("tasks")
    for base, option in OPTION.items():
        (folder / f"{base}.yaml").write_text(
            f"{{task: {base}_every, class: !function lmms_patch.Wrap, base: {base}, kind: rotate, {option}}}"
        )
    return TaskManager(verbosity="ERROR", include_path=str(folder))


@pytest.fixture
def bench(manager: TaskManager, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    """Runs a task on its stand-in with a model; returns the run's results and the model."""
    monkeypatch.setenv("LMMS_PATCH_JOURNAL", "off")
    monkeypatch.chdir(tmp_path)

    def run(standin: StandIn, task: str, answer: Any, adapter: type[Model] = Model) -> tuple[dict[str, Any], Model]:
        monkeypatch.setattr(datasets, "load_dataset", standin.loader())
        model = adapter(answer)
        arguments = argparse.Namespace(output_path=str(tmp_path), process_with_media=False)
        more = {
            "cli_args": arguments,
            "bootstrap_iters": 0,
            "process_docs_parallel": 1,
            "task_manager": manager,
            "log_samples": True,
        }
        return toys.simple_evaluate(model=model, tasks=[task], **more), model

    return run


def name_of(base: str) -> str:
    return f"{base}_every" if base in OPTION else f"{base}_rotate"


def found(results: dict[str, Any], base: str) -> dict[str, Any]:
    return metrics(results, name_of(base))


def in_percent(base: str) -> float:
    return 100.0 if base.startswith("mmbench") else 1.0


MOVED = [doc for doc in range(DOCS) if doc not in ODD]


@pytest.mark.parametrize("base", some(BENCHMARKS, 3, 0))
def test_an_oracle_is_right_in_every_order(bench, base):
    numbers = found(bench(BENCHMARKS[base](), name_of(base), oracle)[0], base)
    assert numbers["patch"]["n_rotated"] == len(MOVED)
    assert [numbers[f"rotate_{name}"] for name in ("once", "mean", "every", "lost")] == pytest.approx(
        [in_percent(base)] * 3 + [0]
    )
    reasons = {"an option speaks of those above or below it": 1, "an option names others by their letters": 1}
    assert numbers["patch"]["analysis"]["turned"]["left_out"] == reasons


@pytest.mark.parametrize("base", some(BENCHMARKS, 3, 1))
def test_always_a_is_never_right_in_every_order(bench, base):
    numbers = found(bench(BENCHMARKS[base](), name_of(base), always_first)[0], base)
    assert numbers["rotate_every"] == 0
    assert numbers["patch"]["rotate_at1"] == pytest.approx(in_percent(base))
    assert numbers["patch"]["rotate_at2"] == 0


@pytest.mark.parametrize("base", some(BENCHMARKS, 3, 2))
def test_who_picks_a_text_scores_alike_in_every_order_and_as_on_the_base(bench, base):
    """The base task's own run is the truth: of all docs, and of each."""
    standin, metric = BENCHMARKS[base](), METRIC.get(base)
    native = bench(standin, base, picks_a_text)[0]
    results, model = bench(standin, name_of(base), picks_a_text)
    numbers = found(results, base)
    own = metrics(native, base)
    metric = metric or next(name for name in own if name in numbers)
    assert numbers[metric] == pytest.approx(own[metric])
    for line, other in zip(native["samples"][base], results["samples"][name_of(base)], strict=True):
        assert line[metric] == other["patch"]["views"][0]["items"][metric]
        assert {view["scores"][metric] for view in other["patch"]["views"]} == {
            other["patch"]["views"][0]["scores"][metric]
        }
    assert numbers["rotate_once"] == pytest.approx(numbers["rotate_every"])
    assert 0 < numbers["rotate_every"] < in_percent(base)
    check_prompts(model, base)


def check_prompts(model: Model, base: str) -> None:
    """Each doc is asked in each order once, with nothing else changed."""
    asked: dict[int, list[str]] = {}
    for *_, prompt in model.seen:
        asked.setdefault(doc_of(prompt), []).append(prompt)
    for doc, prompts in asked.items():
        texts = [WORDS[(doc + i) % 5] for i in range(4)] if base == "seedbench" and doc not in ODD else options(doc)
        assert len(prompts) == (1 if doc in ODD else len(texts))
        first = min(prompts, key=lambda prompt: [letter_of(prompt, text) for text in texts])
        for turn in range(len(prompts)):
            expected = first
            for i, text in enumerate(texts):
                expected = expected.replace(text, f"<{i}>")
            for i in range(len(texts)):
                expected = expected.replace(f"<{i}>", texts[(i + turn) % len(texts)])
            assert expected in prompts


@pytest.mark.parametrize("base", ["mmmu_val", "ai2d"])
def test_a_chat_model_is_told_by_messages(bench, base):
    """MMMU makes its own messages; AI2D's are its images and its prompt."""
    results, model = bench(BENCHMARKS[base](), f"{base}_rotate", oracle, ChatModel)
    numbers = metrics(results, f"{base}_rotate")
    assert (numbers["rotate_every"], numbers["patch"]["n_rotated"]) == (1, len(MOVED))
    assert {len(shown) for _, _, shown, _ in model.seen} == {1}
    check_prompts(model, base)


def test_likelihoods_of_options_that_the_prompt_does_not_list(bench):
    """Their order changes nothing that the model sees: refused, not asked four times."""
    with pytest.raises((SystemExit, CannotWrapError)):
        bench(seedbench("seedbench_ppl"), "seedbench_ppl_rotate", lambda prompt, images: "1")
