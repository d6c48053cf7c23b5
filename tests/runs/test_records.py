import json

import msgspec
import pytest

from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.spec import Options, WrapSpec, parse
from lmms_patch.ask.views import View, views_of
from lmms_patch.errors import RecordError
from lmms_patch.runs.results import groups_of, results_files
from lmms_patch.runs.run import read
from lmms_patch.runs.scored import SampleRecord, ScoredView, best_cell, cells_of
from tests.making.logged import read_samples


def record(scores=(1.0, 0.0, 1.0, None, 1.0)):
    spec = parse("gqa_rci2")
    views = tuple(ScoredView(v, {"acc": s}, {"acc": s}) for v, s in zip(views_of(spec), scores, strict=True))
    return SampleRecord("gqa_rci2", spec, 4, ((5, 7),), views, {2: 2}, {}, {"cluster": "a"})


def test_the_object_of_the_schema():
    """docs/records.md, field by field; the boxes by the formula of DESIGN 5 on 5x7 pixels."""
    patch = record().to_json()
    assert json.loads(json.dumps(patch, allow_nan=False)) == patch
    assert set(patch) == {
        "schema",
        "task",
        "base",
        "kind",
        "grids",
        "doc_id",
        "image_sizes",
        "views",
        "best",
        "excluded",
        "fields",
    }
    assert patch["schema"] == 1
    assert patch["image_sizes"] == [[5, 7]]
    assert patch["best"] == {"2": 2}
    assert patch["views"][0] == {"kind": "full", "scores": {"acc": 1.0}, "items": {"acc": 1.0}}
    assert patch["views"][4] == {
        "kind": "cell",
        "n": 2,
        "cell": 4,
        "row": 1,
        "col": 1,
        "boxes": [[2, 3, 5, 7]],
        "scores": {"acc": 1.0},
        "items": {"acc": 1.0},
    }


def test_boxes_are_of_the_images_that_were_cut():
    """The centre of 3x3 in images of 9x9 and 18x9; with ``images: first`` only the first was cut."""
    for images, boxes in (("all", [[3, 3, 6, 6], [6, 3, 12, 6]]), ("first", [[3, 3, 6, 6]])):
        spec = WrapSpec("gqa", KINDS["rci"], (3,), Options.from_mapping({"images": images}, "test"))
        views = tuple(ScoredView(view, {"acc": 1.0}, {"acc": 1.0}) for view in views_of(spec))
        patch = SampleRecord("gqa_rci3", spec, 0, ((9, 9), (18, 9)), views, {}, {}, {}).to_json()
        assert patch["views"][5]["boxes"] == boxes
        assert patch["image_sizes"] == [[9, 9], [18, 9]]


def test_a_top_level_score_would_make_the_host_print_a_wrong_standard_error():
    assert "score" not in record().to_json()


def test_best_cell_is_the_lowest_of_the_best_and_never_an_unscored_one():
    assert best_cell(record().views, 2, "acc") == 2
    assert best_cell(record((1, 0, None, None, None)).views, 2, "acc") == 1
    assert best_cell(record((1, None, None, None, None)).views, 2, "acc") is None
    assert best_cell(record((1, 1, 0, 0.5, 0)).views, 2, "acc", higher_is_better=False) == 2


def test_cells_of_one_grid_among_several():
    views = views_of(parse("gqa_rci"))
    assert cells_of(views, 2) == [1, 2, 3, 4]
    assert cells_of(views, 3) == list(range(5, 14))
    assert views[9] == View("cell", 3, 1, 1)  # patch 5 is the centre of 3x3


def write(path, *lines):
    path.write_text("".join(line + "\n" for line in lines))
    return path


def test_reading_back(tmp_path):
    log = write(tmp_path / "x_samples_gqa_rci2.jsonl", json.dumps({"doc_id": 4, "patch": record().to_json()}))
    assert list(read_samples(log)) == [record().record()]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"doc_id": 1, "pat', "cut or not JSON"),
        ('{"doc_id": 1}', "no 'patch'"),
        ('{"patch": {"schema": 9}}', "schema 9"),
        ('{"patch": {"schema": 1, "views": []}}', "patch.views must be a list of length >= 1, not of 0"),
        (
            '{"patch": {"schema": 1, "doc_id": 1, "views": [{"scores": {"acc": NaN}}], "best": {}, "excluded": {}}}',
            "patch.views[0].scores.acc must be a finite number",
        ),
        (
            '{"patch": {"schema": 1, "doc_id": 1, "views": [{"scores": {"acc": "1"}}], "best": {}, "excluded": {}}}',
            "must be a finite number or null, not '1'",
        ),
        ('{"patch": 3}', "no 'patch'"),
        ("[1]", "cut or not JSON"),
    ],
)
def test_wrong_logs_are_one_clear_line(tmp_path, line, says):
    log = write(tmp_path / "log.jsonl", json.dumps({"patch": record().to_json()}), line)
    with pytest.raises(RecordError) as caught:
        list(read_samples(log))
    assert says in str(caught.value)
    assert "line 2" in str(caught.value)


def results(**changes):
    described = {"schema": 1, **parse("gqa_rci2").described(), "metric": "acc"}
    values = {
        "alias": "gqa",
        "acc,none": 0.5,
        "acc_stderr,none": 0.1,
        "rci2,none": None,
        "patch,none": {"records": 3, "chance": 0.25, "analysis": {}},
    }
    return {
        "configs": {"gqa_rci2": {"lmms_patch": described}, "gqa": {}},
        "results": {"gqa_rci2": values, "gqa": {"acc,none": 0.5}},
        **changes,
    }


def test_reading_results(tmp_path):
    path = write(tmp_path / "2026_results.json", json.dumps(results()))
    (found,) = read(path).results
    assert found.task == "gqa_rci2"
    assert found.filter == "none"
    assert found.metrics == {"acc": 0.5, "rci2": None, "records": 3.0, "chance": 0.25}
    assert found.docs == 3
    assert results_files(tmp_path) == [path]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"results": {}}'])
def test_wrong_results_are_one_clear_line(tmp_path, text):
    with pytest.raises(RecordError, match="not a whole results file"):
        read(write(tmp_path / "r_results.json", text))


def test_no_results(tmp_path):
    with pytest.raises(RecordError, match="output_path"):
        results_files(tmp_path)


def test_each_filter_has_its_lines(tmp_path):
    """The host writes one line per doc and filter: all docs of the first, then all of the second (per rank)."""
    docs = [{**record().to_json(), "doc_id": i, "stratum": stratum} for stratum in ("first", "second") for i in (0, 1)]
    mixed = [docs[0], docs[2], docs[1], docs[3]]  # two ranks
    log = write(tmp_path / "log.jsonl", *(json.dumps({"patch": doc}) for doc in mixed))
    assert [r.stratum for r in read_samples(log, 0)] == ["first", "first"]
    assert [r.doc_id for r in read_samples(log, 1)] == [0, 1]
    assert len(list(read_samples(log))) == 4


def test_groups(tmp_path):
    path = write(tmp_path / "2026_results.json", json.dumps(results(group_subtasks={"g": ["a", "b"], "alone": []})))
    assert groups_of(path) == {"g": ["a", "b"]}


@pytest.mark.parametrize(
    "change",
    [
        {"doc_id": [1]},
        {"doc_id": "1"},
        {"doc_id": True},
        {"best": None},
        {"excluded": []},
        {"views": 3},
        {"baselines": None},
        {"fields": "x"},
        {"answer": 1},
        {"wrong_image": 3},
        {"wrong_image": {"views": []}},
        {"wrong_image": {"from": 1, "views": [3]}},
        {"wrong_image": {"from": 1, "views": [{"kind": "full", "items": {}, "scores": {}}]}},
    ],
)
def test_a_record_whose_parts_are_of_other_types_is_refused(tmp_path, change):
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"patch": {**record().to_json(), **change}}) + "\n")
    with pytest.raises(RecordError, match=r"line 1: patch\.\w+"):
        list(read_samples(path))


@pytest.mark.parametrize("score", [float("nan"), "1"])
def test_a_score_on_a_wrong_image_that_is_no_number_is_refused(tmp_path, score):
    view = {"kind": "full", "items": {}, "scores": {"acc": score}, "said": "x"}
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"patch": {**record().to_json(), "wrong_image": {"from": 1, "views": [view]}}}) + "\n")
    with pytest.raises(
        RecordError, match=r"line 1: patch\.wrong_image\.views\[0\]\.scores\.acc must be a finite number"
    ):
        list(read_samples(path))


def test_a_doc_that_is_there_twice_is_refused(tmp_path):
    path = tmp_path / "log.jsonl"
    lines = [json.dumps({"patch": {**record().to_json(), "doc_id": i}}) + "\n" for i in (0, 1, 1)]
    path.write_text("".join(lines))
    with pytest.raises(RecordError, match="doc 1 is there 2 times, not 1"):
        list(read_samples(path))


def test_lean_records_say_the_same_but_for_boxes(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps({"patch": {**record().to_json(), "doc_id": i}}) + "\n" for i in range(3)))
    full, lean = list(read_samples(path)), list(read_samples(path, lean=True))
    assert full[0].views[1].boxes
    assert not any(view.boxes for one in lean for view in one.views)
    for one in full:
        one.views = [msgspec.structs.replace(view, boxes=None) for view in one.views]
    assert lean == full
    assert lean[0].views[1] is lean[2].views[1]
