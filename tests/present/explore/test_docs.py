"""What the explorer says of docs, against the log itself: read as JSON, and counted in plain loops."""

import json
import re
import shlex
import shutil
from collections import Counter

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.errors import RecordError
from lmms_patch.present.explore import explorer as explorer_module
from lmms_patch.present.explore.explorer import open_runs
from lmms_patch.present.explore.views import RIGHT, WRONG
from lmms_patch.rci import recompute
from lmms_patch.runs.need import NEEDS, needs
from lmms_patch.runs.run import find
from lmms_patch.runs.samples import table
from tests.making.explored import grown, kind_of, write_many, write_swap
from tests.making.files import DATE, described, lines_of, write_files
from tests.making.runs import as_record, quick, turned_run, world_run, write_run


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


@pytest.mark.parametrize("task", ["mosaic_center_rci3", "mosaic_count_rci3", "mosaic_text_rci3"])
def test_columns_are_those_of_the_log(stored, loaded, task):
    explorer = loaded(stored / "demo")
    found = explorer.columns([one.name for one in explorer.tasks].index(task))
    log = lines(stored / "demo", task)
    assert found["ids"] == [line["doc_id"] for line in log]
    assert found["image"][0] == "".join(str(by_hand(line)[0]) for line in log)
    assert found["need"][0] == "".join("-" if need is None else str(need) for _, need in map(by_hand, log))
    assert found["first"][0] == "".join(RIGHT if right(line["patch"]["views"][0]) else WRONG for line in log)
    assert found["cells"][0] == [
        sum(right(view) for view in line["patch"]["views"] if view.get("n") == 3) for line in log
    ]
    assert [found["categories"][one] for one in found["category"]] == [
        line["patch"]["fields"]["category"] for line in log
    ]


def test_classes_are_those_of_the_analysis(stored, loaded):
    for name in ("demo", "grids"):
        explorer = loaded(stored / name)
        for number, task in enumerate(explorer.tasks):
            result = task.main.result
            known = needs(list(result.records()), result.described["metric"], max(result.described["grids"]))
            assert explorer.columns(number)["need"][0] == "".join(
                "-" if need is None else str(NEEDS.index(need)) for need in known
            )


def test_the_map_of_a_run_that_stored_none_is_made_of_the_log(album, loaded):
    """Of the 150 docs of the first 300 that a cell answers 75 are text.

    So of the 60 among the other 120 that a cell answers half are.
    """
    [found] = loaded(album).about()["tasks"][0]["maps"]
    assert Counter(map(kind_of, range(300))) == dict.fromkeys(NEEDS, 75)
    assert Counter(map(kind_of, range(300, 420))) == {"one cell": 60, "whole image": 30, "unsolved": 30}
    expected = {"text": 75 + 30, "one cell": 75 + 30, "whole image": 75 + 30, "unsolved": 75 + 30}
    assert {need: share["value"] for need, share in found["shares"].items()} == pytest.approx(
        {need: docs / 420 for need, docs in expected.items()}
    )
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
    assert (doc["id"], doc["size"], doc["gold"], doc["options"]) == (
        3,
        [300, 200],
        "B",
        ["a cat", "a dog", "a hen", "a cow"],
    )
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
    turned[0] = turned[0].replace(
        '["C", "C", "C", "C", "C", "C", "C", "C", "C", "C"', '["hen", "C", "C", "C", "C", "C", "C", "C", "C", "C"'
    )
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


def test_a_grown_table_is_that_of_the_log(tmp_path):
    """What stands in for a run of 100,000 docs in the browser's test of speed is what reading such a log gives."""
    small, large = (table(find([write_many(tmp_path / str(docs), docs)])[0].results[0]) for docs in (600, 1000))
    assert grown(small, 1000).equals(large)


def sides_of(explorer):
    """The task's name in each run, of each task that is shown."""
    return [tuple(None if side is None else side.result.task for side in task.sides) for task in explorer.tasks]


def knows(stream, gold):
    return [gold] * 10, [gold] * 10


def write_tasks(folder, *names):
    """Write a run of tasks of the base ``toy``: the digit is the grid; a name in ``quick`` is asked so. Its folder."""
    runs = {}
    for name in names:
        spec, records, made = world_run(knows, n=40, grid=int(re.search(r"\d", name)[0]))
        runs[name] = spec, quick(records, range(10), range(20, 40, 4)) if "quick" in name else records, made
    return write_run(folder, runs).parent


def test_every_task_of_a_base_is_shown(tmp_path, loaded):
    names = ["toy_rci2", "toy_rci3", "toy_rci2_quick"]
    explorer = loaded(write_tasks(tmp_path, *names))
    assert sides_of(explorer) == [(name,) for name in names]
    assert [task["name"] for task in explorer.about()["tasks"]] == names
    assert [len(explorer.doc(number, 0)["sides"][0]["views"]) for number in range(2)] == [5, 10]


@pytest.mark.parametrize(
    ("one", "two", "pairs"),
    [
        (["toy_rci2", "toy_rci3"], ["toy_rci3"], [("toy_rci2", None), ("toy_rci3", "toy_rci3")]),
        (["toy_rci2"], ["toy_rci3"], [("toy_rci2", None), (None, "toy_rci3")]),  # other grids are another task
        (["toy_rci2"], ["toy_rci2_quick"], [("toy_rci2", "toy_rci2_quick")]),
        (
            ["toy_rci2_quick", "toy_rci2"],
            ["toy_rci2", "toy_rci2_quick"],
            [("toy_rci2_quick", "toy_rci2_quick"), ("toy_rci2", "toy_rci2")],
        ),
        (
            ["a_rci2", "b_rci2"],
            ["toy_rci2"],
            [("a_rci2", None), ("b_rci2", None), (None, "toy_rci2")],
        ),  # which of the two is not known
    ],
)
def test_tasks_of_two_runs_stand_side_by_side_where_it_is_clear_which(tmp_path, one, two, pairs):
    explorer = open_runs([write_tasks(tmp_path / "one", *one), write_tasks(tmp_path / "two", *two)])
    assert sorted(sides_of(explorer), key=str) == sorted(pairs, key=str)
    assert len({task.name for task in explorer.tasks}) == len(pairs)


def test_a_category_is_known_by_its_name_in_both_runs(tmp_path, loaded):
    """The second run calls the docs of the first category by the name of the second, so its categories have other numbers."""
    one, two = write_many(tmp_path / "one", 24).parent, write_many(tmp_path / "two", 24)
    [log] = two.parent.glob("*.jsonl")
    log.write_text(log.read_text().replace('"category": "indoor"', '"category": "outdoor"'))
    explorer = loaded(one, two)
    names = explorer.columns(0)["categories"]
    found = {name: [of and of["docs"] for of in explorer.maps(0, number)] for number, name in enumerate(names)}
    assert found == {"indoor": [8, None], "outdoor": [8, 16], "other": [8, 8]}
    with pytest.raises(RecordError, match="there is no such category"):
        explorer.maps(0, 3)


def write_blind(docs):
    """The blind task of ``toy``, as ``write_files`` takes it."""
    spec = WrapSpec("toy", KINDS["blind"])
    view = {"kind": "blind", "scores": {"acc": 1.0}, "items": {"acc": 1.0}}
    found = [{"schema": 1, "task": spec.name, "base": "toy", "kind": "blind", "grids": [], "doc_id": doc, "image_sizes": [], "views": [view], "best": {},
              "excluded": {}} for doc in range(docs)]  # fmt: skip
    return {spec.name: ({"acc": 1.0, "patch": {"records": docs}}, described(spec), lines_of(found))}


def test_a_quick_run_with_a_blind_task_beside_it_shows_the_map_that_it_stored(tmp_path, loaded):
    """10 docs were asked whole, so the stored map is of these.

    The blind task says nothing of the docs that were not asked.
    """
    folder = write_tasks(tmp_path, "toy_rci2_quick")
    results = next(folder.glob("*_results.json"))
    whole = json.loads(results.read_text())
    blind = write_files(tmp_path / "blind", write_blind(40))
    more = json.loads(blind.read_text())
    for key in ("results", "configs"):
        whole[key] |= more[key]
    results.write_text(json.dumps(whole))
    (blind.parent / f"{DATE}_samples_toy_blind.jsonl").rename(folder / f"{DATE}_samples_toy_blind.jsonl")
    [found] = loaded(folder).about()["tasks"][0]["maps"]
    assert (found["docs"], found["sources"]) == (10, [])


def test_the_orders_of_a_doc_have_names_of_their_own(tmp_path, loaded):
    """Three options: the first is right in the doc's own order, where the model takes it."""
    write_run(tmp_path, {"toy_rotate": turned_run(lambda *_: 0, n=4, options=3)})
    [side] = loaded(tmp_path).doc(0, 0)["sides"]
    assert [view["name"] for view in side["views"]] == [
        "full image",
        "full image, options moved by 1",
        "full image, options moved by 2",
    ]
    assert [view["state"] for view in side["views"]] == ["right", "wrong", "wrong"]


def test_docs_of_a_swap_task_show_another_docs_image(tmp_path, loaded):
    write_swap(tmp_path, source=lambda doc: {0: 1, 1: 3, 2: 9}.get(doc))
    explorer = loaded(tmp_path)
    found = [explorer.doc(0, place) for place in range(4)]
    assert [one["seen"] for one in found] == [1, 3, 9, None]
    assert [one["size"] for one in found] == [[200, 100], [400, 100], None, None]  # doc 9 is not in the run
    [side] = found[0]["sides"]
    assert [view["name"] for view in side["views"]][:2] == ["full image of doc 1", "2×2, row 1, column 1 of doc 1"]
    assert [view["state"] for view in side["views"]] == ["right", "right", "wrong", "wrong", "wrong"]
    assert (side["wrong"], side["wrong_from"]) == ([], None)
    assert side["views"][2]["box"] == [50.0, 0.0, 50.0, 50.0]
    columns = explorer.columns(0)
    assert (columns["first"][0], columns["cells"][0]) == ("101f", [1, 1, 1, 0])
    assert (
        columns["need"][0] == columns["image"][0] == "----"
    )  # what a wrong image answers says nothing of what the doc needs
    assert explorer.about()["tasks"][0]["classes"] is False
    assert [explorer.seen(0, place)[1] and explorer.seen(0, place)[1].doc_id for place in range(4)] == [1, 3, 9, None]


def test_captions_have_no_classes(tmp_path, loaded):
    spec, records, made = world_run(knows, n=40)
    captions = [as_record(one) for one in records]
    for one in captions:
        one.answer = replace(one.answer, format="caption")
    path = write_run(tmp_path, {"toy_rci2": (spec, [to_builtins(one) for one in captions], made)})
    assert table(find([path])[0].results[0])["need"].null_count == 40 * 10
    explorer = loaded(path)
    assert explorer.columns(0)["need"][0] == explorer.columns(0)["image"][0] == "-" * 40
    assert explorer.about()["tasks"][0]["maps"] == [None]


def test_answers_that_nobody_scored_are_shown_as_such(tmp_path, loaded):
    path = write_many(tmp_path, 8)
    data = json.loads(path.read_text())
    data["configs"]["album_rci3"]["lmms_patch"]["metric"] = "bypass"  # as --predict_only leaves it
    path.write_text(json.dumps(data))
    explorer = loaded(path)
    note = explorer.about()["tasks"][0]["note"]
    assert note.startswith("answers were written and not scored (--predict_only), so none is right or wrong")
    assert explorer.columns(0)["first"][0] == "u" * 8
    assert explorer.columns(0)["need"][0] == "-" * 8


@pytest.mark.parametrize("damage", ["no log", "cut"])
def test_a_blind_task_that_cannot_be_read_leaves_the_other_readable(tmp_path, loaded, damage):
    folder = write_many(tmp_path, 40, blind=lambda doc: True).parent
    [log] = folder.glob("*_samples_album_blind.jsonl")
    log.unlink() if damage == "no log" else log.write_text(log.read_text()[:-50])
    explorer = loaded(folder)
    task = explorer.tasks[0]
    assert task.whole
    assert explorer.columns(0)["need"][0] == "".join(
        str(NEEDS.index(kind_of(doc))) for doc in range(40)
    )  # by the wrong images alone
    said = {
        "no log": "album_blind has no sample log, so it does not say which docs are text",
        "cut": "album_blind is not used, its docs cannot be read",
    }
    assert task.note.startswith(said[damage])


def test_any_error_is_told_with_its_task_and_the_other_tasks_are_read(stored, monkeypatch):
    read = explorer_module.samples.table

    def fails(result, columns):
        if result.task == "mosaic_count_rci3":
            raise ZeroDivisionError("of all things")
        return read(result, columns)

    monkeypatch.setattr(explorer_module.samples, "table", fails)
    explorer = open_runs([stored / "demo"])
    explorer.load()
    assert explorer.fault == "mosaic_count_rci3: its docs cannot be read: ZeroDivisionError: of all things"
    about = explorer.about()["tasks"]
    assert [task["name"] for task in about if not task["whole"]] == ["mosaic_count_rci3"]
    assert [task["fault"] for task in about if task["fault"]] == [explorer.fault]


def test_a_map_is_computed_once(album, loaded, monkeypatch):
    explorer, asked = loaded(album), []
    for name in ("recompute", "of_category"):
        again = getattr(explorer_module.recompute, name)
        monkeypatch.setattr(
            explorer_module.recompute, name, lambda *given, again=again: asked.append(1) or again(*given)
        )
    maps = [explorer.about()["tasks"][0]["maps"] for _ in range(3)]
    assert maps[0] == maps[2] != [None]
    of_category = [explorer.maps(0, 1) for _ in range(2)]
    assert of_category[0] == of_category[1] != maps[0]
    assert len(asked) == 2


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
        open_runs([stored / "magic"])
    bare = write_many(tmp_path / "bare", 8)
    bare.write_text(json.dumps(json.loads(bare.read_text()) | {"configs": {"album_rci3": {}}}))
    with pytest.raises(RecordError, match="no task of lmms-patch in this run"):
        open_runs([bare])
    unlogged = write_many(tmp_path / "unlogged", 8)
    next(unlogged.parent.glob("*.jsonl")).unlink()
    with pytest.raises(
        RecordError, match="album_rci3: no sample log, so its docs are not known; run with --log_samples"
    ):
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


def test_a_log_that_cannot_be_read_is_told_and_the_others_are_shown(stored, tmp_path):
    damaged = shutil.copytree(stored / "demo", tmp_path / "damaged")
    next(damaged.glob("*_mosaic_count_rci3.jsonl")).unlink()
    log = next(damaged.glob("*_mosaic_center_rci3.jsonl"))
    log.write_text("\n".join(log.read_text().splitlines()[:19]) + "\n{")
    explorer = open_runs([damaged])
    explorer.load()
    assert re.search(
        r"^mosaic_center_rci3: its docs cannot be read: .*mosaic_center_rci3\.jsonl, line 20: cut or not JSON",
        explorer.fault,
    )
    assert [task.name for task in explorer.tasks if not task.whole] == ["mosaic_center_rci3"]
    assert explorer.search("digit")[0] == []
    [left_out] = explorer.left_out
    assert left_out.startswith("mosaic_count_rci3: no sample log, so its docs are not known; run with --log_samples")


def test_where_lower_is_better_nothing_is_right_or_wrong(tmp_path, loaded):
    path = write_many(tmp_path / "out", 8)
    data = json.loads(path.read_text())
    data["results"]["album_rci3"]["patch,none"]["higher_is_better"] = {"acc": False}
    path.write_text(json.dumps(data))
    explorer = loaded(path)
    assert explorer.columns(0)["need"][0] == "-" * 8
    note = explorer.about()["tasks"][0]["note"]
    assert note.startswith("acc is better when lower, so answers have a score, but are not right or wrong")
    assert explorer.about()["tasks"][0]["maps"] == [None]
    assert explorer.doc(0, 0)["sides"][0]["views"][0]["score"] == 1.0


def test_explorer_and_report_say_the_same_shares(stored, loaded):
    """Of all docs, and of each category: the composition is computed by one function, with luck and gate."""
    found = loaded(stored / "demo")
    at = [task.name for task in found.tasks].index("mosaic_local_rci3")
    result = found.tasks[at].main.result
    said = found.about()["tasks"][at]["maps"][0]["shares"]
    assert {need: share["value"] for need, share in said.items()} == {
        need: share.value for need, share in result.analysis.necessity[0].shares.items()
    }
    (run,) = [one for one in recompute.load(result.run.path) if one.name == result.task]
    by_category, _ = recompute.by_category(run)
    names = found.columns(at)["categories"]
    assert len(by_category) > 1
    for name, analysis in by_category.items():
        shares = found.maps(at, names.index(name))[0]["shares"]
        assert {need: one["value"] for need, one in shares.items()} == {
            need: one.value for need, one in analysis.necessity[0].shares.items()
        }
