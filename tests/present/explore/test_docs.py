"""What the explorer says of docs, against the samples themselves, counted in plain loops."""

import re
import shlex
import shutil

import polars as pl
import pytest

import lmms_patch
from lmms_patch.errors import RecordError
from lmms_patch.present.explore.explorer import open_runs
from lmms_patch.present.explore.views import RIGHT, WRONG
from lmms_patch.rci import recompute
from lmms_patch.rci.necessity import NOT_ASKED
from lmms_patch.runs.details import Made, Model
from lmms_patch.runs.need import NEEDS, UNKNOWN, find
from tests.making.explored import kind_of, write_many, write_swap
from tests.making.runs import quick, turned_run, world_run, write_run


def docs_of(folder, task):
    """The rows of each doc."""
    rows = lmms_patch.samples(folder, task)
    once = rows.filter(pl.col("repeat").is_null()) if "repeat" in rows.columns else rows
    return [one.to_dicts() for one in once.partition_by("doc_id", maintain_order=True)]


def right(view):
    return view["score"] >= 0.5


def by_hand(rows):
    """The class of a doc whose every view has a score from 0 to 1."""
    own, lost = ([row for row in rows if bool(row["swapped"]) is swapped] for swapped in (False, True))
    cells = any(right(view) for view in own if view["n"] == max(one["n"] or 0 for one in own))
    image = 1 if cells else 2 if right(own[0]) else 3
    return image, None if not lost else 0 if right(lost[0]) else image


@pytest.mark.parametrize("task", ["mosaic_center_rci3", "mosaic_count_rci3", "mosaic_text_rci3"])
def test_columns_are_those_of_the_samples(stored, loaded, task):
    explorer = loaded(stored / "demo")
    found = explorer.columns([one.name for one in explorer.tasks].index(task))
    docs = docs_of(stored / "demo", task)
    assert found["ids"] == [rows[0]["doc_id"] for rows in docs]
    assert found["image"][0] == "".join(str(by_hand(rows)[0]) for rows in docs)
    assert found["need"][0] == "".join("-" if need is None else str(need) for _, need in map(by_hand, docs))
    assert found["first"][0] == "".join(RIGHT if right(rows[0]) else WRONG for rows in docs)
    assert found["cells"][0] == [
        sum(right(one) for one in rows if one["n"] == 3 and not one["swapped"]) for rows in docs
    ]
    assert [found["categories"][one] for one in found["category"]] == [rows[0]["category"] for rows in docs]


def test_classes_are_those_of_the_analysis(stored, loaded):
    for name in ("demo", "grids"):
        explorer = loaded(stored / name)
        for number, task in enumerate(explorer.tasks):
            result = task.main.result
            run = recompute.TaskRun(result)
            _, _, table = recompute.table_of(run, recompute.Changes())
            known = dict(zip(table.place, find(table, max(result.grids)).classes.tolist(), strict=True))
            assert explorer.columns(number)["need"][0] == "".join(
                "-" if (need := known.get(doc, UNKNOWN)) == UNKNOWN else str(need)
                for doc in explorer.columns(number)["ids"]
            )


def test_a_run_whose_docs_were_asked_once_has_no_shares(album, loaded):
    [found] = loaded(album).about()["tasks"][0]["maps"]
    assert {share["value"] for share in found["shares"].values()} == {None}
    assert {share["reason"] for share in found["shares"].values()} == {NOT_ASKED}
    assert (found["docs"], found["again"], found["n"]) == (420, 0, 3)


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
    other = Model("org/other", "vlm")
    explorer = loaded(
        write_many(tmp_path / "one", 40), write_many(tmp_path / "two", 40, change=pl.DataFrame.reverse, model=other)
    )
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
    renamed = pl.col("category").replace("indoor", "outdoor")
    one = write_many(tmp_path / "one", 24)
    explorer = loaded(one, write_many(tmp_path / "two", 24, change=lambda frame: frame.with_columns(renamed)))
    names = explorer.columns(0)["categories"]
    found = {name: [of and of["docs"] for of in explorer.maps(0, number)] for number, name in enumerate(names)}
    assert found == {"indoor": [8, None], "outdoor": [8, 16], "other": [8, 8]}
    with pytest.raises(RecordError, match="there is no such category"):
        explorer.maps(0, 3)


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
    captions = [{**one, "answer": {**one["answer"], "format": "caption", "label": "caption"}} for one in records]
    explorer = loaded(write_run(tmp_path, {"toy_rci2": (spec, captions, made)}))
    assert explorer.columns(0)["need"][0] == explorer.columns(0)["image"][0] == "-" * 40
    assert explorer.about()["tasks"][0]["maps"] == [None]


def test_answers_that_nobody_scored_are_shown_as_such(tmp_path, loaded):
    # as --predict_only leaves it
    explorer = loaded(write_many(tmp_path, 8, metric="bypass", change=lambda frame: frame.drop("score", "best")))
    note = explorer.about()["tasks"][0]["note"]
    assert note.startswith("answers were written and not scored (--predict_only), so none is right or wrong")
    assert explorer.columns(0)["first"][0] == "u" * 8
    assert explorer.columns(0)["need"][0] == "-" * 8


def cut_short(folder, task):
    """Damage the first page of a task's table, which its footer does not tell."""
    [table] = folder.glob(f"*_samples_{task}.parquet")
    table.write_bytes(table.read_bytes()[:50] + b"damage" + table.read_bytes()[56:])


def test_a_blind_task_that_cannot_be_read_leaves_the_other_readable(tmp_path, loaded):
    folder = write_many(tmp_path, 40, blind=lambda doc: True).parent
    cut_short(folder, "album_blind")
    explorer = loaded(folder)
    task = explorer.tasks[0]
    assert task.whole
    assert explorer.columns(0)["need"][0] == "".join(
        str(NEEDS.index(kind_of(doc))) for doc in range(40)
    )  # by the wrong images alone
    assert task.note.startswith("album_blind is not used, its docs cannot be read")


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
    with pytest.raises(RecordError, match="asked different docs"):
        open_runs([write_many(tmp_path / digest, 8, made=Made(docs=digest * 16)) for digest in "ab"])


def test_a_table_that_cannot_be_read_is_told_and_the_others_are_shown(stored, tmp_path):
    damaged = shutil.copytree(stored / "demo", tmp_path / "damaged")
    cut_short(damaged, "mosaic_center_rci3")
    explorer = open_runs([damaged])
    explorer.load()
    assert re.search(
        r"^mosaic_center_rci3: its docs cannot be read: .*mosaic_center_rci3\.parquet: cut, or damaged", explorer.fault
    )
    assert [task.name for task in explorer.tasks if not task.whole] == ["mosaic_center_rci3"]
    assert explorer.search("digit")[0] == []
    assert [one["maps"] == [None] for one in explorer.about()["tasks"]] == [not one.whole for one in explorer.tasks]


def test_where_lower_is_better_nothing_is_right_or_wrong(tmp_path, loaded):
    explorer = loaded(write_many(tmp_path / "out", 8, metrics={"acc": False}))
    assert explorer.columns(0)["need"][0] == "-" * 8
    note = explorer.about()["tasks"][0]["note"]
    assert note.startswith("acc is better when lower, so answers have a score, but are not right or wrong")
    assert explorer.about()["tasks"][0]["maps"] == [None]
    assert explorer.doc(0, 0)["sides"][0]["views"][0]["score"] == 1.0


def test_explorer_and_report_say_the_same_shares(stored, loaded):
    """Of all docs, and of each category: the composition is computed by one function, with its gate."""
    found = loaded(stored / "demo")
    at = [task.name for task in found.tasks].index("mosaic_local_rci3")
    result = found.tasks[at].main.result
    said = found.about()["tasks"][at]["maps"][0]["shares"]
    assert {need: share["value"] for need, share in said.items()} == {
        need: share.value for need, share in result.analysis.necessity[0].shares.items()
    }
    (run,) = [one for one in recompute.load(result.run) if one.name == result.task]
    by_category, _ = recompute.by_category(run)
    names = found.columns(at)["categories"]
    assert len(by_category) > 1
    for name, analysis in by_category.items():
        shares = found.maps(at, names.index(name))[0]["shares"]
        assert {need: one["value"] for need, one in shares.items()} == {
            need: one.value for need, one in analysis.necessity[0].shares.items()
        }
