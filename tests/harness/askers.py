"""Adapters of each kind that lmms-eval has, which note what they are asked and may die; and ranks that are threads."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from lmms_eval.api.instance import GenerationResult, TokenCounts
from lmms_eval.utils import Collator

from lmms_patch.harness import written as harness
from tests.harness.toys import ChatModel, Model


class Killed(BaseException):
    """Stands for SIGKILL: nothing after it runs but what the interpreter does."""


def pixels(prompt, images):
    """Say what the pixels are: another answer for each doc and view, right for some."""
    corner = [int(v) for image in images for v in np.asarray(image)[0, 0]]
    return str(sum(corner) % 13)


class PerRequest(Model):
    """Counts what it is asked, and dies when it is asked for more than ``lives`` answers."""

    def __init__(self, lives=10**9):
        super().__init__(pixels)
        self.lives, self.asked = lives, []

    def one(self, request):
        if len(self.asked) >= self.lives:
            raise Killed
        self.asked.append((request.task_name, int(request.args[3]), request.idx))
        return super().generate_until([request])[0]

    def __repr__(self):
        return "a model"  # the host's cache goes by it

    def generate_until(self, requests):
        return [self.one(request) for request in requests]


class Batched(PerRequest):
    def generate_until(self, requests):
        batches = [requests[i : i + 7] for i in range(0, len(requests), 7)]
        return [answer for batch in batches for answer in [self.one(request) for request in batch]]


class Sorted(PerRequest):
    def generate_until(self, requests):
        collator = Collator(list(requests), lambda request: (-len(request.args[0]), request.args[0]))
        return collator.get_original([self.one(request) for batch in collator.get_batched(n=5) for request in batch])


class Threaded(PerRequest):
    def generate_until(self, requests):
        with ThreadPoolExecutor(max_workers=4) as pool:
            return list(pool.map(self.one, requests))


class Counting(PerRequest):
    """Reports tokens, as servers do."""

    def generate_until(self, requests):
        return [GenerationResult(self.one(request), TokenCounts(3, len(request.args[0]))) for request in requests]


class Chat(PerRequest, ChatModel):
    def one(self, request):
        if len(self.asked) >= self.lives:
            raise Killed
        self.asked.append((request.task_name, int(request.args[3]), request.idx))
        return ChatModel.generate_until(self, [request])[0]


class Likelihood(PerRequest):
    def loglikelihood(self, requests):
        out = []
        for request in requests:
            if len(self.asked) >= self.lives:
                raise Killed
            self.asked.append((request.task_name, int(request.args[3]), request.idx))
            out.append(
                (
                    float(
                        pixels("", request.args[2](self.task_dict[request.args[4]][request.args[5]][request.args[3]]))
                    )
                    / 7,
                    False,
                )
            )
        return out


KINDS = [PerRequest, Batched, Sorted, Threaded, Counting, Chat]


def clue(prompt, images):
    """Answer by a hash of the pixels: some docs are known from the whole image, some from a cell, some from neither."""
    pixel = [int(v) for image in images for v in np.asarray(image)[0, 0]]
    size = images[0].size[0] if images else 0
    doc = pixel[2]
    known = doc % 5 != 0 if size == 60 else (doc % 3 == 0 and (pixel[0] + pixel[1]) % 40 == 0)
    return str(doc) if known else "no"


class Known:
    """Makes an adapter answer by ``clue``."""

    def __init__(self, lives=10**9):
        super().__init__(lives)
        self.answer = clue


class PerRequestK(Known, PerRequest):
    pass


class CountingK(Known, Counting):
    pass


class Gathering:
    """``torch.distributed`` for threads: hands every rank the values of all, in the order of the ranks."""

    def __init__(self, world):
        self.values, self.barrier, self.local = [None] * world, threading.Barrier(world, timeout=20), threading.local()

    def all_gather_object(self, out, value):
        self.values[self.local.number] = value
        self.barrier.wait()
        out[:] = self.values
        self.barrier.wait()


def asker_of(tasks, cli):
    """The asker of a run without a response cache and without a journal."""
    from lmms_patch.harness.asking.in_portions import InPortions
    from lmms_patch.harness.asking.seam import Asker

    return Asker(tasks, set(), InPortions(tasks, None, None, cli), cli)


def without_kept(found):
    """A run without what it says of the answers that an earlier process gave."""
    for details in (
        value for values in found["results"].values() for value in values.values() if isinstance(value, dict)
    ):
        details.get("made", {}).pop("kept", None)
    return found


def written(found, folder, task, model="toy", keep=None):
    """Write the tables of what a run found, and the host's results file."""
    folder.mkdir(parents=True)
    shown = {
        key: found[key]
        for key in ("results", "configs", "versions", "n-shot", "n-samples", "higher_is_better", harness.PROBE)
        if key in found
    }
    stamp = "20260101_000000"
    path, told = (
        folder / f"{stamp}_results.json",
        {**shown, "date": stamp, "config": keep or {"model": model, "model_args": ""}},
    )
    harness.save(lambda results: path.write_text(json.dumps(results, default=str)), told, path)
    return folder
