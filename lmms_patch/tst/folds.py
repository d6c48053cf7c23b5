"""Folds of a test set: stratified by gold and category, no group in two folds. Pure.

Items that show the same image, scene or video share more than a question, so random folds let a diagnostic recognise
the *source*. That difference is source leakage, not a language shortcut. Items of the same text on different sources
are grouped only where their golds differ (``headline``): else their regularity is what the test measures. Text-grouped
folds say how much of it is repeated texts.

Source: TsT paper (https://arxiv.org/abs/2511.04655), 3.1; the groupings are ours.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from lmms_patch.ask.answers import as_number, same_answer
from lmms_patch.errors import OptionError
from lmms_patch.stats.resample import generator
from lmms_patch.tst.copies import FEW_COPIES, Copies, gold_of, near_texts, text_of
from lmms_patch.tst.items import AnswerScores, Item, Places

GROUPINGS = ("none", "source", "text")
"""What folds keep together, one cross-validation each: nothing, a source, a text. A report shows these three beside each other."""
ALLOWED = (*GROUPINGS, "joined")
LARGEST_FOLD = 1.5
"""The largest group that may be kept in one fold, in folds of average size."""
_AGREEING = 0.9
"""The least share of docs with copies whose copies all have the same gold, where copies are taken for one item."""
FEW_FOLDS, MANY_FOLDS = 2, 50
_BINS = 10
"""Bins of numeric golds, for stratification."""


@dataclass(frozen=True)
class Grouping:
    """Groups of items to keep in a fold together.

    Attributes:
        name: one of ``ALLOWED``.
        groups: the group number of each item, shape (n,), from 0.
        usable: whether it groups anything: False where the key is unknown, the same for all, or different for all.
        reason: why it is not usable; empty otherwise.
    """

    name: str
    groups: Places
    usable: bool
    reason: str = ""


def grouping(items: Sequence[Item], name: str) -> Grouping:
    """Group items by name of the grouping.

    ``none``: every item alone, but copies that are taken for one item (``_one_item``) together. ``source``: items of
    one source; items without a source alone. ``text``: copies and near copies (``copies.near_texts``). ``joined``:
    items that a chain of shared sources and texts connects.

    Raises:
        OptionError: the name is unknown.
    """
    if name not in ALLOWED:
        raise OptionError(f"grouping {name!r} is not known; allowed: {', '.join(ALLOWED)}")
    if name == "none":
        return Grouping(name, _one_item(items), True)
    if name == "joined":
        return _joined(items)
    keys: Sequence[Hashable] = [item.source for item in items] if name == "source" else near_texts(items)
    # A doc without a key is a group alone; ``repr`` keeps 1 and "1" apart.
    own = [("own", i) if key is None else ("shared", repr(key)) for i, key in enumerate(keys)]
    numbers = {key: i for i, key in enumerate(dict.fromkeys(own))}
    groups = np.array([numbers[key] for key in own], np.intp)
    reason = _why_no_grouping(name, keys, len(numbers))
    return Grouping(name, groups, not reason, reason)


def _one_item(items: Sequence[Item]) -> Places:
    """Return a group number for each item: copies with the same gold and without a source share a number, as one item.

    Where more than one in ten of the docs with copies have a copy with another gold, copies are other items that ask
    the same, and all stay apart.
    """
    texts, golds = [text_of(item) for item in items], defaultdict(set)
    times = Counter(texts)
    for item, text in zip(items, texts, strict=True):
        # A doc with a source is never joined with a copy: its image may be another.
        golds[text].add(None if item.source is not None else gold_of(item))
    twice = [text for text in texts if times[text] > 1]
    same = {
        text
        for text in twice
        if len(golds[text]) == 1 and None not in golds[text] and times[text] * FEW_COPIES <= len(items)
    }
    first = (
        {text: i for i, text in enumerate(texts)}
        if sum(text in same for text in twice) >= _AGREEING * len(twice)
        else {}
    )
    return np.unique(
        [first[text] if first and text in same else i for i, text in enumerate(texts)], return_inverse=True
    )[1]


def _joined(items: Sequence[Item]) -> Grouping:
    """Group by connected components: items are connected by a shared source or a shared text."""
    parts = [grouping(items, name).groups for name in ("source", "text")]
    if not items:
        return Grouping("joined", parts[0], False, "no grouping: there are no docs")
    count = len(items)
    # Sources and texts are the nodes, docs the edges: docs in a chain of either end in the same component.
    sources, texts = parts[0], parts[1] + parts[0].max() + 1
    nodes = int(texts.max()) + 1
    _, component = connected_components(
        coo_array((np.ones(count), (sources, texts)), shape=(nodes, nodes)), directed=False
    )
    numbers = {label: i for i, label in enumerate(dict.fromkeys(component[sources].tolist()))}
    groups = np.array([numbers[label] for label in component[sources].tolist()], np.intp)
    reason = _why_no_grouping("source or text", range(count), len(numbers))
    return Grouping("joined", groups, not reason, reason)


def headline(
    copies: Copies, rewards: AnswerScores, full_marks: float, k: int, wanted: str = "auto"
) -> tuple[Grouping, dict[str, str]]:
    """Choose the grouping for the headline number.

    Source, where one is known. Where copies have different golds, source and text together, or the text alone where no
    source groups anything: else a training copy gives a held-out answer away, often in reverse (``copies``). There are
    two exceptions. Where copies have the same answer more often than other docs of their category, repeated questions
    have a prior, which is a shortcut of the language, and which folds by text would hide. And where a chain of shared
    sources and texts connects more docs than a fold can hold, no such folds exist.

    Args:
        copies: all items.
        rewards: the native scores, by which numbers are compared.
        full_marks: what a gold scores.
        k: number of folds.
        wanted: ``auto``, or the name of a grouping.

    Returns:
        The grouping, and by name why a grouping was not taken.

    Raises:
        OptionError: the wanted grouping groups nothing.
    """
    items = copies.items
    if wanted != "auto":
        groups = grouping(items, wanted)
        if not groups.usable:
            raise OptionError(f"grouping {wanted}: {groups.reason}; allowed: auto, none")
        return groups, {}
    source = grouping(items, "source")
    first = source if source.usable else grouping(items, "none")
    if not copies.conflict:
        return first, {}
    together = grouping(items, "joined" if source.usable else "text")
    prior = copies.prior(rewards, full_marks)
    if prior is not None:
        return first, {
            "joined": f"not for the headline: two copies of a question have the same answer in {100 * prior[0]:.0f} % of cases, two docs of a "
            f"category in {100 * prior[1]:.0f} %; so repeated questions have a prior, which folds by text would hide"
        }
    reason = _too_large(together, k) or together.reason
    return (first, {"joined": reason}) if reason else (together, {})


def _too_large(together: Grouping, k: int) -> str:
    """Say why groups cannot be dealt to k folds of similar size; empty where dealing works."""
    sizes, count = np.bincount(together.groups), len(together.groups)
    why = "copies with different golds cannot be kept in one fold"
    if sizes.max() > LARGEST_FOLD * count / k:
        shared = "one text is shared by" if together.name == "text" else "a chain of shared sources and texts connects"
        return f"{why}: {shared} {sizes.max()} of {count} docs, more than a fold can hold"
    return f"{why}: there are {len(sizes)} groups of docs for {k} folds" if len(sizes) < k else ""


def _why_no_grouping(name: str, keys: Sequence[Hashable], groups: int) -> str:
    if all(key is None for key in keys):
        return "no grouping: no source is known (option 'group' names the field of the image, scene or video)"
    if groups == 1:
        return f"no grouping: the {name} is the same for all docs"
    if groups == len(keys):
        return f"no grouping: the {name} is different for every doc"
    return ""


def folds(items: Sequence[Item], k: int, groups: Places, seed: int) -> Places:
    """Return the fold of each item, 0..k-1.

    Whole groups are dealt, the largest first and those of one size in random order. Each goes to the fold where its
    golds and categories are scarcest (least sum of squares of the class counts, each class weighted by its size). So a
    class smaller than k is in fewer folds, and folds differ in size only as much as groups force them to.

    Args:
        items: n items.
        k: number of folds.
        groups: shape (n,), from 0 (``Grouping.groups``).
        seed: of the random order.

    Raises:
        OptionError: k is out of range, or there are fewer groups than folds.
    """
    count = int(groups.max()) + 1 if len(groups) else 0
    if not FEW_FOLDS <= k <= MANY_FOLDS:
        raise OptionError(f"{k} folds are not possible; allowed: {FEW_FOLDS} to {MANY_FOLDS}; type '..._tst5'")
    if count < k:
        what = "docs" if count == len(items) else "groups of docs"
        raise OptionError(
            f"{count} {what} cannot be dealt to {k} folds; use fewer folds, or group by a field with more values"
        )
    stream = generator(seed)
    classes, groups_of_size = classes_of(items), np.bincount(groups, minlength=count)
    order = np.argsort(groups, kind="stable")
    members = np.split(classes[order], np.cumsum(groups_of_size)[:-1])
    shuffled = stream.permutation(count)
    # Large groups first, while every fold has room; equal sizes in random order.
    dealt = shuffled[np.argsort(-groups_of_size[shuffled], kind="stable")]
    return _deal(members, dealt, np.bincount(classes), k, stream)[groups]


def classes_of(items: Sequence[Item]) -> Places:
    """Return the stratum of each item: category, format and gold (numbers in ten bins of their category)."""
    numbers: dict[str, list[float]] = {}
    for item in items:
        value = as_number(item.golds[0]) if item.format == "number" and item.golds else None
        if value is not None:
            numbers.setdefault(item.category, []).append(value)
    # Numbers are stratified by quantile bins within their category.
    edges = {category: np.quantile(values, np.linspace(0, 1, _BINS + 1)[1:-1]) for category, values in numbers.items()}
    codes: dict[Any, int] = {}
    out = np.empty(len(items), np.intp)
    for i, item in enumerate(items):
        gold: Any = item.golds[0] if item.golds else None
        if item.format == "number" and gold is not None and (value := as_number(gold)) is not None:
            gold = int(np.searchsorted(edges[item.category], value))
        elif gold is not None:
            # Spellings of an answer count as the same class.
            gold = same_answer(gold)
        out[i] = codes.setdefault((item.category, item.format, gold), len(codes))
    return out


def _deal(members: Sequence[Places], order: Places, sizes: Places, k: int, stream: np.random.Generator) -> Places:
    """Return the fold of each group; among equally good folds the fold with the fewest items, then a random choice."""
    counts = np.zeros((k, len(sizes)))
    totals = np.zeros(k)
    out = np.zeros(len(members), np.intp)
    for group in order:
        classes, own = np.unique(members[group], return_counts=True)
        # adding `own` to a fold changes the sum of squares by own² + 2·own·count; own² is the same for all folds
        # the last part only decides between folds that are equally good for the classes: the smaller one
        cost = ((counts[:, classes] * own) / sizes[classes]).sum(axis=1) + totals / max(1, totals.sum()) * 1e-6
        # rounded, so that float error decides no tie
        fold = int(np.lexsort((stream.random(k), totals, np.round(cost, 9)))[0])
        counts[fold, classes] += own
        totals[fold] += len(members[group])
        out[group] = fold
    return out


def check_folds(fold: Places, groups: Places) -> None:
    """Check whether every group lies in a single fold.

    Raises:
        AssertionError: a group is; a defect of this program, never a user's mistake.
    """
    first = np.full(int(groups.max()) + 1 if len(groups) else 0, -1)
    first[groups] = fold
    assert (first[groups] == fold).all(), "a group is in two folds"
