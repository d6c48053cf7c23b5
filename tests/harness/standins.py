"""Small data sets with the columns of the real ones, for tasks that lmms-eval ships.

Only the loading of data is replaced (``load_dataset``), and for captions the two Java programs, for
HallusionBench the judge's web address: YAML files, prompts, scorers and aggregations are lmms-eval's own.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import datasets
import numpy as np
from datasets import Dataset, DatasetDict, Features, List, Value
from PIL import Image

TEXT, WHOLE = Value("string"), Value("int32")
WIDE = 50
"""Every usable image is at least this wide, every cell of one is narrower."""

Rows = list[dict[str, Any]]


def as_is(image: Image.Image) -> Image.Image:
    return image


@dataclass(frozen=True)
class StandIn:
    """What the loading of one task's data gives, and what the model says about it.

    Attributes:
        task: a task that lmms-eval ships.
        data: (path, name) as ``load_dataset`` gets them -> split -> rows.
        features: the column types, for each (path, name).
        menu: the model's answers: right ones, wrong ones, rubbish. Empty: it gives log-likelihoods.
        whole_menu: more answers, given to whole images only (a scorer that guesses at them draws at random).
        excluded: the docs without an image, or with one that is too small for any grid.
        salt: changes every answer of the model.
    """

    task: str
    data: Mapping[tuple[str, str | None], Mapping[str, Rows]]
    features: Mapping[tuple[str, str | None], Mapping[str, Any]]
    menu: tuple[str, ...] = ()
    whole_menu: tuple[str, ...] = ()
    excluded: frozenset[int] = frozenset()
    salt: int = 0
    _made: dict[Any, dict[str, Dataset]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def loader(self, change: Callable[[Image.Image], Image.Image] = as_is) -> Callable[..., Any]:
        """A ``load_dataset`` that knows this data only; ``change`` is done to every image, once."""

        def load_dataset(path: str, name: str | None = None, split: str | None = None, **_: Any) -> Any:
            key = (path, name)
            if (*key, change) not in self._made:
                features = Features(self.features[key])
                splits = {
                    s: Dataset.from_list([changed(row, change) for row in rows], features)
                    for s, rows in self.data[key].items()
                }
                self._made[(*key, change)] = splits
            splits = self._made[(*key, change)]
            return DatasetDict(splits) if split is None else splits[split]

        return load_dataset

    def answer(self, prompt: str, images: Sequence[Image.Image]) -> str:
        """A function of the prompt and every pixel, so that each view has an answer of its own."""
        digest = hashlib.sha256(f"{self.salt}/{prompt}".encode())
        for image in images:
            digest.update(repr((image.mode, image.size)).encode() + image.tobytes())
        number = int.from_bytes(digest.digest()[:8], "big")
        if not self.menu:
            return str(number % 10007)
        menu = self.menu + (self.whole_menu if not images or images[0].width >= WIDE else ())
        return menu[number % len(menu)]


def changed(value: Any, change: Callable[[Image.Image], Image.Image]) -> Any:
    """A row with ``change`` done to its images, wherever they are."""
    if isinstance(value, Image.Image):
        return change(value)
    if isinstance(value, dict):
        return {key: changed(inner, change) for key, inner in value.items()}
    return [changed(inner, change) for inner in value] if isinstance(value, list) else value


def noise(seed: int, size: tuple[int, int] | None = None) -> Image.Image:
    """A noise image; sizes and modes vary with the seed, as they do in real data."""
    size = size or [(60, 40), (61, 43), (56, 90)][seed % 3]
    image = Image.fromarray(np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), np.uint8))
    return image.convert(["RGB", "RGB", "L", "P", "RGBA"][seed % 5])


def images(**others: Any) -> dict[str, Any]:
    return {"image": datasets.Image(), **others}


def one(
    task: str, path: str, name: str | None, split: str, features: Mapping[str, Any], rows: Rows, **options: Any
) -> StandIn:
    """A stand-in with one data set of one split."""
    assert all(set(row) == set(features) for row in rows), f"{task}: columns differ"
    return StandIn(task, {(path, name): {split: rows}}, {(path, name): features}, **options)


GQA_TYPES = {
    "verify": {"structural": "verify", "semantic": "obj", "detailed": "exist"},
    "query": {"structural": "query", "semantic": "attr", "detailed": "categoryThis"},
}


def gqa() -> StandIn:
    path, questions, pictures = "lmms-lab-encoder/GQA", "testdev_balanced_instructions", "testdev_balanced_images"
    golds = ["yes", "no", "left", "yes", "dog", "no", "left", "dog", "yes", "no"]
    docs = [
        {
            "id": f"20{i}",
            "imageId": f"n{i // 2}",
            "question": f"Is thing {i} there?",
            "answer": gold,
            "fullAnswer": f"It is {gold}.",
            "isBalanced": True,
            "types": GQA_TYPES["verify" if gold in ("yes", "no") else "query"],
        }
        for i, gold in enumerate(golds)
    ]
    columns = {
        "id": TEXT,
        "imageId": TEXT,
        "question": TEXT,
        "answer": TEXT,
        "fullAnswer": TEXT,
        "isBalanced": Value("bool"),
    }
    columns["types"] = {"structural": TEXT, "semantic": TEXT, "detailed": TEXT}
    return StandIn(
        "gqa",
        {
            (path, questions): {"testdev": docs},
            (path, pictures): {"testdev": [{"id": f"n{i}", "image": noise(i)} for i in range(5)]},
        },
        {(path, questions): columns, (path, pictures): images(id=TEXT)},
        menu=("Yes.", "no", "left", "dog", "a dog", "it is hard to say"),
    )


def pope() -> StandIn:
    golds = ["yes", "no", "yes", "yes", "no", "no", "yes", "no", "yes", "no"]
    rows = [
        {
            "id": str(i),
            "question_id": str(i + 1),
            "question": f"Is there a {word} in the image?",
            "answer": gold,
            "image_source": f"COCO_val2014_{i // 3:012}",
            "image": noise(100 + i // 3),
            "category": ["adversarial", "popular", "random"][i % 3],
        }
        for i, (gold, word) in enumerate(
            zip(golds, ["cup", "dog", "car", "tie", "bus", "cat", "bed", "cow", "pen", "key"], strict=True)
        )
    ]
    columns = images(id=TEXT, question_id=TEXT, question=TEXT, answer=TEXT, image_source=TEXT, category=TEXT)
    return one(
        "pope",
        "lmms-lab-encoder/POPE",
        None,
        "test",
        columns,
        rows,
        menu=("Yes", "No", "no", "yes", "Yes, there is.", "?"),
    )


def mme() -> StandIn:
    """Pairs: two questions on one image, of perception or of cognition, never both."""
    categories = ["existence", "existence", "color", "code_reasoning", "code_reasoning", "numerical_calculation"]
    rows = [
        {
            "question_id": f"{category}/{pair:04}.png",
            "image": noise(200 + pair),
            "question": f"Is this {pair} {word}? Please answer yes or no.",
            "answer": gold,
            "category": category,
        }
        for pair, category in enumerate(categories)
        for word, gold in (("right", "Yes"), ("wrong", "No"))
    ]
    columns = images(question_id=TEXT, question=TEXT, answer=TEXT, category=TEXT)
    return one(
        "mme",
        "lmms-lab-encoder/MME",
        None,
        "test",
        columns,
        rows,
        menu=("Yes", "No", "no, it is not", "yes.", "y", "unclear"),
    )


def mmstar() -> StandIn:
    categories = {
        "coarse perception": "image emotion",
        "fine-grained perception": "recognition",
        "instance reasoning": "single-instance reasoning",
        "logical reasoning": "diagram reasoning",
        "science & technology": "geography & earth science & agriculture",
        "math": "geometry",
    }
    rows = [
        {
            "index": i,
            "question": f"What is number {i}?\nOptions: A: red, B: green, C: blue, D: grey",
            "image": noise(300 + i),
            "answer": "ABCD"[i % 4],
            "category": category,
            "l2_category": inner if i < 6 else f"other {inner}",
            "meta_info": {"image_path": f"images/{i}.jpg", "source": "MMBench", "split": "val"},
        }
        for i, (category, inner) in enumerate([*categories.items()] * 3)
    ]
    source = {"image_path": TEXT, "source": TEXT, "split": TEXT}
    columns = images(
        index=Value("int64"), question=TEXT, answer=TEXT, category=TEXT, l2_category=TEXT, meta_info=source
    )
    menu = ("A", "B.", "(C)", "The answer is D", "I cannot tell")
    return one("mmstar", "Lin-Chen/MMStar", None, "val", columns, rows, menu=menu, salt=22)


def ai2d() -> StandIn:
    parts = ["lung", "heart", "leaf", "stem", "moon"]
    rows = [
        {
            "question": f"What does label {i} show?",
            "options": parts[: 3 + i % 3],
            "answer": str(i % 3),
            "image": noise(400 + i),
        }
        for i in range(10)
    ]
    menu = ("A. lung", "B", "c", "C. leaf", "Lung", "none of these")
    return one(
        "ai2d",
        "lmms-lab-encoder/ai2d",
        None,
        "test",
        images(question=TEXT, options=List(TEXT), answer=TEXT),
        rows,
        menu=menu,
    )


def scienceqa_img() -> StandIn:
    """Docs 2 and 7 have no image, as in the full set."""
    without = frozenset({2, 7})
    rows = [
        {
            "image": None if i in without else noise(500 + i),
            "question": f"Which of these is number {i}?",
            "choices": ["bird", "fish", "frog"][: 2 + i % 2],
            "answer": i % 2,
            "hint": "" if i % 3 else "Animals have skins.",
            "task": "closed choice",
            "grade": f"grade{i}",
            "subject": "natural science",
            "topic": "biology",
            "category": "Animals",
            "skill": "Classify",
            "lecture": "",
            "solution": "",
        }
        for i in range(10)
    ]
    texts = dict.fromkeys(
        ("question", "hint", "task", "grade", "subject", "topic", "category", "skill", "lecture", "solution"), TEXT
    )
    columns = images(choices=List(TEXT), answer=Value("int8"), **texts)
    menu = ("A", "b", "B. fish", "A bird", "I do not know")
    return one(
        "scienceqa_img",
        "lmms-lab-encoder/ScienceQA",
        "ScienceQA-IMG",
        "test",
        columns,
        rows,
        menu=menu,
        excluded=without,
    )


def realworldqa() -> StandIn:
    """Lettered and open questions; the image of doc 4 is one pixel wide."""
    golds = ["A", "B", "C", "Yes", "A", "2", "Downhill", "B", "No", "C"]
    options = "\nA. Left\nB. Right\nC. Straight\nPlease answer directly with only the letter of the correct option and nothing else."
    rows = [
        {
            "question": f"Where is thing {i}?{options if gold in 'ABC' else ' Please answer directly with a single word or number.'}",
            "answer": gold,
            "image_path": f"{i}.webp",
            "image": noise(600 + i, (1, 9) if i == 4 else None),
        }
        for i, gold in enumerate(golds)
    ]
    menu = ("A", "B. Right", "(C)", "Yes.", "downhill", "I see nothing")
    columns = images(question=TEXT, answer=TEXT, image_path=TEXT)
    return one(
        "realworldqa", "lmms-lab-encoder/RealWorldQA", None, "test", columns, rows, menu=menu, excluded=frozenset({4})
    )


CONSENSUS = [
    ["red"] * 10,
    ["red"] * 2 + ["dark red"] * 8,
    ["2"] * 3 + ["two"] * 1 + ["3"] * 6,
    ["thats all"] * 10,
    ["thats all"] * 2 + ["Yes"] * 8,
    ["the Stop sign"] * 4 + ["stop"] * 6,
    ["unanswerable"] * 9 + ["red"],
    ["hes"] * 10,
    ["stop"] * 1 + ["yes"] * 2 + ["unanswerable"] * 7,
    ["8:30"] * 10,
]
"""Ten annotators a question: scores of 0.3, 0.6, 0.9 and 1. The scorer rewrites these texts in place, and
rewriting "thats all" or "hes" twice gives another text than rewriting it once."""

VQA_MENU = ("red", "Two", "thats all", "stop sign", "yes", "hes", "#!")


def textvqa(task: str = "textvqa_val", split: str = "validation") -> StandIn:
    rows = [
        {
            "image_id": f"{i:016x}",
            "question_id": 34602 + i,
            "question": f"what is written on item {i}?",
            "question_tokens": ["what", "is", "written"],
            "image": noise(700 + i),
            "image_width": 60,
            "image_height": 40,
            "answers": answers if split == "validation" else None,
            "image_classes": ["Sign"],
            "set_name": split,
            "ocr_tokens": ["STOP", "8:30"],
        }
        for i, answers in enumerate(CONSENSUS)
    ]
    lists = dict.fromkeys(("question_tokens", "answers", "image_classes", "ocr_tokens"), List(TEXT))
    columns = images(
        image_id=TEXT, question_id=WHOLE, question=TEXT, image_width=WHOLE, image_height=WHOLE, set_name=TEXT, **lists
    )
    return one(task, "lmms-lab-encoder/textvqa", None, split, columns, rows, menu=VQA_MENU, salt=3)


def vizwiz_vqa(task: str = "vizwiz_vqa_val", split: str = "val") -> StandIn:
    rows = [
        {
            "question_id": f"VizWiz_{split}_{i:08}",
            "image": noise(800 + i),
            "question": f"Can you tell me what {i} is?",
            "answers": answers if split == "val" else None,
            "category": "other" if split == "val" else None,
        }
        for i, answers in enumerate(CONSENSUS)
    ]
    columns = images(question_id=TEXT, question=TEXT, answers=List(TEXT), category=TEXT)
    return one(task, "lmms-lab-encoder/VizWiz-VQA", None, split, columns, rows, menu=VQA_MENU)


def chartqa() -> StandIn:
    golds = ["14", "Yes", "0.57", "58%", "Blue", "14.3", "No", "2010", "0", "Yes"]
    rows = [
        {
            "type": "augmented_test" if i % 3 else "human_test",
            "question": f"What is the value of bar {i}?",
            "answer": gold,
            "image": noise(900 + i),
        }
        for i, gold in enumerate(golds)
    ]
    menu = ("14.2", "yes", "0.58", "Blue", "no", "0", "n/a %")
    return one(
        "chartqa",
        "lmms-lab-encoder/ChartQA",
        None,
        "test",
        images(type=TEXT, question=TEXT, answer=TEXT),
        rows,
        menu=menu,
        salt=6,
    )


def mmmu(task: str = "mmmu_val", split: str = "validation") -> StandIn:
    """Several images in a doc, open questions, items without a score; an answer that names no option is a guess."""
    rows = []
    subjects = [
        "Accounting", "Art", "Accounting", "Physics", "Art", "History", "Physics", "Accounting", "Energy_and_Power",
        "Art",
    ]  # fmt: skip
    for i, subject in enumerate(subjects):
        count, is_open = 1 + i % 3, i % 4 == 3
        shown = " and ".join(f"<image {k}>" for k in range(1, count + 1))
        rows.append(
            {
                "id": f"{split}_{subject}_{i}",
                "question": f"Given {shown}, what follows for {i}?",
                "options": str([] if is_open else ["12 cm", "It grows", "None", "8.50"][: 3 + i % 2]),
                "explanation": "",
                **{f"image_{k}": noise(1000 + 10 * i + k) if k <= count else None for k in range(1, 8)},
                "img_type": "['Diagrams']",
                "answer": "?" if split == "test" else ["8.5", "$24 million"][i % 8 == 7] if is_open else "ABC"[i % 3],
                "topic_difficulty": "Medium",
                "question_type": "open" if is_open else "multiple-choice",
                "subfield": "x",
            }
        )
    texts = (
        "id", "question", "options", "explanation", "img_type", "answer", "topic_difficulty", "question_type",
        "subfield",
    )  # fmt: skip
    columns = {**dict.fromkeys(texts, TEXT), **{f"image_{k}": datasets.Image() for k in range(1, 8)}}
    menu = ("A", "C.", "(B) 8.5", "so (A) $24 million")
    rubbish = ("no idea", "I would rather not say what follows here", "?")
    return one(task, "lmms-lab-encoder/MMMU", None, split, columns, rows, menu=menu, whole_menu=rubbish)


def blink_counting() -> StandIn:
    rows = [
        {
            "idx": f"val_Counting_{i + 1}",
            "question": f"How many things {i} are in the image?",
            "sub_task": "Counting",
            "image_1": noise(1200 + i),
            **dict.fromkeys(("image_2", "image_3", "image_4")),
            "choices": ["1", "2", "3", "0"][: 2 + i % 3],
            "answer": f"({'ABC'[i % (2 + i % 2)]})",
            "prompt": f"How many things {i} are in the image?\nSelect from the following choices.\n(A) 1\n(B) 2\n(C) 3",
        }
        for i in range(10)
    ]
    texts = dict.fromkeys(("idx", "question", "sub_task", "answer", "prompt"), TEXT)
    columns = {**texts, "choices": List(TEXT), **{f"image_{k}": datasets.Image() for k in range(1, 5)}}
    menu = ("(A)", "B", "The correct answer is (C).", "D.", "two", "")
    return one("blink_counting", "BLINK-Benchmark/BLINK", "Counting", "val", columns, rows, menu=menu)


def hallusion_bench_image() -> StandIn:
    """Figures that several questions share, and questions that are asked of several figures."""
    golds = {("VD", 1): "Yes", ("VD", 0): "No", ("VS", 1): "No", ("VS", 2): "Yes"}
    rows = [
        {
            "category": category,
            "subcategory": "chart" if category == "VS" else "illusion",
            "visual_input": "1" if figure < 2 else "2",
            "set_id": "0",
            "figure_id": str(figure),
            "sample_note": "",
            "question_id": str(question),
            "question": f"Is statement {question} about {category} right?",
            "gt_answer_details": f"{gold}, it is so.",
            "gt_answer": str(int(gold == "Yes")),
            "filename": f"./{category}/{figure}.png",
            "image": noise(1300 + place),
        }
        for place, ((category, figure), gold) in enumerate(golds.items())
        for question in range(3)
    ]
    columns = images(**{name: TEXT for name in rows[0] if name != "image"})
    menu = ("Yes", "No.", "Yes, it is", "I am not sure")
    return one("hallusion_bench_image", "lmms-lab-encoder/HallusionBench", None, "image", columns, rows, menu=menu)


def seedbench_ppl() -> StandIn:
    """Images, and one clip of three frames."""
    rows = [
        {
            "answer": "ABCD"[i * 3 % 4],
            "choice_a": "One",
            "choice_b": "Two of them",
            "choice_c": "Three",
            "choice_d": f"All {i}",
            "data_id": f"{i}_{i}",
            "data_type": "video" if i == 5 else "image",
            "question_id": f"q{i}",
            "question_type_id": 1 + i % 9,
            "image": [noise(1400 + 10 * i + k) for k in range(3 if i == 5 else 1)],
            "segment": [1, 2] if i == 5 else None,
            "question": f"How many towels {i} are in the image?",
        }
        for i in range(10)
    ]
    texts = dict.fromkeys(
        ("answer", "choice_a", "choice_b", "choice_c", "choice_d", "data_id", "data_type", "question_id", "question"),
        TEXT,
    )
    columns = {**texts, "question_type_id": WHOLE, "image": List(datasets.Image()), "segment": List(WHOLE)}
    return one("seedbench_ppl", "lmms-lab-encoder/SEED-Bench", None, "test", columns, rows)


def coco_cap() -> StandIn:
    captions = [
        ["A man rides a horse on the beach.", "A man on a brown horse near the sea."],
        ["A dog sleeps on a red sofa.", "The dog is asleep on the sofa."],
        ["Two buses stand in the street.", "Two red buses are in a busy street."],
        ["A plate of food on a table.", "There is food on a white plate."],
    ]
    rows = [
        {
            "question_id": f"{397133 + i:012}.jpg",
            "image": noise(1500 + i),
            "question": "Please carefully observe the image and come up with a caption for the image",
            "answer": gold,
            "id": 10 + i,
            "license": 1,
            "file_name": f"{397133 + i:012}.jpg",
            "coco_url": "",
            "height": 40,
            "width": 60,
            "date_captured": "2013-11-14",
        }
        for i, gold in enumerate(captions + captions[::-1])
    ]
    texts = dict.fromkeys(("question_id", "question", "file_name", "coco_url", "date_captured"), TEXT)
    columns = images(answer=List(TEXT), id=Value("int64"), license=WHOLE, height=WHOLE, width=WHOLE, **texts)
    menu = (
        "A man rides a brown horse on the beach.",
        "A dog is asleep on the red sofa",
        "Two buses are in a street.",
        "Food on a plate on a table",
        "No.",
    )
    return one(
        "coco2017_cap_val_lite", "lmms-lab-encoder/LMMs-Eval-Lite", "coco2017_cap_val", "lite", columns, rows, menu=menu
    )


class Words:
    """In place of the Java tokenizer: lower-case words."""

    def tokenize(self, captions: Mapping[Any, Sequence[Mapping[str, str]]]) -> dict[Any, list[str]]:
        return {
            key: [" ".join(re.findall(r"\w+", entry["caption"].lower())) for entry in entries]
            for key, entries in captions.items()
        }


class Overlap:
    """In place of the Java METEOR: the share of words that are in a reference."""

    def compute_score(
        self, gold: Mapping[Any, Sequence[str]], said: Mapping[Any, Sequence[str]]
    ) -> tuple[float, list[float]]:
        scores = []
        for key, [caption] in said.items():
            known = {word for reference in gold[key] for word in reference.split()}
            words = caption.split() or [""]
            scores.append(sum(word in known for word in words) / len(words))
        return sum(scores) / len(scores), scores


class Verdict:
    """In place of the judge's web address: right where the answer begins with the reference's first word."""

    def __init__(self, url: str, json: Mapping[str, Any], **_: Any) -> None:
        said = re.search(r"Reference answer: (\w+).*\nPrediction answer:(.*)\nOutput:", json["messages"][0]["content"])
        assert said is not None
        word = said[2][:3].lower().strip()
        self.verdict = (
            "unclear"
            if word not in ("yes", "no", "no.")
            else "correct"
            if word.startswith(said[1].lower())
            else "incorrect"
        )

    def raise_for_status(self) -> None:
        pass

    def json(self) -> dict[str, Any]:
        return {"choices": [{"message": {"content": self.verdict}}]}


def ocrbench() -> StandIn:
    """The aggregation adds into a dict of its module, and writes a file."""
    kinds = ["Regular Text Recognition", "Scene Text-centric VQA", "Key Information Extraction"]
    rows = [
        {
            "dataset": "IIIT5K",
            "question": f"What is written on sign {i}?",
            "question_type": kinds[i % 3],
            "answer": [gold],
            "image": noise(700 + i),
        }
        for i, gold in enumerate(["open", "stop", "exit", "open", "stop", "taxi", "exit", "open", "stop", "taxi"])
    ]
    columns = images(dataset=TEXT, question=TEXT, question_type=TEXT, answer=List(TEXT))
    return one(
        "ocrbench",
        "echo840/OCRBench",
        None,
        "test",
        columns,
        rows,
        menu=("open", "STOP", "it says exit", "taxi", "?"),
        salt=3,
    )


SCORED: dict[str, Callable[[], StandIn]] = {
    "ocrbench": ocrbench,
    "gqa": gqa,
    "pope": pope,
    "mme": mme,
    "mmstar": mmstar,
    "ai2d": ai2d,
    "scienceqa_img": scienceqa_img,
    "realworldqa": realworldqa,
    "textvqa_val": textvqa,
    "vizwiz_vqa_val": vizwiz_vqa,
    "chartqa": chartqa,
    "mmmu_val": mmmu,
    "blink_counting": blink_counting,
    "hallusion_bench_image": hallusion_bench_image,
    "seedbench_ppl": seedbench_ppl,
    "coco2017_cap_val_lite": coco_cap,
}
"""Tasks that score their docs."""

SUBMITTED: dict[str, Callable[[], StandIn]] = {
    "vizwiz_vqa_test": lambda: vizwiz_vqa("vizwiz_vqa_test", "test"),
    "mmmu_test": lambda: mmmu("mmmu_test", "test"),
}
"""Tasks without golds, which only write a file to hand in."""
