"""Every number of a finished run is the same, bit for bit, in whatever order the lines of its log stand: ranks write theirs one after the other."""

import json
import random
import re

import pytest

from lmms_patch.harness.wrap.task import WrappedTask
from lmms_patch.rci.recompute import load, recompute
from tests.harness.askers import written
from tests.harness.toys import Model, rows, run, write_task
from tests.sizes import size, some

DOCS = size(16, 60)
TEXTS = ["a cat", "a dog", "a pig", "an ox"]
KINDS = ("rci3", "pcri2", "rcicurve", "lowres", "rotate", "crci2", "regions", "hidden")
MORE = ("swap2", "occlude2", "shuffle2", "blind", "blank")
"""Kinds without an index, or whose views are not the doc's own."""
SCENES = "scenes_rci2"
"""Two docs in each scene, and docs of a scene stay together when intervals are drawn."""
TASKS = [*(f"toy_{kind}" for kind in (*KINDS, *MORE)), SCENES]


def answer(prompt, images):
    """The gold's letter for two views in three, by the pixels and the size of the image; else some letter."""
    *place, doc = images[0].getpixel((0, 0))[:3] if images else (0, 0, len(prompt))
    known = images and (sum(place) + 3 * doc + images[0].width // 6) % 7 > 2
    if known and (letter := re.search(rf"\((\w)\) {TEXTS[doc % 4]}\b", prompt)):
        return letter.group()[:3]
    return f"({'ABCD'[(sum(place) + doc + len(prompt)) % 4]})"


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    columns = {
        "question": lambda i: f"Which is {i}?",
        "choices": lambda i: TEXTS,
        "answer": lambda i: f"({'ABCD'[i % 4]})",
        "scene": lambda i: f"scene {i // 2}",
        "boxes": lambda i: [[0, 0, 20, 60], [40, 0, 60, 60]],
        "relevant": lambda i: [True, False],
    }
    listed = "{{question}}\n{% for one in choices %}({{ 'ABCD'[loop.index0] }}) {{ one }}\n{% endfor %}Answer."
    options = {"null": 10, "choices": "choices", "format": "mc"}
    for name, more in (("toy", {}), ("scenes", {"cluster": "scene"})):
        write_task(folder, name, rows(DOCS, **columns), doc_to_text=listed, metadata={"lmms_patch": options | more})
    return folder


@pytest.fixture(scope="module")
def results(tasks):
    return run(Model(answer), TASKS, tasks)


@pytest.fixture(scope="module")
def of_two_ranks(tasks):
    """The same with docs in the order in which the first of two ranks gathers them: it takes every second doc, and then come the other rank's."""
    plain = WrappedTask.doc_iterator

    def gathered(self, **kwargs):
        docs = list(plain(self, **kwargs))
        return iter(docs[::2] + docs[1::2])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WrappedTask, "doc_iterator", gathered)
        return run(Model(answer), TASKS, tasks)


@pytest.mark.parametrize("task", some([*(f"toy_{kind}" for kind in KINDS), SCENES]))
def test_no_number_depends_on_the_order_of_the_lines(results, task, tmp_path):
    one = {
        key: {task: value[task]}
        for key in ("results", "configs", "versions", "n-shot", "n-samples")
        if task in (value := results[key])
    }
    folder = written({**one, "samples": results["samples"]}, tmp_path / "run", task)
    (log,) = folder.glob("*.jsonl")
    lines, found = log.read_text().splitlines(), []
    for seed in range(orders := size(2, 3)):
        random.Random(seed).shuffle(lines)
        log.write_text(
            "\n".join(sorted(lines, key=lambda line: json.loads(line)["doc_id"]) if not seed else lines) + "\n"
        )
        again = recompute(load(folder)[0])
        found.append(json.dumps([again.metrics, again.to_json()], sort_keys=True, default=str))
    assert found[1:] == found[:1] * (orders - 1)


@pytest.mark.parametrize("task", some(TASKS))
def test_two_ranks_have_the_numbers_of_one(results, of_two_ranks, task):
    """All that stands in the results file of a task, native metrics and intervals among it, but for its time."""
    assert [one["doc_id"] for one in of_two_ranks["samples"][task]] == [*range(0, DOCS, 2), *range(1, DOCS, 2)]
    one, two = (json.dumps(found["results"][task], sort_keys=True, default=str) for found in (results, of_two_ranks))
    assert len(one) > 1000
    assert two == one
