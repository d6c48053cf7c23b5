"""What an adapter gives back: a list of another length, and empty texts in place of exceptions, by real adapters and by scripted ones."""

import json

import pytest
import torch
from lmms_eval.models.chat.lfm2_5_vl import LFM2_5_VL
from loguru import logger

from lmms_patch.harness.asking import complete, journal
from lmms_patch.resources import folder as resource
from tests.harness import toys
from tests.harness.askers import PerRequest
from tests.harness.asking.test_seam import asked_in, files, found_in
from tests.harness.toys import metrics, rows, write_task
from tests.sizes import size

DOCS = 12
PORTION = 16


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    write_task(folder, "toy", rows(DOCS))
    return folder


class Shifted(PerRequest):
    """Returns a list of the wrong length: without its fourth answer (``by`` -1), or with that answer twice (1).

    A call of a single request is answered well, unless ``always`` is set.
    """

    def __init__(self, by, always=False):
        super().__init__()
        self.by, self.always = by, always

    def generate_until(self, requests):
        answers = super().generate_until(requests)
        place = min(3, len(answers) - 1)
        if len(answers) > 1 or self.always:
            answers[place : place + 1] = answers[place : place + 1] * (1 + self.by)
        return answers


@pytest.mark.parametrize("journal", ["", "off"])
@pytest.mark.parametrize("by", [-1, 1])
def test_a_list_of_another_length_is_asked_again_one_by_one(tasks, tmp_path, told, monkeypatch, by, journal):
    monkeypatch.setenv("LMMS_PATCH_JOURNAL", journal)
    right = asked_in(tmp_path / "right", PerRequest(), tasks)
    found = asked_in(tmp_path / "shifted", Shifted(by), tasks)
    assert json.loads(found) == json.loads(right)
    asked = 10 * DOCS if journal else PORTION
    assert [line.strip() for line in told if "answers came" in line] == [
        f"Shifted: {asked + by} answers came to {asked} requests, and which answer belongs to which request is not known; they are asked again one by one"
    ]


def test_an_adapter_that_is_wrong_of_one_request_too_has_no_number(tasks, tmp_path):
    found = json.loads(asked_in(tmp_path, model := Shifted(-1, always=True), tasks))
    numbers = found[0]["toy_rci3"]["patch,none"]
    assert (numbers["rci3"], numbers["n_failed"]) == (None, DOCS)
    assert found[0]["toy_rci3"]["exact_match,none"] is None
    assert len(model.asked) <= 10 * DOCS + complete.TRIED * (10 * DOCS // PORTION + 1), (
        "given up where the first ones fail again"
    )


class OutOfMemory:
    """Stands before ``generate`` of a model, and raises for some of the inputs."""

    def __init__(self, model, fails):
        self.generate, self.fails, self.calls = model.generate, fails, 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        if self.fails(self.calls):
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")
        return self.generate(*args, **kwargs)


def mosaic(fails, batch=4):
    """The host's own adapter, as it is, with the embedded weights."""
    model = LFM2_5_VL(
        pretrained=str(resource("tasks") / "mosaic" / "model"), device="cpu", dtype="float32", batch_size=batch
    )
    model._model.generate = OutOfMemory(model._model, fails)
    return model


def numbers_of(model, docs):
    return metrics(toys.run(model, ["mosaic_local_rci2"], limit=docs), "mosaic_local_rci2")


def test_a_batch_that_is_out_of_memory_is_asked_again_alone(told):
    """``lfm2_5_vl`` catches the exception and answers "" for the whole batch; one by one the same inputs fit."""
    docs = size(4, 20)
    whole, found = numbers_of(mosaic(lambda call: False), docs), numbers_of(mosaic(lambda call: call == 2), docs)
    assert {name: value for name, value in found.items() if name != "patch"} == {
        name: value for name, value in whole.items() if name != "patch"
    }
    assert [line.strip() for line in told if "empty answer" in line] == [
        "LFM2_5_VL: Error generating batch: CUDA out of memory. Tried to allocate 20.00 MiB: the adapter went on with an empty answer; "
        "they are asked again one by one"
    ]


def test_a_call_that_fails_again_is_a_failed_call():
    """Every input of one size is too large for ever: the full images, one a doc."""
    model = mosaic(lambda call: False, batch=1)
    plain = model._model.generate

    def generate(*args, **kwargs):
        if kwargs["pixel_values"].shape[0] > 1 or kwargs["spatial_shapes"].prod(-1).max() > 500:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return plain(*args, **kwargs)

    model._model.generate = generate
    found = numbers_of(model, 4)
    assert (found["patch"]["n_failed"], found["rci2"], found["acc"]) == (4, None, None)


class Logging(PerRequest):
    """Logs as adapters do: an error beside each answer.

    Or nothing but what it says while it handles an exception, and then an empty text.
    """

    def __init__(self, how):
        super().__init__()
        self.how = how

    def one(self, request):
        answer = super().one(request)
        if self.how == "harmless":
            logger.error("flash-attn is not installed")
            return answer
        if request.doc_id % 4:
            return answer
        if self.how == "silent":
            return ""
        try:
            raise RuntimeError("no kernel image")
        except RuntimeError as error:
            logger.debug(f"Generation failed: {error}")
            return ""


@pytest.mark.parametrize(("how", "failed"), [("harmless", 0), ("silent", 0), ("swallowed", DOCS // 4)])
def test_an_empty_text_is_a_failed_call_only_where_an_exception_was_swallowed(tasks, how, failed):
    model = Logging(how)
    found = metrics(toys.run(model, "toy_rci3", tasks), "toy_rci3")
    assert found["patch"]["n_failed"] == failed
    again = len(model.asked) - 10 * DOCS
    # answers that are the same as the one before are asked again too
    assert again == 0 if not failed else complete.TRIED <= again < 5 * DOCS, "given up where the first ones fail again"


# --- adapters that raise without an image -------------------------------------------------------------


class Raising(PerRequest):
    """Raises for some docs; what it was asked is in ``asked`` all the same."""

    def __init__(self, fails=lambda doc: False):
        super().__init__()
        self.fails = fails

    def one(self, request):
        answer = super().one(request)
        if self.fails(request.doc_id):
            raise RuntimeError("no image was given")
        return answer


BLIND = 40
"""Docs: portions of 16, 16 and 8."""


@pytest.fixture
def blind(tmp_path, monkeypatch):
    """The folder of a task; and the functions that are to remove a journal when the process ends."""
    removed = []
    monkeypatch.setattr(journal.Journal, "done", lambda self: removed.append(self) if self._remove else None)
    return write_task(tmp_path / "tasks", "toy", rows(BLIND)), removed


def test_a_blind_run_that_raises_half_way_keeps_its_answers_and_goes_on(blind, tmp_path, told):
    tasks, removed = blind
    whole = asked_in(tmp_path / "whole", PerRequest(), tasks, "toy_blind")
    assert len(removed) == 1
    found = found_in(tmp_path / "out", Raising(lambda doc: doc >= 20), tasks, "toy_blind")
    records = {one["doc_id"]: one["patch"]["views"][0] for one in found["samples"]["toy_blind"]}
    assert {doc for doc, view in records.items() if "failed" in view} == set(range(20, BLIND))
    assert {view["failed"] for doc, view in records.items() if doc >= 20} == {"RuntimeError: no image was given"}
    assert metrics(found, "toy_blind")["patch"]["n_failed"] == BLIND - 20
    assert (len(removed), len(files(tmp_path / "out"))) == (1, 1), "the journal stays"
    assert not [line for line in told if "every call without an image" in line]
    again = asked_in(tmp_path / "out", healed := Raising(), tasks, "toy_blind")
    assert again == whole
    assert [doc for _, doc, _ in healed.asked] == list(range(20, BLIND))


class Large(PerRequest):
    """Raises on an image with a side below 28 pixels, as Qwen2.5-VL does."""

    def one(self, request):
        for image in request.args[2](self.task_dict[request.args[4]][request.args[5]][request.args[3]]):
            if min(image.size) < 28:
                raise ValueError(f"height:{image.height} and width:{image.width} must be larger than factor:28")
        return super().one(request)


@pytest.mark.parametrize(("task", "told_of"), [("toy_rci3", 20), ("toy_rci2", None)])
def test_an_adapter_that_fails_on_small_cells_is_told_what_to_type(tasks, tmp_path, told, task, told_of):
    """Images of 60x60 pixels have cells of 20x20, and of 30x30."""
    if told_of is None:
        found_in(tmp_path / "out", Large(), tasks, task)
    else:
        with pytest.raises(ValueError, match="must be larger than factor:28"):
            found_in(tmp_path / "out", Large(), tasks, task)
    lines = [line.strip() for line in told if "min_cell" in line]
    assert (
        lines == []
        if told_of is None
        else [
            "toy_rci3: the model's adapter failed, and some of the cells shown have a side of 20 pixels: many models take none below 28; "
            "to enlarge such cells write in a task file: min_cell: 28 (docs/options.md)"
        ]
    )
