"""How fast the Test-set Stress-Test and the pruning are, how much memory they take, and what they find on real benchmarks.

    python benchmarks/tst.py [--only speed prune memory table rivals shuffles stops blind claims meaningless open]
    [--names vsi_bench pope_coco ...]

Needs the folder ``shared/data`` beside the project (all but ``memory``, ``stops`` and ``blind``).

**speed**: whole headline cross-validations (5 folds, 3 fold seeds, native scores included) on VSI-Bench and POPE,
against scikit-learn on the same folds with as many trees: a straightforward pipeline (TF-IDF of question and options,
one-hot category, letters as classes, numbers by regression), and its forest on our features; then the stages on one
core, and processor seconds with and without the linear model beside the trees. **prune**: Iterative Bias Pruning with
the default settings, 30 % of VSI-Bench. **memory**: one process cross-validates 100,000 made-up items of 4 options,
another 100,000 numbers; the peak of each. **table**, **shuffles**: the numbers of docs/tst.md. **rivals**: plain
pipelines on the same folds, with the paired difference; a rival that is more than one SE better is a miss.
**stops**: pruning of 1,500 questions, 300 of which hold a word that gives the answer away (10, 30 or
75 such words, so 30, 10 or 4 questions a word): planted docs found and innocent ones lost under the stop of earlier,
the stop of now, and of who knows the planted docs. **blind**: ``prune --blind`` on planted answers of five made-up
models to 1,000 questions of four options, 200 of which are known: two models guess, the others know 90, 60 and 40 % of
the known docs. Known docs found, innocent ones lost and expected, by our posterior and by "any model is right"
(B-Clean). Then the assumption broken: five copies of a model, and a letter bias that all share, each with and without
what we do about it. At the end chance alone.
**claims**: sets whose truth is known, and what is claimed of them: by an earlier rule (the gain over the constant
answer by source, or with random folds) and now; and the verdict of a pruning, by the judge and control of earlier and
by those of now. **meaningless**: sets whose golds are random, of four shapes: in how many a shortcut is claimed.
**open**: processor seconds of a test whose answers are numbers that are right or wrong, shuffled golds included, and the
score on open questions in the manner of GQA. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import resource
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import apart, parse
from lmms_patch.present import text_only
from lmms_patch.runs.details import TstDetails
from lmms_patch.runs.numbers import ALPHA, Null, to_json
from lmms_patch.runs.typed import convert
from lmms_patch.stats import intervals
from lmms_patch.stats.resample import cluster_numbers
from lmms_patch.tst import known as known_docs
from lmms_patch.tst import tree_diagnostic
from lmms_patch.tst.controls import judge
from lmms_patch.tst.copies import Copies, cluster_of
from lmms_patch.tst.diagnosis import DEALS, Diagnose, Diagnosis, deal, diagnose, in_threads
from lmms_patch.tst.features import NumberTable, OptionTable
from lmms_patch.tst.folds import grouping, headline
from lmms_patch.tst.items import Item, Places
from lmms_patch.tst.known import guess_rates, known
from lmms_patch.tst.null import has_many_categories, p_beyond_kinds, shuffled_null
from lmms_patch.tst.prune import against_baseline, prune
from lmms_patch.tst.results import sign_flip_p
from lmms_patch.tst.rewards import Rewards
from lmms_patch.tst.selection import PruneSettings
from lmms_patch.tst.shuffle import shuffle_golds
from lmms_patch.tst.tree_diagnostic import RfDiagnostic
from lmms_patch.tst.trees import ModelSettings
from tests.making.tst import details_of
from tests.tst.rivals import RIVALS, rival_scores
from tests.tst.worlds import (
    OBJECTS,
    balanced,
    blind_answers,
    constant_gold,
    copied,
    duplicates,
    given_away,
    gqa_like,
    load,
    mc,
    number,
    paraphrases,
    rewards_of,
    two_captions,
    vocabulary,
    vsr_like,
    weak_yesno,
    yesno,
)

Sets = dict[str, list[Item]]
"""The items of each benchmark."""
NAMES = ("vsi_bench", "pope_coco", "scienceqa_test", "scienceqa_img", "videomme", "nlvr")
SEEDS = (0, 1, 2)
WORKERS = os.cpu_count() or 1
TFIDF = "scikit-learn forest on TF-IDF, letters as classes"
FOREST = "scikit-learn forest on our features, option by option"
SECONDS, TIMES, PRUNE_SECONDS, MEMORY, BESIDE, OPEN = 20.0, 3.0, 180.0, 6.0, 1.5, 90.0
ALIKE = 0.02
"""The targets: VSI-Bench in seconds, times as fast as a pipeline at most ``ALIKE`` less accurate, 30 % IBP in seconds, GiB at 100,000 items, times as
long on VSI-Bench with the linear model as without, processor seconds of open numbers."""


def named_by_category(n: int, docs: int = 5, *, alike: bool = False, seed: int = 0) -> list[Item]:
    """Questions of four options in categories of ``docs`` docs, of which each names its gold, or has every gold alike.

    The question says nothing.
    """
    stream = np.random.default_rng(seed)
    items = []
    for i in range(n):
        if i % docs == 0:
            named, places = int(stream.integers(4)), stream.permutation(docs) % 4
        options = [OBJECTS[k] for k in stream.choice(len(OBJECTS), 4, replace=False)]
        right = int(places[i % docs]) if alike else named
        items.append(
            mc(
                i,
                f"Question {i} on the {OBJECTS[stream.integers(len(OBJECTS))]}?",
                options,
                right,
                f"category {i // docs}",
                f"image {i}",
            )
        )
    return items


def sugarcrepe_like(n: int, seed: int = 0) -> list[Item]:
    """Two captions, the false one made from the true one by one word.

    The words that are put in are odd in three of seven categories, by many weak words.
    """
    stream = np.random.default_rng(seed)
    plain = [f"{a}{b}" for a in ("red", "old", "small", "open", "wet") for b in ("", "der", "ish", "est")]
    odd = [f"{a}{b}" for a in ("floating", "glass", "frozen", "purple", "upside") for b in ("", "ly", "ish", "most")]
    items = []
    for i in range(n):
        category = ("replace obj", "replace att", "replace rel", "swap obj", "swap att", "add obj", "add att")[i % 7]
        a, b = stream.choice(OBJECTS, 2, replace=False)
        true, other = stream.choice(plain, 2, replace=False)
        telling = category in ("add obj", "add att", "replace att") and stream.random() < 0.7
        false = str(stream.choice(odd)) if telling else other
        captions = [f"a {true} {a} beside a {b}, scene {i}", f"a {false} {a} beside a {b}, scene {i}"]
        order = stream.permutation(2)
        items.append(
            mc(
                i,
                "Which caption fits the picture?",
                [captions[k] for k in order],
                int(order.tolist().index(0)),
                category,
                source=f"image {i}",
            )
        )
    return items


def items_of(name: str) -> list[Item]:
    """The items of a file; ``scienceqa_img``: those of ScienceQA that have an image."""
    if name == "scienceqa_img":
        return [item for item in load("scienceqa_test") if item.category == "IMG"]
    return list(load(name))


def source_of(items: Sequence[Item]) -> Any:
    """The headline grouping: source where there is one."""
    found = grouping(items, "source")
    return found if found.usable else grouping(items, "none")


def cross_validation(
    items: Sequence[Item], settings: ModelSettings, grouped: Any, workers: int = WORKERS, rewards: Rewards | None = None
) -> Diagnosis:
    """The whole of it, from the items."""
    rewards = rewards or rewards_of(items)
    prepared = RfDiagnostic(settings).prepare(items, rewards)
    return diagnose(prepared, items, rewards, np.arange(len(items)), grouped, seeds=SEEDS, runner=in_threads(workers))


def _accuracy(items: Sequence[Item], settings: ModelSettings, grouped: Any) -> float:
    return cross_validation(items, settings, grouped).accuracy


# --- the straightforward pipeline -----------------------------------------------------------------


def straightforward(items: Sequence[Item], trees: int, grouped: Any) -> float:
    """Accuracy of a scikit-learn pipeline on the same folds."""
    rewards, everyone = rewards_of(items), np.arange(len(items))
    scores = []
    for seed in SEEDS:
        fold = deal(items, everyone, grouped, 5, seed)
        for k in range(5):
            for number_kind in (False, True):
                own = np.array([(item.format == "number") == number_kind for item in items])
                train, test = np.flatnonzero(own & (fold != k)), np.flatnonzero(own & (fold == k))
                if len(test):
                    answers = _fitted(items, train, test, trees, seed, number_kind)
                    scores += [rewards.of(int(i), answer) for i, answer in zip(test, answers, strict=True)]
    return float(np.nanmean(scores))


def _fitted(items: Sequence[Item], train: Places, test: Places, trees: int, seed: int, numbers: bool) -> list[str]:
    from scipy.sparse import hstack
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import OneHotEncoder

    texts = [" ".join((item.question, *item.options)) for item in items]
    words, kinds = TfidfVectorizer(ngram_range=(1, 2), min_df=2), OneHotEncoder(handle_unknown="ignore")

    def features(places: Places, fit: bool) -> Any:
        own, categories = [texts[i] for i in places], [[items[i].category] for i in places]
        return hstack(
            [
                (words.fit_transform if fit else words.transform)(own),
                (kinds.fit_transform if fit else kinds.transform)(categories),
            ]
        ).tocsr()

    if not numbers:
        model = RandomForestClassifier(trees, max_depth=20, n_jobs=WORKERS, random_state=seed)
        model.fit(features(train, True), [items[i].golds[0] for i in train])
        return [str(answer) for answer in model.predict(features(test, False))]
    model = RandomForestRegressor(trees, max_depth=20, n_jobs=WORKERS, random_state=seed, max_features=0.33)
    model.fit(features(train, True), np.log1p([float(items[i].golds[0]) for i in train]))
    return [f"{value:.2f}" for value in np.expm1(model.predict(features(test, False)))]


def speed(sets: Sets, settings: ModelSettings | None = None) -> list[str]:
    """Seconds, ratios, stages."""
    settings = settings or ModelSettings()
    failures = []
    for name, items in sets.items():
        if name not in ("vsi_bench", "pope_coco"):
            continue
        grouped = source_of(items)
        cross_validation(items[:200], settings, source_of(items[:200]))  # imports
        ways: dict[str, Callable[[], float]] = {
            "tst_rf": partial(_accuracy, items, settings, grouped),
            TFIDF: partial(straightforward, items, settings.size, grouped),
            FOREST: partial(_accuracy, items, ModelSettings("forest", settings.size), grouped),
        }
        seconds, accuracy = dict.fromkeys(ways, float("inf")), {}
        for way in [*ways, *ways]:
            start = time.perf_counter()
            accuracy[way] = ways[way]()
            seconds[way] = min(seconds[way], time.perf_counter() - start)
        ours, found = seconds["tst_rf"], accuracy["tst_rf"]
        print(f"{name}: {len(items)} items, {settings.size} trees, the faster of two rounds")
        for way in ways:
            print(f"  {way}: {seconds[way]:.1f} s ({seconds[way] / ours:.1f} times), accuracy {accuracy[way]:.3f}")
            if found < accuracy[way] - 0.002:
                failures.append(f"{name}: accuracy {found:.3f}, below {accuracy[way]:.3f}")
            if way != "tst_rf" and accuracy[way] > found - ALIKE and seconds[way] / ours < TIMES:
                failures.append(f"{name}: {seconds[way] / ours:.1f} times as fast as {way}, below {TIMES:g}")
        for stage, spent in stages(items, settings, grouped).items():
            print(f"  one core: {stage}: {spent:.1f} s")
        with_it, without = cost_of_linear(items, settings, grouped)
        print(
            f"  processor: {with_it:.1f} s with the linear model, {without:.1f} s without ({with_it / without:.2f} times)"
        )
        if name == "vsi_bench" and with_it / without > BESIDE:
            failures.append(
                f"{name} takes {with_it / without:.2f} times as long with the linear model, above {BESIDE:g}"
            )
        if name == "vsi_bench" and ours > SECONDS:
            failures.append(f"{name} takes {ours:.1f} s, above {SECONDS:g}")
    return failures


def cost_of_linear(
    items: Sequence[Item], settings: ModelSettings, grouped: Any, rounds: int = 2
) -> tuple[float, float]:
    """Return the processor seconds with and without the linear model, the least of some rounds.

    Other processes do not count in them.
    """
    seconds = dict.fromkeys((True, False), float("inf"))
    for _ in range(rounds):
        for beside in seconds:
            start = time.process_time()
            cross_validation(items, dataclasses.replace(settings, beside=beside), grouped)
            seconds[beside] = min(seconds[beside], time.process_time() - start)
    return seconds[True], seconds[False]


def stages(items: Sequence[Item], settings: ModelSettings, grouped: Any) -> dict[str, float]:
    """Seconds of each stage on one core."""
    spent: Counter[str] = Counter()

    def timed(stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                spent[stage] += time.perf_counter() - start

        return call

    stages: list[tuple[Any, str, str]] = [(OptionTable, "features", "features"), (NumberTable, "features", "features")]
    stages += [(tree_diagnostic, name, "fits") for name in ("fit_right", "fit_number")]
    with contextlib.ExitStack() as replaced:
        for owner, name, stage in stages:
            replaced.enter_context(mock.patch.object(owner, name, timed(stage, getattr(owner, name))))
        start = time.perf_counter()
        cross_validation(items, settings, grouped, workers=1)
        whole = time.perf_counter() - start
    return {**spent, "predictions, scores, baseline": whole - sum(spent.values()), "whole": whole}


# --- pruning ----------------------------------------------------------------------------------------


def pruning(sets: Sets) -> list[str]:
    """Seconds of Iterative Bias Pruning."""
    if "vsi_bench" not in sets:
        return []
    items = [dataclasses.replace(item, key=str(i)) for i, item in enumerate(sets["vsi_bench"])]
    rewards, grouped = rewards_of(items), source_of(items)
    prepared = RfDiagnostic().prepare(items, rewards)
    start = time.perf_counter()
    found = prune(
        items,
        PruneSettings(),
        lambda places, seeds: diagnose(
            prepared, items, rewards, places, grouped, seeds=seeds, runner=in_threads(WORKERS)
        ),
        tell=print,
    )
    seconds = time.perf_counter() - start
    print(f"vsi_bench: {len(found.removed)} of {len(items)} removed in {seconds:.0f} s ({found.stopped})")
    return [f"pruning takes {seconds:.0f} s, above {PRUNE_SECONDS:g}"] if seconds > PRUNE_SECONDS else []


def stops(sets: Sets, docs: int = 1500, seeds: Sequence[int] = SEEDS) -> list[str]:
    """Planted docs that are found and innocent docs that are lost, by the rule that stops."""
    failures = []
    for words in (10, 30, 75):
        for seed in seeds:
            items, told = given_away(docs, docs // 5, words, seed)
            rewards, grouped, seen = rewards_of(items), grouping(items, "none"), []
            prepared = RfDiagnostic(ModelSettings(beside=False)).prepare(items, rewards)

            def diagnosed(
                places: Places, fold_seeds: Sequence[int], known: Any = (items, rewards, grouped, prepared, seen)
            ) -> Diagnosis:
                items, rewards, grouped, prepared, seen = known
                found = diagnose(
                    prepared, items, rewards, places, grouped, seeds=fold_seeds, runner=in_threads(WORKERS), deals=DEALS
                )
                seen.append(against_baseline(found, None)[1])
                return found

            budget = PruneSettings(seed=seed)
            never = prune(items, dataclasses.replace(budget, near_chance=False, over_pruned=False), diagnosed)
            before = next((i for i, p in enumerate(seen) if p >= ALPHA), len(never.rounds))
            planted = [[told[int(key.removeprefix("key"))] for key in done.removed] for done in never.rounds]
            knows = next((i for i, batch in enumerate(planted) if np.mean(batch or [0]) < 0.5), len(planted))
            now = prune(items, budget, diagnosed)
            until = {
                way: [one for batch in planted[:end] for one in batch]
                for way, end in (("before", before), ("who knows", knows))
            }
            ways = {**until, "now": list(told[now.removed])}
            shown = ", ".join(
                f"{way} {sum(gone)} of {told.sum()} found, {len(gone) - sum(gone)} innocent"
                for way, gone in ways.items()
            )
            print(
                f"{words} words, seed {seed}: {shown}; expected by luck {now.innocent or 0:.0f} ({now.stopped})",
                flush=True,
            )
            if sum(ways["now"]) < sum(ways["before"]) - 3:
                failures.append(f"{words} words, seed {seed}: the stop of now finds fewer")
    return failures


BLIND = {
    "as assumed": {},
    "a letter bias": {"bias": np.array([0.7, 0.1, 0.1, 0.1])},
    "copies": {},
    "chance alone": {"share": 0.0},
}
"""Worlds of blind answers."""


def blind(sets: Sets, docs: int = 1000, seeds: int = 20) -> list[str]:
    """Print, as means over seeds, how well ``prune --blind`` does on planted answers.

    Printed are the known and the innocent docs that it removes, and the innocent docs that it expects.
    """
    failures = []
    for name, world in BLIND.items():
        knows = (0.9,) if name == "copies" else (0.0, 0.0, 0.9, 0.6, 0.4)
        rows: dict[str, list[tuple[float, ...]]] = defaultdict(list)
        for seed in range(seeds):
            gold, truth, answers = blind_answers(docs, knows, seed=seed, **world)
            answers = np.tile(answers, (5, 1)) if name == "copies" else answers
            right = (answers == gold).astype(float)
            alike, rights = [0] * docs, [{one} for one in gold.tolist()]
            own = np.array([guess_rates(row.tolist(), rights, alike, [4] * docs) for row in answers])
            ways = {
                "ours": known(right, own).posterior,
                "any": right.any(axis=0).astype(float),
                "1 / options": known(right, own * 0 + 0.25).posterior,
            }
            with mock.patch.object(known_docs, "_dependence", return_value=0.0):
                ways["no test of dependence"] = known(right, own).posterior
            for way, posterior in ways.items():
                goes = posterior > 0.5
                rows[way].append((truth.sum(), truth[goes].sum(), (goes & ~truth).sum(), (1 - posterior[goes]).sum()))
        for way, counted in rows.items():
            planted, found, innocent, expected = np.mean(counted, axis=0)
            told = f"{found:.0f} of {planted:.0f} known found, {innocent:.1f} innocent, {expected:.1f} expected"
            print(f"{name}, {way}: {told}", flush=True)
            if way == "ours" and abs(innocent - expected) > 10 + 0.25 * innocent:
                failures.append(f"{name}: {innocent:.1f} innocent docs, and {expected:.1f} are expected")
    return failures


# --- memory -----------------------------------------------------------------------------------------


def made_up(kind: str, count: int) -> list[Item]:
    """Questions of three slots, in 20 categories."""
    stream = np.random.default_rng(0)
    things = [f"thing{i}" for i in range(2000)]
    out = []
    for i in range(count):
        a, b, c = (things[j] for j in stream.integers(0, len(things), 3))
        text, category = f"How far is the {a} from the {b}, seen from the {c}?", f"kind {i % 20}"
        if kind == "options":
            options = tuple(things[j] for j in stream.integers(0, len(things), 4))
            out.append(mc(i, text, options, int(stream.integers(0, 4)), category, source=i // 10))
        else:
            out.append(number(i, text, round(float(stream.lognormal()), 2), category, source=i // 10))
    return out


def _peak(kind: str, count: int) -> tuple[float, float]:
    items = made_up(kind, count)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rewards = rewards_of(items)
    start = time.perf_counter()
    prepared = RfDiagnostic().prepare(items, rewards)
    found = diagnose(
        prepared, items, rewards, np.arange(count), grouping(items, "source"), seeds=(0,), runner=in_threads(8)
    )
    assert np.isfinite(found.scores).all(), "every item has a score"
    return before, time.perf_counter() - start


def memory(sets: Sets, count: int = 100_000, tiny: bool = False) -> list[str]:
    """Peak resident memory in GiB, with 8 threads."""
    failures = []
    for kind in ("options", "numbers"):
        (before, seconds), _, _, mib = apart(_peak, kind, count, tiny=tiny)
        peak = mib / 1024
        print(
            f"{count} items, {kind}: peak {peak:.1f} GiB (the items themselves {before:.1f}), {seconds:.0f} s for one cross-validation"
        )
        failures += [f"{kind}: peak {peak:.1f} GiB, above {MEMORY:g}"] if peak > MEMORY else []
    return failures


# --- what is found ----------------------------------------------------------------------------------


def table(sets: Sets, settings: ModelSettings | None = None) -> list[str]:
    """Accuracy by grouping, in percent."""
    for name, items in sets.items():
        for by in ("none", "source", "text"):
            grouped = grouping(items, by)
            if not grouped.usable:
                print(f"{name}, {by}: {grouped.reason}")
                continue
            start = time.perf_counter()
            found = cross_validation(items, settings or ModelSettings(), grouped)
            seconds = time.perf_counter() - start
            print(f"{name}, {by}: {_told(items, found)}, {seconds:.1f} s")
            if by != "text":
                _by_category(items, found)
    return []


def _told(items: Sequence[Item], found: Diagnosis) -> str:
    scores = found.scores.mean(axis=0)
    labels = [(i,) if item.source is None else item.source for i, item in enumerate(items)]
    interval = intervals.mean(scores, cluster_numbers(labels), ends=intervals.ends_of(scores))
    sd = found.scores.mean(axis=1).std(ddof=1)
    return (
        f"chance {100 * np.nanmean(found.chance):.1f}, majority {100 * np.nanmean(found.baseline):.1f}, "
        f"TsT {100 * found.accuracy:.1f} [{100 * (interval.low or 0):.1f}, {100 * (interval.high or 0):.1f}], SD {100 * sd:.2f}"
    )


def _by_category(items: Sequence[Item], found: Diagnosis) -> None:
    groups: dict[str, list[int]] = defaultdict(list)
    for i, item in enumerate(items):
        groups[item.category].append(i)
    for category, own in sorted(groups.items()) if 1 < len(groups) <= 20 else []:
        accuracy, typical = 100 * np.nanmean(found.scores[:, own]), 100 * np.nanmean(found.baseline[:, own])
        print(f"    {category}: {len(own)} items, TsT {accuracy:.1f}, majority {typical:.1f}")


def shuffles(sets: Sets, count: int = 20) -> list[str]:
    """TsT accuracy on golds that mean nothing, less the frequency baseline and less chance."""
    for name, items in sets.items():
        grouped, rewards, rows = source_of(items), rewards_of(items), []
        for seed in range(count):
            shuffled = shuffle_golds(items, seed)
            again = rewards.regold(shuffled)
            prepared = RfDiagnostic().prepare(shuffled, again)
            found = diagnose(
                prepared, shuffled, again, np.arange(len(items)), grouped, seeds=(0,), runner=in_threads(WORKERS)
            )
            rows.append([found.accuracy, np.nanmean(found.baseline), np.nanmean(found.chance)])
        means, errors = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(count)
        less = np.array(rows)[:, :1] - np.array(rows)[:, 1:]
        apart = [f"{100 * d.mean():+.2f} ({d.mean() / (d.std(ddof=1) / np.sqrt(count)):+.1f} SE)" for d in less.T]
        told = ", ".join(
            f"{what} {100 * m:.2f} (SE {100 * e:.2f})"
            for what, m, e in zip(("TsT", "baseline", "chance"), means, errors, strict=True)
        )
        print(f"{name}, {count} shuffles: {told}; TsT less baseline {apart[0]}, less chance {apart[1]}", flush=True)
    return []


def rivals(sets: Sets, made: Sets | None = None) -> list[str]:
    """Ours less each rival, paired by doc, with the standard error of the difference; sources are resampled whole."""
    made = {"AMBER-like": weak_yesno(3000)[0], "SugarCrepe-like": two_captions(1500)[0]} if made is None else made
    failures = []
    for name, items in (sets | made).items():
        grouped = source_of(items)
        ours = cross_validation(items, ModelSettings(), grouped).scores[0]
        print(f"{name}: ours {100 * np.nanmean(ours):.1f}", flush=True)
        for rival in RIVALS:
            theirs = rival_scores(items, rival, grouped, SEEDS[0])
            less, error = _difference(items, ours, theirs)
            print(
                f"    {rival}: {100 * np.nanmean(theirs):.1f}, ours less this {100 * less:+.1f} (SE {100 * error:.1f})",
                flush=True,
            )
            failures += [f"{name}: {rival} is {-less / error:.1f} SE better"] if less < -error else []
    return failures


def _difference(items: Sequence[Item], ours: Any, theirs: Any) -> tuple[float, float]:
    """The mean difference of docs' scores, and its standard error, with whole sources as units."""
    labels = cluster_numbers([(i,) if item.source is None else item.source for i, item in enumerate(items)])
    sums = np.bincount(labels, np.nan_to_num(ours - theirs))
    return float(np.nanmean(ours - theirs)), float(np.sqrt(((sums - sums.mean()) ** 2).sum()) / len(items))


# --- what is claimed ----------------------------------------------------------------------------------


def claims(sets: Sets) -> list[str]:
    """Print what is said of made-up sets, before and now.

    No question of theirs gives its answer away, so to claim a shortcut is wrong.
    """
    sets = {
        "balanced captions": balanced(300),
        "balanced captions, each image with two": balanced(300, chained=True),
        "VSR-like": vsr_like(300),
        "gold is A in 70 %": constant_gold(600),
        "a category that names the gold": named_by_category(300),
        "a category with every gold alike": named_by_category(300, alike=True),
        "duplicates with shuffled options": duplicates(300, 100),
        "NLVR, by image": [dataclasses.replace(item, source=i) for i, item in enumerate(items_of("nlvr"))],
    }
    for name, items in sets.items():
        rewards = rewards_of(items)
        kept, why = headline(Copies(items), rewards, 1.0, 5)
        groups = {one.name: one for one in (kept, source_of(items), grouping(items, "text")) if one.usable}
        settings = ModelSettings()
        found = {by: cross_validation(items, settings, one, rewards=rewards) for by, one in groups.items()}
        early = found[source_of(items).name]
        p = sign_flip_p((early.scores - early.baseline).mean(axis=0), cluster_of(items))
        null: dict[str, Any] = {}
        if has_many_categories(items):
            null = {
                "shuffled": to_json(
                    shuffled_null(
                        RfDiagnostic(settings), items, rewards, kept, found[kept.name], k=5, fold_seed=SEEDS[0]
                    )
                )
            }
        details = details_of(items, found, kept.name, unusable=why, **null)
        print(f"{name}: before: {early.accuracy:.3f} against {np.nanmean(early.baseline):.3f}, p = {p:.4f}")
        for sentence in text_only.notes(convert(details, TstDetails)):
            print(f"    {sentence}")
    return judged_prunings()


def judged_prunings(docs: int = 600) -> list[str]:
    """The verdict on a pruning of captions whose false words are odd in some categories, by two judges."""
    items = sugarcrepe_like(docs)
    by, settings = grouping(items, "none"), PruneSettings()

    def diagnosed(items: Sequence[Item], model: ModelSettings) -> Diagnose:
        rewards = rewards_of(items)
        prepared = RfDiagnostic(model).prepare(items, rewards)
        return lambda places, seeds: diagnose(
            prepared, items, rewards, places, by, seeds=seeds, runner=in_threads(WORKERS)
        )

    trees = ModelSettings(beside=False)
    found = prune(items, settings, diagnosed(items, trees))
    print(f"SugarCrepe-like: {len(found.removed)} of {docs} removed ({found.stopped})")
    for name, model in {
        "before, a forest on the same features": ModelSettings("forest", 50, beside=False),
        "now": ModelSettings("linear"),
    }.items():

        def world(seed: int, model: ModelSettings = model) -> tuple[Places, Diagnose]:
            shuffled = shuffle_golds(items, seed)
            alike = dataclasses.replace(
                settings, budget=float(len(found.removed)), near_chance=False, over_pruned=False, seed=seed
            )
            return prune(shuffled, alike, diagnosed(shuffled, trees)).removed, diagnosed(shuffled, model)

        print(f"    judge {name}: {judge(items, found.removed, diagnosed(items, model), world).sentence}", flush=True)
    return []


def random_golds(shape: str, seed: int, docs: int = 600) -> list[Item]:
    """Questions whose golds are drawn at random: options in 18 categories, yes and no, four rotations of each question, or pairs of paraphrases."""
    if shape == "rotations":
        return copied(docs // 4, 4, rotated=True, seed=seed)
    if shape == "paraphrases":
        return paraphrases(docs // 2, opposite=bool(seed % 2), seed=seed)
    stream, words = np.random.default_rng(seed), vocabulary(120, np.random.default_rng(seed))
    items = []
    for i in range(docs):
        asked = f"What of the {words[stream.integers(120)]} is near the {words[stream.integers(120)]}?"
        if shape == "options":
            items.append(
                mc(
                    i,
                    asked,
                    stream.choice(words, 4, replace=False).tolist(),
                    int(stream.integers(4)),
                    f"category {i % 18}",
                )
            )
        else:
            items.append(yesno(i, asked, ("yes", "no")[stream.integers(2)], f"category {i % 5}"))
    return items


def verdict_of(items: Sequence[Item], seeds: Sequence[int] = SEEDS) -> tuple[str, float]:
    """Return the verdict's state and the score of a whole test as a run does it, shuffled golds included."""
    rewards, diagnostic, everyone = rewards_of(items), RfDiagnostic(), np.arange(len(items))
    kept, why = headline(Copies(items), rewards, 1.0, 5)
    prepared = diagnostic.prepare(items, rewards)
    groups = {one.name: one for one in (kept, grouping(items, "text")) if one.usable}
    found = {by: diagnose(prepared, items, rewards, everyone, one, seeds=seeds) for by, one in groups.items()}
    null: dict[str, Any] = {}

    def shuffled() -> Null:
        made = shuffled_null(diagnostic, items, rewards, kept, found[kept.name], k=5, fold_seed=SEEDS[0])
        null["shuffled"] = to_json(made)
        return made

    p_beyond_kinds(found[kept.name], cluster_of(items), has_many_categories(items), shuffled)
    details = details_of(items, found, kept.name, unusable=why, **null)
    return text_only.shortcut(convert(details, TstDetails)).state, found[kept.name].accuracy


def meaningless(sets: Sets, seeds: int = 50, docs: int = 600) -> list[str]:
    """Print how often a shortcut is claimed of random golds."""
    claimed, count = 0, 0
    for shape in ("options", "yes and no", "rotations", "paraphrases"):
        states: Counter[str] = Counter()
        for seed in range(seeds):
            states[verdict_of(random_golds(shape, seed, docs))[0]] += 1
        claimed, count = claimed + states["learned"], count + seeds
        print(f"{shape}, {seeds} sets of {docs} docs: {dict(states)}", flush=True)
    print(f"claimed of {claimed} of {count} sets")
    return [f"a shortcut is claimed of {claimed} of {count} sets of random golds"] if claimed > 0.025 * count else []


def open_numbers(sets: Sets, docs: int = 1500) -> list[str]:
    """Print the processor seconds of a test of long questions whose answers are whole numbers, right or wrong, in 16 categories.

    Then the score on open questions in the manner of GQA.
    """
    failures = []
    for told in (0.0, 0.2):
        stream, words = np.random.default_rng(0), vocabulary(600, np.random.default_rng(0))
        often = np.arange(1, 60) ** -0.6
        items = []
        for i in range(docs):
            gold = str(stream.choice(59, p=often / often.sum()) + 1)
            seen = gold if stream.random() < told else stream.integers(2, 99)
            asked = f"In the figure {' '.join(stream.choice(words, int(stream.integers(15, 60))))}, how many {seen} are there?"
            items.append(dataclasses.replace(number(i, asked, gold, f"subject {i % 16}"), format="open"))
        start = time.process_time()
        state, score = verdict_of(items, range(5))
        spent = time.process_time() - start
        print(
            f"{docs} open numbers, the gold told in {told:.0%}: {state}, {score:.3f}, {spent:.0f} s of processor time",
            flush=True,
        )
        failures += [f"open numbers take {spent:.0f} s of processor time, above {OPEN:g}"] if spent > OPEN else []
    for categories in (False, True):
        items = gqa_like(docs * 4 // 3, categories=categories)
        found = cross_validation(items, ModelSettings(), grouping(items, "none"))
        named = "categories named" if categories else "no categories"
        print(f"{len(items)} questions in the manner of GQA, {named}: {_told(items, found)}", flush=True)
    return failures


PARTS = {
    "meaningless": meaningless,
    "open": open_numbers,
    "speed": speed,
    "prune": pruning,
    "memory": memory,
    "table": table,
    "rivals": rivals,
    "shuffles": shuffles,
    "stops": stops,
    "blind": blind,
    "claims": claims,
}


def main() -> int:
    """Run the parts; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[*PARTS], default=["speed", "prune", "memory"])
    parser.add_argument("--names", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--docs", type=int, help="only the first so many of each benchmark")
    args = parse(
        parser,
        only=["speed", "prune", "memory", "table", "rivals", "shuffles", "stops", "blind"],
        names=["vsi_bench"],
        docs=40,
    )
    parts = dict(PARTS)
    if args.tiny:
        parts |= {
            "speed": partial(speed, settings=ModelSettings(trees=5)),
            "memory": partial(memory, count=60, tiny=True),
            "table": partial(table, settings=ModelSettings(trees=5)),
            "shuffles": partial(shuffles, count=2),
            "meaningless": partial(meaningless, seeds=1, docs=60),
            "open": partial(open_numbers, docs=60),
            "stops": partial(stops, docs=100, seeds=(0,)),
            "blind": partial(blind, docs=60, seeds=1),
            "rivals": partial(rivals, made={}),
        }
    sets = (
        {}
        if {*args.only} <= {"memory", "stops", "blind"}
        else {name: items_of(name)[: args.docs] for name in args.names}
    )
    failures = [line for part in args.only for line in parts[part](sets)]
    for line in failures:
        print(f"missed: {line}", file=sys.stderr)
    return int(bool(failures) and not args.tiny)


if __name__ == "__main__":
    sys.exit(main())
