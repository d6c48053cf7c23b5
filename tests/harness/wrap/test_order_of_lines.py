"""Every number of a finished run is the same, bit for bit, in whatever order the lines of its log stand: ranks write theirs one after the other."""

import json
import random

import pytest

from lmms_patch.rci.recompute import load, recompute
from tests.harness.askers import written
from tests.harness.toys import Model, rows, run, write_task

DOCS = 30
TEXTS = ["a cat", "a dog", "a pig", "an ox"]
KINDS = ("rci3", "pcri2", "rcicurve", "lowres", "rotate", "crci2", "regions", "hidden")


def answer(prompt, images):
    """Some letter, by the prompt and the pixels: right for some docs and views."""
    seen = [value for image in images for value in image.getpixel((0, 0))[:3]]
    return f"({'ABCD'[(sum(seen) + len(prompt)) % 4]})"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    columns = {
        "question": lambda i: f"Which is {i}?",
        "choices": lambda i: TEXTS,
        "answer": lambda i: f"({'ABCD'[i % 4]})",
        "scene": lambda i: f"scene {i // 3}",
        "boxes": lambda i: [[0, 0, 20, 60], [40, 0, 60, 60]],
        "relevant": lambda i: [True, False],
    }
    listed = "{{question}}\n{% for one in choices %}({{ 'ABCD'[loop.index0] }}) {{ one }}\n{% endfor %}Answer."
    options = {"null": 10, "cluster": "scene", "choices": "choices", "format": "mc"}
    write_task(folder, "toy", rows(DOCS, **columns), doc_to_text=listed, metadata={"lmms_patch": options})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMMS_PATCH_JOURNAL", "off")
        return run(Model(answer), [f"toy_{kind}" for kind in KINDS], folder)


@pytest.mark.parametrize("kind", KINDS)
def test_no_number_depends_on_the_order_of_the_lines(results, kind, tmp_path):
    task = f"toy_{kind}"
    one = {key: {task: value[task]} for key in ("results", "configs", "versions", "n-shot", "n-samples") if task in (value := results[key])}
    folder = written({**one, "samples": results["samples"]}, tmp_path / "run", task)
    (log,) = folder.glob("*.jsonl")
    lines, found = log.read_text().splitlines(), []
    for seed in range(3):
        random.Random(seed).shuffle(lines)
        log.write_text("\n".join(sorted(lines, key=lambda line: json.loads(line)["doc_id"]) if not seed else lines) + "\n")
        again = recompute(load(folder)[0])
        found.append(json.dumps([again.metrics, again.to_json()], sort_keys=True, default=str))
    assert found[1:] == found[:1] * 2
