"""Adapters that ask in every way that those of lmms-eval do, and images that say where each pixel is."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from lmms_eval.api.model import lmms
from lmms_eval.utils import Collator
from PIL import Image

BATCH = 7
"""Neither 5 nor 10 views are a multiple of it, so batches hold parts of several docs and tasks."""


SIZES = [(61, 47), (60, 60), (50, 83), (31, 64)]
"""Width and height of the image of each doc."""


def picture(code: int, doc: int) -> Image.Image:
    """An image in which every pixel says where it is: red = row, green = column, blue = 16·doc + code."""
    width, height = SIZES[doc]
    array = np.empty((height, width, 3), np.uint8)
    array[..., 0] = np.arange(height)[:, None]
    array[..., 1] = np.arange(width)[None, :]
    array[..., 2] = 16 * doc + code
    return Image.fromarray(array)


def read(images: list[Image.Image]) -> str:
    """What the pixels of some images say; ``?`` for one that is not an untouched rectangle of a ``picture``."""
    return " ".join(_read(np.asarray(image).astype(int)) for image in images) or "nothing"


def _read(pixels: np.ndarray) -> str:
    height, width = pixels.shape[:2]
    top, left, blue = pixels[0, 0]
    intact = (
        (pixels[..., 0] == top + np.arange(height)[:, None]).all()
        and (pixels[..., 1] == left + np.arange(width)).all()
        and (pixels[..., 2] == blue).all()
    )
    return _say(blue % 16, blue // 16, left, top, left + width, top + height) if intact else "?"


def _say(code: int, doc: int, *box: int) -> str:
    return f"code {code} doc {doc} box {box[0]},{box[1]},{box[2]},{box[3]}"


def box(doc: int, view: int, n: int) -> tuple[int, ...]:
    """The rectangle of a view: the whole for view 0, else the cell of that number (DESIGN, section 5)."""
    width, height = SIZES[doc]
    if view == 0:
        return (0, 0, width, height)
    row, col = (view - 1) // n, (view - 1) % n
    return (width * col // n, height * row // n, width * (col + 1) // n, height * (row + 1) // n)


def per_request(docs, show, doc_id, task, split):
    return [fn(docs[t][s][i]) for fn, i, t, s in zip(show, doc_id, task, split, strict=True)]


def first_of_all(docs, show, doc_id, task, split):
    """simple/qwen2_5_vl, simple/llava_hf, chat/llava_hf and some 60 more."""
    task, split = task[0], split[0]
    return [show[0](docs[task][split][i]) for i in doc_id]


def first_function(docs, show, doc_id, task, split):
    """simple/qwen3_vl, chat/huggingface."""
    return [show[0](docs[t][s][i]) for t, s, i in zip(task, split, doc_id, strict=True)]


def zip_of_all(docs, show, doc_id, task, split):
    """chat/qwen2_5_vl, chat/thyme."""
    return [show[k](docs[t][s][i]) for k, (i, t, s) in enumerate(zip(doc_id, task, split, strict=True))]


def own_function_first_docs(docs, show, doc_id, task, split):
    """chat/lfm2_5_vl."""
    return [show[k](docs[task[0]][split[0]][i]) for k, i in enumerate(doc_id)]


def docs_before_images(docs, show, doc_id, task, split):
    fetched = [docs[task[0]][split[0]][i] for i in doc_id]
    return [show[0](doc) for doc in fetched]


def last_one_first(docs, show, doc_id, task, split):
    return per_request(docs, show[::-1], doc_id[::-1], task[::-1], split[::-1])[::-1]


def threaded(docs, show, doc_id, task, split):
    """chat/vllm, chat/openai and others."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        return list(pool.map(lambda fn, i, t, s: fn(docs[t][s][i]), show, doc_id, task, split))


PATTERNS = [
    per_request, first_of_all, first_function, zip_of_all, own_function_first_docs, docs_before_images,
    last_one_first, threaded,
]  # fmt: skip


class Adapter(lmms):
    """A simple adapter: takes batches, fetches them by a pattern, answers what the images say."""

    is_simple = True
    _place_of_function, _place_of_settings = 2, 1

    def __init__(self, fetch, in_order: bool = True, batch_size: int = BATCH) -> None:
        super().__init__()
        self.fetch, self.in_order, self.size = fetch, in_order, batch_size

    def generate_until(self, requests):
        arguments = [request.args for request in requests]
        if self.in_order:
            batches = [arguments[i : i + self.size] for i in range(0, len(arguments), self.size)]
            return [answer for batch in batches for answer in self.answers(batch)]
        key = self._place_of_settings
        collator = Collator(arguments, lambda x: (-len(x[0]), x[0]), group_fn=lambda x: x[key], grouping=True)
        return collator.get_original(
            [answer for batch in collator.get_batched(n=self.size) for answer in self.answers(batch)]
        )

    def answers(self, batch) -> list[str]:
        columns = list(zip(*batch, strict=True))
        shown = self.fetch(self.task_dict, columns[self._place_of_function], *columns[3:])
        return [read(self.images(item)) for item in shown]

    def images(self, shown) -> list[Image.Image]:
        return shown

    def clean(self) -> None:
        """Nothing to free; the host's collection of garbage takes most of a small run's time."""

    def loglikelihood(self, requests):
        raise NotImplementedError

    def generate_until_multi_round(self, requests):
        raise NotImplementedError


class ChatAdapter(Adapter):
    """The same, of the chat protocol."""

    is_simple = False
    _place_of_function, _place_of_settings = 1, 2

    def images(self, shown) -> list[Image.Image]:
        return [part["url"] for message in shown for part in message["content"] if part["type"] == "image"]


ADAPTERS = {"simple": Adapter, "chat": ChatAdapter}


def by_pickle(doc_id):
    return pickle.loads(pickle.dumps(doc_id))


def by_deepcopy(doc_id):
    return copy.deepcopy(doc_id)


class Likelihood(Adapter):
    """Gives loss 0 to the continuation that names what the images show, 1 to any other."""

    def loglikelihood(self, requests):
        arguments = [request.args for request in requests]
        collator = Collator(arguments, lambda x: (-len(x[1]), x[1]))  # by continuation: the docs of a batch mix
        out = []
        for batch in collator.get_batched(n=BATCH):
            _, continuation, *columns = zip(*batch, strict=True)
            shown = [read(images) for images in self.fetch(self.task_dict, *columns)]
            out += [(float(says.strip() != saw), False) for says, saw in zip(continuation, shown, strict=True)]
        return collator.get_original(out)
