"""The necessity map: by hand, by a plain loop over docs, and in worlds whose shares are known."""

import dataclasses

import numpy as np
import pytest

from lmms_patch.rci.analysis import analyse
from lmms_patch.rci.necessity import NOT_ASKED, necessity, shares_of
from lmms_patch.runs.details import Settings
from lmms_patch.runs.need import NEEDS, UNKNOWN, find
from tests.making.recordings import METRIC, FakeNative, guesses, record, table

SETTINGS = Settings(draws=300)
NONE, ONE = [0.0] * 4, [0.0, 1.0, 0.0, 0.0]


def wrong(full, cells=NONE):
    """A doc's question on another doc's image."""
    views = [
        {"kind": "full"},
        *(
            {"kind": "cell", "n": 2, "cell": c + 1, "row": c // 2, "col": c % 2, "boxes": [[0, 0, 9, 9]]}
            for c in range(4)
        ),
    ]
    scored = [
        view | {"swapped": True, "said": "x", "items": {METRIC: s}, "scores": {METRIC: s}}
        for view, s in zip(views, [full, *cells], strict=True)
    ]
    return {"from": 7, "image_sizes": [[90, 90]], "views": scored}


def doc(i, full, cells, lost=None, asked=None, **more):
    """A doc of a 2x2 grid; ``lost`` is what it scores on a wrong image."""
    made = record(i, full, {2: cells}, **more)
    return made | ({} if lost is None else {"wrong_image": wrong(*lost)}) | ({} if asked is None else {"asked": asked})


def classes(docs, blind=()):
    made = table(docs, cluster=None)
    known = dict(zip(made.place, find(made, 2, dict(blind)).classes.tolist(), strict=True))
    return [NEEDS[known[one["doc_id"]]] if known.get(one["doc_id"], UNKNOWN) != UNKNOWN else None for one in docs]


def shares(one):
    return {need: found.value for need, found in one.shares.items()}


# --- one doc -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("full", "cells", "lost", "need"),
    [
        (1.0, ONE, (0.0,), "one cell"),
        (0.0, ONE, (0.0,), "one cell"),  # the cell alone is right
        (1.0, NONE, (0.0,), "whole image"),
        (0.0, NONE, (0.0,), "unsolved"),
        (1.0, ONE, (1.0,), "text"),
        (0.0, NONE, (1.0,), "text"),
        (1.0, NONE, (0.0, ONE), "whole image"),  # only the whole wrong image counts
        (1.0, ONE, None, None),
        (None, ONE, (0.0,), "one cell"),
        (None, NONE, (0.0,), None),
        (1.0, [0.0, None, 0.0, 0.0], (0.0,), None),  # the cell without a score may be right
        (1.0, [0.0, None, 0.0, 1.0], (0.0,), "one cell"),
        (0.5, NONE, (0.49,), "whole image"),  # half of full marks is right
    ],
)
def test_the_class_of_a_doc(full, cells, lost, need):
    docs = [doc(0, full, cells, lost), doc(1, 1.0, NONE, (0.0,))]
    assert classes(docs) == [need, "whole image"]


def test_right_is_half_of_what_the_gold_scores():
    docs = [doc(0, 0.9, NONE, (0.0,), baselines=[("x", ["gold"], 2.0)]), doc(1, 0.9, NONE, (0.0,))]
    assert classes(docs) == ["unsolved", "whole image"]


def test_a_blind_run_tells_of_all_docs_and_either_way_is_text():
    docs = [doc(0, 1.0, ONE), doc(1, 1.0, ONE), doc(2, 1.0, NONE)]
    assert classes(docs, {0: 1.0, 1: 0.0}) == ["text", "one cell", None]
    docs = [doc(0, 1.0, ONE, (1.0,)), doc(1, 1.0, ONE), doc(2, 1.0, NONE), doc(3, 1.0, NONE, (0.0,)), doc(4, 1.0, NONE)]
    assert classes(docs, {0: 0.0, 1: 1.0, 2: 0.0, 3: 0.0}) == ["text", "text", "whole image", "whole image", None]


def test_a_doc_whose_call_failed_has_no_class():
    failed = doc(1, 1.0, ONE, (0.0,))
    failed["views"][0] = {"kind": "full", "scores": {}, "items": {}, "failed": "timeout"}
    assert classes([doc(0, 1.0, ONE, (0.0,)), failed, doc(2, 1.0, NONE, (0.0,))]) == ["one cell", None, "whole image"]


# --- shares by hand ------------------------------------------------------------------------------------------------


def test_docs_that_were_not_checked_are_text_as_often_as_those_of_their_class():
    # One cell answers 60 docs, the whole image 30, nothing 30. Of each class 12, 6 and 6 docs were asked on a wrong
    # image: 6, 1 and 0 were right. So text = 60 / 2 + 30 / 6 + 0 = 35 of 120; 30, 25 and 30 are left.
    kinds = [(60, 12, 6, (1.0, ONE)), (30, 6, 1, (1.0, NONE)), (30, 6, 0, (0.0, NONE))]
    docs = []
    for count, asked, right, answers in kinds:
        for i in range(count):
            docs.append(doc(len(docs), *answers, (float(i < right),) if i < asked else None))
    (found,) = necessity(table(docs), [2], SETTINGS)
    assert shares(found) == pytest.approx(dict(zip(NEEDS, (35 / 120, 30 / 120, 25 / 120, 30 / 120), strict=True)))
    assert (found.docs, found.checked, found.sources, found.unscored, found.graded) == (
        120,
        24,
        ("wrong images",),
        0,
        0,
    )
    assert found.counts == {"text": 7, "one cell": 6, "whole image": 5, "unsolved": 6}
    assert found.by_image == {"one cell": 60, "whole image": 30, "unsolved": 30}
    assert all(one.low < one.value < one.high for one in found.shares.values())
    assert found.shares["text"].n == 120


def test_a_class_without_a_checked_doc_is_text_as_often_as_all_docs_are():
    assert shares_of(np.array([10.0, 3, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0])) * 18 == pytest.approx(
        [1 + 2.5 + 1, 3 + 7.5, 3, 0]
    )


def test_both_sources_count_what_a_run_over_all_docs_on_both_would_find():
    # Of 40 docs, all right on the full image alone, 10 are right blind: text. 15 of the 40 were asked on a wrong image,
    # 10 of them wrong blind, of which 2 were right there. So of the 30 that are wrong blind 6 are text.
    docs = [doc(i, 1.0, NONE, (float(i in (0, 10, 11)),) if i < 5 or 10 <= i < 20 else None) for i in range(40)]
    (found,) = necessity(table(docs), [2], SETTINGS, {i: float(i < 10) for i in range(40)})
    assert shares(found) == pytest.approx({"text": 16 / 40, "one cell": 0, "whole image": 24 / 40, "unsolved": 0})
    assert found.sources == ("wrong images", "blind")
    assert found.checked == 10 + 10


def test_where_nothing_is_known_of_text_there_are_three_classes_and_the_reason():
    (found,) = necessity(table([doc(i, float(i < 20), ONE if i < 10 else NONE) for i in range(40)]), [2], SETTINGS)
    assert shares(found) == {"text": None, "one cell": 0.25, "whole image": 0.25, "unsolved": 0.5}
    assert (found.shares["text"].reason, found.checked, found.sources, found.luck) == (NOT_ASKED, 0, (), None)
    assert found.shares["unsolved"].low < 0.5 < found.shares["unsolved"].high


def test_where_all_is_known_a_share_has_its_exact_interval():
    (found,) = necessity(table([doc(i, 1.0, ONE, (float(i < 4),)) for i in range(40)]), [2], SETTINGS)
    assert (found.shares["text"].low, found.shares["text"].high) == pytest.approx(
        (0.0279, 0.2366), abs=1e-3
    )  # Clopper-Pearson of 4 of 40
    assert found.shares["unsolved"].high == pytest.approx(1 - 0.025 ** (1 / 40))  # of 0 of 40


def test_luck_is_a_right_cell_of_a_wrong_image_that_is_wrong_as_a_whole():
    docs = [doc(i, 1.0, ONE, (float(i < 10), ONE if i < 25 else NONE)) for i in range(40)]
    (found,) = necessity(table(docs), [2], SETTINGS)
    assert (found.luck.value, found.luck.n) == (0.5, 30)


def test_a_run_that_left_docs_out_counts_those_that_were_asked_whole():
    whole = {"metric": METRIC, "block": 0, "steps": 2}
    later = {"metric": METRIC, "block": 1, "steps": 2, "p": [0.5, 0.1]}
    docs = [doc(i, 1.0, NONE if i < 10 else ONE, (0.0,), whole) for i in range(40)] + [
        doc(40 + i, 1.0, ONE, None, later) for i in range(60)
    ]
    (found,) = necessity(table(docs), [2], SETTINGS)
    assert (found.docs, shares(found)["whole image"]) == (40, 0.25)  # with the later docs it were 0.1


def test_a_run_that_left_only_cells_out_counts_all_docs():
    docs = [doc(i, 1.0, ONE, (0.0,), {"metric": METRIC, "block": 0, "steps": 2}) for i in range(20)]
    for i in range(20, 40):  # asked until a cell was right
        made = doc(i, 1.0, ONE, (0.0,), {"metric": METRIC, "block": 1, "steps": 2, "unasked": 2})
        made["views"] = made["views"][:3]
        docs.append(made)
    (found,) = necessity(table(docs), [2], SETTINGS)
    assert (found.docs, shares(found)["one cell"]) == (40, 1.0)


def test_an_analysis_has_it_and_captions_do_not():
    docs = [
        doc(i, 1.0, ONE, (0.0,), answer=("mc", 4, "ABCD"[i % 4]), baselines=guesses("ABCD"[i % 4], "ABCD"))
        for i in range(40)
    ]
    assert [one.n for one in analyse(table(docs), FakeNative(docs), SETTINGS, (2,)).necessity] == [2]
    assert analyse(table(docs), FakeNative(docs), SETTINGS, ()).necessity == ()
    docs = [doc(i, 1.0, ONE, (0.0,), answer=("caption", 0, "a cat")) for i in range(40)]
    assert necessity(table(docs), [2], SETTINGS) == ()


@pytest.mark.parametrize(("mark", "warned"), [(0.4, True), (1.0, False)])
def test_where_luck_is_corrected_in_partial_marks_it_says_what_is_assumed(mark, warned):
    """60 docs, a quarter of them with a cell that earns some of the marks, or all."""
    some = [0.0, mark, 0.0, 0.0]
    golds = [{"answer": ("open", 0, f"g{i}"), "baselines": guesses(f"g{i}", (), ["x"], "x")} for i in range(60)]
    docs = [doc(i, float(i % 5 > 0), some if i % 4 == 0 else NONE, (0.0,), **golds[i]) for i in range(60)]
    grid = analyse(table(docs), FakeNative(docs), SETTINGS, (2,)).grids[2]
    assert grid.adj.estimate.value is not None
    told = "partial marks in 25% of docs: that wrong images earn as many by luck is assumed, not tested"
    assert (told in grid.warnings) is warned


def test_where_luck_saturates_there_are_no_shares():
    """Every cell of a wrong image is right: nothing is left that tells a doc that one cell answers from one that guesses."""
    golds = [{"answer": ("open", 0, f"g{i}"), "baselines": guesses(f"g{i}", (), ["x"], "x")} for i in range(60)]
    docs = [doc(i, float(i % 5 > 0), ONE, (0.0, ONE), **golds[i]) for i in range(60)]
    found = analyse(table(docs), FakeNative(docs), SETTINGS, (2,))
    assert found.gate.valid
    assert found.grids[2].adj.estimate.reason.startswith("luck saturates")
    assert {(share.value, share.reason) for share in found.necessity[0].shares.values()} == {
        (None, found.grids[2].adj.estimate.reason)
    }


def test_a_refused_task_has_counts_and_no_shares():
    """Right on a wrong image as on its own."""
    docs = [
        doc(i, 1.0, ONE, (1.0, ONE), answer=("mc", 4, "ABCD"[i % 4]), baselines=guesses("ABCD"[i % 4], "ABCD"))
        for i in range(40)
    ]
    found = analyse(table(docs), FakeNative(docs), SETTINGS, (2,))
    (one,) = found.necessity
    assert (found.gate.valid, one.counts["text"]) == (False, 40)
    assert [share.value for share in one.shares.values()] == [None] * 4
    assert {share.reason for share in one.shares.values()} == {found.gate.reason}


# --- worlds ----------------------------------------------------------------------------------------------------------


def world(stream, docs, per_cluster, image, text):
    """Draw docs: the class by the image of each, and whether it is text.

    Docs of a cluster are alike with probability 1/2 each.

    Args:
        stream: of random numbers.
        docs: how many.
        per_cluster: docs of a cluster.
        image: shape (3,), probability of each class by the image.
        text: shape (3,), probability of text in each.
    """
    owner = np.arange(docs) // per_cluster
    first = stream.choice(3, docs // per_cluster, p=image)
    luck = stream.random(docs // per_cluster)
    alike = (stream.random(docs) < 0.5) & (per_cluster > 1)
    kind = np.where(alike, first[owner], stream.choice(3, docs, p=image))
    return owner, kind, np.where(alike, luck[owner], stream.random(docs)) < np.asarray(text)[kind]


ANSWERS = [(1.0, ONE), (1.0, NONE), (0.0, NONE)]
KINDS = {
    (kind, lost): doc(0, *ANSWERS[kind], None if lost is None else (lost,))
    for kind in range(3)
    for lost in (None, 0.0, 1.0)
}


def made(owner, kind, text, asked):
    """A table of docs of a world; only some were asked on a wrong image."""
    docs = [KINDS[kind[i], float(text[i]) if asked[i] else None] for i in range(len(kind))]
    return table([{**one, "doc_id": i, "fields": {"cluster": int(owner[i])}} for i, one in enumerate(docs)])


WORLDS = {
    "even": (1, [0.4, 0.35, 0.25], [0.5, 0.2, 0.1]),
    "rare text": (1, [0.4, 0.35, 0.25], [0.02, 0.0, 0.0]),
    "a rare class": (1, [0.9, 0.08, 0.02], [0.3, 0.9, 0.0]),
    "clusters": (5, [0.4, 0.35, 0.25], [0.5, 0.2, 0.1]),
}


@pytest.mark.parametrize("name", WORLDS)
def test_intervals_hold_the_shares_of_all_docs(name):
    per_cluster, image, text = WORLDS[name]
    truth = np.array([np.dot(image, text), *(np.array(image) * (1 - np.array(text)))])
    stream, sims, docs, sample = np.random.default_rng(5), 60, 600, 150
    held = np.zeros(4)
    values = []
    for seed in range(sims):
        owner, kind, is_text = world(stream, docs, per_cluster, image, text)
        order = stream.permutation(docs // per_cluster)
        found = necessity(
            made(owner, kind, is_text, order[owner] < sample // per_cluster),
            [2],
            dataclasses.replace(SETTINGS, seed=seed),
        )[0]
        ends = [(found.shares[need].low, found.shares[need].high) for need in NEEDS]
        held += [low <= true <= high for (low, high), true in zip(ends, truth, strict=True)]
        values.append(list(shares(found).values()))
    # With 60 worlds, 95 % is 57; fewer than 52 has probability 0.015 for each share.
    assert held.min() >= 52, dict(zip(NEEDS, held, strict=True))
    spread = np.std(values, axis=0) / np.sqrt(sims)
    assert np.abs(np.mean(values, axis=0) - truth).max() < 4 * spread.max() + 1e-3


def test_post_stratified_intervals_are_narrower_than_those_of_the_sample_alone():
    stream = np.random.default_rng(1)
    owner, kind, text = world(stream, 1200, 1, [0.5, 0.3, 0.2], [0.9, 0.05, 0.0])
    asked = stream.permutation(1200) < 150
    part = made(owner, kind, text, asked)
    alone = part.of(part.doc_id[np.isfinite(part.wrong.full.scores)])
    both = [necessity(one, [2], SETTINGS)[0].shares["whole image"] for one in (part, alone)]
    widths = [one.high - one.low for one in both]
    assert widths[0] < 0.7 * widths[1]
