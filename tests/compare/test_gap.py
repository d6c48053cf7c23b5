"""The vision-blind gap: hand-derived numbers, simulated worlds, and the files of runs written by hand."""

import json
import math

import numpy as np
import pytest

from lmms_patch.compare.gap import gap, leakage, leaked, rows
from lmms_patch.compare.gap_sides import GapSide, read_pair, read_side, read_subset
from lmms_patch.errors import RecordError
from tests.making.files import write_files
from tests.making.runs import mc_run, write_run
from tests.sizes import size

DATE = "2026-01-01T00-00-00.000000"


def side(scores, kind="rci", **more):
    values = scores if isinstance(scores, dict) else dict(enumerate(scores))
    return GapSide(f"toy_{kind}", "toy", kind, "acc", values, **more)


def both(full, blind, **more):
    return side(full, **more), side(blind, "blind")


# --- the gap ------------------------------------------------------------------------------------


def test_hand_derived_numbers_are_joined_on_the_doc_id():
    # d = 1, 0, 1, 0 by doc; the dicts are in other orders, and 8 and 9 are only in one run
    full, blind = both({3: 0.0, 0: 1.0, 2: 1.0, 1: 1.0, 9: 1.0}, {0: 0.0, 1: 1.0, 2: 0.0, 3: 0.0, 8: 1.0})
    found = gap(full, side(blind.scores, "blind"), {0, 2}, controls=2000)
    assert (found.original.docs, found.original.full.value, found.original.blind.value, found.original.gap.value) == (
        4,
        0.75,
        0.25,
        0.5,
    )
    assert found.kept is not None
    assert (found.kept.docs, found.kept.full.value, found.kept.blind.value, found.kept.gap.value) == (2, 1.0, 0.0, 1.0)
    assert found.widened is not None
    assert found.widened.value == 0.5
    assert (found.n_only_full, found.n_only_blind) == (1, 1)
    # of the 6 pairs of docs one has the gap 1, four 1/2, one 0
    assert found.p == pytest.approx(1 / 6, abs=0.03)
    assert found.controls is not None
    assert found.controls.mean == pytest.approx(0.5, abs=0.03)
    assert (found.controls.low, found.controls.high, found.controls.groups) == (0, 1, 1)
    assert not found.claimed  # four docs have no interval
    assert "there is no interval" in found.verdict


def test_unscored_docs_are_left_out_and_counted():
    found = gap(*both([1.0, None, 1.0], [0.0, 0.0, None]))
    assert (found.original.docs, found.original.gap.value) == (1, 1.0)
    assert "2 docs are unscored in one of the runs and are left out" in found.warnings


def test_where_lower_is_better_a_positive_gap_still_means_that_looking_helps():
    full, blind = (
        GapSide("a", "toy", "rci", "wer", {0: 0.25}, higher=False),
        GapSide("b", "toy", "blind", "wer", {0: 0.75}, higher=False),
    )
    row = gap(full, blind).original
    assert (row.full.value, row.blind.value, row.gap.value) == (0.25, 0.75, 0.5)


def test_standard_errors_are_those_of_the_paired_formulas():
    stream = np.random.default_rng(0)
    full, blind = (stream.random(2000) < 0.7).astype(float), (stream.random(2000) < 0.4).astype(float)
    kept = np.arange(2000) < 800
    found = gap(*both(full.tolist(), blind.tolist()), np.flatnonzero(kept).tolist(), draws=4000, controls=20)
    d = full - blind
    assert found.original.gap.se == pytest.approx(d.std() / math.sqrt(2000), rel=0.06)
    # difference of two overlapping means: the mean of the docs' influences
    influence = kept / 0.4 * (d - d[kept].mean()) - (d - d.mean())
    assert found.widened is not None
    assert found.widened.se == pytest.approx(influence.std() / math.sqrt(2000), rel=0.06)
    assert found.widened.value == pytest.approx(d[kept].mean() - d.mean())


# --- MMStar's leakage ---------------------------------------------------------------------------


def llm(scores, **more):
    return side(scores, "blind", model="llm", **more)


def test_leakage_is_what_the_model_answers_without_images_beyond_its_language_model():
    """By hand: S_wv = 3/4, S_t = 1/4, so ML = 1/2; and ML is never below 0."""
    found = leakage(side([1.0, 1.0, 1.0, 0.0], "blind"), llm([1.0, 0.0, 0.0, 0.0]))
    assert (found.blind.value, found.text.value, found.difference.value, found.value) == (0.75, 0.25, 0.5, 0.5)
    less = leakage(side([0.0, 0.0, 1.0], "blind"), llm([1.0, 1.0, 1.0]))
    assert (less.difference.value, less.value) == (pytest.approx(-2 / 3), 0.0)


def test_leakage_is_paired_by_doc():
    stream = np.random.default_rng(1)
    blind = (stream.random(1500) < 0.5).astype(float)
    text = np.where(stream.random(1500) < 0.9, blind, 0.0)  # the same answers but for a tenth
    found = leakage(side(blind.tolist(), "blind"), llm(text.tolist()))
    assert found.difference.se == pytest.approx((blind - text).std() / math.sqrt(1500), rel=0.06)
    assert found.difference.low > 0
    assert "it knows answers that its language model does not" in leaked(found)
    assert leaked(leakage(side(text.tolist(), "blind"), llm(blind.tolist()))).startswith(
        "no multi-modal leakage is shown: 0.000 [0.000, 0.000]"
    )


def test_where_lower_is_better_leakage_is_turned_round():
    one, two = (
        GapSide("a", "toy", "blind", "wer", {0: 0.2}, higher=False),
        GapSide("b", "toy", "blind", "wer", {0: 0.7}, higher=False, model="llm"),
    )
    assert leakage(one, two).value == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("blind", "text", "said"),
    [
        (side([1.0], "blind", model="m"), side([1.0], "blind", model="m"), "both runs without images are of m"),
        (side([1.0], "blind"), side([1.0], "tst"), "toy_tst is a text-only cross-validation"),
        (side([1.0], "blind"), GapSide("b_blind", "b", "blind", "acc", {0: 1.0}), "the language model's run of b"),
        (side({0: 1.0}, "blind"), llm({7: 1.0}), "no doc is scored in both the blind and the language model's run"),
    ],
)
def test_what_gives_no_leakage_is_refused(blind, text, said):
    with pytest.raises(RecordError, match=said):
        leakage(blind, text)


def clustered_world(stream, clusters=60, size=5):
    """Full and blind answers of docs in images that are easy or hard as a whole; the true gap is 0.3."""
    easy = np.repeat(stream.random(clusters) < 0.5, size)
    full = stream.random(clusters * size) < np.where(easy, 0.95, 0.45)
    blind = stream.random(clusters * size) < np.where(easy, 0.1, 0.7)
    return full.astype(float).tolist(), blind.astype(float).tolist(), {i: i // size for i in range(clusters * size)}


def test_the_clustered_interval_covers_the_true_gap():
    stream, covered, alone, runs = np.random.default_rng(1), 0, 0, size(100, 300)
    for _ in range(runs):
        full, blind, clusters = clustered_world(stream)
        gaps = [gap(*both(full, blind, **more), draws=300).original.gap for more in ({"clusters": clusters}, {})]
        inside = [g.low <= 0.3 <= g.high for g in gaps]
        covered, alone = covered + inside[0], alone + inside[1]
    assert 0.95 - 3.2 * math.sqrt(0.95 * 0.05 / runs) <= covered / runs <= 0.95 + 2.4 * math.sqrt(0.95 * 0.05 / runs)
    assert alone / runs < 0.85, "docs that are resampled one by one pretend to know more"


def test_clusters_known_from_either_run_count():
    full, blind = side([1.0] * 12), side([0.0] * 12, "blind", clusters={i: i // 6 for i in range(11)})
    # docs 0..5 and 6..10 share a cluster each, doc 11 has no label and is one of its own
    assert gap(full, blind).original.gap.clusters == 3


def test_random_subsets_keep_the_counts_of_every_group():
    # every doc of group a has the gap 1, every doc of b 0: with 3 of a and 1 of b each subset has the gap 3/4
    groups = {i: "a" if i < 10 else "b" for i in range(40)}
    found = gap(*both([1.0] * 40, [0.0] * 10 + [1.0] * 30, groups=groups), {0, 1, 2, 39}, controls=50)
    assert found.controls is not None
    assert (found.controls.low, found.controls.mean, found.controls.high, found.controls.groups) == (
        0.75,
        0.75,
        0.75,
        2,
    )
    assert found.p == 1


def test_a_subset_of_easier_groups_is_no_widening():
    groups = {i: "a" if i < 100 else "b" for i in range(200)}
    stream = np.random.default_rng(0)
    blind = [float(stream.random() < (0.1 if i < 100 else 0.8)) for i in range(200)]
    found = gap(*both([1.0] * 200, blind, groups=groups), set(range(50, 120)))
    assert found.widened is not None
    assert found.widened.low is not None
    assert found.widened.low > 0, "the gap of this subset is wider"
    assert not found.claimed
    assert "random subsets have gaps as wide" in found.verdict


def test_one_image_is_no_evidence_of_a_widening():
    # 12 images of 20 docs: in the first looking helps always, in the others never. The subset has all docs of the
    # first. Random subsets of docs hardly ever do; but in a third of the draws of images the first one is not there
    clusters = {i: i // 20 for i in range(240)}
    found = gap(*both([1.0] * 240, [0.0] * 20 + [1.0] * 220, clusters=clusters), range(120))
    assert found.p is not None
    assert found.p < 0.05
    assert not found.claimed
    assert found.verdict.startswith("no widening is shown (the interval reaches 0)")


def pruned_world(stream, n=200, of_shortcuts=True):
    """Docs of which 40 % can be answered blindly, and a third of them pruned: mostly those, or any."""
    shortcut = stream.random(n) < 0.4
    full = stream.random(n) < np.where(shortcut, 0.95, 0.75)
    blind = stream.random(n) < np.where(shortcut, 0.95, 0.25)
    doubt = stream.random(n) + (np.where(shortcut, 0, 0.7) if of_shortcuts else 0)
    kept = np.argsort(doubt)[n // 3 :]
    groups = {i: "mc4" if i % 3 else "yesno" for i in range(n)}
    sides = both(full.astype(float).tolist(), blind.astype(float).tolist(), groups=groups)
    return *sides, set(kept.tolist())


def claims(worlds, **kind):
    stream = np.random.default_rng(7)
    return [gap(*pruned_world(stream, **kind), controls=99, draws=200, seed=i).claimed for i in range(worlds)]


def test_pruning_what_can_be_answered_blindly_widens_the_gap():
    assert np.mean(claims(size(30, 60))) > 0.95


def test_pruning_at_random_is_hardly_ever_called_a_widening():
    runs = size(80, 300)
    assert np.mean(claims(runs, of_shortcuts=False)) <= 0.05 + 1.6 * math.sqrt(0.05 * 0.95 / runs)


def test_results_do_not_change_with_the_order_of_docs_and_are_plain_json():
    full, blind, kept = pruned_world(np.random.default_rng(3))
    one = gap(full, blind, kept, controls=30)
    back = [
        GapSide(s.task, s.base, s.kind, s.metric, dict(reversed(s.scores.items())), groups=s.groups)
        for s in (full, blind)
    ]
    assert one == gap(*back, sorted(kept), controls=30)
    told = json.loads(json.dumps(one.to_json(), allow_nan=False))
    assert told["original"]["gap"]["value"] == one.original.gap.value


def test_verdicts():
    assert (
        gap(*both([1.0] * 20, [0.0] * 20)).verdict == "looking helps: the gap is +1.000 [+0.663, +1.000]"
    )  # 20 of 20: 2 · 0.025^(1/20) − 1
    assert gap(*both([0.0] * 20, [1.0] * 20)).verdict.startswith("looking hurts")
    assert gap(*both([1.0, 0.0] * 10, [0.0, 1.0] * 10)).verdict.startswith("no gap is shown")
    assert (
        gap(*both([1.0], [0.0])).verdict
        == "unknown: the gap is 1.000 without an interval (1 docs are too few for an interval; about 10 docs would do)"
    )
    full, blind, kept = pruned_world(np.random.default_rng(0))
    assert gap(full, blind, kept).verdict.startswith("pruning widened the gap: +0.")
    other = gap(full, blind, set(range(200)) - kept).verdict
    assert other.startswith(
        "no widening is shown (random subsets have gaps as wide, and the gap is narrower than before)"
    )


def test_the_table():
    groups = {i: i % 2 for i in range(40)}  # odd docs are solved blindly
    found = gap(*both([1.0] * 40, [float(i % 2) for i in range(40)], groups=groups), range(0, 40, 2), controls=20)
    table = rows(found)
    assert table[0] == ["docs", "n", "full", "blind", "gap", "interval"]
    assert table[1][:5] == ["original", "40", "1.000", "0.500", "0.500"]
    assert table[2] == ["pruned", "20", "1.000", "0.000", "1.000", "[0.663, 1.000]"]
    assert table[3] == [
        "random (20)",
        "20",
        "1.000",
        "0.000",
        "1.000",
        "[1.000, 1.000]",
    ]  # between subsets, not between samples
    assert len(rows(gap(*both([1.0], [0.0])))) == 2
    assert rows(gap(*both([1.0], [0.0])))[1][5] == "N/A"


def test_warnings_of_a_subset():
    full = side([1.0] * 12)
    found = gap(full, side([0.0] * 12, "tst"), set(range(20)), controls=20)
    assert "8 of the 20 docs of the subset are not scored in both runs" in found.warnings
    assert "the subset has every doc: there is nothing to compare" in found.warnings
    assert not found.claimed
    assert "which is what pruning goes by" in found.verdict
    assert found.p == 1


def test_two_models_are_said():
    full, blind = side([1.0], model="big"), side([0.0], "blind", model="small")
    assert gap(full, blind).warnings == (
        "the full run is of the model big, the blind run of small: the gap is also one between models",
    )
    assert gap(full, side([0.0], "tst", model="tst_rf")).warnings == ()


@pytest.mark.parametrize(
    ("full", "blind", "kept", "says"),
    [
        (
            GapSide("x", "gqa", "plain", "acc", {0: 1.0}),
            side([1.0], "blind"),
            None,
            "is of gqa (x), the blind run of toy (toy_blind)",
        ),
        (
            GapSide("toy", "toy", "plain", "f1", {0: 1.0}),
            side([1.0], "blind"),
            None,
            "metric is f1, the blind run's acc; name one that both have",
        ),
        (
            GapSide("toy", "toy", "plain", "acc", {0: 1.0}, higher=False),
            side([1.0], "blind"),
            None,
            "not the same metric",
        ),
        (
            side({1: 1.0, 4: 1.0}),
            side({7: 1.0}, "blind"),
            None,
            "no doc is scored in both the full and the blind run (doc ids 1 to 4 and 7 to 7)",
        ),
        (side([1.0]), side([None], "blind"), None, "all are unscored in one of them"),
        (side([1.0]), side([1.0], "blind"), {5}, "none of the 1 doc ids of the subset"),
    ],
)
def test_what_cannot_be_compared_is_one_line(full, blind, kept, says):
    with pytest.raises(RecordError) as error:
        gap(full, blind, kept)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


# --- reading runs -------------------------------------------------------------------------------


def native(scores, metric="acc", **other):
    """Lines of a native log: doc id -> value of the metric, and more metrics that are the same for all docs."""
    return [
        {"doc_id": i, "target": "x", "doc_hash": "h", "token_counts": 3, metric: value, **other}
        for i, value in scores.items()
    ]


def patched(task, kind, scores, *, base="toy", fields=None, answer=None, metrics=None):
    """Lines of a wrapped task's log, with one view; ``metrics`` are more metrics that are the same for all docs."""
    lines = []
    for i, value in scores.items():
        view = {
            "kind": "blind" if kind in ("blind", "tst") else "full",
            "scores": {"acc": value, **(metrics or {})},
            "items": {"acc": value},
        }
        patch = {
            "schema": 1,
            "task": task,
            "base": base,
            "kind": kind,
            "grids": [],
            "doc_id": i,
            "image_sizes": [],
            "views": [view],
        }
        patch |= {
            "best": {},
            "excluded": {},
            "fields": fields(i) if fields else {},
            "answer": answer(i) if answer else {},
        }
        lines.append({"doc_id": i, "patch": patch})
    return lines


def write(folder, tasks, date=DATE, **more):
    """A finished run: ``{task: (kind, base, results, lines)}``.

    Kind plain is a native task, lines None a run without --log_samples.
    """
    made = {}
    for task, (kind, base, values, lines) in tasks.items():
        about = {"schema": 1, "base": base, "kind": kind, "grids": [], "metric": "acc", "options": {}}
        wrapped = {} if kind == "plain" else {"lmms_patch": about}
        counted = {"patch": {"records": len(lines or ())}} if wrapped else {}
        made[task] = {"alias": task, **values, **counted}, {"task": task, **wrapped}, lines
    return write_files(folder, made, date=date, **more)


def plain_toy(scores, task="toy", **values):
    return {
        task: (
            "plain",
            task,
            {"acc,none": float(np.mean(list(scores.values()))), "acc_stderr,none": 0.1, **values},
            native(scores),
        )
    }


def blind_toy(scores, task="toy_blind", kind="blind", base="toy", **about):
    return {
        task: (
            kind,
            base,
            {"acc,none": float(np.mean(list(scores.values())))},
            patched(task, kind, scores, base=base, **about),
        )
    }


def test_a_plain_full_run_and_a_blind_run(tmp_path):
    write(tmp_path / "full" / "model", plain_toy({2: 0.0, 0: 1.0, 1: 1.0}), config={"model": "m", "model_args": "a=1"})
    about = {
        "fields": lambda i: {"group": i // 2, "category": "c"},
        "answer": lambda i: {"format": "mc", "label": "mc4"},
    }
    write(tmp_path / "blind", blind_toy({0: 0.0, 1: 1.0, 2: 0.0}, **about))
    full, blind = read_side(tmp_path / "full", "full"), read_side(tmp_path / "blind", "blind")
    assert full == GapSide("toy", "toy", "plain", "acc", {2: 0.0, 0: 1.0, 1: 1.0}, model="m a=1")
    assert (blind.base, blind.kind, dict(blind.scores)) == ("toy", "blind", {0: 0.0, 1: 1.0, 2: 0.0})
    assert blind.clusters == {0: "0", 1: "0", 2: "1"}
    assert set(blind.groups.values()) == {("mc4", "'c'")}
    assert read_pair(tmp_path / "full", tmp_path / "blind") == (full, blind)
    found = gap(full, blind)
    assert (found.original.gap.value, found.original.gap.clusters) == (pytest.approx(1 / 3), 2)


def test_a_wrapped_full_run_is_read_from_its_full_view(tmp_path):
    made = mc_run(n=40, per_cluster=4)
    write_run(tmp_path / "full", {"toy_rci2": made})
    found = read_side(tmp_path / "full", "full")
    assert dict(found.scores) == {r["doc_id"]: r["views"][0]["scores"]["acc"] for r in made[1]}
    assert (found.base, found.kind, found.metric, found.warnings) == ("toy", "rci", "acc", ())
    assert len(set(found.clusters.values())) == 10
    assert set(found.groups.values()) == {("mc4", "'a'"), ("mc4", "'b'")}


def test_cluster_goes_before_group(tmp_path):
    write(tmp_path, blind_toy({0: 1.0, 1: 0.0}, fields=lambda i: {"cluster": "pair", "group": i}))
    assert set(read_side(tmp_path, "blind").clusters.values()) == {"'pair'"}


def test_a_text_only_cross_validation_is_a_blind_side(tmp_path):
    write(tmp_path, blind_toy({0: 1.0, 1: 0.5}, "toy_tst5", "tst"))
    assert (found := read_side(tmp_path, "blind")).kind == "tst"
    assert dict(found.scores) == {0: 1.0, 1: 0.5}


def test_items_of_a_plain_task_may_be_objects_with_a_score(tmp_path):
    lines = native({0: {"score": 1, "category": "x"}, 1: {"score": True}, 2: {"score": None}, 3: {"id": 3}})
    write(tmp_path, {"toy": ("plain", "toy", {"acc,none": 1.0}, lines)})
    assert dict(read_side(tmp_path, "full").scores) == {0: 1.0, 1: 1.0, 2: None, 3: None}


def test_the_first_filter_of_a_plain_task_is_read(tmp_path):
    lines = [*native({0: 1.0, 1: 0.0}), *native({0: 0.0, 1: 0.0})]
    write(tmp_path, {"toy": ("plain", "toy", {"acc,strict": 0.5, "acc,loose": 0.0}, lines)})
    found = read_side(tmp_path, "full")
    assert dict(found.scores) == {0: 1.0, 1: 0.0}
    assert found.warnings == ("toy: 2 filters in the run; the scores are those of the first",)


@pytest.mark.parametrize(("told", "said"), [(0.5, 0), (50.0, 0), (0.61, 1), (None, 0), ("N/A", 0)])
def test_an_aggregation_that_is_no_mean_is_said(tmp_path, told, said):
    write(tmp_path, {"toy": ("plain", "toy", {"acc,none": told}, native({0: 1.0, 1: 0.0}))})
    assert len(read_side(tmp_path, "full").warnings) == said


def test_a_plain_task_with_several_metrics(tmp_path):
    values = {"acc,none": 0.5, "f1,none": 0.2, "submission,none": None}
    lines = native({0: 1.0, 1: 0.0}, f1=0.2, submission={"id": 1})
    write(
        tmp_path / "full",
        {"toy": ("plain", "toy", values, lines)},
        higher_is_better={"toy": {"f1": False, "acc": None}},
    )
    with pytest.raises(RecordError, match="toy: several metrics in the log; choose one with --metric: acc, f1"):
        read_side(tmp_path / "full", "full")
    assert not (found := read_side(tmp_path / "full", "full", metric="f1")).higher
    assert dict(found.scores) == {0: 0.2, 1: 0.2}
    write(tmp_path / "blind", blind_toy({0: 0.0, 1: 1.0}))
    assert [one.metric for one in read_pair(tmp_path / "full", tmp_path / "blind")] == ["acc", "acc"], (
        "the blind run's primary metric"
    )


def test_the_score_key_of_the_wrapped_task_also_reads_the_plain_one(tmp_path):
    write(tmp_path / "full", {"toy": ("plain", "toy", {"acc,none": 4.0}, native({0: {"score": 1.0, "rating": 4.0}}))})
    path = write(tmp_path / "blind", blind_toy({0: 3.0}))
    data = json.loads(path.read_text())
    data["configs"]["toy_blind"]["lmms_patch"]["options"]["score"] = "rating"
    path.write_text(json.dumps(data))
    assert dict(read_pair(tmp_path / "full", tmp_path / "blind")[0].scores) == {0: 4.0}


def test_of_several_tasks_those_of_one_benchmark_are_a_pair(tmp_path):
    write(tmp_path / "full", {**plain_toy({0: 1.0}), **plain_toy({0: 0.0}, "other")})
    write(tmp_path / "blind", {**blind_toy({0: 1.0}), **blind_toy({0: 0.0}, "third_blind", base="third")})
    assert [one.task for one in read_pair(tmp_path / "full", tmp_path / "blind")] == ["toy", "toy_blind"]


def test_of_several_runs_each_side_is_the_newest_that_fits(tmp_path):
    """The newest blind run, and the newest run with images of its benchmark: neither is the newest of all."""
    runs = (
        plain_toy({0: 1.0}),
        plain_toy({0: 0.0}),
        blind_toy({0: 0.5}),
        blind_toy({0: 0.0}),
        plain_toy({0: 1.0}, "other"),
    )
    for day, tasks in enumerate(runs, start=1):
        write(tmp_path, tasks, date=f"2026-02-0{day}")
    one, other = read_pair(tmp_path, tmp_path)
    assert (one.task, other.task) == ("toy", "toy_blind")
    assert (dict(one.scores), dict(other.scores)) == ({0: 0.0}, {0: 0.0})
    for side, what in ((one, "full"), (other, "blind")):
        assert f"taken as the newest with a task for the {what} side of 5 runs here (4 left aside)" in side.warnings[0]
    for name in ("toy", "toy_blind"):
        assert [side.task for side in read_pair(tmp_path, tmp_path, task=name)] == ["toy", "toy_blind"]
    assert dict(read_side(tmp_path, "full", task="other").scores) == {0: 1.0}


def test_one_run_can_hold_both_sides_and_a_wrapped_full_side_is_preferred(tmp_path):
    full = {**plain_toy({0: 1.0}), **blind_toy({0: 1.0}, "toy_occlude2", "occlude")}
    write(tmp_path, {**full, **blind_toy({0: 0.0}), **blind_toy({0: 0.5}, "toy_tst5", "tst")})
    with pytest.raises(RecordError) as error:
        read_pair(tmp_path, tmp_path)
    assert "2 pairs of tasks" in str(error.value)
    assert "--task toy_blind" in str(error.value)
    assert [one.task for one in read_pair(tmp_path, tmp_path, task="toy_tst5")] == ["toy_occlude2", "toy_tst5"]
    with pytest.raises(RecordError, match="2 pairs"):
        read_pair(tmp_path, tmp_path, task="toy")
    assert read_side(tmp_path, "full").task == "toy_occlude2"
    assert read_side(tmp_path, "full", task="toy").task == "toy"
    with pytest.raises(RecordError, match=r"2 tasks for the blind side .toy_blind, toy_tst5.; choose one with --task"):
        read_side(tmp_path, "blind")


@pytest.mark.parametrize(
    ("tasks", "options", "says"),
    [
        (
            blind_toy({0: 1.0}),
            {},
            "no full side in this run (toy_blind); ask for a task such as gqa, or gqa_rci3, with --log_samples",
        ),
        (plain_toy({0: 1.0}), {"task": "gqa"}, "no task 'gqa' for the full side; allowed: toy"),
        (
            plain_toy({0: 1.0}),
            {"metric": "f1"},
            "toy: no metric 'f1' with a number for each doc in the log; allowed: acc",
        ),
        (
            {"toy": ("plain", "toy", {"acc,none": 1.0}, None)},
            {},
            "no sample log of toy beside it; run with --log_samples",
        ),
        ({"toy": ("plain", "toy", {"acc,none": 1.0}, [])}, {}, "no docs in this sample log"),
        (
            {"toy": ("plain", "toy", {"acc,none": 1.0}, [{"id": 1}])},
            {},
            "line 1: no doc_id; this is not a sample log of lmms-eval",
        ),
        ({"toy": ("plain", "toy", {"acc,none": 1.0}, native({0: "text"}))}, {}, "no metric has a number for each doc"),
        (blind_toy({0: 1.0}, "toy_rci2", "rci"), {"metric": "f1"}, "toy_rci2: no metric 'f1' in the log; allowed: acc"),
        (
            {**plain_toy({0: 1.0}), **plain_toy({0: 1.0}, "two")},
            {},
            "2 tasks for the full side (toy, two); choose one with --task",
        ),
    ],
)
def test_bad_runs_are_one_line(tmp_path, tasks, options, says):
    write(tmp_path, tasks)
    with pytest.raises(RecordError) as error:
        read_side(tmp_path, "full", **options)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_run_without_a_blind_side(tmp_path):
    write(tmp_path, plain_toy({0: 1.0}))
    with pytest.raises(
        RecordError,
        match=r"no blind side in this run .toy.; ask for a blind task, such as gqa_blind or gqa_tst5, with --log_samples",
    ):
        read_side(tmp_path, "blind")


def test_two_runs_of_different_benchmarks_list_what_there_is(tmp_path):
    write(tmp_path / "full", plain_toy({0: 1.0}, "gqa"))
    write(tmp_path / "blind", blind_toy({0: 1.0}))
    with pytest.raises(
        RecordError, match="no two tasks of one benchmark: the full run has gqa, the blind run toy_blind"
    ):
        read_pair(tmp_path / "full", tmp_path / "blind")
    with pytest.raises(RecordError, match="no pair of tasks of 'toy': the full run has gqa, the blind run toy_blind"):
        read_pair(tmp_path / "full", tmp_path / "blind", task="toy")


def test_a_cut_log_is_refused(tmp_path):
    path = write(tmp_path, plain_toy({0: 1.0, 1: 0.0}), **{"n-samples": {"toy": {"original": 9, "effective": 2}}})
    log = path.with_name(f"{DATE}_samples_toy.jsonl")
    text = log.read_text()
    log.write_text(text[:-5])
    with pytest.raises(RecordError, match="line 2: cut or not JSON"):
        read_side(tmp_path, "full")
    log.write_text(text.split("\n")[0] + "\n")
    with pytest.raises(RecordError, match="1 docs, but the run scored 2"):
        read_side(tmp_path, "full")
    path.write_text("{")
    with pytest.raises(RecordError, match="not a whole results file"):
        read_side(path, "full")
    with pytest.raises(RecordError, match=r"no \*_results.json here"):
        read_side(tmp_path / "nowhere", "full")


# --- reading subsets ----------------------------------------------------------------------------


@pytest.fixture
def pruning(tmp_path):
    kept = [{"key": "a1", "doc_id": 4}, {"key": "b2", "doc_id": 7}]
    (tmp_path / "pruned.json").write_text(
        json.dumps({"schema": 1, "base": "toy", "kept": kept, "removed": [{"key": "c3", "doc_id": 5}]})
    )
    (tmp_path / "kept_ids.txt").write_text("a1\nb2\n")
    return tmp_path


@pytest.mark.parametrize("name", ["", "pruned.json", "kept_ids.txt"])
def test_a_subset_from_a_pruning(pruning, name):
    assert read_subset(pruning / name) == {4, 7}
    assert read_subset(pruning / name, "toy") == {4, 7}
    with pytest.raises(RecordError, match="a pruning of toy, but the runs are of gqa"):
        read_subset(pruning / name, "gqa")


def test_a_subset_from_plain_numbers(tmp_path):
    path = tmp_path / "ids.txt"
    path.write_text("3\r\n 12\n\n0\n3\n")
    assert read_subset(path) == {0, 3, 12}


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        (
            "ids.txt",
            "3\na1b2\n",
            "ids.txt, line 2: 'a1b2' is no doc id; write one whole number a line, or give the folder of the pruning",
        ),
        ("kept_ids.txt", "a1\n", "kept_ids.txt, line 1: 'a1' is no doc id"),
        ("ids.txt", "-1\n", "line 1: '-1' is no doc id"),
        ("ids.txt", "\n", "ids.txt: no doc ids"),
        ("pruned.json", '{"schema": 2, "kept": []}', "of schema 2; written by another version of lmms-patch"),
        ("pruned.json", '{"schema": 1, "kept": []}', "no kept docs"),
        (
            "pruned.json",
            '{"schema": 1, "kept": [{"key": "a"}]}',
            "not a whole pruned.json of lmms-patch prune (kept[0].doc_id is missing)",
        ),
        ("pruned.json", "[1, 2]", "not a whole pruned.json"),
        ("pruned.json", '{"schema": 1', "not a whole pruned.json"),
        ("other.txt", None, "other.txt: cannot be read (FileNotFoundError)"),
        ("other.json", None, "other.json: not there; give the folder of a finished pruning"),
    ],
)
def test_bad_subsets_are_one_line(tmp_path, name, text, says):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(RecordError) as error:
        read_subset(tmp_path / name)
    assert says in str(error.value)
    assert "\n" not in str(error.value)
