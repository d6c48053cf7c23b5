"""Small worlds with a known answer, and the real files of ../shared/data as items."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from lmms_patch.tst.diagnosis import Diagnosis, diagnose, in_threads
from lmms_patch.tst.folds import grouping
from lmms_patch.tst.items import Item
from lmms_patch.tst.rewards import Rewards
from lmms_patch.tst.tree_diagnostic import PreparedRf, RfDiagnostic
from lmms_patch.tst.trees import ModelSettings
from tests.places import SHARED
from tests.sizes import size

DATA = SHARED
SMALL_FOREST = ModelSettings("forest", 30)
FEW_TREES = ModelSettings("boosting", 40)
FOLDS = size(3, 5)
OBJECTS = (
    "lamp", "chair", "table", "sofa", "desk", "door", "bed", "shelf", "stove", "sink", "plant", "mirror", "pillow",
    "monitor", "keyboard", "bottle", "cup", "towel", "rug", "clock",
)  # fmt: skip


def mra(answer: str, gold: str) -> float:
    """Mean relative accuracy as VSI-Bench's authors define it: share of the thresholds 0.50, 0.55 ... 0.95 that 1 - |error| / gold reaches.

    Written from the definition (relative error < 1 - threshold), for golds that are not 0.
    """
    try:
        error = abs(float(answer) - float(gold)) / abs(float(gold))
    except (ValueError, ZeroDivisionError):
        return float(answer == gold)
    return sum(error <= 1 - threshold / 100 + 1e-12 for threshold in range(50, 100, 5)) / 10


def native(items: Sequence[Item]) -> Callable[[int, str], float]:
    """The native scorer: equality, or mean relative accuracy for numbers."""

    def score(place: int, answer: str) -> float:
        item = items[place]
        return mra(answer, item.golds[0]) if item.format == "number" else float(answer in item.golds)

    return score


def rewards_of(items: Sequence[Item]) -> Rewards:
    return Rewards(items, native(items))


def prepare(items: Sequence[Item], settings: ModelSettings = FEW_TREES) -> tuple[PreparedRf, Rewards]:
    rewards = rewards_of(items)
    return RfDiagnostic(settings).prepare(items, rewards), rewards


def cross_validate(
    items: Sequence[Item],
    by: str = "none",
    *,
    k: int = FOLDS,
    seeds: Sequence[int] = (0,),
    settings: ModelSettings = FEW_TREES,
    places: np.ndarray | None = None,
    workers: int = 1,
    seed: int = 0,
) -> Diagnosis:
    prepared, rewards = prepare(items, settings)
    everyone = np.arange(len(items)) if places is None else places
    return diagnose(
        prepared, items, rewards, everyone, grouping(items, by), k=k, seeds=seeds, seed=seed, runner=in_threads(workers)
    )


def mc(
    i: int, question: str, options: Sequence[str], right: int | None, category: str = "", source: object = None
) -> Item:
    letters = (
        tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(options)])
        if len(options) <= 26
        else tuple(str(n) for n in range(len(options)))
    )
    prompt = question + "".join(f"\n{a}. {o}" for a, o in zip(letters, options, strict=True))
    return Item(
        i,
        prompt,
        question,
        "mc",
        tuple(options),
        letters,
        () if right is None else (letters[right],),
        category,
        source,
        source,
        f"key{i}",
    )


def yesno(i: int, question: str, gold: str | None, category: str = "", source: object = None) -> Item:
    return Item(
        i,
        question,
        question,
        "yesno",
        ("yes", "no"),
        ("yes", "no"),
        () if gold is None else (gold,),
        category,
        source,
        source,
        f"key{i}",
    )


def number(i: int, question: str, gold: object, category: str = "", source: object = None) -> Item:
    golds = () if gold is None else (gold if isinstance(gold, str) else f"{gold:g}",)
    return Item(i, question, question, "number", (), (), golds, category, source, source, f"key{i}")


def free(i: int, question: str, *golds: str, category: str = "", source: object = None) -> Item:
    return Item(i, question, question, "open", (), (), golds, category, source, source, f"key{i}")


def regold(items: Sequence[Item], golds: Sequence[tuple[str, ...]]) -> list[Item]:
    return [replace(item, golds=gold) for item, gold in zip(items, golds, strict=True)]


# ---- planted worlds: (items, the accuracy of who knows the rule, which items are planted) ----


def planted_choice(n: int, seed: int = 0, *, purity: float = 0.95) -> tuple[list[Item], float, np.ndarray]:
    """Half of the items ask for an even object: "lamp" is right with probability `purity` wherever it stands, else any other option. The rest: any."""
    stream = np.random.default_rng(seed)
    items, planted = [], np.zeros(n, bool)
    for i in range(n):
        target = int(stream.integers(10))
        others = stream.choice(OBJECTS[10:], 3, replace=False)
        options = stream.permutation(["lamp", *others]).tolist()
        lamp = options.index("lamp")
        rest = [place for place in range(4) if place != lamp]
        planted[i] = target % 2 == 0
        right = (
            (lamp if stream.random() < purity else int(stream.choice(rest))) if planted[i] else int(stream.integers(4))
        )
        items.append(mc(i, f"Which of these is closest to the {OBJECTS[target]}?", options, right))
    return items, purity * planted.mean() + 0.25 * (1 - planted.mean()), planted


def planted_yesno(n: int, seed: int = 0, *, purity: float = 0.9) -> tuple[list[Item], float, np.ndarray]:
    """Is there an X: yes for the first five objects, no for the next five, with probability `purity`.

    A coin for the others.
    """
    stream = np.random.default_rng(seed)
    items, planted = [], np.zeros(n, bool)
    for i in range(n):
        target = int(stream.integers(20))
        planted[i] = target < 10
        likely = (purity if target < 5 else 1 - purity) if planted[i] else 0.5
        items.append(
            yesno(i, f"Is there a {OBJECTS[target]} in the picture?", "yes" if stream.random() < likely else "no")
        )
    return items, purity * planted.mean() + 0.5 * (1 - planted.mean()), planted


def planted_number(n: int, seed: int = 0) -> tuple[list[Item], np.ndarray]:
    """Sizes: ten objects of a size of their own, give or take 2 %.

    Ten of any size from 10 to 1000, uniform in the logarithm.
    """
    stream = np.random.default_rng(seed)
    items, planted = [], np.zeros(n, bool)
    for i in range(n):
        target = int(stream.integers(20))
        planted[i] = target < 10
        size = (
            15 * 1.55**target * (1 + 0.02 * stream.standard_normal())
            if planted[i]
            else np.exp(stream.uniform(np.log(10), np.log(1000)))
        )
        items.append(number(i, f"How long is the {OBJECTS[target]} in centimeters?", round(float(size), 1)))
    return items, planted


def planted_open(n: int, seed: int = 0, *, purity: float = 0.9) -> tuple[list[Item], float, np.ndarray]:
    """The colour of the first ten objects is their own with probability `purity`, else any of the five.

    Of the others any of the five.
    """
    stream = np.random.default_rng(seed)
    colours = ("red", "green", "blue", "white", "black")
    items, planted = [], np.zeros(n, bool)
    for i in range(n):
        target = int(stream.integers(20))
        planted[i] = target < 10
        own = planted[i] and stream.random() < purity
        items.append(
            free(
                i, f"What colour is the {OBJECTS[target]}?", colours[target % 5] if own else colours[stream.integers(5)]
            )
        )
    return items, (purity + (1 - purity) / 5) * planted.mean() + 0.2 * (1 - planted.mean()), planted


# ---- shortcuts that are spread over many weak words ----

SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]


def vocabulary(n: int, stream: np.random.Generator) -> list[str]:
    """n made-up words of two or three syllables."""
    found: dict[str, None] = {}
    while len(found) < n:
        found["".join(stream.choice(SYLLABLES, stream.integers(2, 4)))] = None
    return list(found)


def weak_yesno(n: int, seed: int = 0) -> tuple[list[Item], float]:
    """Questions in the manner of AMBER: 400 things and 900 forms of qualities, each with a small effect on "yes".

    And what who knows all effects gets.
    """
    stream = np.random.default_rng(seed)
    things, stems, ends = vocabulary(400, stream), vocabulary(150, stream), ("ing", "ed", "y", "ous", "al", "ive")
    a, b, c = stream.normal(0, 1.8, 400), stream.normal(0, 1.4, 150), stream.normal(0, 1.4, 6)
    often = np.arange(1, 401) ** -0.7
    items, knows = [], 0.0
    for i in range(n):
        thing, stem, end = (
            int(stream.choice(400, p=often / often.sum())),
            int(stream.integers(150)),
            int(stream.integers(6)),
        )
        chance = 1 / (1 + np.exp(-(a[thing] + b[stem] + c[end])))
        quality = stems[stem] + ends[end]
        asked = (
            f"Is the {things[thing]} {quality} in this image?",
            f"Does the {things[thing]} look {quality}?",
            f"Is there a {quality} {things[thing]}?",
        )
        items.append(yesno(i, asked[int(stream.integers(3))], "yes" if stream.random() < chance else "no"))
        knows += max(chance, 1 - chance) / n
    return items, knows


def two_captions(n: int, seed: int = 0) -> tuple[list[Item], float]:
    """Pairs in the manner of SugarCrepe: two captions that differ in one word, with a small effect of each word and ending on which is true."""
    stream = np.random.default_rng(seed)
    nouns, ends, of_end = (
        vocabulary(500, stream),
        ("", "s", "ly", "ness", "ish", "ward"),
        np.array([0.6, 0.4, -0.5, -0.8, -0.6, -0.3]),
    )
    effect, often = stream.normal(0, 0.8, 500), np.arange(1, 501) ** -0.6
    often /= often.sum()
    items, knows = [], 0.0
    for i in range(n):
        caption = [nouns[k] for k in stream.choice(500, stream.integers(5, 11), p=often)]
        words, forms, at = stream.choice(500, 2, p=often), stream.choice(6, 2), int(stream.integers(len(caption) + 1))
        scores = 2.2 * (effect[words] + of_end[forms])
        chance = 1 / (1 + np.exp(scores[1] - scores[0]))
        options = [
            " ".join([*caption[:at], nouns[word] + ends[form], *caption[at:]])
            for word, form in zip(words, forms, strict=True)
        ]
        items.append(mc(i, "Which caption is right?", options, 0 if stream.random() < chance else 1))
        knows += max(chance, 1 - chance) / n
    return items, knows


# ---- open answers ----


def gqa_like(n: int, seed: int = 0, *, categories: bool = False) -> list[Item]:
    """Open questions in the manner of GQA: is there a thing, its side, colour, material, room, what is beside it.

    300 things, frequent and rare, each with its usual answers; some 340 different answers.
    """
    stream = np.random.default_rng(seed)
    things, colours, materials, rooms = (vocabulary(count, stream) for count in (300, 12, 8, 15))
    often = np.arange(1, 301) ** -0.8
    often /= often.sum()
    colour, material = (stream.dirichlet(np.full(count, 0.35), 300) for count in (12, 8))
    yes, beside = stream.beta(2, 2, 300), [stream.choice(300, 12, replace=False) for _ in things]
    items = []
    for i in range(n):
        a, b = (int(k) for k in stream.choice(300, 2, p=often))
        kind = str(
            stream.choice(
                ["exist", "side", "colour", "material", "room", "beside"], p=[0.38, 0.12, 0.16, 0.06, 0.04, 0.24]
            )
        )
        near = often[beside[a]] / often[beside[a]].sum()
        question, gold = {
            "exist": (f"Is there a {things[a]} near the {things[b]}?", "yes" if stream.random() < yes[a] else "no"),
            "side": (f"Which side of the photo is the {things[a]} on?", ("left", "right")[stream.integers(2)]),
            "colour": (f"What color is the {things[a]}?", colours[stream.choice(12, p=colour[a])]),
            "material": (f"What is the {things[a]} made of?", materials[stream.choice(8, p=material[a])]),
            "room": (f"Which room is the {things[a]} in?", rooms[int(stream.integers(3)) + a % 12]),
            "beside": (f"What is to the left of the {things[a]}?", things[stream.choice(beside[a], p=near)]),
        }[kind]
        items.append(free(i, question, gold, category=kind if categories else ""))
    return items


# ---- sets with copies ----


def balanced(captions: int, *, chained: bool = False, seed: int = 0) -> list[Item]:
    """Captions of random words, each on two images, true of one and false of the other: no text says which.

    Args:
        captions: number of captions.
        chained: each image has the captions j and j + 1, so that a chain of images and captions connects all docs; else
        each has one.
        seed: of the words, and of which image a caption is true.
    """
    stream = np.random.default_rng(seed)
    items = []
    for j in range(captions):
        subject, other = stream.choice(OBJECTS, 2, replace=False)
        where = ("left of", "right of", "behind", "under", "above", "near")[stream.integers(6)]
        true_of = int(stream.integers(2))
        for side in (0, 1):
            image = f"image {(j + side) % captions}" if chained else f"image {j} {side}"
            caption = f"The {subject} number {j} is {where} the {other}."
            items.append(yesno(len(items), caption, "yes" if side == true_of else "no", source=image))
    return items


def duplicates(questions: int, twice: int, seed: int = 0) -> list[Item]:
    """Questions whose right option is drawn at random.

    ``twice`` of them stand again on another image, with their options shuffled.
    """
    stream = np.random.default_rng(seed)
    items = []
    for j in range(questions):
        options = [f"{OBJECTS[i]} {j * 7 + i}" for i in stream.choice(len(OBJECTS), 4, replace=False)]
        right = options[int(stream.integers(4))]
        for copy in range(2 if j < twice else 1):
            shown = stream.permutation(options).tolist()
            items.append(
                mc(len(items), f"Which thing is number {j}?", shown, shown.index(right), source=f"image {j} {copy}")
            )
    return items


def paraphrases(questions: int, *, opposite: bool, seed: int = 0) -> list[Item]:
    """Questions in pairs of two wordings, on images without a name.

    The gold is a coin, and of the second wording the same or the other.
    """
    stream = np.random.default_rng(seed)
    words = vocabulary(300, stream)
    wordings = (
        (
            "Is the {} {} left of the {} {} in the picture?",
            "In the picture, is the {1} that is {0} to the left of the {3} that is {2}?",
        ),
        ("Does the {} person wear a {} {}?", "Is a {1} {2} worn by the {0} person?"),
    )
    items = []
    for i in range(questions):
        told, gold = [words[k] for k in stream.integers(0, len(words), 4)], int(stream.integers(2))
        items += [
            yesno(2 * i + j, asked.format(*told), ("yes", "no")[gold ^ (opposite and j)])
            for j, asked in enumerate(wordings[i % 2])
        ]
    return items


def copied(questions: int, times: int, *, rotated: bool = False, seed: int = 0) -> list[Item]:
    """Questions of four options whose gold is drawn at random.

    Each stands ``times`` times, its options shuffled or rotated, on images without a name.
    """
    stream = np.random.default_rng(seed)
    words = vocabulary(300, stream)
    items = []
    for _ in range(questions):
        options, asked = [words[k] for k in stream.choice(len(words), 4, replace=False)], stream.choice(words, 2)
        right = options[int(stream.integers(4))]
        for turn in range(times):
            shown = options[turn % 4 :] + options[: turn % 4] if rotated else stream.permutation(options).tolist()
            items.append(mc(len(items), f"Which is near the {asked[0]} of the {asked[1]}?", shown, shown.index(right)))
    return items


def vsr_like(captions: int, *, images: int = 80, opposite: float = 0.85, single: int = 60, seed: int = 0) -> list[Item]:
    """Captions on two images of a pool, true of one and false of the other but for a few, and captions that stand once; the text says nothing.

    Images have many captions, so that a chain of images and captions connects nearly all docs.
    """
    stream = np.random.default_rng(seed)
    items = []
    for j in range(captions + single):
        subject, other = stream.choice(OBJECTS, 2, replace=False)
        where = ("left of", "right of", "behind", "under", "above", "near")[stream.integers(6)]
        first = bool(stream.integers(2))
        golds = [first, not first if stream.random() < opposite else first][: 2 if j < captions else 1]
        for gold, image in zip(golds, stream.choice(images, 2, replace=False), strict=False):
            items.append(
                yesno(
                    len(items),
                    f"The {subject} {j} is {where} the {other}.",
                    "yes" if gold else "no",
                    source=f"image {image}",
                )
            )
    return items


def given_away(n: int, planted: int, words: int, seed: int = 0) -> tuple[list[Item], np.ndarray]:
    """Questions of random words and a coin for a gold.

    ``planted`` of them hold one of ``words`` words that each stand for yes or for no. And which.
    """
    stream = np.random.default_rng([seed, words])
    known = vocabulary(400 + words, stream)
    told = np.zeros(n, bool)
    told[stream.permutation(n)[:planted]] = True
    out = []
    for i in range(n):
        a, b, c = (known[words + j] for j in stream.choice(400, 3, replace=False))
        gold, word = int(stream.integers(2)), int(stream.integers(words))
        if told[i]:
            a, gold = known[word], word % 2
        out.append(yesno(i, f"Is the {a} {b} beside the {c}?", ("yes", "no")[gold]))
    return out, told


def blind_answers(
    n: int,
    knows: Sequence[float],
    *,
    options: int = 4,
    share: float = 0.2,
    bias: np.ndarray | None = None,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Golds, which docs are known, and answers of models that know a share of the known docs and guess, all with one bias, at the rest."""
    stream = np.random.default_rng(seed)
    gold, known = stream.integers(options, size=n), stream.random(n) < share
    guesses = stream.choice(options, (len(knows), n), p=bias)
    return gold, known, np.where(known & (stream.random(guesses.shape) < np.array(knows)[:, None]), gold, guesses)


def constant_gold(n: int, share: float = 0.7, seed: int = 0) -> list[Item]:
    """Questions of four options whose gold is A in ``share`` of the docs, else any other; nothing else tells it."""
    stream = np.random.default_rng(seed)
    items = []
    for i in range(n):
        options = [f"{OBJECTS[k]} {i}" for k in stream.choice(len(OBJECTS), 4, replace=False)]
        right = 0 if stream.random() < share else int(stream.integers(1, 4))
        items.append(mc(i, f"Which of them is number {i}?", options, right, source=f"image {i}"))
    return items


# ---- real files ----


@cache
def load(name: str) -> tuple[Item, ...]:
    """The items of a file of ../shared/data; skips the test where it is missing."""
    path = DATA / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip(f"{path} is missing")
    source = {
        "vsi_bench": lambda row: row["meta"]["video"],
        "nlvr": lambda row: row["group"].split("#")[0],
        "scienceqa_test": lambda row: None,
    }.get(name, lambda row: row["group"])
    with path.open(encoding="utf-8") as lines:
        return tuple(_item(i, row, source(row)) for i, row in enumerate(map(json.loads, lines)))


def _item(i: int, row: dict, source: object) -> Item:
    question, category, gold = row["question"], row["category"] or "", str(row["answer"])
    if row["format"] == "mc":
        made = mc(i, question, [str(choice) for choice in row["choices"]], None, category, source)
        return replace(made, golds=(gold,), key=row["id"])
    if row["format"] == "yesno":
        answers = ("true", "false") if gold in ("true", "false") else ("yes", "no")
        return replace(yesno(i, question, gold, category, source), options=answers, answers=answers, key=row["id"])
    return replace(number(i, question, gold, category, source), key=row["id"])


def subset(items: Sequence[Item], n: int, seed: int = 0) -> list[Item]:
    """n items at random, in their order, numbered anew."""
    chosen = np.sort(np.random.default_rng(seed).permutation(len(items))[:n])
    return [replace(items[place], doc_id=i) for i, place in enumerate(chosen)]
