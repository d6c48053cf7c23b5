"""The numbers of a MAGIC task, against numbers derived by hand."""

import math

import msgspec
import pytest

from lmms_patch.magic.score import results


def record(name="a", *, used=(), relevant=(1,), boxes=4, invented=(), **more):
    told = {
        "schema": 1, "variant": more.pop("variant", "all"), "id": name, "item": name, "group": more.pop("group", ""),
        "type": more.pop("type", ""), "boxes": boxes, "relevant": list(relevant), "used": list(used),
        "invented": list(invented), "dismissed": list(more.pop("dismissed", ())), "steps": 3, "answer": "red",
        "answer_found": more.pop("answer_found", True), "exact": more.pop("exact", True),
        "synonym": more.pop("synonym", True), **more,
    }  # fmt: skip
    return results.Record(**told)


DOCS = [
    record(
        "appendix D", used=(1, 2, 3), relevant=(1, 4), boxes=5, dismissed=(2, 3), type="verify", exact=False
    ),  # TP 1 FP 2 FN 1: P 1/3, R 1/2, F1 2/5
    record("exact", used=(2,), relevant=(2,), boxes=4, type="verify"),  # TP 1: P 1, R 1, F1 1
    record(
        "silent", relevant=(1, 2), boxes=2, type="query", answer_found=False, exact=False, synonym=False
    ),  # FN 2: P 0 by convention, R 0, F1 0
    record("all", used=(1, 2), relevant=(1,), boxes=2, invented=(7, 9), type="query"),  # TP 1 FP 1: P 1/2, R 1, F1 2/3
]


def test_every_number_of_four_docs():
    found = {name: one.value for name, one in results.numbers(DOCS, "all", judged=False, draws=200).items()}
    # sums: TP 3, FP 3, FN 3
    expected = {
        "magiscore_precision_micro": 3 / 6,
        "magiscore_recall_micro": 3 / 6,
        "magiscore_f1_micro": 6 / 12,
        "magiscore_precision_macro": (1 / 3 + 1 + 0 + 1 / 2) / 4,
        "magiscore_recall_macro": (1 / 2 + 1 + 0 + 1) / 4,
        "magiscore_f1_macro": (2 / 5 + 1 + 0 + 2 / 3) / 4,
        "regions_exhaustive": 1 / 4,
        "regions_unused": 1 / 4,
        "regions_dismissed": 1 / 4,
        "regions_invented": 1 / 4,
        "acc_exact": 2 / 4,
        "acc_synonym": 3 / 4,
        "answer_found": 3 / 4,
    }
    assert found == pytest.approx(expected)
    assert list(found) == list(expected)


def test_counts_name_what_is_behind_the_numbers():
    counts = results.counts(DOCS, "all", judged=False)
    assert counts == {
        "docs": 4,
        "answer_not_found": 1,
        "no_box": 0,
        "no_relevant_box": 0,
        "precision_zero": 1,
        "boxes_invented": 2,
    }


@pytest.mark.parametrize(
    ("variant", "judged", "first", "absent"),
    [
        ("all", False, "magiscore_precision_micro", {"self_heal", "acc_short"}),
        ("relevant", True, "magiscore_precision_micro", {"self_heal"}),
        ("none", False, "regions_invented", {"magiscore_f1_macro", "acc_short", "regions_unused"}),
        ("selfheal", False, "acc_exact", {"self_heal", "magiscore_f1_macro", "acc_full"}),
        ("selfheal", True, "self_heal", {"magiscore_f1_macro"}),
    ],
)
def test_each_variant_has_the_metrics_that_mean_something_there(variant, judged, first, absent):
    names = results.metrics(variant, judged)
    assert names[0] == first
    assert not absent & set(names)
    assert ("acc_short" in names) == judged
    assert {"acc_exact", "acc_synonym", "answer_found"} <= set(names)
    assert results.primary(variant, judged) in names


def test_an_accuracy_is_of_the_docs_that_have_a_verdict_and_says_so():
    docs = [
        record(str(i), judge={"model": "m"}, short=short, full=full)
        for i, (short, full) in enumerate([(True, True), (False, None), (None, None), (True, False)])
    ]
    found = results.numbers(docs, "all", judged=True, draws=200)
    assert (found["acc_short"].value, found["acc_short"].n) == (pytest.approx(2 / 3), 3)
    assert (found["acc_full"].value, found["acc_full"].n) == (0.5, 2)
    counts = results.counts(docs, "all", judged=True)
    assert (counts["unjudged_acc_short"], counts["unjudged_acc_full"]) == (1, 2)
    told = results.warnings(counts, judged=True)
    assert any("acc_full is computed over the 2 docs with a verdict; 2 of 4 have none" in line for line in told)


def test_self_heal_is_a_share_of_runs_resampled_by_item():
    docs = [
        record(name, healed=healed, judge={"model": "m"})
        for name, healed in (("x/2-2", True), ("x/4-5", False), ("y/3-3", True))
    ]
    for doc, item in zip(docs, "xxy", strict=True):
        doc.item = item
    found = results.numbers(docs, "selfheal", judged=True, draws=200)["self_heal"]
    assert found.value == pytest.approx(2 / 3)
    assert (found.n, found.clusters) == (3, 2)


def test_docs_of_one_image_are_one_cluster():
    docs = [record(str(i), group="sheet" if i < 3 else "") for i in range(5)]
    assert len(set(results.clusters(docs))) == 3


def test_nothing_to_average_is_none_with_a_reason():
    found = results.numbers([record(short=None, full=None, judge={"model": "m"})], "all", judged=True, draws=50)[
        "acc_short"
    ]
    assert found.value is None
    assert "acc_short" in found.reason
    assert all(one.value is None for one in results.numbers([], "all", judged=True, draws=50).values())


def test_by_type_gives_each_type_its_own_docs():
    found = results.by_type(DOCS, "all", judged=False, draws=50)
    assert list(found) == ["verify", "query"]
    assert found["verify"]["acc_exact"].value == 0.5
    assert found["query"]["magiscore_f1_macro"].value == pytest.approx((0 + 2 / 3) / 2)
    assert results.by_type(DOCS[:2], "all", judged=False) == {}


def test_the_score_of_a_doc_is_what_it_adds_to_the_mean():
    found = results.numbers(DOCS, "all", judged=False, draws=50)
    for name in found:
        parts = [results.score(doc, name) for doc in DOCS]
        if name.endswith("_micro"):
            assert parts == [None] * 4
        else:
            assert math.fsum(part for part in parts if part is not None) / 4 == pytest.approx(found[name].value)


def test_a_log_of_an_earlier_version_says_nothing_of_dismissed_boxes():
    old = {key: value for key, value in msgspec.to_builtins(record("old", used=(1, 2))).items() if key != "dismissed"}
    docs = [
        msgspec.convert(old, results.Record),
        record("new", used=(1, 2), dismissed=(2,)),
        record("none", boxes=0, relevant=()),
    ]
    assert [results.score(doc, "regions_dismissed") for doc in docs] == [None, 1.0, None]
    found = results.numbers(docs, "all", judged=False, draws=50)
    assert (found["regions_dismissed"].value, found["regions_dismissed"].n) == (1.0, 1)
    assert found["magiscore_precision_micro"].value == 2 / 4  # a dismissed box counts as used


def test_using_all_boxes_is_bad_only_where_some_are_adversarial():
    assert not results.higher_is_better("regions_exhaustive", "all")
    assert results.higher_is_better("regions_exhaustive", "relevant")
    assert results.higher_is_better("magiscore_f1_macro", "all")


def test_intervals_of_few_images_stay_within_fractions():
    docs = [record(str(i), used=(1,) if i % 2 else (2,), group=f"sheet {i % 3}", exact=i > 2) for i in range(6)]
    for one in results.numbers(docs, "all", judged=False, draws=200).values():
        assert one.low is None or 0.0 <= one.low <= one.value <= one.high <= 1.0


def test_bounds_by_hand():
    """60 docs: 30 right, 30 without a verdict. 30/30 = 1; 30/60 were these wrong, 60/60 were they right."""
    docs = [record(str(i), judge={"model": "m"}, full=True if i < 30 else None, short=i < 30) for i in range(60)]
    found = results.bounds(docs, "all", draws=200)
    assert list(found) == ["acc_full"]  # every short answer is judged
    low, high = found["acc_full"].low, found["acc_full"].high
    assert (low.value, high.value, low.n, found["acc_full"].unjudged, found["acc_full"].matter) == (
        0.5,
        1.0,
        60,
        30,
        True,
    )
    assert low.low < 0.5 < low.high
    assert high.low == pytest.approx(0.025 ** (1 / 60), abs=1e-6)  # Clopper & Pearson, 60 of 60


@pytest.mark.parametrize(("unjudged", "matters"), [(0, None), (1, False), (2, True)])
def test_bounds_matter_where_they_lie_more_than_a_point_apart(unjudged, matters):
    docs = [record(str(i), judge={"model": "m"}, short=None if i < unjudged else True) for i in range(100)]
    found = results.bounds(docs, "all", draws=50).get("acc_short")
    assert (found.matter if found else None) is matters
    told = results.warnings(results.counts(docs, "all", True), True, {"acc_short": found} if found else {})
    assert any("were all unjudged wrong it would be 0.980, were all right 1.000" in line for line in told) == bool(
        matters
    )


def test_what_is_due_a_verdict():
    """A doc without a gold answer, or with a failed call, is no part of the bounds."""
    other = {"model": "m", "short": {"reason": "so"}}
    docs = [
        record("judged", judge={**other, "full": {"reason": "so"}}, short=True, full=True),
        record("refused", judge={**other, "full": {"error": "status 400: too long"}}, short=True),
        record("no gold", judge={**other, "full": {"error": "no gold answer to compare with"}}, short=True),
        record("failed", judge={"model": "m"}, failed="no answer"),
    ]
    found = results.bounds(docs, "all", draws=50)
    assert list(found) == ["acc_full"]
    assert (found["acc_full"].low.value, found["acc_full"].high.value, found["acc_full"].unjudged) == (0.5, 1.0, 1)
    counts = results.counts(results.answered(docs), "all", True)
    assert (counts["unjudged_acc_full"], counts["without_gold_acc_full"]) == (2, 1)
    assert "1 of them for want of a gold answer" in " ".join(results.warnings(counts, True, found))
