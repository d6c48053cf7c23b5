"""What the explorer says of docs, against the log itself: read as JSON, and counted in plain loops."""

import json
import shlex
from collections import Counter

import pytest

from lmms_patch.errors import RecordError
from lmms_patch.present.explore import explorer as explorer_module
from lmms_patch.present.explore.docs import STATES
from lmms_patch.present.explore.explorer import open_runs
from lmms_patch.runs.need import NEEDS, needs
from tests.making.explored import kind_of, write_many


def lines(folder, task):
    [log] = folder.glob(f"*_samples_{task}.jsonl")
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def right(view):
    return view["scores"]["acc"] >= 0.5


def by_hand(line):
    """The class of a doc whose every view has a score from 0 to 1."""
    patch = line["patch"]
    lost = (patch.get("wrong_image") or {}).get("views") or []
    cells = any(right(view) for view in patch["views"] if view.get("n") == max(patch["grids"]))
    image = 1 if cells else 2 if right(patch["views"][0]) else 3
    return image, None if not lost else 0 if right(lost[0]) else image


@pytest.mark.parametrize("task", ["mosaic_center_rci", "mosaic_count_rci", "mosaic_larger_rci", "mosaic_text_rci"])
def test_columns_are_those_of_the_log(stored, loaded, task):
    explorer = loaded(stored / "mosaic")
    found = explorer.columns([one.name for one in explorer.tasks].index(task))
    log = lines(stored / "mosaic", task)
    assert found["ids"] == [line["doc_id"] for line in log]
    assert found["image"][0] == "".join(str(by_hand(line)[0]) for line in log)
    assert found["need"][0] == "".join("-" if need is None else str(need) for _, need in map(by_hand, log))
    assert found["first"][0] == "".join(STATES["right" if right(line["patch"]["views"][0]) else "wrong"] for line in log)
    assert found["cells"][0] == [sum(right(view) for view in line["patch"]["views"] if view.get("n") == 3) for line in log]
    assert [found["categories"][one] for one in found["category"]] == [line["patch"]["fields"]["category"] for line in log]


def test_classes_are_those_of_the_analysis(stored, loaded):
    for name in ("mosaic", "world_a"):
        explorer = loaded(stored / name)
        for number, task in enumerate(explorer.tasks):
            result = task.main.result
            known = needs(list(result.records()), result.described["metric"], max(result.described["grids"]))
            assert explorer.columns(number)["need"][0] == "".join("-" if need is None else str(NEEDS.index(need)) for need in known)


def test_the_map_of_a_run_that_stored_none_is_made_of_the_log(album, loaded):
    """Of the 150 docs of the first 300 that a cell answers 75 are text; so of the 60 among the other 120 that a cell answers half are."""
    [found] = loaded(album).about()["tasks"][0]["maps"]
    assert Counter(map(kind_of, range(300))) == dict.fromkeys(NEEDS, 75)
    assert Counter(map(kind_of, range(300, 420))) == {"one cell": 60, "whole image": 30, "unsolved": 30}
    expected = {"text": 75 + 30, "one cell": 75 + 30, "whole image": 75 + 30, "unsolved": 75 + 30}
    assert {need: share["value"] for need, share in found["shares"].items()} == pytest.approx({need: docs / 420 for need, docs in expected.items()})
    assert (found["docs"], found["checked"], found["n"]) == (420, 300, 3)


def test_a_category_has_a_map_of_its_own(album, loaded):
    explorer = loaded(album)
    names = explorer.columns(0)["categories"]
    maps = [explorer.maps(0, number)[0] for number in range(len(names))]
    assert sum(one["docs"] for one in maps) == 420
    assert names == ["indoor", "other", "outdoor"]


def test_every_answer_of_a_doc(album, loaded):
    doc = loaded(album).doc(0, 3)
    [side] = doc["sides"]
    assert (doc["id"], doc["size"], doc["gold"], doc["options"]) == (3, [300, 200], "B", ["a cat", "a dog", "a hen", "a cow"])
    assert [view["state"] for view in side["views"]] == ["right", *["wrong"] * 4, "right", *["wrong"] * 4]
    assert side["views"][5]["box"] == [33.3333, 33.0, 33.3333, 33.5]  # rows 66 to 133 of 200, columns 100 to 200 of 300
    assert [view["answer"] for view in side["views"][:2]] == ["B", "C"]
    assert (side["wrong"][0]["answer"], side["wrong_from"], side["excluded"]) == ("B", 3, None)


def test_search_looks_at_question_gold_category_and_first_answer(album, loaded):
    explorer = loaded(album)
    assert explorer.search("PICTURE 7919 of") == [[1]]
    assert explorer.search("outdoor")[0] == list(range(1, 420, 3))
    assert explorer.search("no such text anywhere") == [[]]
    assert explorer.search("") == [[]]


def test_two_runs_are_joined_by_doc(tmp_path, loaded):
    one, two = write_many(tmp_path / "one", 40).parent, write_many(tmp_path / "two", 40).parent
    [log] = two.glob("*.jsonl")
    turned = list(reversed(log.read_text().splitlines()))
    turned[0] = turned[0].replace('["C", "C", "C", "C", "C", "C", "C", "C", "C", "C"', '["hen", "C", "C", "C", "C", "C", "C", "C", "C", "C"')
    log.write_text("\n".join(turned) + "\n")
    results = json.loads(next(two.glob("*_results.json")).read_text()) | {"model_name": "org/other"}
    next(two.glob("*_results.json")).write_text(json.dumps(results))
    explorer = loaded(one, two)
    assert explorer.models == ["org/vlm", "org/other"]
    found = explorer.columns(0)
    assert found["ids"] == list(range(40))
    assert found["need"][0] == found["need"][1]
    doc = explorer.doc(0, 17)
    assert doc["sides"][0]["views"] == doc["sides"][1]["views"]


def test_a_doc_that_the_other_run_lacks_has_no_answers_there(tmp_path, loaded):
    explorer = loaded(write_many(tmp_path / "one", 12).parent, write_many(tmp_path / "two", 8).parent)
    found = explorer.columns(0)
    assert found["first"][1][8:] == "nnnn"
    assert found["need"][1][8:] == "----"
    assert explorer.doc(0, 9)["sides"][1] is None
    assert [row["answers"] for row in explorer.rows(0, [7, 9])] == [["B", "B"], ["B", None]]


def test_a_blind_run_says_which_docs_are_text(tmp_path, loaded):
    explorer = loaded(write_many(tmp_path / "out", 400, blind=lambda doc: doc % 8 == 1).parent)
    assert [task.main.result.kind.name for task in explorer.tasks] == ["rci", "blind"]  # those with cells first
    need = [0 if doc % 8 == 1 else NEEDS.index(kind_of(doc)) for doc in range(400)]
    assert explorer.columns(0)["need"][0] == "".join(map(str, need))
    assert explorer.doc(0, 9)["sides"][0]["blind"]["answer"] == "by heart"
    assert explorer.doc(0, 8)["sides"][0]["blind"]["state"] == "wrong"
    assert explorer.columns(1)["need"][0] == "-" * 400


def test_the_command_asks_the_one_doc(album, stored, loaded):
    words = shlex.split(loaded(album).doc(0, 5)["sides"][0]["command"])
    assert words[:5] == ["lmms-eval", "--model", "vlm", "--tasks", "album_rci3"]
    assert words[words.index("--limit") + 1] == "1"
    assert words[words.index("--offset") + 1] == "5"
    assert "--limit" not in loaded(stored / "tst").doc(0, 5)["sides"][0]["command"]  # a cross-validation needs all docs


def test_runs_that_cannot_be_shown_are_refused_in_one_line(tmp_path, stored):
    with pytest.raises(RecordError, match="a MAGIC task has no cells; type 'lmms-patch magic show"):
        open_runs([stored / "magic_a"])
    bare = write_many(tmp_path / "bare", 8)
    bare.write_text(json.dumps(json.loads(bare.read_text()) | {"configs": {"album_rci3": {}}}))
    with pytest.raises(RecordError, match="no task of lmms-patch in this run"):
        open_runs([bare])
    unlogged = write_many(tmp_path / "unlogged", 8)
    next(unlogged.parent.glob("*.jsonl")).unlink()
    with pytest.raises(RecordError, match="album_rci3: no sample log, so its docs are not known; run with --log_samples"):
        open_runs([unlogged])
    one, two = write_many(tmp_path / "one", 8), write_many(tmp_path / "two", 8)
    for path, digest in ((one, "a" * 16), (two, "b" * 16)):
        data = json.loads(path.read_text())
        data["results"]["album_rci3"]["patch,none"]["made"] = {"docs": digest}
        path.write_text(json.dumps(data))
    with pytest.raises(RecordError, match="asked different docs"):
        open_runs([one, two])


def test_the_docs_of_a_long_log_come_in_two_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(explorer_module, "MANY", 50)
    monkeypatch.setattr(explorer_module, "FIRST", 20)
    explorer = open_runs([write_many(tmp_path / "out", 90).parent])
    assert explorer.about()["tasks"][0]["docs"] == 0
    assert [len(docs) for docs in explorer_module._read(explorer.tasks[0].main.result)] == [20, 90]


def test_a_log_that_cannot_be_read_is_told_and_the_others_are_shown(stored):
    explorer = open_runs([stored / "damaged"])
    with pytest.raises(RecordError, match=r"mosaic_center_rci\.jsonl, line 20: cut or not JSON"):
        explorer.load()
    assert [task.name for task in explorer.tasks if not task.whole] == ["mosaic_center_rci"]
    assert explorer.search("digit")[0] == []
    assert explorer.left_out == ["mosaic_count_rci: no sample log, so its docs are not known; run with --log_samples"]


def test_where_lower_is_better_nothing_is_right_or_wrong(tmp_path, loaded):
    path = write_many(tmp_path / "out", 8)
    data = json.loads(path.read_text())
    data["results"]["album_rci3"]["patch,none"]["higher_is_better"] = {"acc": False}
    path.write_text(json.dumps(data))
    explorer = loaded(path)
    assert explorer.columns(0)["need"][0] == "-" * 8
    assert explorer.about()["tasks"][0]["note"] == "acc is better when lower, so answers have a score, but are not right or wrong"
    assert explorer.about()["tasks"][0]["maps"] == [None]
    assert explorer.doc(0, 0)["sides"][0]["views"][0]["score"] == 1.0
