"""`tst_lora`: the LLM-based Test-set Stress-Test.

A language model is tuned on the text of k - 1 folds, and answers the held-out fold.

Source: TsT paper, 3.2 and Appendix B.1. Trained on: an item's whole prompt, then its most frequent gold. The model sees
nothing else of an item: neither its source, its key nor its category.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from lmms_patch.errors import OptionError, require
from lmms_patch.text import log
from lmms_patch.tst.diagnosis import Job
from lmms_patch.tst.items import Item, Places, Prediction
from lmms_patch.tst.lora import cache, load
from lmms_patch.tst.lora import model as lora_model
from lmms_patch.tst.lora.model import TrainingError
from lmms_patch.tst.lora.settings import LoraSettings
from lmms_patch.tst.lora.text import Row

Gather = Callable[[Any], list[Any]]
"""An object of this rank -> the objects of all ranks, in their order."""


class LoraDiagnostic:
    """A causal language model with LoRA, as a ``Diagnostic``.

    Attributes:
        settings: which model, and how it is trained.

    Raises:
        PatchError: peft is not installed.
    """

    name = "lora"

    def __init__(self, settings: LoraSettings | None = None) -> None:
        require("lora")
        self.settings = settings or LoraSettings()

    def prepare(self, items: Sequence[Item], rewards: object = None) -> LoraPrepared:
        """Load the tokenizer and read the items once; the model is loaded when it is first needed, and then kept.

        Args:
            items: all items.
            rewards: not used: answers are what the model says.

        Raises:
            OptionError: the model or the cache folder cannot be had.
        """
        return LoraPrepared(items, self.settings)


class LoraPrepared:
    """Items as token ids, and a model to tune on them.

    Attributes:
        trainings: how often a model was trained: folds that were read from the cache are not counted.
    """

    def __init__(self, items: Sequence[Item], settings: LoraSettings) -> None:
        self._items, self._settings, self.trainings = list(items), settings, 0
        self._loaded: load.Loaded | None = None
        self._cache = cache.usable(settings.cache)
        self._device = load.device_of(settings)
        self._dtype = load.dtype_of(settings, self._device)
        self._encoder = load.load_tokenizer(settings)
        self._answers = [tuple(map(self._encoder.answer, item.said)) if item.is_choice else () for item in self._items]
        self._rooms = [max([settings.max_new_tokens, *map(len, answers)]) for answers in self._answers]
        fitted = [self._encoder.fitted(item.prompt, room) for item, room in zip(self._items, self._rooms, strict=True)]
        self._prompts = [ids for ids, _ in fitted]
        self._golds = [
            self._encoder.answer(item.golds[0] if item.right is None else item.said[item.right]) if item.golds else ()
            for item in items
        ]
        without, long = (
            self._golds.count(()),
            sum(len(gold) > room for gold, room in zip(self._golds, self._rooms, strict=True)),
        )
        for count, what in (
            (
                sum(cut for _, cut in fitted),
                f"prompts lost their beginning: longer than max_length={settings.max_length} tokens",
            ),
            (without, "items have no gold answer; they are predicted, not trained on"),
            (long, f"golds are trained on without their end: longer than max_new_tokens={settings.max_new_tokens}"),
        ):
            if count:
                log().warning(f"tst_lora: {count} of {len(items)} {what}")

    def predict(self, train: Places, test: Places, *, seed: int, groups: Places | None = None) -> list[Prediction]:
        """Train a fresh adapter on the items at ``train``, predict those at ``test``, and take the adapter off again.

        Choice formats: the probability of an answer is the softmax, over the item's answers, of the summed
        log-probability of its tokens and of the end of the turn. With the end, an answer that another answer begins
        with ("chair", "chair leg") is not counted twice, and sums are probabilities of whole answers; dividing by
        length would undo that. Other formats: the greedy answer.

        Args:
            train: places of the items that are trained on; those without a gold are passed over.
            test: places of the items that are predicted.
            seed: of the adapter's first weights, of dropout and of the order of the items.
            groups: not used: nothing is held out inside the training folds.

        Returns:
            A prediction for each place, in the order of ``test``; read from the cache where it holds them.

        Raises:
            OptionError: no item at ``train`` has a gold, the model cannot be had, or memory does not suffice.
            TrainingError: a loss is not finite.
        """
        # A gold that is longer than any answer could be ends where there is no more room.
        rows = [
            Row(self._prompts[place], self._golds[place][: self._rooms[place]])
            for place in map(int, train)
            if self._golds[place]
        ]
        if not rows:
            raise OptionError(
                f"none of the {len(train)} items to train on has a gold answer; tst_lora needs a task with golds"
            )

        def work() -> list[Prediction]:
            mixed = int(np.random.SeedSequence([self._settings.seed, seed]).generate_state(1)[0])
            model, label = self._model(), f"tst_lora, fold of {len(test)}, seed {seed}"
            with lora_model.adapted(model, self._settings, mixed):
                lora_model.train(model, rows, self._settings, seed=mixed, label=label)
                self.trainings += 1
                return self._predicted(test, f"{label}: predicting")

        return self._cached(train, test, seed, work)

    def zero_shot(self, places: Places) -> list[Prediction]:
        """Return what the same model says without any training; as ``predict``."""
        return self._cached(None, places, 0, lambda: self._predicted(places, "tst_lora, zero-shot"))

    def _cached(
        self, train: Places | None, test: Places, seed: int, work: Callable[[], list[Prediction]]
    ) -> list[Prediction]:
        if self._cache is None:
            return work()
        learned = None if train is None else [self._items[place] for place in train]
        name = cache.fingerprint(
            self._settings, str(self._dtype), learned, [self._items[place] for place in test], seed
        )
        path = self._cache / f"lora-{name}.json"
        found = cache.read(path, len(test))
        if found is None:
            found = work()
            cache.write(path, found)
        return found

    def _model(self) -> load.Loaded:
        if self._loaded is None:
            self._loaded = load.load_model(self._settings, self._device, self._dtype, self._encoder.pad)
        return self._loaded

    def _predicted(self, test: Places, label: str) -> list[Prediction]:
        places, model, settings = [int(place) for place in test], self._model(), self._settings
        free = [place for place in places if not self._items[place].is_choice]
        said = lora_model.generate(model, [self._prompts[place] for place in free], self._encoder, settings, label)
        found = {place: Prediction(answer, (answer,), np.ones(1)) for place, answer in zip(free, said, strict=True)}
        rows = [Row(self._prompts[place], answer) for place in places for answer in self._answers[place]]
        logprobs = iter(lora_model.logprobs_of(model, rows, settings, label))
        for place in places:
            item = self._items[place]
            if item.is_choice:
                chosen = choice(item.said, [next(logprobs) for _ in item.said])
                found[place] = Prediction(
                    item.answers[item.said.index(chosen.answer)], item.answers, chosen.probabilities
                )
        return [found[place] for place in places]


def choice(answers: Sequence[str], logprobs: Sequence[float]) -> Prediction:
    """Return the prediction of a choice item, from the log-probability (nats) of each of its answers.

    Options that are answered alike share that answer's probability equally. The answer is the most probable; ties go to
    the lowest place.

    >>> choice(("A", "B"), (-1.0, -1.0))
    Prediction(answer='A', answers=('A', 'B'), probabilities=array([0.5, 0.5]))
    """
    of = dict(zip(answers, logprobs, strict=True))
    # less the highest, since exp() of long answers' sums would be 0 for all
    shares = np.exp(np.array(list(of.values())) - max(of.values()))
    probability = dict(zip(of, (shares / shares.sum()).tolist(), strict=True))
    # ``max`` keeps the first of equals, so ties do not depend on the run.
    best = max(of, key=lambda answer: probability[answer])
    return Prediction(
        best, tuple(answers), np.array([probability[answer] / list(answers).count(answer) for answer in answers])
    )


def run_folds(
    prepared: LoraPrepared, jobs: Sequence[Job], rank: int = 0, world: int = 1, gather: Gather | None = None
) -> list[list[Prediction]]:
    """Do this rank's share of the folds (jobs rank, rank + world, ...), and return the predictions of each job from all ranks.

    Every rank must call it with the same jobs. A rank that fails makes all of them raise, instead of wait.

    Args:
        prepared: the same items and settings on every rank.
        jobs: see ``Job``.
        rank: which process this is.
        world: of how many.
        gather: by default ``torch.distributed``'s where it is initialised, else this process alone.

    Raises:
        TrainingError: another rank failed.
    """
    mine: dict[int, list[Prediction]] = {}
    failure: Exception | None = None
    gather = gather or _gatherer()
    try:
        for at in range(rank, len(jobs), world):
            learned, asked, seed = jobs[at]
            mine[at] = prepared.zero_shot(asked) if learned is None else prepared.predict(learned, asked, seed=seed)
    except Exception as error:
        # Raised only after the other ranks know: else they would wait for this rank forever.
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
    from torch import distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        return lambda mine: [mine]
    # A group of its own: in the default group, ranks give up after 10 minutes, and one fold can take longer than
    # another by more.
    group: Any = distributed.new_group(backend="gloo", timeout=timedelta(days=7))

    def gather(mine: Any) -> list[Any]:
        told: list[Any] = [None] * distributed.get_world_size()
        distributed.all_gather_object(told, mine, group=group)
        return told

    return gather
