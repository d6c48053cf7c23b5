"""Scripted chat models for ``magic_mosaic``: what they look at, answer and repair is known, so their scores are (``magic_truth``).

| script | boxes it names | answer | after injected wrong steps |
|---|---|---|---|
| ``right`` | exactly the relevant ones | right | repairs: says the corrections |
| ``wrong`` | all adversarial ones, and on query docs one that does not exist | wrong | repeats the wrong steps |
| ``all`` | every one | right | ignores them; gives no clear answer |
| ``none`` | none | none is marked | writes the injected steps again, then nothing of use |
| ``distracted`` | the relevant ones; where distracted also one adversarial box | right; where distracted wrong | repairs; where distracted repeats |

``distracted`` is so on the docs with an adversarial box, but for those of ``RESISTED`` items. Boxes are named in many
ways, which φ must read.

A model reads its doc as adapters do, through the task's own table. To register them for the command line,
``install(folder)`` makes a distribution whose folder goes on PYTHONPATH, and ``FORKED`` does what that does in a
process that is forked; then ``--model magic_script --model_args script=right``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.api.model import lmms

from tests.harness.warm import index_once
from tests.places import ROOT

SCRIPTS = ("right", "wrong", "all", "none", "distracted")
INVENTED = 20
"""Above the number of boxes of any item."""

MARKED = ("**Answer**: {}", "Answer: {}", "<answer>{}</answer>", "**Final answer:** {}")


def number(doc: Mapping[str, Any]) -> int:
    """The item's number: 7 of ``mosaic_07`` and of its Self-Heal docs."""
    return int(doc["id"].split("/")[0].removeprefix("mosaic_"))


def resisted(item: int) -> bool:
    """Whether ``distracted`` keeps its head on an item: on 24 of 60."""
    return item % 5 < 2


def wrong_answer(gold: str) -> str:
    """An answer that is no item's gold answer, nor named in any step."""
    return {"yes": "no", "no": "yes"}.get(gold, str(int(gold) + 21) if gold.isdigit() else "purple")


def names(boxes: Sequence[int], style: int) -> str:
    """Sentences that name some boxes, in one of 7 styles."""
    if not boxes:
        return "I look at the sheet as a whole."
    if style == 0:
        return " ".join(f"In R{box} I see a stroke of the pen." for box in boxes)
    if style == 1:
        return " ".join(f"Region {box} is where I look next." for box in boxes)
    if style == 2:
        return f"I look closely at region{'s' * (len(boxes) > 1)} {_listed([str(box) for box in boxes])}."
    if style == 3:
        return f"What matters here is in {_listed([f'`R{box}`' for box in boxes])}."
    if style == 4:
        return f"My eyes go over {_listed(_ranges(boxes))}, one after the other."
    if style == 5:
        return "\n".join(f"- **R{box}**: the ink is thick." for box in boxes)
    return f"The handwriting in {'boxes' if len(boxes) > 1 else 'box'} {_listed([str(box) for box in boxes])} is clear."


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _ranges(boxes: Sequence[int]) -> list[str]:
    """``[1, 2, 3, 5]`` as ``["R1–R3", "R5"]``."""
    runs: list[list[int]] = []
    for box in boxes:
        if runs and runs[-1][-1] == box - 1:
            runs[-1].append(box)
        else:
            runs.append([box])
    return [
        name for run in runs for name in ([f"R{run[0]}–R{run[-1]}"] if len(run) > 2 else [f"R{box}" for box in run])
    ]


def respond(script: str, doc: Mapping[str, Any]) -> str:
    """What a script answers to a doc."""
    needed = sorted(shown for shown, relevant in zip(doc["drawn"], doc["relevant"], strict=True) if shown and relevant)
    others = sorted(
        shown for shown, relevant in zip(doc["drawn"], doc["relevant"], strict=True) if shown and not relevant
    )
    item = number(doc)
    lost = script == "wrong" or (script == "distracted" and bool(others) and not resisted(item))
    if doc["prefix"]:
        return _go_on(script, doc, lost)
    if script == "none":
        return f"I count {len(needed) + len(others)} boxes on a light sheet. I look at none of them. I cannot tell."
    used = {
        "right": needed,
        "wrong": others,
        "all": sorted(needed + others),
        "distracted": needed + others[:1] if lost else needed,
    }[script]
    thoughts = names(sorted(used), item % 7)
    if script == "wrong" and doc["type"] == "query":
        thoughts += f" I also find something in R{INVENTED}."
    return f"{'**Thought Process**: ' * (item % 2)}I begin with the whole sheet. {thoughts} That is enough to answer.\n{_answer(doc, item, lost)}"


def _answer(doc: Mapping[str, Any], item: int, lost: bool) -> str:
    """Right answers are short on odd items and a sentence on even ones; a marker in one of four forms."""
    right = doc["answer"] if item % 2 else doc["full_answer"]
    return MARKED[item // 2 % len(MARKED)].format(wrong_answer(doc["answer"]) if lost else right)


def _go_on(script: str, doc: Mapping[str, Any], lost: bool) -> str:
    if script == "none":
        return f"{' '.join(doc['prefix'])} That is as far as I get. I cannot tell."
    if script == "all":
        return "This sheet is hard to make out. I would need more light for it.\n**Answer**: unclear"
    if lost:
        return f"As I said before. {' '.join(doc['prefix'][doc['first'] - 1 :])} I stand by it.\n{_answer(doc, number(doc), True)}"
    return f"Wait, that was a mistake. {' '.join(doc['corrections'])} Now it is settled.\n{_answer(doc, number(doc), False)}"


class MagicScript(lmms):
    """A scripted chat model.

    ``seen`` holds ``(task, doc id, messages)`` per request, in request order.
    """

    is_simple = False

    def __init__(self, script: str = "right", **_: Any) -> None:
        super().__init__()
        if script not in SCRIPTS:
            raise ValueError(f"script={script}; allowed: {', '.join(SCRIPTS)}")
        self.script = script
        self.seen: list[tuple[str, int, list[dict[str, Any]]]] = []

    def generate_until(self, requests: list[Any]) -> list[str]:
        out = []
        for request in requests:
            _, doc_to_messages, _, doc_id, task, split = request.args
            doc = self.task_dict[task][split][doc_id]
            self.seen.append((task, int(doc_id), doc_to_messages(doc)))
            out.append(respond(self.script, doc))
        return out

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        raise NotImplementedError

    def generate_until_multi_round(self, requests: list[Any]) -> list[str]:
        raise NotImplementedError


def register() -> list[Any]:
    """What the entry point calls. Several evaluations in one process read the host's task files once: 5 s each time."""
    from lmms_eval.models.registry_v2 import ModelManifest

    index_once()
    return [ModelManifest(model_id="magic_script", chat_class_path="tests.harness.magic.models.MagicScript")]


FORKED = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from lmms_eval.models import MODEL_REGISTRY_V2
from tests.harness.magic.models import register
for manifest in register():
    MODEL_REGISTRY_V2.register_manifest(manifest)
"""


def install(folder: Path) -> dict[str, str]:
    """Make a distribution in a folder that registers ``magic_script``; returns the environment that finds it."""
    info = folder / "magic_script-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: magic-script\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[lmms_eval.models]\nmagic_script = tests.harness.magic.models:register\n")
    path = [str(folder), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(path)}
