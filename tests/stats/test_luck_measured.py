"""The corrected index from the answers on wrong images: against hand computations, and draws made by their definition."""

import dataclasses

import numpy as np
import pytest

from lmms_patch.stats.forms import MEAN
from lmms_patch.stats.intervals import few_clusters
from lmms_patch.stats.luck import Habits, Measured, measured
from tests.sizes import size

CORNERS = np.array([[0.0, 1.0], [1.0, 1.0]])


def rows(scores):
    """Rows of the mean: a score, and a one."""
    return np.column_stack([np.asarray(scores, float), np.ones(len(scores))])


def right(count, of):
    return np.repeat([1.0, 0.0], [count, of - count])


def world(
    full,
    best,
    null_full,
    null_best,
    *,
    asked=None,
    classes=None,
    labels=("mc4",),
    corners=None,
    ceiling=1.0,
    habits=None,
):
    n = len(full)
    every = np.ones(n, bool)
    return Measured(
        rows(full), rows(best), rows(np.full(n, ceiling)), rows(null_full), rows(null_best), every if asked is None else asked,
        np.zeros(n, np.intp) if classes is None else classes, labels, corners, habits=habits,
    )  # fmt: skip


def test_by_hand():
    """200 docs, 100 of them asked on a wrong image.

    FIP 0.8 and MPP 0.7 over all docs; 0.25 and 0.5 over the asked: kappa 0.55 / 0.75 = 11/15 and.
    0.2 / 0.5 = 2/5, and the index 1 - 6/11.
    """
    asked = np.arange(200) % 2 == 0
    null_full, null_best = (
        np.full(200, 9.0),
        np.full(200, 9.0),
    )  # what stands where a doc was not asked counts for nothing
    null_full[asked], null_best[asked] = right(25, 100), right(50, 100)
    found = measured(world(right(160, 200), right(140, 200), null_full, null_best, asked=asked), MEAN.value, draws=400)
    assert (found.kappa_full, found.kappa_best) == pytest.approx((11 / 15, 2 / 5))
    assert found.estimate.value == pytest.approx(5 / 11)
    assert (found.fip0, found.mpp0) == pytest.approx((0.25, 0.5))
    assert (found.asked, found.saturated_docs) == (100, 0)
    assert (found.classes[0].docs, found.classes[0].state, found.classes[0].ceiling) == (200, "used", 1.0)
    assert found.estimate.low < 5 / 11 < found.estimate.high


def test_two_answer_classes_count_by_their_docs():
    """120 docs: FIP 0.9, MPP 0.6, null 0.25 and 0.4: 13/15 and 1/3. 80 docs: FIP 0.8, MPP 0.9, null 0.5 and 0.55: 3/5 and 7/9."""
    sizes = (120, 80)
    parts = [np.concatenate([right(round(share * n), n) for share, n in zip(shares, sizes, strict=True)])
             for shares in ((0.9, 0.8), (0.6, 0.9), (0.25, 0.5), (0.4, 0.55))]  # fmt: skip
    found = measured(world(*parts, classes=np.repeat([0, 1], sizes), labels=("mc4", "yesno")), MEAN.value, draws=400)
    full, best = 0.6 * 13 / 15 + 0.4 * 3 / 5, 0.6 / 3 + 0.4 * 7 / 9
    assert (found.kappa_full, found.kappa_best) == pytest.approx((full, best))
    assert found.estimate.value == pytest.approx(1 - best / full)
    assert [(one.label, one.docs) for one in found.classes] == [("mc4", 120), ("yesno", 80)]
    assert (found.fip0, found.mpp0) == pytest.approx((0.35, 0.46))


@pytest.mark.parametrize("n", [12, 60])
def test_where_nothing_varies_the_interval_is_that_of_the_prior(n):
    """Docs that are all right on the full image and on the best cell, none on a wrong one: the index is 0.

    Each draw adds Gamma(1/2) docs at the four corners of (full, best), and as many at those of (full, best) of the
    wrong image. Drawn here by that definition, from another generator.
    """
    draws = 40_000
    given = (right(n, n), right(n, n), right(0, n), right(0, n))
    found = measured(world(*given, corners=CORNERS), MEAN.value, draws=draws).estimate
    stream = np.random.default_rng(99)
    weight = stream.gamma(n, size=draws)
    seen, lost = stream.gamma(0.5, size=(2, 4, draws))  # corners 00, 01, 10, 11 of (full, best)
    of_seen, of_lost = weight + seen.sum(axis=0), weight + lost.sum(axis=0)
    fip, mpp = (weight + seen[2] + seen[3]) / of_seen, (weight + seen[1] + seen[3]) / of_seen
    fip0, mpp0 = (lost[2] + lost[3]) / of_lost, (lost[1] + lost[3]) / of_lost
    drawn = 1 - ((mpp - mpp0) / (1 - mpp0)) / ((fip - fip0) / (1 - fip0))
    assert found.value == 0
    factor = few_clusters(n)  # 12 docs are few: the interval is wider than its draws
    assert (found.low, found.high) == pytest.approx(tuple(factor * np.quantile(drawn, [0.025, 0.975])), rel=0.05)
    assert found.se == pytest.approx(drawn.std(ddof=1), rel=0.05)
    bare = measured(world(*given), MEAN.value, draws=400).estimate
    assert (bare.low, bare.high) == (None, None), "without a prior no draw differs"


def test_classes_share_the_prior_by_their_docs():
    """Three classes of 60, 60 and 120 docs alike: one prior in all, so the interval is as wide as that of one class of 240."""
    n = 240
    given = (right(n, n), right(n, n), right(0, n), right(0, n))
    one = measured(world(*given, corners=CORNERS), MEAN.value, draws=20_000).estimate
    classes = np.repeat([0, 1, 2], [60, 60, 120])
    three = measured(
        world(*given, classes=classes, labels=("a", "b", "c"), corners=CORNERS), MEAN.value, draws=20_000
    ).estimate
    assert three.high - three.low == pytest.approx(one.high - one.low, rel=0.15)


# --- answer classes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "labels"),
    [
        ((50, 60, 70), ["a", "b", "c"]),
        ((49, 60, 70), ["b", "c", "other"]),
        ((49, 20, 70), ["c", "other"]),
        ((49, 20, 30), ["all"]),
    ],
)
def test_classes_of_few_asked_docs_are_one(sizes, labels):
    n = sum(sizes)
    full = right(round(0.9 * n), n)
    found = measured(
        world(full, full, right(0, n), right(0, n), classes=np.repeat([0, 1, 2], sizes), labels=("a", "b", "c")),
        MEAN.value,
        draws=200,
    )
    assert [one.label for one in found.classes] == labels
    assert sum(one.docs for one in found.classes) == n


# --- where there is no index ----------------------------------------------------------------------------


def of_shares(fip, mpp, fip0, mpp0, n=200):
    return measured(world(*(right(round(share * n), n) for share in (fip, mpp, fip0, mpp0))), MEAN.value, draws=400)


@pytest.mark.parametrize(
    ("shares", "state", "says"),
    [
        (
            (0.9, 0.95, 0.5, 1.0),
            "saturated",
            "luck saturates: the best cell of a wrong picture is nearly always right in 200 of 200 docs",
        ),
        (
            (0.9, 0.95, 0.5, 0.975),
            "saturated",
            "luck saturates",
        ),  # 0.025 is left: under 3 standard errors, √(0.025 · 0.975 / 200), of the difference
        (
            (0.99, 0.95, 0.985, 0.3),
            "no variety",
            "a wrong picture is nearly always answered rightly in 200 of 200 docs",
        ),
        ((0.5, 0.6, 0.5, 0.3), "used", "no signal: FIP is not above what wrong pictures score"),
    ],
)
def test_no_index_without_a_reason(shares, state, says):
    found = of_shares(*shares)
    assert found.estimate.value is None
    assert found.estimate.reason.startswith(says)
    assert found.classes[0].state == state
    assert found.saturated_docs == (200 if state == "saturated" else 0)
    assert found.asked == 200


def test_a_best_cell_that_wins_as_often_on_a_wrong_picture_leaves_no_doubt():
    """The same 180 of 200 docs are right on the best cell of the right and of the wrong image: what differs is sure, so 0.1 of the scale is enough."""
    found = of_shares(0.9, 0.9, 0.5, 0.9)
    assert found.classes[0].state == "used"
    assert found.estimate.value == 1


def test_a_class_that_is_most_docs_may_not_leave():
    """140 of 200 docs are always right on their best cell of a wrong image.

    Of the other 60 alone there would be an index.
    """
    shares = ((0.9, 0.8), (0.9, 0.7), (0.5, 0.1), (1.0, 0.2))
    parts = [
        np.concatenate([right(round(share * n), n) for share, n in zip(each, (140, 60), strict=True)])
        for each in shares
    ]
    found = measured(
        world(*parts, classes=(np.arange(200) >= 140).astype(np.intp), labels=("open", "mc4")), MEAN.value, draws=400
    )
    assert found.estimate.value is None
    assert found.estimate.reason.endswith("in 140 of 200 docs")


def test_a_class_that_nobody_asked_on_wrong_pictures_is_docs_too():
    """300 of 500 docs are of a class without wrong pictures: what the other 200 say is not the index of most docs.

    With 300 of the latter it is.
    """
    for answered, reason in ((200, "no answers on wrong pictures in 300 of 500 docs"), (300, "")):
        sizes = (answered, 500 - answered if answered == 200 else 200)
        parts = [np.concatenate([right(round(share * n), n) for n in sizes]) for share in (0.8, 0.6, 0.25, 0.4)]
        asked = np.arange(sum(sizes)) < answered
        found = measured(
            world(*parts, asked=asked, classes=np.repeat([0, 1], sizes), labels=("mc4", "open")), MEAN.value, draws=400
        )
        assert found.estimate.reason == reason
        assert (found.estimate.value is None) == bool(reason)


def test_clusters_are_resampled_whole():
    """20 clusters of 10 copies say as much as 20 docs: the interval is about sqrt(10) times as wide as that of 200 docs, and is called so."""
    shares = [np.repeat(right(count, 20), 10) for count in (16, 12, 4, 8)]
    whole = measured(world(*shares), MEAN.value, np.repeat(np.arange(20), 10), draws=4000).estimate
    alone = measured(world(*shares), MEAN.value, draws=4000).estimate
    assert (whole.n, whole.clusters, alone.clusters) == (200, 20, 200)
    assert whole.value == alone.value
    assert whole.se / alone.se == pytest.approx(np.sqrt(10), rel=0.35)
    assert "20 clusters are few" in whole.reason


def test_few_clusters_have_no_index():
    found = measured(
        world(right(50, 60), right(40, 60), right(10, 60), right(20, 60)), MEAN.value, np.arange(60) % 9, draws=200
    )
    assert (found.estimate.value, found.estimate.reason) == (
        None,
        "9 clusters are too few; about 67 docs would do",
    )  # 60 docs are worth 8.98: 60 * 10 / 8.98
    assert found.asked == 60


# --- weights by habit ------------------------------------------------------------------------------------


def said(docs, gold, cells, full, null_cells, null_full, options=4):
    """The habits of docs: for each kind of doc how many there are, and the options that its views name (0 on; -1: none)."""

    def counts(answers):
        return np.array([[list(one).count(option) for option in range(options)] for one in answers])

    def of_docs(values):
        return np.repeat(np.array(values), docs, axis=0)

    return Habits(
        np.full(sum(docs), options), of_docs(gold), of_docs(counts(cells)), of_docs(full), np.full(sum(docs), len(cells[0])),
        of_docs(counts(null_cells)), of_docs(null_full),
    )  # fmt: skip


def test_a_doc_that_misses_stands_for_those_that_hit_by_luck():
    """Four options, golds even, three cells.

    By hand: of the docs that know nothing each says one option on all cells: 3 of 4 miss, and each that.
    misses counts 4/3. 100 docs know it from a cell, 300 say one wrong option: 300 · 4/3 = 400 know nothing. On wrong
    images 400 of 500 abstain.
    """
    kinds = [
        (100, 0, (0, 0, 0)),
        *((75, gold, ((gold + step) % 4,) * 3) for gold in range(4) for step in (1,)),
        (100, 1, (1, 1, 1)),
    ]
    docs, gold, cells = zip(*kinds, strict=True)
    known = [100, 0, 0, 0, 0, 100]
    best = np.repeat([1.0, 0, 0, 0, 0, 1.0], docs)
    full = np.repeat([1.0, 0, 0, 0, 0, 1.0], docs)
    silent, gone = [(-1, -1, -1)] * 6, [-1] * 6
    habits = said(docs, gold, cells, [one[0] for one in cells], silent, gone)
    found = measured(world(full, best, np.zeros(500), np.zeros(500), habits=habits), MEAN.value, draws=400)
    share = (
        np.bincount(np.repeat(gold, docs), minlength=4) / 500
    )  # golds are not even here: option o is missed with 1 - share[o]
    missed = sum(75 / (1 - share[(one + 1) % 4]) for one in range(4)) / 500
    assert found.kappa_best == pytest.approx(1 - missed), "weighted losses, of which none is luck on the wrong image"
    assert found.kappa_full == pytest.approx(1 - missed)
    assert sum(known) == 200


def test_where_wrong_images_are_answered_alike_the_weights_cancel():
    """The same docs on cells and on wrong images: κ is 0 whatever the weights, and with half as many losses on cells it is a half."""
    docs, gold = [50, 50, 50, 50], [0, 1, 2, 3]
    cells = [((one + 1) % 4, (one + 1) % 4, (one + 2) % 4) for one in gold]
    habits = said(docs, gold, cells, [-1] * 4, cells, [-1] * 4)
    half = np.arange(200) % 2 == 0
    found = measured(world(half, half, np.zeros(200), np.zeros(200), habits=habits), MEAN.value, draws=400)
    assert (found.kappa_full, found.kappa_best) == pytest.approx((0.5, 0.5))
    assert found.tests is not None
    assert not found.tests.unlike
    assert found.tests.short.value is None, "no doc has two options"


def test_where_right_answers_are_misread_unlike_habits_leave_no_index():
    """4,000 docs of four options; guesses on cells, silence on wrong images.

    Read well, the index is right; else nothing rests on the reading.
    """
    stream, n = np.random.default_rng(0), 4000
    gold, seen = stream.integers(0, 4, n), stream.integers(0, 4, (n, 5))
    known = stream.random(n)
    seen[known < 0.6, 0] = gold[known < 0.6]
    seen[known < 0.3, 2] = gold[known < 0.3]
    hit, silent = seen == gold[:, None], np.zeros((n, 4), int)
    counts = np.stack([(seen[:, 1:] == o).sum(axis=1) for o in range(4)], 1)
    for share, reason in ((0.02, ""), (0.2, "20% of right answers are not read as the gold")):
        habits = Habits(np.full(n, 4), gold, counts, seen[:, 0], np.full(n, 4), silent, np.full(n, -1), misread=share)
        found = measured(
            world(hit[:, 0], hit[:, 1:].any(axis=1), np.zeros(n), np.zeros(n), corners=CORNERS, habits=habits),
            MEAN.value,
            draws=400,
        )
        assert reason in found.estimate.reason
        assert reason or found.estimate.low < 0.5 < found.estimate.high
        assert (found.estimate.value is None) == bool(reason)


def drawn_world(seed, options, n=800, silent=0.5):
    """A guesser that is silent on half of the wrong images' views: rows of its docs, and its habits."""
    stream = np.random.default_rng(seed)
    gold, seen = stream.integers(0, options, n), stream.integers(0, options, (n, 5))
    lost = np.where(stream.random((n, 5)) < silent, -1, stream.integers(0, options, (n, 5)))
    seen[: n // 2, 0] = gold[: n // 2]
    seen[: n // 4, 3] = gold[: n // 4]
    hit, null_hit = (answers == gold[:, None] for answers in (seen, lost))
    counts, null_counts = (
        np.stack([(answers[:, 1:] == o).sum(axis=1) for o in range(5)], 1) for answers in (seen, lost)
    )
    parts = (hit[:, 0], hit[:, 1:].any(axis=1), null_hit[:, 0], null_hit[:, 1:].any(axis=1))
    said = (np.full(n, options), gold, counts, seen[:, 0], np.full(n, 4), null_counts, lost[:, 0])
    return parts, said


def test_weights_of_two_answer_classes_count_by_their_docs():
    """800 docs of three options and 400 of five: kappas are those of each class alone, two to one."""
    first, second = drawn_world(1, 3), drawn_world(2, 5, n=400)
    alone = [measured(world(*parts, habits=Habits(*said)), MEAN.value, draws=200) for parts, said in (first, second)]
    parts, said = (
        [np.concatenate(pair) for pair in zip(*both, strict=True)] for both in zip(first, second, strict=True)
    )
    classes = np.repeat([0, 1], [800, 400])
    found = measured(world(*parts, classes=classes, labels=("mc3", "mc5"), habits=Habits(*said)), MEAN.value, draws=200)
    for name in ("kappa_full", "kappa_best"):
        of = [getattr(one, name) for one in alone]
        assert getattr(found, name) == pytest.approx((2 * of[0] + of[1]) / 3)
    assert abs(alone[0].kappa_best - alone[1].kappa_best) > 0.01, "else the weights of the classes would not show"


@pytest.mark.parametrize("by_cell", size([30], [0, 30, 60]))
def test_imagined_docs_weigh_as_the_docs_of_the_wrong_image(by_cell):
    """Docs that are right on their full images, some on a cell, and name one wrong option on every other view: each loss weighs 4/3, imagined ones
    too, so the interval is that of equal weights."""
    n = 60
    given = (right(n, n), right(by_cell, n), right(0, n), right(0, n))
    gold = np.arange(n) % 4
    said = np.where(np.arange(n) < by_cell, gold, (gold + 1) % 4)
    own, lost = (np.stack([4 * (answers == o) for o in range(4)], 1) for answers in (said, (gold + 1) % 4))
    habits = Habits(np.full(n, 4), gold, own, gold, np.full(n, 4), lost, (gold + 1) % 4)
    weighted = measured(
        world(*given, corners=CORNERS, habits=habits), MEAN.value, draws=size(10_000, 40_000), seed=1
    ).estimate
    alike = measured(world(*given, corners=CORNERS), MEAN.value, draws=size(10_000, 40_000), seed=2).estimate
    assert weighted.value == pytest.approx(1 - by_cell / n) == alike.value
    assert (weighted.low, weighted.high) == pytest.approx((alike.low, alike.high), rel=0.05)


def test_without_options_nothing_is_weighted_and_nothing_tested():
    n = 200
    parts = (right(160, n), right(140, n), right(50, n), right(100, n))
    none = said([n], [0], [(0, 0)], [0], [(0, 0)], [0], options=2)
    bare = measured(world(*parts), MEAN.value, draws=400)
    unknown = dataclasses.replace(none, options=np.zeros(n, np.intp))
    assert measured(world(*parts, habits=unknown), MEAN.value, draws=400).estimate == bare.estimate
    assert bare.tests is None


@pytest.mark.parametrize(
    ("own", "wrong", "why"),
    [
        ("guess", "repeat", "wrong images are answered otherwise than cells that show nothing"),
        ("repeat", "guess", "wrong images are answered otherwise than cells that show nothing"),
        ("guess", "abstain", "wrong images are answered otherwise than cells that show nothing"),
        ("guess", "guess", ""),
        ("repeat", "repeat", ""),
    ],
)
def test_with_two_options_unlike_habits_leave_no_index(own, wrong, why):
    """4,000 docs, all asked; 0.6 known from the full image, half of them from one cell.

    With two options no other form is left.
    """
    stream = np.random.default_rng(3)
    n, cells = 4000, 4
    gold = stream.integers(0, 2, n)

    def habit(kind):
        one = stream.integers(0, 2, (n, 1 if kind == "repeat" else 1 + cells))
        return np.broadcast_to(one, (n, 1 + cells)).copy() if kind != "abstain" else np.full((n, 1 + cells), -1)

    seen, lost = habit(own), habit(wrong)
    lost = seen.copy() if own == wrong == "repeat" else lost
    known = stream.random(n)
    seen[known < 0.6, 0] = gold[known < 0.6]
    seen[known < 0.3, 2] = gold[known < 0.3]
    hit, null_hit = (answers == gold[:, None] for answers in (seen, lost))
    counts, null_counts = (np.stack([(answers[:, 1:] == o).sum(axis=1) for o in (0, 1)], 1) for answers in (seen, lost))
    habits = Habits(np.full(n, 2), gold, counts, seen[:, 0], np.full(n, cells), null_counts, lost[:, 0])
    parts = (hit[:, 0], hit[:, 1:].any(axis=1), null_hit[:, 0], null_hit[:, 1:].any(axis=1))
    found = measured(world(*parts, corners=CORNERS, habits=habits), MEAN.value, draws=400)
    assert found.estimate.reason == why or not why
    assert (found.estimate.value is None) == bool(why)
    assert why or found.estimate.value == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("gold", [[0, 0, 0, 0], [0, 1, 2, 3]])
def test_where_the_gold_never_varies_there_is_no_other_form(gold):
    """400 docs, four options: one guess a doc on all cells, wrong images are not answered.

    Half of the docs are known from the full image, a quarter.
    from one cell. With golds at A alone, who guesses B is never right, so its misses stand for nobody else: 1 - 0.25 /
    0.5 read as 0.3.
    """
    n = 400
    gold, known = np.resize(gold, n), np.arange(n) // 4 % 4
    cells = np.repeat((np.arange(n) // 16 % 4)[:, None], 5, axis=1)
    cells[known < 2, 0] = gold[known < 2]
    cells[known < 1, 2] = gold[known < 1]
    counts = (cells[:, 1:, None] == np.arange(4)).sum(axis=1)
    nothing, none = np.zeros((n, 4), int), np.full(n, -1)
    habits = Habits(np.full(n, 4), gold, counts, cells[:, 0], np.full(n, 4), nothing, none)
    right_at = cells == gold[:, None]
    found = measured(
        world(right_at[:, 0], right_at[:, 1:].any(axis=1), np.zeros(n), np.zeros(n), habits=habits),
        MEAN.value,
        draws=400,
    )
    if len(set(gold)) == 1:
        assert found.estimate.reason == "wrong images are answered otherwise than cells that show nothing"
    else:
        assert found.estimate.value == pytest.approx(0.5, abs=0.05)


# --- answers without options ----------------------------------------------------------------------------


def line(answers, golds):
    """What answers on a line of 41 places earn: 1 at the gold, less by 1/14 for each place beside it.

    −1 says nothing.
    """
    return np.where(answers < 0, 0.0, np.clip(1 - np.abs(answers - golds[:, None]) / 14, 0, 1))


def on_a_line(seed, n, on_wrong, *, lean=0.0, alike=8, asked=None):
    """Guesses places on its own cells; knows the gold from the full image in 0.7 of the docs, and from a cell in 0.35.

    RCI_adj is 0.5.
    """
    stream = np.random.default_rng(seed)
    golds = stream.integers(0, 41, n)

    def answers(silent):
        out = np.where(stream.random((n, 5)) < silent, -1, stream.integers(0, 41, (n, 5)))
        return np.where(stream.random((n, 5)) < lean, golds[:, None], out)

    seen, lost, known = answers(0.0), answers(on_wrong), stream.random(n)
    seen[known < 0.7, 0], seen[known < 0.35, 2] = golds[known < 0.7], golds[known < 0.35]

    def of(answers, golds):
        scores = line(answers, golds)
        return scores[:, 0], scores[:, 1:].max(axis=1)

    others = [golds[(np.arange(n) + step) % n] for step in range(alike + 1)]  # the first is the doc's own
    elsewhere = np.mean(
        [[1 - part for answers in (seen, lost) for part in of(answers, gold)] for gold in others], axis=0
    ).T
    given = (*of(seen, golds), *of(lost, golds))
    known = np.ones(n, bool) if asked is None else np.arange(n) < asked
    none = np.zeros((n, 1), int)
    habits = Habits(
        none[:, 0],
        none[:, 0],
        none,
        none[:, 0],
        np.full(n, 4),
        none,
        none[:, 0],
        np.where(known[:, None], elsewhere, np.nan),
    )
    return world(*given, asked=known, corners=CORNERS, habits=habits), world(*given, asked=known, corners=CORNERS)


@pytest.mark.parametrize(("on_wrong", "alike_by"), [(0.0, 0.0), (0.7, -0.4), (1.0, -0.5)])
@pytest.mark.parametrize("asked", [None, 800])
def test_partial_marks_are_weighed_by_what_answers_earn_under_other_golds(on_wrong, alike_by, asked):
    weighed, alike = (measured(one, MEAN.value, draws=400) for one in on_a_line(101, 4000, on_wrong, asked=asked))
    assert weighed.estimate.value == pytest.approx(0.5, abs=0.06)
    assert weighed.estimate.low < 0.5 < weighed.estimate.high
    assert alike.estimate.value == pytest.approx(0.5 + alike_by, abs=0.1)
    assert weighed.tests.unlike == (on_wrong > 0)
    if on_wrong == 1:
        assert "an answer fits other docs' golds" in weighed.tests.said
        assert weighed.tests.elsewhere.value == pytest.approx(
            line(np.arange(41)[None], np.array([20])).mean() * 2, rel=0.3
        ), "best of four"


def test_partial_marks_that_the_words_alone_raise_leave_no_index():
    """Both assumptions fail: 0.3 of the answers are the gold by the words alone, and wrong images are mostly not answered."""
    kept, _ = on_a_line(4, 4000, 0.0, lean=0.3)
    assert measured(kept, MEAN.value, draws=400).estimate.value == pytest.approx(0.5, abs=0.15)
    stream = on_a_line(5, 4000, 0.0, lean=0.3)[0]
    silent = np.random.default_rng(6).random(4000) < 0.7
    null = [np.where(silent[:, None], [0.0, 1.0], part) for part in (stream.null_full, stream.null_best)]
    elsewhere = stream.habits.elsewhere.copy()
    elsewhere[silent, 2:] = 1.0
    both = dataclasses.replace(
        stream, null_full=null[0], null_best=null[1], habits=dataclasses.replace(stream.habits, elsewhere=elsewhere)
    )
    found = measured(both, MEAN.value, draws=400)
    assert (
        found.estimate.reason
        == "wrong images are answered otherwise than cells that show nothing, and the words alone point to the gold"
    )


def test_a_loss_is_weighed_by_hand():
    """Two kinds of docs, 100 each.

    The first loses .5 on its best cell and .25 on average over its own and other golds: it stands for 2 docs. The.
    second loses nothing. Wrong images lose all, everywhere: κ is 1 − (100 · .5 · 4) / 200.
    """
    first = np.arange(200) < 100
    full, best, zero = np.where(first, 0.4, 1.0), np.where(first, 0.5, 1.0), np.zeros(200)
    elsewhere = np.column_stack([np.where(first, 0.5, 0.9), np.where(first, 0.25, 0.9), np.ones(200), np.ones(200)])
    none = np.zeros((200, 1), int)
    habits = Habits(none[:, 0], none[:, 0], none, none[:, 0], np.full(200, 4), none, none[:, 0], elsewhere)
    found = measured(world(full, best, zero, zero, habits=habits), MEAN.value, draws=400)
    assert found.kappa_full == pytest.approx(1 - 100 * 0.6 / 0.5 / 200)
    assert found.kappa_best == pytest.approx(0.0)
