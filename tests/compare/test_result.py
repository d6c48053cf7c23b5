"""Two finished runs, doc by doc: numbers by hand, every form of aggregation, which docs count, and what is refused."""

import copy
import json

import numpy as np
import polars as pl
import pytest
from msgspec import structs

from lmms_patch.ask.spec import parse
from lmms_patch.compare import result as paired
from lmms_patch.errors import RecordError
from lmms_patch.runs import samples
from lmms_patch.runs.run import find
from tests.making.files import reworked
from tests.making.finished import FEW, finish
from tests.making.recordings import mean, record
from tests.making.runs import mc_run, write_run
from tests.making.tst import record as tst_record


def result(path):
    ((found,),) = (run.results for run in find([path]))
    return found


def compare(one, other, **options):
    return paired.compare(result(one), result(other), **{"draws": FEW, **options})


def numbers(found):
    return {name: (one.first, one.second, one.difference.value) for name, one in found.by_name.items()}


def scored(pairs, **more):
    """Docs of a 2×2 grid, from (score of the full image, score of the best cell)."""
    return [record(i, float(full), {2: [0.0, float(best), 0.0, 0.0]}, **more) for i, (full, best) in enumerate(pairs)]


# --- by hand --------------------------------------------------------------------------------------

A, B = [(1, 1), (1, 0), (0, 1), (1, 1)], [(1, 0), (1, 1), (1, 1), (1, 0)]


def test_four_docs_by_hand(tmp_path):
    """A: FIP 3/4, MPP 3/4, RCI 0. B: FIP 1, MPP 2/4, RCI 1 − 0.5 = 0.5. Each doc 25 times, which changes no number.

    On the full image B alone is right on the third doc only: 25 times, and A never.
    """
    one, two = (finish(tmp_path / name, scored(docs * 25)) for name, docs in (("a", A), ("b", B)))
    found = compare(one, two)
    assert (found.docs, found.unscored, found.only_first, found.only_second, found.clusters) == (100, 0, (), (), None)
    assert numbers(found) == {
        "fip": (0.75, 1.0, 0.25),
        "mpp2": (0.75, 0.5, -0.25),
        "rci2": (0.0, 0.5, 0.5),
        "gap2": (0.0, 0.5, 0.5),
    }
    assert (found.mcnemar.only_first, found.mcnemar.only_second) == (0, 25)
    assert [found.by_name[name].differing for name in ("fip", "mpp2", "rci2")] == [25, 75, 100]


def test_its_intervals_against_a_loop(tmp_path):
    one, two = (finish(tmp_path / name, scored(docs * 25)) for name, docs in (("a", A), ("b", B)))
    found = compare(one, two, draws=4000).by_name
    stream, slow = np.random.default_rng(0), []
    for _ in range(4000):
        docs = stream.integers(0, 4, 100)  # the four kinds are equally frequent
        sums = [[sum(side[i][k] for i in docs) for k in (0, 1)] for side in (A, B)]
        slow.append((sums[1][0] - sums[0][0]) / 100)
        slow[-1] = (slow[-1], (1 - sums[1][1] / sums[1][0]) - (1 - sums[0][1] / sums[0][0]))
    for name, drawn in zip(("fip", "rci2"), np.array(slow).T, strict=True):
        estimate = found[name].difference
        assert estimate.se == pytest.approx(drawn.std(), rel=0.06)
        np.testing.assert_allclose([estimate.low, estimate.high], np.quantile(drawn, [0.025, 0.975]), atol=0.03)


def test_the_order_of_docs_changes_nothing(tmp_path):
    records = scored(B * 25)
    shuffled = [records[i] for i in np.random.default_rng(0).permutation(100)]
    paths = [finish(tmp_path / name, docs) for name, docs in (("a", scored(A * 25)), ("b", records), ("c", shuffled))]
    first, second = compare(paths[0], paths[1]), compare(paths[0], paths[2])
    assert first == second


# --- which docs -----------------------------------------------------------------------------------


def test_docs_of_one_run_only(tmp_path):
    """A was asked docs 0..99, B docs 3..102. Both sides are over docs 3..99."""
    first, second = scored(A * 25), scored(B * 26)[3:103]
    found = compare(finish(tmp_path / "a", first), finish(tmp_path / "b", second))
    assert (found.only_first, found.only_second) == ((0, 1, 2), (100, 101, 102))
    assert found.docs == 97
    assert found.by_name["fip"].first == pytest.approx(sum(full for full, _ in (A * 25)[3:]) / 97)
    assert found.by_name["mpp2"].second == pytest.approx(sum(best for _, best in (B * 25)[3:]) / 97)


def test_no_doc_in_common(tmp_path):
    with pytest.raises(RecordError, match="no doc in common"):
        compare(finish(tmp_path / "a", scored(A)), finish(tmp_path / "b", scored(B * 2)[4:]))


def test_unscored_docs_are_left_out_of_both(tmp_path):
    first, second = scored(A * 25), scored(B * 25)
    first[2] = record(2, None, {2: [0.0, 1.0, 0.0, 0.0]})
    found = compare(finish(tmp_path / "a", first), finish(tmp_path / "b", second))
    assert (found.docs, found.unscored) == (99, 1)
    assert found.by_name["fip"].first == pytest.approx(75 / 99)
    assert found.by_name["fip"].second == pytest.approx(1.0)


def test_where_a_cell_could_not_be_scored_there_is_no_index_to_compare(tmp_path):
    first, second = scored(A * 25), scored(B * 25)
    first[1] = record(1, 1.0, {2: [0.0, 0.0, None, 0.0]})
    found = compare(finish(tmp_path / "a", first), finish(tmp_path / "b", second))
    assert found.docs == 100
    assert found.by_name["fip"].first == 0.75
    assert "not defined in the first run" in found.by_name["mpp2"].difference.reason


def test_docs_of_another_metric_are_not_unscored(tmp_path):
    def without(records):
        for view in records[0]["views"]:
            view["scores"], view["items"] = {"other": 1.0}, {"other": 1.0}
        return records

    found = compare(finish(tmp_path / "a", without(scored(A * 25))), finish(tmp_path / "b", without(scored(B * 25))))
    assert (found.docs, found.unscored) == (99, 0)


def test_only_grids_of_both(tmp_path):
    def docs(grids):
        return [
            record(i, float(i % 3 > 0), {n: [0.0] * (n * n - 1) + [float(i % 2)] for n in grids}) for i in range(60)
        ]

    found = compare(finish(tmp_path / "a", docs((2, 3))), finish(tmp_path / "b", docs((3,))))
    assert set(found.by_name) == {"fip", "mpp3", "rci3", "gap3"}


# --- clusters -------------------------------------------------------------------------------------


def test_clusters_widen_the_interval(tmp_path):
    """Four docs of an image are right or wrong together."""

    def docs(seed, cluster):
        right = np.repeat(np.random.default_rng(seed).random(60) < 0.6, 4)
        return [
            record(i, float(right[i]), {2: [1.0, 0.0, 0.0, 0.0]}, cluster=i // 4 if cluster else i) for i in range(240)
        ]

    def se(cluster):
        paths = [
            finish(tmp_path / f"{seed}{cluster}", docs(seed, cluster), options={"cluster": "image"}) for seed in (0, 1)
        ]
        found = compare(*paths)
        return found.clusters, found.by_name["fip"].difference.se

    (few, wide), (many, narrow) = se(True), se(False)
    assert (few, many) == (60, 240)
    assert wide == pytest.approx(2 * narrow, rel=0.15)  # √4


# --- forms ----------------------------------------------------------------------------------------


def f1(items):
    hits = sum(i["prediction"] == i["ground_truth"] == "yes" for i in items)
    wrong = sum(i["prediction"] != i["ground_truth"] for i in items)
    return 2 * hits / (2 * hits + wrong)


@pytest.mark.parametrize("scalars", [True, False])
def test_f1_by_hand(tmp_path, scalars):
    """Golds y y n n. A says y n y n: 1 hit, 2 wrong: 2 / 4. B says y y n y: 2 hits, 1 wrong: 4 / 5.

    Also where single docs have no score.
    """

    def docs(said):
        out = []
        for i in range(100):
            item = {"prediction": said[i % 4], "ground_truth": ("yes", "yes", "no", "no")[i % 4]}
            right = float(item["prediction"] == item["ground_truth"])
            one = record(i, right, {2: [right] * 4}, items=lambda score, item=item: {**item, "score": score})
            for view in () if scalars else one["views"]:
                view["scores"] = {"acc": None}
                del view["items"]["acc"]["score"]
            out.append(one)
        return out

    answers = ("yes", "no", "yes", "no"), ("yes", "yes", "no", "yes")
    options = {"aggregation": {"acc": "f1"}}
    found = compare(*(finish(tmp_path / str(k), docs(said), f1, options=options) for k, said in enumerate(answers)))
    assert found.docs == 100
    assert numbers(found)["fip"] == (0.5, pytest.approx(0.8), pytest.approx(0.3))
    assert found.by_name["fip"].p is not None
    assert (found.mcnemar is not None) == scalars


def mme(items):
    """Fu et al. 2023, 2.2: sum over categories of 100 · (accuracy + share of pairs that are right on both).

    A pair of which one doc is missing counts for nothing.
    """
    out = 0.0
    for category in sorted({item["category"] for item in items}):
        own = [item for item in items if item["category"] == category]
        pairs = {}
        for item in own:
            pairs.setdefault(item["pair"], []).append(item["score"])
        whole = [pair for pair in pairs.values() if len(pair) == 2]
        out += 100 * np.mean([np.mean(pair) + (min(pair) == 1) for pair in whole])
    return out


def mme_docs(right):
    """Pairs (2i, 2i + 1), the category changes from pair to pair."""
    out = []
    for i, score in enumerate(right):
        about = {"pair": i // 2, "category": f"c{i // 2 % 2}"}
        out.append(
            record(
                i,
                score,
                {2: [score] * 4},
                items=lambda s, about=about: {**about, "score": s},
                cluster=i // 2,
                category=about["category"],
            )
        )
    return out


MME_OPTIONS = {"aggregation": {"acc": "mme"}, "cluster": "pair", "category": "category"}


def test_mme_keeps_pairs_and_categories(tmp_path):
    stream = np.random.default_rng(0)
    sides = [(stream.random(120) < share).astype(float).tolist() for share in (0.5, 0.8)]
    paths = [finish(tmp_path / str(k), mme_docs(right), mme, options=MME_OPTIONS) for k, right in enumerate(sides)]
    found = compare(*paths)
    by_hand = [mme([r["views"][0]["items"]["acc"] for r in mme_docs(right)]) for right in sides]
    assert numbers(found)["fip"] == (
        pytest.approx(by_hand[0]),
        pytest.approx(by_hand[1]),
        pytest.approx(by_hand[1] - by_hand[0]),
    )
    assert found.clusters == 60
    assert found.by_name["fip"].difference.low > 0


@pytest.mark.parametrize("how", ["missing", "unscored"])
def test_a_broken_pair_leaves_whole(tmp_path, how):
    """Doc 5 is missing or unscored in B: its partner, doc 4, is not compared either."""
    stream = np.random.default_rng(1)
    sides = [(stream.random(120) < share).astype(float).tolist() for share in (0.5, 0.8)]
    first, second = (mme_docs(right) for right in sides)
    kept = [i for i in range(120) if i not in (4, 5)]
    by_hand = [mme([side[i]["views"][0]["items"]["acc"] for i in kept]) for side in (first, second)]
    broken = copy.deepcopy(second)
    for view in broken[5]["views"][{"missing": slice(0), "unscored": slice(1)}[how]]:
        view.update(scores={}, items={}, error="the scorer failed")
    path = finish(tmp_path / "b", broken, mme, options=MME_OPTIONS)
    if how == "missing":
        table = samples.path_of(path, "toy_rci2")
        host = structs.replace(samples.about_of(table).host, original=119, effective=119)
        reworked(table, keep=pl.col("doc_id") != 5, host=host)
    found = compare(finish(tmp_path / "a", first, mme, options=MME_OPTIONS), path)
    assert numbers(found)["fip"][:2] == (pytest.approx(by_hand[0]), pytest.approx(by_hand[1]))
    assert (found.docs, found.unscored) == (118, 1 if how == "unscored" else 0)
    assert any("1 docs are left out: not all docs of their cluster" in line for line in found.warnings)


def test_other_categories_are_refused(tmp_path):
    right = [1.0, 0.0] * 30
    other = mme_docs(right)
    for one in other:
        one["fields"]["category"] = "x" + one["fields"]["category"]
        for view in one["views"]:
            view["items"]["acc"]["category"] = one["fields"]["category"]
    with pytest.raises(RecordError, match="put docs in other categories"):
        compare(
            finish(tmp_path / "a", mme_docs(right), mme, options=MME_OPTIONS),
            finish(tmp_path / "b", other, mme, options=MME_OPTIONS),
        )


def test_an_aggregation_that_only_the_run_knows(tmp_path):
    """The square of the mean is no sum: the runs' own numbers, and their standard errors as if of two samples."""
    one, two = (
        finish(tmp_path / name, scored(docs * 25), lambda items: mean(items) ** 2)
        for name, docs in (("a", A), ("b", B))
    )
    found = compare(one, two)
    assert numbers(found)["fip"] == (0.5625, 1.0, 0.4375)
    assert (
        found.by_name["fip"].difference.low is None
    )  # B is right everywhere: no draw differs, and an unseen doc cannot be scored
    assert "nothing says how sure" in found.by_name["fip"].difference.reason
    assert found.by_name["rci2"].difference.reason == "unpaired"
    assert (
        found.by_name["rci2"].difference.low
        < found.by_name["rci2"].difference.value
        < found.by_name["rci2"].difference.high
    )
    assert any("the runs' own numbers" in line for line in found.warnings)
    with pytest.raises(RecordError, match="other docs"):
        compare(one, finish(tmp_path / "c", scored(B * 24), lambda items: mean(items) ** 2))


def test_a_metric_that_is_better_when_lower(tmp_path):
    """No index; McNemar's "right" is the lower score: A is right where it has 0."""
    sides = [
        [record(i, float(full), {2: [float(best)] * 4}) for i, (full, best) in enumerate(docs * 25)] for docs in (A, B)
    ]
    one, two = (finish(tmp_path / str(k), side, higher=False) for k, side in enumerate(sides))
    found = compare(one, two)
    assert not found.higher
    assert found.by_name["fip"].differing == 25
    assert (found.by_name["rci2"].difference.value, found.by_name["rci2"].first) == (None, None)
    assert "better when lower" in found.by_name["rci2"].difference.reason
    assert (found.mcnemar.only_first, found.mcnemar.only_second) == (25, 0)


def test_a_metric_without_a_natural_zero(tmp_path):
    """One cell of one run scores −1: the indices of both say nothing, FIP, MPP and gap do."""
    first, second = scored(A * 25), scored(B * 25)
    second[7]["views"][3]["scores"]["acc"] = -1.0
    found = compare(finish(tmp_path / "a", first), finish(tmp_path / "b", second)).by_name
    assert (found["rci2"].difference.value, found["rci2"].second) == (None, None)
    assert "no natural zero" in found["rci2"].difference.reason
    assert (found["fip"].difference.value, found["mpp2"].difference.value, found["gap2"].difference.value) == (
        0.25,
        -0.25,
        0.5,
    )


# --- what has not changed -------------------------------------------------------------------------


def rescored(records, doc, place, score):
    """The records with another score at one view of one doc; what is best stays."""
    out = json.loads(json.dumps(records))
    view = out[doc]["views"][place]
    view["scores"]["acc"] = view["items"]["acc"] = score
    return out


@pytest.mark.parametrize(
    ("change", "identical"),
    [
        (lambda records: records, True),
        (lambda records: rescored(records, 0, 1, 0.5), False),  # a cell, though not the best
        # one doc up, one down: FIP is the same number
        (lambda records: rescored(rescored(records, 2, 0, 1.0), 0, 0, 0.0), False),
        (lambda records: records[:-4], False),  # other docs, of the same kinds
    ],
)
def test_what_has_not_changed_goes_by_each_score_not_by_the_numbers(tmp_path, change, identical):
    found = compare(finish(tmp_path / "a", scored(A * 25)), finish(tmp_path / "b", change(scored(A * 25))))
    assert found.identical is identical


def test_of_a_metric_that_counts_items_the_items_must_be_the_same(tmp_path):
    """F1 from (gold, prediction): a doc whose gold is no, and whose prediction turns, keeps the scalar 1 here.

    The F1 it is counted in does not.
    """

    def items(turned):
        made = scored(A * 25)
        for i, one in enumerate(made):
            for view in one["views"]:
                view["items"]["acc"] = {
                    "prediction": "yes" if view["scores"]["acc"] and i != turned else "no",
                    "ground_truth": "yes" if i % 2 else "no",
                }
        return made

    def f1(found):
        both = sum(one["prediction"] == one["ground_truth"] == "yes" for one in found)
        return (
            2
            * both
            / (sum(one["prediction"] == "yes" for one in found) + sum(one["ground_truth"] == "yes" for one in found))
        )

    paths = [
        finish(tmp_path / str(turned), items(turned), f1, options={"aggregation": {"acc": "f1"}}) for turned in (-1, 0)
    ]
    assert compare(paths[0], paths[0]).identical
    assert compare(*paths).by_name["fip"].differing == 1


# --- the gate -------------------------------------------------------------------------------------


def test_near_chance_there_is_no_index_but_a_score(tmp_path):
    """The second run guesses: its index is N/A there, and so is the difference; FIP and MPP stay."""
    write_run(tmp_path / "a", {"toy_rci2": mc_run(n=300)})
    write_run(tmp_path / "b", {"toy_rci2": mc_run(n=300, know_full=0.0, know_cell=0.0)})
    found = compare(tmp_path / "a", tmp_path / "b")
    assert not result(tmp_path / "b").analysis.gate.valid
    one = found.by_name["rci2"]
    assert (one.second, one.difference.value, one.difference.low, one.p) == (None, None, None, None)
    assert one.first == pytest.approx(result(tmp_path / "a").measures["rci2"].value)
    assert one.difference.reason.startswith("not defined in the second run: near chance: FIP ")
    assert found.by_name["fip"].difference.high < 0
    assert found.by_name["mpp2"].difference.value is not None


# --- text-only cross-validation ----------------------------------------------------------------------


def tst_run(folder, rights, sources=None):
    records = [tst_record(i, (float(r), float(r)), (1.0, 1.0), (0.0, 0.0), "x") for i, r in enumerate(rights)]
    for i, one in enumerate(records):
        one["tst"]["source"] = None if sources is None else sources(i)
        one["tst"]["scores"]["source"][1] = float(rights[i] and i % 2)  # the second fold seed: half of them
    return write_run(folder, {"toy_tst5": (parse("toy_tst5"), records, None)})


def test_text_only_by_hand(tmp_path):
    """40 docs, A right on 20, B on 30 at the first seed.

    Of these at the second seed only odd ones: means (20 + 10) / 80 and (30 + 15) / 80.
    """
    one, two = (
        tst_run(tmp_path / "a", [i < 20 for i in range(40)]),
        tst_run(tmp_path / "b", [i < 30 for i in range(40)]),
    )
    found = compare(one, two)
    assert numbers(found)["tst"] == (pytest.approx(0.375), pytest.approx(0.5625), pytest.approx(0.1875))
    assert {name for name, one in found.by_name.items() if one.differing is None} == {
        "tst_above",
        "tst_over_chance",
        "tst_leakage",
    }
    assert (found.mcnemar, found.clusters) == (None, None)


# --- what is refused ------------------------------------------------------------------------------


def test_other_golds_are_refused(tmp_path):
    def docs(golds):
        return [record(i, 1.0, {2: [1.0] * 4}, answer=("mc", 4, gold)) for i, gold in enumerate(golds)]

    one, two = (
        finish(tmp_path / name, docs(golds)) for name, golds in (("a", "ABCD" * 10), ("b", "ABCD" * 9 + "ABCA"))
    )
    with pytest.raises(
        RecordError, match="doc 39 has the gold 'D' in the first run and 'A' in the second: the benchmark has changed"
    ):
        compare(one, two)


@pytest.mark.parametrize(
    ("more", "word"),
    [({"name": "other"}, "benchmark"), ({"kind": "occlude"}, "kind"), ({"options": {"images": "first"}}, "views")],
)
def test_other_things_are_refused(tmp_path, more, word):
    with pytest.raises(RecordError, match=f"cannot be compared: other .*{word}"):
        compare(finish(tmp_path / "a", scored(A * 5)), finish(tmp_path / "b", scored(A * 5), **more))


def test_other_settings_are_told_in_words(tmp_path):
    one = finish(
        tmp_path / "a",
        scored(A * 25),
        made={"prompts": "0" * 16, "lmms_eval": "0.7.2"},
        about={"config": {"model": "m", "limit": 100}},
    )
    two = finish(
        tmp_path / "b", scored(B * 25), made={"prompts": "1" * 16, "lmms_eval": "0.7.3"}, options={"delta": 0.02}
    )
    found = compare(one, two)
    assert set(found.settings) == {
        "limit (100 and all)",
        "prompts",
        "lmms-eval version (0.7.2 and 0.7.3)",
        "statistics",
    }


def test_no_doc_is_scored(tmp_path):
    records = [record(i, None, {2: [None] * 4}) for i in range(20)]
    path = finish(tmp_path, records)
    with pytest.raises(RecordError, match=r"no metric 'acc' in the log|no doc is scored in both"):
        compare(path, path)
