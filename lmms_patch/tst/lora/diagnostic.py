"""`tst_lora`: the LLM-based Test-set Stress-Test. A language model is tuned on the text of k - 1 folds, and answers the held-out one.

Source: TsT paper, 3.2 and Appendix B.1. Trained on: an item's whole prompt, then its most frequent gold.
Nothing else of an item is shown: neither its source, its key nor its category.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from lmms_patch.errors import OptionError
from lmms_patch.text import log
from lmms_patch.tst.diagnosis import Job
from lmms_patch.tst.items import Item, Places, Prediction
from lmms_patch.tst.lora import cache, load
from lmms_patch.tst.lora import model as lora_model
from lmms_patch.tst.lora.model import TrainingError
from lmms_patch.tst.lora.settings import PRESETS, LoraSettings
from lmms_patch.tst.lora.text import Row

__all__ = ["PRESETS", "Job", "LoraDiagnostic", "LoraPrepared", "LoraSettings", "TrainingError", "choice", "run_folds"]

Gather = Callable[[Any], list[Any]]
"""An object of this rank -> the objects of all ranks, in their order."""


class LoraDiagnostic:
    """A causal language model with LoRA, as a ``Diagnostic``.

    Attributes:
        settings: which model, and how it is trained.
    """

    name = "lora"

    def __init__(self, settings: LoraSettings | None = None) -> None:
        self.settings = settings or LoraSettings()

    def prepare(self, items: Sequence[Item], rewards: object = None) -> LoraPrepared:
        """Loads the tokenizer and reads the items once; the model is loaded when it is first needed, and then kept.

        Args:
            items: all items.
            rewards: not used: answers are what the model says.

        Raises:
            OptionError: peft is missing, or the model or the cache folder cannot be had.
        """
        load.require_peft()
        return LoraPrepared(items, self.settings)


class LoraPrepared:
    """Items as token ids, and a model to tune on them.

    Attributes:
        trainings: how often a model was trained: folds that were read from the cache are not counted.
    """

    def __init__(self, items: Sequence[Item], settings: LoraSettings) -> None:
        self._items = list(items)
        self._settings = settings
        self._cache = cache.usable(settings.cache)
        self._device = load.device_of(settings)
        self._dtype = load.dtype_of(settings, self._device)
        self._encoder = load.load_tokenizer(settings)
        self._answers = [tuple(map(self._encoder.answer, item.said)) if item.is_choice else () for item in self._items]
        self._rooms = [max([settings.max_new_tokens, *map(len, answers)]) for answers in self._answers]
        fitted = [self._encoder.fitted(item.prompt, room) for item, room in zip(self._items, self._rooms, strict=True)]
        self._prompts = [ids for ids, _ in fitted]
        self._loaded: load.Loaded | None = None
        self.trainings = 0
        self._say_what_is_lost(sum(cut for _, cut in fitted))

    def predict(self, train: Places, test: Places, *, seed: int, groups: Places | None = None) -> list[Prediction]:
        """Trains a fresh adapter on the items at ``train``, predicts those at ``test``, and takes the adapter off again.

        Choice formats: the probability of an answer is the softmax, over the item's answers, of the summed
        log-probability of its tokens and of the end of the turn. With the end, an answer that another one begins with
        ("chair", "chair leg") is not counted twice, and sums are probabilities of whole answers; they are not divided by
        length, which would make them none. Other formats: the greedy answer.

        Args:
            train: places of the items that are trained on; those without a gold are passed over.
            test: places of the items that are predicted.
            seed: of the adapter's first weights, of dropout and of the order of the items.
            groups: not used: nothing is held out inside the training folds.

        Returns:
            One prediction each, in the order of ``test``; read from the cache where it holds them.

        Raises:
            OptionError: no item at ``train`` has a gold, the model cannot be had, or memory does not suffice.
            TrainingError: a loss is not finite.
        """
        rows = [self._row(place) for place in map(int, train) if self._items[place].golds]
        if not rows:
            raise OptionError(f"none of the {len(train)} items to train on has a gold answer; tst_lora needs a task with golds")

        def work() -> list[Prediction]:
            mixed = int(np.random.SeedSequence([self._settings.seed, seed]).generate_state(1)[0])
            model, label = self._model(), f"tst_lora, fold of {len(test)}, seed {seed}"
            with lora_model.adapted(model, self._settings, mixed):
                lora_model.train(model, rows, self._settings, seed=mixed, label=label)
                self.trainings += 1
                return self._predicted(test, f"{label}: predicting")

        return self._cached(train, test, seed, work)

    def zero_shot(self, places: Places) -> list[Prediction]:
        """What the same model says without any training; as ``predict``."""
        return self._cached(None, places, 0, lambda: self._predicted(places, "tst_lora, zero-shot"))

    def _cached(self, train: Places | None, test: Places, seed: int, work: Callable[[], list[Prediction]]) -> list[Prediction]:
        if self._cache is None:
            return work()
        path = self._cache / self._file(train, test, seed)
        found = cache.read(path, len(test))
        if found is None:
            found = work()
            cache.write(path, found)
        return found

    def _file(self, train: Places | None, test: Places, seed: int) -> Path:
        learned = None if train is None else [self._items[place] for place in train]
        asked = [self._items[place] for place in test]
        return Path(f"lora-{cache.fingerprint(self._settings, str(self._dtype), learned, asked, seed)}.json")

    def _model(self) -> load.Loaded:
        if self._loaded is None:
            self._loaded = load.load_model(self._settings, self._device, self._dtype, self._encoder.pad)
        return self._loaded

    def _row(self, place: int) -> Row:
        """What is trained on; an answer that is longer than any that could be given ends where there is no more room."""
        return Row(self._prompts[place], self._gold(self._items[place])[: self._rooms[place]])

    def _gold(self, item: Item) -> tuple[int, ...]:
        return self._encoder.answer(item.golds[0] if item.right is None else item.said[item.right])

    def _predicted(self, test: Places, label: str) -> list[Prediction]:
        places = [int(place) for place in test]
        chosen = [place for place in places if self._items[place].is_choice]
        free = [place for place in places if not self._items[place].is_choice]
        found = {**self._choices(chosen, label), **self._generated(free, label)}
        return [found[place] for place in places]

    def _choices(self, places: Sequence[int], label: str) -> dict[int, Prediction]:
        if not places:
            return {}
        rows = [Row(self._prompts[place], answer) for place in places for answer in self._answers[place]]
        logprobs = iter(lora_model.logprobs_of(self._model(), rows, self._settings, label))
        return {place: self._chosen(self._items[place], [next(logprobs) for _ in self._answers[place]]) for place in places}

    @staticmethod
    def _chosen(item: Item, logprobs: Sequence[float]) -> Prediction:
        found = choice(item.said, logprobs)
        return Prediction(item.answers[item.said.index(found.answer)], item.answers, found.probabilities)

    def _generated(self, places: Sequence[int], label: str) -> dict[int, Prediction]:
        if not places:
            return {}
        answers = lora_model.generate(self._model(), [self._prompts[place] for place in places], self._encoder, self._settings, label)
        return {place: Prediction(answer, (answer,), np.ones(1)) for place, answer in zip(places, answers, strict=True)}

    def _say_what_is_lost(self, cut: int) -> None:
        items, settings = self._items, self._settings
        if cut:
            log().warning(f"tst_lora: {cut} of {len(items)} prompts lost their beginning: longer than max_length={settings.max_length} tokens")
        without = sum(not item.golds for item in items)
        if without:
            log().warning(f"tst_lora: {without} of {len(items)} items have no gold answer; they are predicted, not trained on")
        long = sum(len(self._gold(item)) > room for item, room in zip(items, self._rooms, strict=True) if item.golds)
        if long:
            log().warning(
                f"tst_lora: {long} of {len(items)} golds are trained on without their end: longer than max_new_tokens={settings.max_new_tokens}"
            )


def choice(answers: Sequence[str], logprobs: Sequence[float]) -> Prediction:
    """The prediction of a choice item, from the log-probability (nats) of each of its answers.

    Options that are answered alike share that answer's probability equally. The answer is the most probable one; ties go
    to the lowest place.

    >>> choice(("A", "B"), (-1.0, -1.0))
    Prediction(answer='A', answers=('A', 'B'), probabilities=array([0.5, 0.5]))
    """
    of = dict(zip(answers, logprobs, strict=True))
    shares = np.exp(np.array(list(of.values())) - max(of.values()))
    probability = dict(zip(of, (shares / shares.sum()).tolist(), strict=True))
    best = max(of, key=lambda answer: probability[answer])  # the first of equals
    return Prediction(best, tuple(answers), np.array([probability[answer] / list(answers).count(answer) for answer in answers]))


def run_folds(prepared: LoraPrepared, jobs: Sequence[Job], rank: int = 0, world: int = 1, gather: Gather | None = None) -> list[list[Prediction]]:
    """Does this rank's share of the folds: jobs rank, rank + world, ...; then every rank gets all predictions.

    Every rank must call it with the same jobs. A rank that fails makes all of them raise, instead of wait.

    Args:
        prepared: the same items and settings on every rank.
        jobs: see ``Job``.
        rank, world: which process this is, of how many.
        gather: see ``Gather``; by default ``torch.distributed``'s where it is initialised, else this process alone.

    Returns:
        The predictions of each job, in the order of ``jobs``.

    Raises:
        TrainingError: another rank failed.
    """
    gather = gather or _gatherer()
    mine: dict[int, list[Prediction]] = {}
    failure: Exception | None = None
    try:
        for at in range(rank, len(jobs), world):
            learned, asked, seed = jobs[at]
            mine[at] = prepared.zero_shot(asked) if learned is None else prepared.predict(learned, asked, seed=seed)
    except Exception as error:  # told to the other ranks first, which would wait for this one
        failure = error
    told = gather((mine, None if failure is None else f"{type(failure).__name__}: {failure}"))
    if failure is not None:
        raise failure
    for other, (_, why) in enumerate(told):
        if why is not None:
            raise TrainingError(f"rank {other} failed: {why}")
    found = {at: predictions for share, _ in told for at, predictions in share.items()}
    missing = [at for at in range(len(jobs)) if at not in found]
    if missing:
        raise TrainingError(f"folds {missing} were done by no rank: {len(told)} of {world} processes answered")
    return [found[at] for at in range(len(jobs))]


def _gatherer() -> Gather:
    """Over a group of its own: by default ranks would give up after 10 minutes, and one fold can take longer than another by more."""
    from torch import distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        return lambda mine: [mine]
    group: Any = distributed.new_group(backend="gloo", timeout=timedelta(days=7))

    def gather(mine: Any) -> list[Any]:
        told: list[Any] = [None] * distributed.get_world_size()
        distributed.all_gather_object(told, mine, group=group)
        return told

    return gather
