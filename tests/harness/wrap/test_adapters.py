"""Every calling pattern that lmms-eval's adapters have gets each request's own view.

The adapters here answer with what the pixels say: which task and doc an image comes from, and which
rectangle of it. So each answer in the sample log tells what was shown for that doc and view.
"""

import copy

import datasets
import numpy as np
import pytest
import torch
from lmms_eval.tasks import TaskManager
from PIL import Image

from lmms_patch.errors import CannotWrapError
from tests.harness import toys
from tests.harness.adapters import (
    ADAPTERS,
    BATCH,
    PATTERNS,
    Adapter,
    ChatAdapter,
    Likelihood,
    _say,
    box,
    by_deepcopy,
    by_pickle,
    first_of_all,
    per_request,
    picture,
    read,
    threaded,
    zip_of_all,
)
from tests.harness.toys import simple_evaluate
from tests.sizes import pairs

DOCS = 4

CODES = {"a": 0, "b": 1, "c": 2, "d": 3, "m": 4}
"""The base tasks. ``c`` and ``d`` are the group ``g``; ``m`` has its own ``doc_to_messages``, with a second image."""

SECOND = 5
"""Added to a task's code in the second image of its docs."""

GRIDS = {"a_rci3": 3, "b_rci2": 2, "c_rci2": 2, "d_rci2": 2, "m_rci3": 3}
"""The wrapped tasks of a run, and their grids."""

ASKED = {"simple": ["a_rci3", "b_rci2", "g_rci2"], "chat": ["a_rci3", "b_rci2", "g_rci2", "m_rci3"]}


# --- what is planted, and what it must look like ------------------------------------------------


def expected(task: str, doc: int, view: int, chat: bool) -> str:
    """What ``read`` must say for one view of a doc of a wrapped task."""
    base = task.split("_")[0]
    codes = [CODES[base], CODES[base] + SECOND] if base == "m" and chat else [CODES[base]]
    return " ".join(_say(code, doc, *box(doc, view, GRIDS[task])) for code in codes)


def right_cell(doc: int, n: int) -> int:
    """The only view whose answer the scorer calls right."""
    return doc % (n * n) + 1


UTILS = """
def messages(doc):
    return [
        {"role": "system", "content": [{"type": "text", "text": "look"}]},
        {"role": "user", "content": [
            {"type": "image", "url": doc["image"]},
            {"type": "text", "text": doc["question"]},
            {"type": "image", "url": doc["second"]},
        ]},
    ]
"""


@pytest.fixture(scope="module")
def manager(tmp_path_factory) -> TaskManager:
    """A task manager that knows five small tasks, two of them as a group."""
    folder = tmp_path_factory.mktemp("tasks")
    image = datasets.Image()
    features = {
        "image": image,
        "second": image,
        "question": datasets.Value("string"),
        "answer": datasets.Value("string"),
    }
    for base, code in CODES.items():
        task = next(name for name in GRIDS if name.startswith(base))
        data = [
            {
                "image": picture(code, doc),
                "second": picture(code + SECOND, doc),
                "question": "what" + "?" * (doc % 3),
                "answer": expected(task, doc, right_cell(doc, GRIDS[task]), chat=True),
            }
            for doc in range(DOCS)
        ]
        other = {"doc_to_messages": "!function utils.messages"} if base == "m" else {}
        toys.write_task(
            folder,
            base,
            data,
            features,
            **other,
            generation_kwargs={"max_new_tokens": 8 if base == "c" else 4, "until": ["\n\n"]},
        )
    (folder / "utils.py").write_text(UTILS)
    (folder / "g.yaml").write_text("group: g\ntask: [c, d]\n")
    return TaskManager("ERROR", include_path=str(folder), include_defaults=False)


# --- the adapters -------------------------------------------------------------------------------


def run(model, manager, tasks):
    return simple_evaluate(model=model, tasks=tasks, task_manager=manager, log_samples=True, bootstrap_iters=0)[
        "samples"
    ]


def check(samples, protocol: str, tasks=None) -> None:
    """Every answer of every doc is what its view must look like, and the record has it at its place."""
    for task in tasks or [task for task in GRIDS if protocol == "chat" or task != "m_rci3"]:
        n = GRIDS[task]
        assert sorted(sample["doc_id"] for sample in samples[task]) == list(range(DOCS))
        for sample in samples[task]:
            doc = sample["doc_id"]
            want = [expected(task, doc, view, protocol == "chat") for view in range(1 + n * n)]
            assert [resps[0] for resps in sample["resps"]] == want
            scores = [view["scores"]["exact_match"] for view in sample["patch"]["views"]]
            assert [view for view, score in enumerate(scores) if score == 1] == [right_cell(doc, n)]
            assert sample["patch"]["best"] == {str(n): right_cell(doc, n)}
            assert sample["patch"]["doc_id"] == doc


# --- the tests ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fetch", "protocol", "batch", "in_order"),
    pairs(PATTERNS, ["simple", "chat"], [5, BATCH], [True, False]),
    ids=lambda value: getattr(value, "__name__", None),
)
def test_every_request_gets_its_own_view(fetch, protocol, batch, in_order, manager):
    samples = run(ADAPTERS[protocol](fetch, in_order, batch), manager, ASKED[protocol])
    check(samples, protocol)


@pytest.mark.parametrize("protocol", ["simple", "chat"])
def test_batches_do_mix_tasks(protocol, manager):
    """Else the test above would show nothing about batches of two tasks."""
    mixed = []

    def note(docs, show, doc_id, task, split):
        mixed.append(len(set(task)))
        return first_of_all(docs, show, doc_id, task, split)

    run(ADAPTERS[protocol](note, in_order=False), manager, ASKED[protocol])
    assert max(mixed) >= 2


@pytest.mark.parametrize("protocol", ["simple", "chat"])
def test_one_batch_of_everything(protocol, manager):
    """vllm-like: more docs in one batch than are kept decoded, in threads."""
    samples = run(ADAPTERS[protocol](threaded, batch_size=10_000), manager, ASKED[protocol])
    check(samples, protocol)


def by_tensor(doc_id):
    return torch.tensor(doc_id).tolist()


def by_numpy(doc_id):
    return list(np.asarray(doc_id))


def by_clamp(doc_id):
    """simple/mistral3_vl: ids above the first task's length are clamped to it."""
    return [min(i, DOCS * 10 - 1) for i in doc_id]


@pytest.mark.parametrize("change", [by_pickle, by_deepcopy, by_tensor, by_numpy, by_clamp], ids=lambda f: f.__name__)
@pytest.mark.parametrize("protocol", ["simple", "chat"])
def test_ids_that_became_plain_numbers_serve_with_one_task(protocol, change, manager):
    def fetch(docs, show, doc_id, task, split):
        return first_of_all(docs, show, change(doc_id), task, split)

    samples = run(ADAPTERS[protocol](fetch, in_order=False), manager, ["a_rci3"])
    check(samples, protocol, ["a_rci3"])


@pytest.mark.parametrize("protocol", ["simple", "chat"])
def test_whole_requests_may_be_deep_copied(protocol, manager):
    class Copying(ADAPTERS[protocol]):
        def generate_until(self, requests):
            return super().generate_until(copy.deepcopy(requests))

    check(run(Copying(first_of_all), manager, ["a_rci3"]), protocol, ["a_rci3"])


@pytest.mark.parametrize("protocol", ["simple", "chat"])
def test_a_doc_that_was_not_fetched_by_its_id_is_refused(protocol, manager):
    """Its view is not known; a guess would be silently wrong."""

    def fetch(docs, show, doc_id, task, split):
        return [show[0](dict(docs[task[0]][split[0]][i])) for i in doc_id]

    with pytest.raises(CannotWrapError, match="this adapter cannot run wrapped tasks"):
        run(ADAPTERS[protocol](fetch), manager, ["a_rci3"])


class Spoiling(Adapter):
    """Changes in place whatever it was handed, once it has read it."""

    def answers(self, batch) -> list[str]:
        out = []
        for _, settings, doc_to_visual, doc_id, task, split in batch:
            assert settings.pop("until") == ["\n\n"]
            doc = self.task_dict[task][split][doc_id]
            images = doc_to_visual(doc)
            out.append(read(images))
            doc.pop("question")
            doc["answer"] = None
            spoil(images)
            images.clear()
        return out


class SpoilingChat(ChatAdapter):
    """The same, of the chat protocol; texts included."""

    def answers(self, batch) -> list[str]:
        out = []
        for _, doc_to_messages, settings, doc_id, task, split in batch:
            assert settings.pop("until") == ["\n\n"]
            doc = self.task_dict[task][split][doc_id]
            messages = doc_to_messages(doc)
            texts = [part["text"] for message in messages for part in message["content"] if part["type"] == "text"]
            assert texts == (["look", doc["question"]] if task == "m_rci3" else [doc["question"]])
            out.append(read(self.images(messages)))
            doc.pop("question")
            spoil(self.images(messages))
            for message in messages:
                for part in message["content"]:
                    part["text"] = "spoilt"
                message["content"].clear()
                message["role"] = "nobody"
            messages.clear()
        return out


def spoil(images: list[Image.Image]) -> None:
    for image in images:
        image.paste((255, 0, 255), (0, 0, 5, 5))
        image.putpixel((0, 0), (1, 2, 3))
        image.thumbnail((7, 7))


@pytest.mark.parametrize("model", [Spoiling, SpoilingChat])
def test_changes_in_place_do_not_reach_other_views(model, manager):
    protocol = "simple" if model.is_simple else "chat"
    check(run(model(per_request), manager, ASKED[protocol]), protocol)


class _Requests(torch.utils.data.Dataset):
    """What simple/cambrians hands to the workers of a ``DataLoader``: requests, and the tables of all tasks."""

    def __init__(self, requests, docs, place):
        self.requests, self.docs, self.place = requests, docs, place

    def __len__(self):
        return len(self.requests)

    def __getitem__(self, index):
        arguments = self.requests[index].args
        doc_id, task, split = arguments[3:]
        return arguments[self.place](self.docs[task][split][doc_id])


@pytest.mark.parametrize("protocol", ["simple", "chat"])
def test_forked_loader_workers(protocol, manager):
    class Forking(ADAPTERS[protocol]):
        def generate_until(self, requests):
            data = _Requests(requests, self.task_dict, self._place_of_function)
            data[0]  # the parent's tables are in use before the fork
            loader = torch.utils.data.DataLoader(
                data, batch_size=None, num_workers=2, collate_fn=lambda x: x, multiprocessing_context="fork"
            )
            return [read(self.images(shown)) for shown in loader]

    check(run(Forking(per_request), manager, ASKED[protocol]), protocol)


@pytest.mark.parametrize("fetch", [per_request, first_of_all, zip_of_all], ids=lambda fetch: fetch.__name__)
def test_choices_are_asked_for_each_view(fetch, tmp_path):
    """Two choices: what the right cell shows (it is the answer), and what the full image shows."""
    data = [
        {
            "image": picture(0, doc),
            "question": "which",
            "choices": [expected("a_rci3", doc, view, chat=False) for view in (right_cell(doc, 3), 0)],
            "answer": 0,
        }
        for doc in range(DOCS)
    ]
    accuracy = [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}]
    toys.write_task(
        tmp_path,
        "a",
        data,
        output_type="multiple_choice",
        doc_to_choice="choices",
        generation_kwargs=None,
        metric_list=accuracy,
    )
    samples = run(
        Likelihood(fetch), TaskManager("ERROR", include_path=str(tmp_path), include_defaults=False), ["a_rci3"]
    )
    for sample in samples["a_rci3"]:
        right = right_cell(sample["doc_id"], 3)
        losses = [resps[0][0] for resps in sample["resps"]]
        assert losses[:2] == [1, 0]
        assert [i for i, loss in enumerate(losses[2:], start=2) if loss == 0] == [2 * right]
        assert sample["patch"]["views"][0]["scores"]["acc"] == 0
        assert sample["patch"]["views"][right]["scores"]["acc"] == 1
