"""Runs whose numbers must stay: which tasks, who answered, and what is particular about each."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from lmms_eval.api.instance import GenerationResult, TokenCounts
from PIL import Image

from lmms_patch.resources import folder
from tests.harness import toys
from tests.harness.standins import noise
from tests.harness.tst import toys as text_only

SIMPLE, CHAT, RF, LORA = "simple", "chat", "tst_rf", "tst_lora"


@dataclass(frozen=True)
class Scene:
    """A run.

    Attributes:
        tasks: names, as a user types them after ``--tasks``.
        answer: who answered when the answers were stored: a function of the prompt and the images, or the name of a
            model of ours.
        write: writes the task files into a folder; None: the tasks are ours.
        adapter: which kind of adapter gives the stored answers; the text-only diagnostics compute theirs anew.
        limit: docs of each task; None: all.
        of: the scene whose stored answers are taken, of which a tenth is exchanged: another model.
        quick: whether ``make test`` replays it; ``make test-deep`` replays all.
    """

    tasks: str
    answer: Callable[[str, Sequence[Any]], Any] | str = "mosaic_vlm"
    write: Callable[[Path], None] | None = None
    adapter: str = CHAT
    limit: int | None = None
    of: str = ""
    quick: bool = False


def knows(prompt: str, images: Sequence[Image.Image]) -> str:
    """Answer as a model that sees: what the whole image says in most docs, what some cells say in some, else any word."""
    pixels = [int(value) for image in images for value in np.asarray(image.convert("RGB"))[0, 0]]
    doc, size = (pixels[2], images[0].size[0]) if images else (0, 0)
    stream = random.Random(f"{prompt} {pixels} {size}")
    known = stream.random() < (0.75 if size >= 60 else 0.2 if images else 0)
    return str(doc) if known else str(stream.randrange(3))


def _metric(name: str, aggregation: str = "mean") -> dict[str, Any]:
    return {"metric": name, "aggregation": aggregation, "higher_is_better": True}


UTILS = '''
from collections import Counter

def yes_no(doc, results):
    return {"f1": {"said": results[0].strip().lower() == "yes", "gold": doc["answer"] == "yes", "score": float(results[0].strip().lower() == doc["answer"])}}

def f1(items):
    hits = sum(item["said"] and item["gold"] for item in items)
    return 2 * hits / max(sum(item["said"] for item in items) + sum(item["gold"] for item in items), 1)

def words(doc, results):
    return {"corpus": (results[0].split(), doc["answer"].split())}

def corpus(items):
    """Clipped precision of words over the whole corpus times a brevity penalty: BLEU-1, no mean of its docs."""
    said = sum(len(answer) for answer, _ in items)
    hits = sum((Counter(answer) & Counter(gold)).total() for answer, gold in items)
    gold = sum(len(gold) for _, gold in items)
    return hits / max(said, 1) * min(1.0, 2.718281828 ** (1 - gold / max(said, 1)))

def two(doc, results):
    return {"exact": float(results[0] == doc["answer"]), "length": float(len(results[0]))}

def parsed(doc, results):
    """As MMMU: a dictionary without a score."""
    return {"acc": {"id": doc["question"], "answer": doc["answer"], "parsed_pred": results[0].strip()[:1]}}

def acc(items):
    return sum(item["parsed_pred"] == item["answer"] for item in items) / len(items)

def some(doc, results):
    """No value of the metric for an answer without a digit."""
    return {"acc": float(results[0] == doc["answer"])} if any(c.isdigit() for c in results[0]) else {}
'''


def _task(
    name: str, count: int = 40, columns: dict[str, Callable[[int], Any]] | None = None, **config: Any
) -> Callable[[Path], None]:
    """Return what writes a task of coded images, with aggregations of its own in ``utils.py``."""

    def write(place: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        (place / "utils.py").write_text(UTILS)
        toys.write_task(place, name, toys.rows(count, **(columns or {})), **config)

    return write


def _boxes(place: Path) -> None:
    """Write a task whose docs have boxes: the left upper cell is relevant, one or two others are adversarial."""

    def boxes(doc: int) -> list[list[int]]:
        return [[0, 0, 30, 30], [30, 0, 60, 30], [0, 30, 60, 60]][: 2 + doc % 2]

    columns = {"boxes": boxes, "relevant": lambda doc: [at == 0 for at in range(len(boxes(doc)))]}
    _task("boxed", 30, columns, metadata={"lmms_patch": {"null": 10}})(place)


def _letters(place: Path) -> None:
    """Write a task of four options with a text shortcut in a third of its questions, as log-likelihoods."""
    options = [["red", "blue", "green", "grey"][at:] + ["red", "blue", "green", "grey"][:at] for at in range(4)]
    toys.write_task(
        place,
        "letters",
        toys.rows(24, options=lambda doc: options[doc % 4], answer=lambda doc: doc % 4),
        output_type="multiple_choice",
        doc_to_choice="options",
        doc_to_target="answer",
        metric_list=[_metric("acc")],
        metadata={"lmms_patch": {"choices": "options", "null": 12}},
    )


def loss(prompt: str, images: Sequence[Any]) -> float:
    """Return a loss of an option, by chance but for whole images, where the colour of the doc is seen."""
    stream = random.Random(f"{prompt} {[image.tobytes()[:12] for image in images]}")
    seen = bool(images) and images[0].size[0] >= 60
    right = seen and prompt.endswith("red") and stream.random() < 0.8
    return 0.0 if right else 1 + stream.random()


def _mme(place: Path) -> None:
    """Write MME's own task over made pairs: two questions on one image."""
    categories = ["existence", "existence", "color", "code_reasoning", "numerical_calculation", "existence"] * 2
    rows = [
        {
            "question_id": f"{category}/{pair:04}.png",
            "image": noise(200 + pair, (60, 60)).convert("RGB"),
            "question": f"Is this {pair} {word}? Please answer yes or no.",
            "answer": gold,
            "category": category,
        }
        for pair, category in enumerate(categories)
        for word, gold in (("right", "Yes"), ("wrong", "No"))
    ]
    names = ("mme_perception_score", "mme_cognition_score")
    place.mkdir(parents=True)
    (place / "utils.py").write_text(
        "from lmms_eval.tasks.mme.utils import mme_aggregate_results, mme_process_results\n"
    )
    toys.write_task(
        place,
        "pairs",
        rows,
        process_results="!function utils.mme_process_results",
        metric_list=[_metric(name, "!function utils.mme_aggregate_results") for name in names],
        metadata={
            "lmms_patch": {
                "null": 12,
                "format": "yesno",
                "score": "score",
                "aggregation": dict.fromkeys(names, "mme"),
                "cluster": ["category", "question_id"],
                "group": ["category", "question_id"],
                **dict.fromkeys(("category", "stratum"), "category"),
            }
        },
    )


def yes(prompt: str, images: Sequence[Any]) -> str:
    """Say yes or no: rightly on most whole images, else by chance."""
    stream = random.Random(f"{prompt} {[image.tobytes()[:40] for image in images]}")
    if images and images[0].size[0] >= 60 and stream.random() < 0.7:
        return "No" if "wrong" in prompt else "Yes"
    return stream.choice(["Yes", "No"])


def yes_by_code(prompt: str, images: Sequence[Any]) -> str:
    """Say yes where the doc's number is even, on most whole images; else by chance."""
    said = knows(prompt, images)
    return "yes" if said.isdigit() and int(said) % 2 == 0 else "no"


def fails(prompt: str, images: Sequence[Any]) -> Any:
    """Fail in some calls as servers do, stop at the token limit in some, answer without a digit in some."""
    said = knows(prompt, images)
    draw = random.Random(f"state {prompt} {[image.tobytes()[:60] for image in images]}").random()
    if draw < 0.04:
        return "[LMMS_EVAL_REQUEST_FAILED after 3 retries] timed out"
    if draw < 0.08:
        return GenerationResult(f"{said} and so", TokenCounts(9, 64))
    return GenerationResult("none" if draw < 0.12 else said, TokenCounts(9, 2))


def _tst(place: Path) -> None:
    place.mkdir(parents=True)
    text_only.write(place, "words", text_only.choices(48, 3))


def _of(tasks: str, *suffixes: str) -> str:
    return ",".join(f"{tasks}_{suffix}" for suffix in suffixes)


def _quick(place: Path) -> None:
    """Write the embedded local task with early exit, and the central one by sampling."""
    for name, own in (
        ("local", {"exit": True, "pilot": 12}),
        ("center", {"quick": True, "pilot": 30, "precision": 0.2, "null": 30}),
    ):
        here = folder("tasks") / "mosaic"
        shutil.copytree(here, place, dirs_exist_ok=True, ignore=shutil.ignore_patterns("model", "*.yaml"))
        config = yaml.safe_load((here / "_default_template_yaml").read_text().replace("!function utils.", "FUNCTION"))
        config |= {"task": f"fast_{name}", "dataset_kwargs": {"data_files": {"test": f"data/mosaic_{name}.parquet"}}}
        config["metadata"]["lmms_patch"] |= own
        text = yaml.safe_dump(config).replace("FUNCTION", "!function utils.")
        (place / f"fast_{name}.yaml").write_text(text)


_MAGIC = "magic_mosaic,magic_mosaic_relevant,magic_mosaic_nobox,magic_mosaic_selfheal"
SCENES = {
    "demo": Scene(
        ",".join(f"mosaic_{name}_rci3" for name in ("center", "count", "larger", "local", "same", "sum", "text")),
        limit=30,
        quick=True,
    ),
    "demo_b": Scene("mosaic_center_rci3,mosaic_local_rci3,mosaic_count_rci3", limit=30, of="demo", quick=True),
    "grids": Scene("mosaic_local_rci,mosaic_count_pcri", limit=24),
    "points": Scene(
        _of("mosaic_count", "blind", "blank", "swap", "shuffle3", "caption")
        + ","
        + _of("mosaic_local", "lowres", "occlude2", "swap2", "shift2", "rcicurve"),
        limit=16,
    ),
    "guess": Scene(_of("mosaic_text", "blindguess") + "," + _of("mosaic_count", "blindguess"), limit=16),
    "turned": Scene("mosaic_center_rci2_steady,mosaic_count_rotate", limit=16),
    "fast": Scene("fast_local_rci,fast_center_rci3_quick", write=_quick),
    "magic": Scene(_MAGIC, "magic_script"),
    "magic_b": Scene(_MAGIC, of="magic"),
    "clips": Scene(
        _of("mosaic_video_order", "trci2", "tshuffle4", "treverse")
        + ",mosaic_video_moment_trci4,mosaic_video_count_frames,mosaic_video_still_frame",
        answer="mosaic_reader",
        adapter=SIMPLE,
        limit=12,
    ),
    "boxes": Scene("boxed_regions,boxed_hidden", knows, _boxes, SIMPLE, quick=True),
    "f1": Scene(
        "polar_rci2,polar_blind",
        yes_by_code,
        _task(
            "polar",
            40,
            {"answer": lambda doc: "yes" if doc % 2 == 0 else "no"},
            process_results="!function utils.yes_no",
            metric_list=[_metric("f1", "!function utils.f1")],
            metadata={"lmms_patch": {"null": 20, "format": "yesno", "aggregation": {"f1": "f1"}, "score": "score"}},
        ),
        SIMPLE,
        quick=True,
    ),
    "mme": Scene("pairs_rci2", yes, _mme, SIMPLE, quick=True),
    "corpus": Scene(
        "said_rci2",
        lambda prompt, images: f"{knows(prompt, images)} of {int(knows(prompt, images)) + 1}",
        _task(
            "said",
            30,
            {"answer": lambda doc: f"{doc} of {doc + 1}"},
            process_results="!function utils.words",
            metric_list=[_metric("corpus", "!function utils.corpus")],
            metadata={"lmms_patch": {"null": 15}},
        ),
        SIMPLE,
        quick=True,
    ),
    "items": Scene(
        "parsed_rci2,parsed_blind,parsed_swap",
        lambda prompt, images: "ABCD"[int(knows(prompt, images)) % 4],
        _task(
            "parsed",
            40,
            {"answer": lambda doc: "ABCD"[doc % 4]},
            process_results="!function utils.parsed",
            metric_list=[_metric("acc", "!function utils.acc")],
            metadata={"lmms_patch": {"null": 20}},
        ),
        SIMPLE,
    ),
    "filters": Scene(
        "pipes_rci2",
        lambda prompt, images: f"say {knows(prompt, images)}",
        _task(
            "pipes",
            30,
            filter_list=[
                {"name": "as it is", "filter": [{"function": "take_first"}]},
                {
                    "name": "digits",
                    "filter": [{"function": "regex", "regex_pattern": "(\\d+)"}, {"function": "take_first"}],
                },
            ],
            metadata={"lmms_patch": {"null": 15}},
        ),
        SIMPLE,
        quick=True,
    ),
    "metrics": Scene(
        "twice_rci2",
        knows,
        _task(
            "twice",
            30,
            process_results="!function utils.two",
            metric_list=[_metric("exact"), _metric("length")],
            metadata={"lmms_patch": {"null": 15}},
        ),
        SIMPLE,
    ),
    "states": Scene(
        "odd_rci2",
        fails,
        _task(
            "odd",
            40,
            process_results="!function utils.some",
            metric_list=[_metric("acc")],
            generation_kwargs={"max_new_tokens": 64},
            metadata={"lmms_patch": {"null": 10}},
        ),
        SIMPLE,
        quick=True,
    ),
    "chat": Scene("asked_rci2", knows, _task("asked", 30, metadata={"lmms_patch": {"null": 15}}), CHAT),
    "losses": Scene("letters_rci2,letters_blind", loss, _letters, SIMPLE, quick=True),
    "tst": Scene("words_tst3", "", _tst, RF, quick=True),
    "lora": Scene("words_tst2", "", _tst, LORA, quick=True),
}
