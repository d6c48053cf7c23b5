"""Two runs of a MAGIC task compared: differences by hand and by brute force, and what must not be compared."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lmms_patch.compare import magic, tasks
from lmms_patch.errors import RecordError
from lmms_patch.magic.score.results import Record
from lmms_patch.present.terminal import compare as show_compare
from lmms_patch.runs import run as runs
from lmms_patch.runs.numbers import to_json
from tests.making.runs import magic_doc, write_magic
from tests.sizes import examples

# 4 docs: relevant 1 (of 3 boxes), 1 and 2, 1 and 2, none. Used by A: 1 and 3; 1; nothing; nothing. By B: 1; 1 and 2; 3;
# 3.
RELEVANT = ((1,), (1, 2), (1, 2), ())
A, B = ((1, 3), (1,), (), ()), ((1,), (1, 2), (3,), (3,))


def four(used, right, **more):
    return [magic_doc(f"d{k}", used[k], RELEVANT[k], right=right[k], **more) for k in range(4)]


def pair(tmp_path, first, second, variant="all", one=None, other=None, **more):
    """Both runs compared; ``one`` and ``other`` are told to the writer of either."""
    sides = []
    for name, records, told in (("a", first, one or {}), ("b", second, other or {})):
        run = runs.read(write_magic(tmp_path / name, {variant: records}, **told))
        sides.append(run.results[0])
    return magic.compare(*sides, draws=400, **more)


def test_every_number_by_hand(tmp_path):
    """A: TP 1+1+0+0 = 2, FP 1, FN 0+1+2 = 3. B: TP 1+2+0+0 = 3, FP 0+0+1+1 = 2, FN 0+0+2 = 2.

    Macro P: A (1/2 + 1 + 0) / 3 (the last has none: nothing relevant, nothing used); B (1 + 1 + 0 + 0) / 4. Macro R,
    over the three docs with a relevant box: A (1 + 1/2 + 0) / 3, B (1 + 1 + 0) / 3. Macro F1: A (2/3 + 2/3 + 0) / 3, B
    (1 + 1 + 0) / 3.
    """
    first = four(A, (1, 1, 0, 0))
    first[0]["dismissed"] = [3]
    found = pair(tmp_path, first, four(B, (1, 0, 1, 1)))
    by_hand = {
        "magiscore_precision_micro": (2 / 3, 3 / 5), "magiscore_recall_micro": (2 / 5, 3 / 5),
        "magiscore_f1_micro": (4 / 8, 6 / 10), "magiscore_precision_macro": (1 / 2, 1 / 2),
        "magiscore_recall_macro": (1 / 2, 2 / 3), "magiscore_f1_macro": (4 / 9, 2 / 3), "regions_exhaustive": (0, 0),
        "regions_unused": (2 / 4, 0), "regions_dismissed": (1 / 4, 0), "regions_invented": (0, 0),
        "acc_exact": (2 / 4, 3 / 4), "acc_synonym": (2 / 4, 3 / 4), "answer_found": (1, 1),
    }  # fmt: skip
    assert list(found.by_name) == list(by_hand)
    for name, (first, second) in by_hand.items():
        one = found.by_name[name]
        assert (one.first, one.second) == (pytest.approx(first), pytest.approx(second)), name
        assert one.difference.value == pytest.approx(second - first), name
        assert one.p is None, name  # 4 docs are too few for an interval
    assert found.docs == 4
    assert found.clusters is None
    assert found.lower == ("regions_exhaustive", "regions_unused", "regions_invented")
    assert not found.identical


def drawn(seed, n=120):
    """Docs of 40 images; what a model uses and answers is random."""
    stream = np.random.default_rng(seed)
    out = []
    for k in range(n):
        relevant = tuple(1 + np.flatnonzero(np.random.default_rng(k).random(4) < 0.5))
        used = tuple(1 + np.flatnonzero(stream.random(4) < 0.5))
        out.append(
            magic_doc(
                f"d{k:03}", used, relevant, 4, right=bool(stream.random() < 0.5 + 0.2 * seed), group=f"image {k % 40}"
            )
        )
    return out


def micro(docs, what):
    tp = sum(len(set(one["used"]) & set(one["relevant"])) for one in docs)
    fp = sum(len(set(one["used"]) - set(one["relevant"])) for one in docs)
    fn = sum(len(set(one["relevant"]) - set(one["used"])) for one in docs)
    return {"precision": tp / (tp + fp), "recall": tp / (tp + fn), "f1": 2 * tp / (2 * tp + fp + fn)}[what]


@pytest.mark.parametrize("what", ["precision", "f1"])
def test_the_interval_of_a_ratio_is_that_of_images_drawn_by_hand(tmp_path, what):
    """Against a bootstrap written out: draw 40 images with replacement, all their docs of both runs with each, and take both ratios again."""
    first, second = drawn(0), drawn(1)
    found = pair(tmp_path, first, second).by_name[f"magiscore_{what}_micro"]
    stream = np.random.default_rng(7)
    spread = []
    for _ in range(1500):
        taken = [k for image in stream.integers(0, 40, 40) for k in range(image, 120, 40)]
        spread.append(micro([second[k] for k in taken], what) - micro([first[k] for k in taken], what))
    assert found.difference.value == pytest.approx(micro(second, what) - micro(first, what))
    assert found.difference.clusters == 40
    assert found.difference.se == pytest.approx(np.std(spread), rel=0.1)


def test_docs_without_a_verdict_are_left_out_on_both_sides_and_told(tmp_path):
    """A judged 1, 0, none, 1; B 1, 1, 1, none: over the first two docs 1/2 and 1."""

    def judged(used, verdicts):
        return [
            {**one, "short": short, "full": short}
            for one, short in zip(four(used, (1, 1, 1, 1)), verdicts, strict=True)
        ]

    told = {"judge": "j"}
    found = pair(
        tmp_path, judged(A, (True, False, None, True)), judged(B, (True, True, True, None)), one=told, other=told
    )
    one = found.by_name["acc_short"]
    assert (one.first, one.second, one.difference.n) == (0.5, 1.0, 2)
    assert "acc_short: 2 of 4 docs are left out: without a verdict in one of the runs" in found.warnings


VERDICT = st.sampled_from([True, False, None])


def record_of(k, verdict, **more):
    made = magic_doc(f"d{k}", short=verdict, judge={"model": "j", "short": {}}, **more)
    return Record(**{key: value for key, value in made.items() if key != "text"}, variant="all")


def docs_of(pairs, same):
    """Docs of two runs from pairs of records; responses are the same where ``same`` says so."""
    out = []
    for k, ((one, other), alike) in enumerate(zip(pairs, same, strict=True)):
        said = [f"{k}", f"{k}" if alike else f"{k}, in other words"]
        out.append((replace(one, response=said[0]), replace(other, response=said[1])))
    return out


def fills(verdicts, same):
    """Every way to fill in the missing verdicts of some docs, as pairs.

    Of one response both verdicts are one, as far as they are not given.
    """
    ways = []
    for (one, other), alike in zip(verdicts, same, strict=True):
        own = [(a, b) for a in (True, False) for b in (True, False) if one in (a, None) and other in (b, None)]
        ways.append([(a, b) for a, b in own if not alike or a == b or None not in (one, other)])
    return itertools.product(*ways)


@examples(150)
@given(st.lists(st.tuples(st.tuples(VERDICT, VERDICT), st.booleans()), min_size=1, max_size=6))
def test_bounds_of_a_difference_are_the_extremes_of_all_verdicts_there_could_be(docs):
    verdicts, same = zip(*docs, strict=True)
    pairs = [(record_of(k, one), record_of(k, other)) for k, (one, other) in enumerate(verdicts)]
    found = magic.bounds("acc_short", docs_of(pairs, same), asked_alike=True, draws=20, level=0.95, seed=0)
    changes = [sum(b - a for a, b in filled) / len(docs) for filled in fills(verdicts, same)]
    if all(None not in pair for pair in verdicts):
        assert found is None
        return
    low, high = found
    assert (low.estimate.value, high.estimate.value) == (pytest.approx(min(changes)), pytest.approx(max(changes)))
    assert low.estimate.n == high.estimate.n == len(docs)
    for end in found:
        assert end.second - end.first == pytest.approx(end.estimate.value)


def test_bounds_are_over_docs_that_have_a_gold_answer():
    """Of three docs one has no gold answer, and one no verdict in the second run: right, it is 2/2 in both.

    Wrong, 1/2.
    """
    none = {"model": "j", "short": {"error": "no gold answer to compare with"}}
    pairs = [(record_of(k, True), record_of(k, second)) for k, second in enumerate((True, None))]
    lacking = Record(
        **{key: value for key, value in magic_doc("d2", short=None, judge=none).items() if key != "text"}, variant="all"
    )
    low, high = magic.bounds(
        "acc_short", docs_of([*pairs, (lacking, lacking)], [False] * 3), asked_alike=True, draws=20, level=0.95, seed=0
    )
    assert (low.estimate.value, high.estimate.value, low.estimate.n) == (-0.5, 0.0, 2)


def test_what_the_unjudged_could_change_is_told(tmp_path):
    """A judged 1, 0, none, 1; B 1, 1, 1, none. Over four docs: A 2/4 to 3/4, B 3/4 to 4/4, so 0 to +1/2.

    One response would have one verdict.
    """

    def judged(used, verdicts, text):
        return [
            {**one, "short": short, "full": short, "text": text}
            for one, short in zip(four(used, (1, 1, 1, 1)), verdicts, strict=True)
        ]

    told = {"judge": "j"}
    sides = judged(A, (True, False, None, True), "a"), judged(B, (True, True, True, None), "b")
    found = pair(tmp_path / "apart", *sides, one=told, other=told)
    assert [end.estimate.value for end in found.bounds["acc_short"]] == [0.0, 0.5]
    line = "acc_short: 2 of 4 docs are left out: without a verdict in one of the runs; the difference is +0.000 to +0.500 with the unjudged"
    assert line in found.warnings
    alike = judged(A, (True, False, None, True), "a"), judged(B, (True, True, True, None), "a")
    found = pair(tmp_path / "alike", *alike, one=told, other=told)
    assert [end.estimate.value for end in found.bounds["acc_short"]] == [0.25, 0.25]


@pytest.mark.parametrize("other", ["k", None])
def test_verdicts_of_other_judges_are_not_compared_and_that_is_said(tmp_path, other):
    docs = [{**one, "short": True, "full": True} for one in four(A, (1, 1, 1, 1))]
    found = pair(tmp_path, docs, docs, one={"judge": "j"}, other={"judge": other})
    assert not {"acc_short", "acc_full"} & set(found.by_name)
    (line,) = found.warnings
    assert line == "acc_short, acc_full: not compared, since the judges differ"
    assert any(line.startswith("judge (") for line in found.settings)


def test_docs_of_one_run_alone_are_left_out_and_named(tmp_path):
    found = pair(tmp_path, four(A, (1, 1, 1, 1)), four(B, (1, 1, 1, 1))[1:])
    assert (found.docs, found.only_first, found.only_second) == (3, ("d0",), ())
    assert found.by_name["magiscore_recall_micro"].first == pytest.approx(1 / 4)


def test_what_is_refused(tmp_path):
    docs = four(A, (1, 1, 1, 1))
    with pytest.raises(RecordError, match="d1 has another question, answer, image or boxes in the two runs"):
        pair(tmp_path / "relevant", docs, [{**one, "relevant": [3]} if one["id"] == "d1" else one for one in docs])
    with pytest.raises(RecordError, match="d1 has another question, answer, image or boxes in the two runs"):
        pair(tmp_path / "asked", docs, [{**one, "asked": {"doc": "x"}} if one["id"] == "d1" else one for one in docs])
    with pytest.raises(RecordError, match="no docs are scored in both"):
        pair(tmp_path / "ids", docs, [{**one, "id": f"x{one['id']}"} for one in docs])
    first, second = (runs.read(write_magic(tmp_path / "kinds" / name, {name: docs})) for name in ("all", "relevant"))
    with pytest.raises(RecordError, match="cannot be compared: other benchmark"):
        magic.compare(first.results[0], second.results[0])


def test_the_command_says_who_is_better(tmp_path):
    """60 docs; A right and focused on 40, B on 55 of them: B is better in both, by 15/60, and no doc speaks against it: p = 2 · 2^-15, or as the draws give."""

    def docs(good):
        return [magic_doc(f"d{k:02}", (1,) if k < good else (2,), right=k < good) for k in range(60)]

    heal = [magic_doc(f"d{k:02}/3-3", right=k < 20) for k in range(60)]
    for name, good in (("a", 40), ("b", 55)):
        write_magic(tmp_path / name, {"all": docs(good), "selfheal": heal})
    found = tasks.compare(tmp_path / "a", tmp_path / "b")
    text = show_compare.text(found)
    assert text.startswith("B (m) is better on toy_magic (magiscore_f1_macro 0.667 → 0.917, B - A = +0.250")
    assert "A and B score the same on each of these docs." in text  # the other task
    numbers = {one["name"]: one for one in json.loads(json.dumps(to_json(found)))["tasks"][0]["numbers"]}
    assert numbers["acc_synonym"]["difference"]["value"] == 0.25


def test_swapping_the_runs_turns_every_difference_round(tmp_path):
    one = pair(tmp_path / "1", drawn(0), drawn(1))
    other = pair(tmp_path / "2", drawn(1), drawn(0))
    for name, found in one.by_name.items():
        back = other.by_name[name].difference
        assert found.difference.value == pytest.approx(-back.value), name
        assert found.difference.low == pytest.approx(-back.high, abs=0.04), name  # the draws are others
