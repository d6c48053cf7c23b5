"""Every number of runs of every kind, from stored answers: the numbers must stay.

What is stored is what an adapter returned (``answers.json.xz``), by a digest of what it was shown: prompt and pixels. So
no file format of ours outlives its reader, and a wrong view finds no answer. Each scene of ``scenes`` is replayed through
the harness, and its numbers, one row each, are compared with ``numbers.csv.xz`` up to rounding: sums of NumPy's BLAS
differ in the last digits between processors.

A change of a number is named in CHANGELOG.md; ``python -m tests.golden --write`` then writes the table anew.
``python -m tests.golden --record SCENE`` asks the scene's model again: for a new scene, or after a change of views.
"""

from __future__ import annotations

import bisect
import contextlib
import csv
import hashlib
import io
import json
import lzma
import math
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import av
import numpy as np
from lmms_eval.api.instance import GenerationResult, TokenCounts
from lmms_eval.api.model import lmms
from lmms_eval.loggers.evaluation_tracker import EvaluationTracker
from lmms_eval.models import get_model

from lmms_patch.rci import recompute
from lmms_patch.rci.ensemble import ensembles
from lmms_patch.runs.catalogue import estimates
from lmms_patch.runs.columns import by_filter
from lmms_patch.runs.measures import measures
from lmms_patch.runs.numbers import to_json
from lmms_patch.runs.run import Result, find
from lmms_patch.tst.items import Prediction
from lmms_patch.tst.lora import diagnostic
from tests.golden.scenes import CHAT, LORA, RF, SCENES, Scene
from tests.harness import toys
from tests.harness.magic.models import MagicScript
from tests.harness.tst import toys as text_only

HERE = Path(__file__).parent
ANSWERS, NUMBERS = HERE / "answers.json.xz", HERE / "numbers.csv.xz"
ROUNDING = 1e-9
"""How far two machines may be apart: far more than rounding gives, far less than another formula would."""
DATE = "20260101_000000"
Answers = dict[str, Any]
"""By a digest of what was shown, what the adapter returned: a text, a loss, or a text and its number of tokens."""


class Row(NamedTuple):
    """A number of a scene; ``value`` to ``high`` are None where they are not defined."""

    scene: str
    task: str
    measure: str
    value: float | None
    se: float | None = None
    low: float | None = None
    high: float | None = None
    n: float | None = None
    note: str = ""


# --- what was shown, and what was answered --------------------------------------------------------


def digest(prompt: str, shown: Iterable[Any]) -> str:
    """Return a digest of a prompt and of every pixel beside it; of a clip, of every pixel of its frames."""
    found = hashlib.sha256(prompt.encode())
    for medium in shown:
        for image in frames(medium) if isinstance(medium, (str, Path)) else [medium]:
            found.update(repr((image.mode, image.size)).encode() + image.tobytes())
    return found.hexdigest()[:20]


def frames(path: str | Path) -> Iterator[Any]:
    """Yield the frames of a video file as images."""
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            yield frame.to_image()


def asked(model: lmms, request: Any) -> str:
    """Return the digest of what a request shows an adapter of either protocol."""
    if model.is_simple:
        # a log-likelihood has the option where a generation has its settings
        prompt, second, show, doc_id, task, split = request.args
        words = prompt + (second if isinstance(second, str) else "")
        return digest(words, show(model.task_dict[task][split][doc_id]))
    _, show, _, doc_id, task, split = request.args
    parts = [(turn["role"], part) for turn in show(model.task_dict[task][split][doc_id]) for part in turn["content"]]
    words = "".join(f"{role}: {part['text']}\n" for role, part in parts if part["type"] == "text")
    return digest(words, [part["url"] for _, part in parts if part["type"] != "text"])


def plain(answer: Any) -> Any:
    """Return an adapter's answer as JSON holds it."""
    if isinstance(answer, GenerationResult):
        tokens = answer.token_counts
        return answer.text if tokens is None else [answer.text, tokens.input_tokens, tokens.output_tokens]
    return answer[0] if isinstance(answer, tuple) else answer


def answered(stored: Any) -> Any:
    """Return what an adapter returns for a stored answer."""
    return GenerationResult(stored[0], TokenCounts(*stored[1:])) if isinstance(stored, list) else stored


class Replay(toys.Model):
    """Gives the stored answer to what is shown, whichever task or batch it comes in.

    Args:
        answers: stored answers.
    """

    def __init__(self, answers: Mapping[str, Any]) -> None:
        super().__init__()
        self.answers = answers

    def generate_until(self, requests: list[Any]) -> list[Any]:
        return [answered(self.answers[asked(self, request)]) for request in requests]

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        return [(self.answers[asked(self, request)], False) for request in requests]


class ChatReplay(Replay):
    """The same by the chat protocol."""

    is_simple = False


class Noting(toys.Model):
    """Hands requests on to a model, and notes its answers by what was shown.

    Args:
        model: the model.
        answers: where they are noted.
    """

    def __init__(self, model: lmms, answers: Answers) -> None:
        super().__init__()
        self.model, self.answers = model, answers

    def __deepcopy__(self, memo: object) -> Noting:
        return self  # the host copies what it was called with, and a real model cannot be copied

    def _noted(self, requests: list[Any], method: str) -> list[Any]:
        self.model.task_dict = self.task_dict
        said: list[Any] = getattr(self.model, method)(requests)
        self.answers.update({asked(self, request): plain(one) for request, one in zip(requests, said, strict=True)})
        return said

    def generate_until(self, requests: list[Any]) -> list[Any]:
        return self._noted(requests, "generate_until")

    def loglikelihood(self, requests: list[Any]) -> list[Any]:
        return self._noted(requests, "loglikelihood")


class ChatNoting(Noting):
    """The same by the chat protocol."""

    is_simple = False


class Exchanged(Answers):
    """The answers of another model: a tenth is exchanged for the answer before in the order of the digests.

    A view that says another thing than the first model is asked again otherwise: what the first model was not asked is
    answered by the digest before it.

    Args:
        answers: those of the first model.
    """

    def __init__(self, answers: Mapping[str, Any]) -> None:
        keys = self._keys = sorted(answers)
        other = {key: answers[keys[at - 1]] for at, key in enumerate(keys) if int(key[:4], 16) % 10 == 0}
        super().__init__({**answers, **other})

    def __missing__(self, key: str) -> Any:
        return self[self._keys[bisect.bisect(self._keys, key) - 1]]


class Folds:
    """Stands for a language model that is tuned on folds: it has the predictions that a real one made.

    Args:
        items: all items.
        settings: of the diagnostic.
    """

    stored: Answers = {}

    def __init__(self, items: Sequence[Any], settings: Any) -> None:
        self.items, self.trainings = items, 0

    def _place(self, train: Any, test: Any, seed: int) -> str:
        parts = [[self.items[int(at)].prompt for at in places] for places in ([] if train is None else train, test)]
        return hashlib.sha256(json.dumps([parts, seed]).encode()).hexdigest()[:20]

    def predict(self, train: Any, test: Any, *, seed: int, groups: Any = None) -> list[Prediction]:
        found = self.stored[self._place(train, test, seed)]
        return [Prediction(answer, tuple(of), np.array(shares)) for answer, of, shares in found]

    def zero_shot(self, test: Any) -> list[Prediction]:
        return self.predict(None, test, seed=0)


# --- a scene ---------------------------------------------------------------------------------------


def stored() -> dict[str, Answers]:
    """Return the stored answers of each scene."""
    return dict(json.loads(lzma.decompress(ANSWERS.read_bytes())))


@contextlib.contextmanager
def model_of(scene: Scene, answers: Mapping[str, Any]) -> Iterator[lmms]:
    """Yield what answers in a scene: stored answers, a text-only diagnostic, or one with stored folds."""
    if scene.adapter == RF:
        yield text_only.Rf()
    elif scene.adapter == LORA:
        with mock.patch.object(diagnostic, "LoraPrepared", type("Stored", (Folds,), {"stored": answers})):
            yield text_only.Lora(model="stored", cache="none", device="cpu")
    else:
        yield (ChatReplay if scene.adapter == CHAT else Replay)(answers)


def replay(name: str, folder: Path, answers: Mapping[str, Answers]) -> Path:
    """Run a scene with stored answers, save what the command line would, and return the output folder."""
    scene = SCENES[name]
    own = Exchanged(answers[scene.of]) if scene.of else answers.get(name, {})
    with model_of(scene, own) as model:
        return run(scene, model, folder / name, name)


def run(scene: Scene, model: lmms, folder: Path, name: str = "") -> Path:
    """Run a scene with any model, and return the folder that its files lie in."""
    out = folder / "out"
    if scene.write:
        with mock.patch.object(toys, "STEADY", 300):
            scene.write(folder / "tasks")
    tracker = EvaluationTracker(output_path=str(out))
    about = Namespace(
        output_path=str(out),
        process_with_media=False,
        reasoning_tags=None,
        model=f"golden/{name}",
        model_args="",
        batch_size=1,
    )
    found = toys.run(
        model,
        scene.tasks,
        folder / "tasks" if scene.write else None,
        limit=scene.limit,
        cli_args=about,
        evaluation_tracker=tracker,
    )
    tracker.general_config_tracker.model_name = f"golden/{name}"
    logged = found.pop("samples")
    tracker.save_results_aggregated(results=found, samples=logged, datetime_str=DATE)
    for task in found["configs"]:
        tracker.save_results_samples(task_name=task, samples=logged[task])
    return out


def record(name: str, folder: Path) -> Answers:
    """Ask the model of a scene, and return its answers by what was shown."""
    scene, answers = SCENES[name], dict[str, Any]()
    if scene.adapter == LORA:
        return record_folds(scene, folder)
    if callable(scene.answer):
        model: lmms = (toys.ChatModel if scene.adapter == CHAT else toys.Model)(scene.answer)
    else:
        model = (
            MagicScript("distracted")
            if scene.answer == "magic_script"
            else get_model(scene.answer, force_simple=scene.adapter != CHAT)()
        )
    run(scene, (ChatNoting if scene.adapter == CHAT else Noting)(model, answers), folder / name, name)
    return answers


def record_folds(scene: Scene, folder: Path) -> Answers:
    """Tune a small random language model on the folds of a scene, and return what it predicted."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    from tests.tst.lora.test_lora import SIZES, save, tokenizer_of

    answers, real = dict[str, Any](), diagnostic.LoraPrepared

    class Tuned(real):  # type: ignore[valid-type, misc]
        def _cached(self, train: Any, test: Any, seed: int, work: Any) -> Any:
            said = work()
            answers[Folds(self._items, None)._place(train, test, seed)] = [
                (one.answer, one.answers, [float(share) for share in one.probabilities]) for one in said
            ]
            return said

    tokenizer = tokenizer_of(template=True)
    torch.manual_seed(0)
    network = Qwen2ForCausalLM(Qwen2Config(vocab_size=len(tokenizer), tie_word_embeddings=True, **SIZES))
    place = save(network, tokenizer, folder / "network")
    settings = {"r": 8, "alpha": 16, "dropout": 0.0, "lr": 5e-3, "epochs": 1, "batch": 8, "max_length": 192}
    with mock.patch.object(diagnostic, "LoraPrepared", Tuned):
        run(scene, text_only.Lora(model=place, cache="none", device="cpu", **settings), folder / "lora")
    return answers


# --- the table -------------------------------------------------------------------------------------


def numbers(name: str, out: Path) -> list[Row]:
    """Return every number of a scene's run: those with a name of their own, and all others that its files hold."""
    rows = []
    for found in (result for one in find([out]) for result in one.results):
        for measure, own in measures(found).items():
            rows.append(
                Row(name, found.label, measure, own.value, own.se, own.low, own.high, own.n, getattr(own, "reason", ""))
            )
        computed = found.computed
        tree = {"analysis": computed.analysis, "tst_details": computed.tst, "magic": computed.magic}
        for measure, value in sorted(leaves(to_json({key: one for key, one in tree.items() if one is not None}))):
            rows.append(Row(name, found.label, measure, value))
        rows += [Row(name, found.label, f"metric {metric}", value) for metric, value in hosted(found)]
    return rows


def hosted(result: Result) -> list[tuple[str, float | None]]:
    """Return the numbers of a result in the host's own file, by name."""
    columns = json.loads(result.run.path.read_bytes())["results"][result.task]
    own = by_filter(columns).get(result.filter, {})
    return [(name, float(one) if isinstance(one, (int, float)) else None) for name, one in sorted(own.items())]


UNSTEADY = ("made", "seconds", "costs")
"""Parts of a result that differ from run to run."""


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield each number within a tree, with the path that leads to it."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in UNSTEADY:
                yield from leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)):
        for at, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{at}]")
    elif isinstance(value, (int, float)):
        yield path, float(value)


def by_category_of(name: str, out: Path) -> list[Row]:
    """Return the numbers of each category of each task with several."""
    return [
        Row(name, one.name, f"{category}: {measure}", own.value, own.se, own.low, own.high, own.n)
        for run in find([out])
        for one in recompute.load(run)
        for category, found in recompute.by_category(one)[0].items()
        for measure, own in estimates(found, one.result.kind).items()
    ]


def of_models(name: str, first: Path, second: Path) -> list[Row]:
    """Return the numbers of two models' runs taken together."""
    runs = [[recompute.recompute(one) for one in recompute.load(recompute.one_run(out).run)] for out in (first, second)]
    return [
        Row(name, one.task, f"ensemble {measure}", value)
        for one in ensembles({"a": runs[0], "b": runs[1]}, recompute.Changes())
        for measure, value in sorted(leaves(to_json(one)))
    ]


def compared(name: str, first: Path, second: Path) -> list[Row]:
    """Return the differences between two runs, each with its interval."""
    from lmms_patch.compare.tasks import compare

    rows = []
    for task in compare(first, second).tasks:
        for one in task.numbers:
            own = one.difference
            rows.append(Row(name, task.second, f"difference {one.name}", own.value, own.se, own.low, own.high, own.n))
            rows.append(Row(name, task.second, f"p {one.name}", one.p_holm))
    return rows


def every(folder: Path, names: Iterable[str] = SCENES) -> list[Row]:
    """Replay scenes, and return their numbers; with two models on the same docs, the differences too."""
    answers, found = stored(), list[Row]()
    outs = {name: replay(name, folder, answers) for name in names}
    for name, out in outs.items():
        found += numbers(name, out)
        if name.startswith("demo"):
            found += by_category_of(name, out)
        if (first := outs.get(SCENES[name].of)) is not None:
            found += compared(name, first, out)
            found += of_models(name, first, out) if name.startswith("demo") else []
    return found


def table() -> list[Row]:
    """Return the stored numbers."""
    text = lzma.decompress(NUMBERS.read_bytes()).decode()
    return [
        Row(*line[:3], *(None if cell == "" else float(cell) for cell in line[3:8]), line[8])
        for line in csv.reader(io.StringIO(text))
    ]


def write(rows: Iterable[Row]) -> None:
    """Store numbers."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [*row[:3], *("" if cell is None else repr(float(cell)) for cell in row[3:8]), row[8]] for row in rows
    )
    NUMBERS.write_bytes(lzma.compress(text.getvalue().encode(), preset=9 | lzma.PRESET_EXTREME))


def differences(old: Iterable[Row], new: Iterable[Row]) -> Iterator[str]:
    """Yield what differs between two tables: a row that only one of them has, or another value."""
    before, now = ({row[:3]: row for row in rows} for rows in (old, new))
    for key in before.keys() | now.keys():
        if key not in now or key not in before:
            yield f"{' '.join(key)}: only {'before' if key in before else 'now'}"
        elif not all(map(same, before[key][3:8], now[key][3:8])):
            yield f"{' '.join(key)}: {before[key][3:8]} is now {now[key][3:8]}"


def same(one: float | None, other: float | None) -> bool:
    """Return whether two numbers are equal up to rounding; None is equal to None alone."""
    if one is None or other is None:
        return one is other
    return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=ROUNDING, abs_tol=ROUNDING)
