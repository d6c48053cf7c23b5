import json

import pytest

from lmms_patch.records import SampleRecord, ScoredView, TaskResult
from lmms_patch.show import Shown, cell_tables, load, meaning, table
from lmms_patch.spec import parse
from lmms_patch.views import views_of


def result(base, fip, mpp2, mpp3, docs=100):
    spec = parse(f"{base}_rci")
    rci = [None if not fip else 1 - m / fip for m in (mpp2, mpp3)]
    metrics = {"acc": fip, "acc_mpp2": mpp2, "acc_mpp3": mpp3, "rci2": rci[0], "rci3": rci[1], "patch": docs}
    return TaskResult(spec.name, {**spec.described(), "metric": "acc"}, metrics, "none")


RUN = [
    Shown(result("local", 0.8, 0.9, 0.88), "local_rci", 0.1),
    Shown(result("count", 0.9, 0.1, 0.0), "count_rci", 0.2, excluded=3),
    Shown(result("larger", 0.55, 0.0, 0.0), "larger_rci", 0.5),
    Shown(result("zero", 0.0, 0.5, 0.5), "zero_rci"),
]


def test_table_shows_every_number():
    lines = table(RUN).splitlines()
    assert lines[2].split() == ["local_rci", "acc", "100", "0.100", "0.800", "0.900", "0.880", "-0.125", "-0.100"]
    assert lines[5].split() == ["zero_rci", "acc", "100", "n/a", "0.000", "0.500", "0.500", "n/a", "n/a"]


def test_the_sentence_says_nothing_of_a_task_that_a_constant_answers_as_well():
    """0.55 is within 2 * sqrt(0.5 * 0.5 / 100) = 0.10 of the majority's 0.5."""
    said = meaning(RUN)
    assert "one cell is enough for local" in said
    assert "only the whole image answers count" in said
    assert "the index of larger means nothing" in said
    assert "zero" not in said


def test_the_sentence_of_an_unclear_run():
    assert "no task is clearly" in meaning([Shown(result("middle", 0.8, 0.7, 0.7), "middle_rci")])


def test_a_metric_on_another_scale_is_not_a_share():
    assert "one cell is enough for percent" in meaning([Shown(result("percent", 26.0, 30.0, 31.0), "percent_rci", 0.5)])


def test_docs_that_are_left_out_are_shown():
    assert "100 (3 left out)" in table(RUN)


def test_two_filters_are_two_named_rows():
    first, second = result("two", 0.8, 0.9, 0.9), result("two", 0.8, 0.1, 0.1)
    said = meaning([Shown(first, "two_rci, first"), Shown(second, "two_rci, second")])
    assert "one cell is enough for two_rci, first" in said
    assert "only the whole image answers two_rci, second" in said


def test_occlude_shows_its_drop():
    spec = parse("gqa_occlude2")
    found = TaskResult(spec.name, {**spec.described(), "metric": "acc"}, {"acc": 0.8, "acc_drop2": 0.25, "patch": 10}, "none")
    lines = table([Shown(found, spec.name)]).splitlines()
    assert lines[0].split()[-1] == "drop_2"
    assert lines[2].split() == ["gqa_occlude2", "acc", "10", "n/a", "0.800", "0.250"]


def write_run(folder, reported, full=(1, 0, 1, 1), best=(1, 1, 0, 1), copies=50, clusters=None):
    """A results file and its sample log: ``copies`` times four docs with these full and best scores at grid 2."""
    spec, lines = parse("gqa_rci2"), []
    for doc in range(4 * copies):
        scores = (full[doc % 4], best[doc % 4], 0, 0, 0)
        views = tuple(ScoredView(v, {"acc": s}, {"acc": float(s)}) for v, s in zip(views_of(spec), scores, strict=True))
        fields = {"cluster": clusters(doc)} if clusters else {}
        record = SampleRecord("gqa_rci2", spec, doc, ((9, 9),), views, {2: 1}, {}, fields)
        lines.append(json.dumps({"doc_id": doc, "target": "ab"[doc % 2], "patch": record.to_json()}))
    (folder / "2026_samples_gqa_rci2.jsonl").write_text("\n".join(lines))
    described = {"schema": 1, **spec.described(), "metric": "acc"}
    metrics = {"acc,none": 0.75, "acc_mpp2,none": 0.75, "rci2,none": reported, "gap2,none": 0.0, "patch,none": 4 * copies}
    path = folder / "2026_results.json"
    path.write_text(json.dumps({"configs": {"gqa_rci2": {"lmms_patch": described}}, "results": {"gqa_rci2": metrics}}))
    return path


def test_intervals_come_from_the_log(tmp_path):
    """RCI = 1 − Σbest/Σfull = 0. Delta method: Var = Var(best − full) / (n · 0.75²) = 0.5 / (200 · 0.5625)."""
    (shown,) = load(write_run(tmp_path, 0.0))
    estimate = shown.intervals[2]
    assert estimate.value == 0.0
    assert estimate.se == pytest.approx((0.5 / (200 * 0.5625)) ** 0.5, rel=0.1)
    assert estimate.low < 0 < estimate.high
    assert shown.majority == 0.5
    assert "+0.000 [" in table([shown])


def test_clusters_of_the_records_are_kept_together(tmp_path):
    """50 clusters whose 4 docs cancel out: every resample of clusters gives exactly 0."""
    (shown,) = load(write_run(tmp_path, 0.0, clusters=lambda doc: f"image {doc // 4}"))
    assert (shown.intervals[2].low, shown.intervals[2].high) == (0.0, 0.0)


def test_no_interval_where_fip_is_not_the_mean_though_the_index_coincides(tmp_path):
    path = write_run(tmp_path, 0.0)
    path.write_text(path.read_text().replace('"acc_mpp2,none": 0.75', '"acc_mpp2,none": 0.1'))
    (shown,) = load(path)
    assert shown.intervals == {}


def test_no_interval_where_the_reported_index_is_not_that_of_a_mean(tmp_path):
    (shown,) = load(write_run(tmp_path, 0.1))
    assert shown.intervals == {}


def test_cells_show_where_the_score_comes_from(tmp_path):
    """Only cell 1 is ever right: it earns everything, and 150 docs with contrast leave no doubt."""
    (shown,) = load(write_run(tmp_path, 0.0))
    text = cell_tables([shown]).splitlines()
    assert "p = 0.001" in text[0]
    assert [line.split() for line in text[1:]] == [["100*", "0*"], ["0*", "0*"]]
