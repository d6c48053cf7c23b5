"""What the explorer says of docs, against the samples themselves, counted in plain loops."""

import re
import shlex
import shutil

import polars as pl
import pytest

import lmms_patch
from lmms_patch.errors import RecordError
from lmms_patch.rci import recompute
from lmms_patch.rci.necessity import NOT_ASKED
from lmms_patch.runs.details import Made, Model
from lmms_patch.runs.numbers import NEEDS
from lmms_patch.runs.run import newest_of
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
def test_columns_are_those_of_the_samples(stored, explored, task):
    found = explored(stored / "demo")
    columns = found.piece(found.tasks.index(task))
    [side], docs = columns["sides"], docs_of(stored / "demo", task)
    assert columns["ids"] == [rows[0]["doc_id"] for rows in docs]
    assert side["image"] == "".join(str(by_hand(rows)[0]) for rows in docs)
    assert side["need"] == "".join("-" if need is None else str(need) for _, need in map(by_hand, docs))
    assert side["first"] == "".join(str(int(right(rows[0]))) for rows in docs)
    assert side["cells"] == [sum(right(one) for one in rows if one["n"] == 3 and not one["swapped"]) for rows in docs]
    assert [columns["categories"][one] for one in columns["category"]] == [rows[0]["category"] for rows in docs]


def judged(view):
    return view["score"] is not None and view["failed"] is None and (view["quick"] or {}).get("steps", 2) != 0


def known_by_hand(rows, n, cells):
    """The class of a doc, also of one with views that were not asked, or have no score; - where it is not known."""
    first, *own = (row for row in rows if not row["swapped"])
    lost = next((row for row in rows if row["swapped"] and row["kind"] == "full"), None)
    scored = [row for row in own if row["n"] == n and row["cell"] and judged(row)]
    if lost is None or not judged(lost):
        return "-"
    if right(lost):
        return "0"
    if any(map(right, scored)):
        return "1"
    return "-" if len(scored) < cells or not judged(first) else "2" if right(first) else "3"


@pytest.mark.parametrize("name", ["demo", "grids", "fast", "states"])
def test_classes_by_hand(stored, explored, name):
    shown = explored(stored / name)
    for result in newest_of(stored / name).run.results:
        if result.indexed:
            columns, n = shown.piece(shown.tasks.index(result.label)), max(result.grids)
            docs = docs_of(stored / name, result.task)
            assert columns["sides"][0]["need"] == "".join(known_by_hand(rows, n, n * n) for rows in docs)


def test_a_run_whose_docs_were_asked_once_has_no_shares(album, explored):
    [found] = explored(album).about["tasks"][0]["maps"]
    assert {tuple(share) for share in found["shares"].values()} == {(None, None, None)}
    assert (found["docs"], found["again"], found["n"], found["reason"]) == (420, 0, 3, NOT_ASKED)


def test_every_answer_of_a_doc(album, explored):
    doc = explored(album).doc(3)
    [side] = doc["sides"]
    assert (doc["id"], doc["width"], doc["height"], doc["gold"]) == (3, 300, 200, "B")
    assert doc["options"] == ["a cat", "a dog", "a hen", "a cow"]
    assert [view["state"] for view in side["views"]] == ["right", *["wrong"] * 4, "right", *["wrong"] * 4]
    assert {name: side["views"][5][name] for name in ("n", "row", "col", "kind", "place")} == {
        "n": 3, "row": 1, "col": 1, "kind": "cell", "place": "row 2, column 2",
    }  # fmt: skip
    assert [view["answer"] for view in side["views"][:2]] == ["B", "C"]
    assert (side["wrong"][0]["answer"], side["wrong_from"], "excluded" in side) == ("B", 3, False)


def test_two_runs_are_joined_by_doc(tmp_path, explored):
    other = Model("org/other", "vlm")
    found = explored(
        write_many(tmp_path / "one", 40), write_many(tmp_path / "two", 40, change=pl.DataFrame.reverse, model=other)
    )
    assert found.about["models"] == ["org/vlm", "org/other"]
    assert found.piece(0)["ids"] == list(range(40))
    assert found.side(0, 0) == found.side(0, 1)
    one, two = found.doc(17)["sides"]
    assert one["views"] == two["views"]


def test_a_doc_that_the_other_run_lacks_has_no_answers_there(tmp_path, explored):
    found = explored(write_many(tmp_path / "one", 12).parent, write_many(tmp_path / "two", 8).parent)
    assert found.side(0, 1)["first"][8:] == "nnnn"
    assert found.side(0, 1)["need"][8:] == "----"
    assert found.doc(9)["sides"][1] is None
    assert found.side(0, 1)["answers"][7:] == ["B", "", "", "", ""]


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
def test_tasks_of_two_runs_stand_side_by_side_where_it_is_clear_which(tmp_path, explored, one, two, pairs):
    found = explored(write_tasks(tmp_path / "one", *one), write_tasks(tmp_path / "two", *two))
    tasks = [
        re.findall(r"--tasks (\S+)", command or "") for task in found.about["tasks"] for command in task["commands"]
    ]
    sides = [next(iter(name), None) for name in tasks]
    assert sorted(zip(sides[::2], sides[1::2], strict=True), key=str) == sorted(pairs, key=str)
    assert len(set(found.tasks)) == len(pairs)


def test_a_category_is_known_by_its_name_in_both_runs(tmp_path, explored):
    """The second run calls the docs of the first category by the name of the second, so its categories have other numbers."""
    renamed = pl.col("category").replace("indoor", "outdoor")
    one = write_many(tmp_path / "one", 24)
    two = write_many(tmp_path / "two", 24, change=lambda frame: frame.with_columns(renamed))
    [task] = explored(one, two).about["tasks"]
    found = {name: [of and of["docs"] for of in maps] for name, maps in task["parts"].items()}
    assert found == {"indoor": [8, None], "outdoor": [8, 16], "other": [8, 8]}


def test_the_orders_of_a_doc_have_names_of_their_own(tmp_path, explored):
    """Three options: the first is right in the doc's own order, where the model takes it."""
    write_run(tmp_path, {"toy_rotate": turned_run(lambda *_: 0, n=4, options=3)})
    [side] = explored(tmp_path).doc(0)["sides"]
    assert [view["name"] for view in side["views"]] == [
        "full image",
        "full image, options moved by 1",
        "full image, options moved by 2",
    ]
    assert [view["state"] for view in side["views"]] == ["right", "wrong", "wrong"]


def test_docs_of_a_swap_task_show_another_docs_image(tmp_path, explored):
    write_swap(tmp_path, source=lambda doc: {0: 1, 1: 3, 2: 9}.get(doc))
    shown = explored(tmp_path)
    found = [shown.doc(place) for place in range(4)]
    assert [one.get("seen") for one in found] == [1, 3, 9, None]
    assert [one.get("width") for one in found] == [200, 400, 1000, None]
    [side] = found[0]["sides"]
    assert [view["name"] for view in side["views"]][:2] == ["full image of doc 1", "2×2, row 1, column 1 of doc 1"]
    assert [view["state"] for view in side["views"]] == ["right", "right", "wrong", "wrong", "wrong"]
    assert (side["wrong"], "wrong_from" in side) == ([], False)
    side = shown.side()
    assert (side["first"], side["cells"]) == ("101f", [1, 1, 1, 0])
    # what a wrong image answers says nothing of what the doc needs
    assert side["need"] == side["image"] == "----"
    assert shown.about["tasks"][0]["classes"] is False


def test_captions_have_no_classes(tmp_path, explored):
    spec, records, made = world_run(knows, n=40)
    captions = [{**one, "answer": {**one["answer"], "format": "caption", "label": "caption"}} for one in records]
    found = explored(write_run(tmp_path, {"toy_rci2": (spec, captions, made)}))
    assert found.side()["need"] == found.side()["image"] == "-" * 40
    assert found.about["tasks"][0]["maps"] == [None]


def test_answers_that_nobody_scored_are_shown_as_such(tmp_path, explored):
    # as --predict_only leaves it
    found = explored(write_many(tmp_path, 8, metric="bypass", change=lambda frame: frame.drop("score", "best")))
    note = found.about["tasks"][0]["note"]
    assert note.startswith("answers were written and not scored (--predict_only), so none is right or wrong")
    assert found.side()["first"] == "u" * 8
    assert found.side()["need"] == "-" * 8


def test_a_blind_run_says_which_docs_are_text(tmp_path, explored):
    found = explored(write_many(tmp_path / "out", 400, blind=lambda doc: doc % 8 == 1).parent)
    assert found.tasks == ["album_rci3", "album_blind"]  # those with cells first
    need = [0 if doc % 8 == 1 else NEEDS.index(kind_of(doc)) for doc in range(400)]
    assert found.side()["need"] == "".join(map(str, need))
    assert found.doc(9)["sides"][0]["blind"]["answer"] == "by heart"
    assert found.doc(8)["sides"][0]["blind"]["state"] == "wrong"
    assert found.side(1)["need"] == "-" * 400


def test_the_command_asks_the_one_doc(album, stored, explored):
    [command] = explored(album).about["tasks"][0]["commands"]
    words = shlex.split(f"{command} 5")
    assert words[:5] == ["lmms-eval", "--model", "vlm", "--tasks", "album_rci3"]
    assert words[-4:] == ["--limit", "1", "--offset", "5"]
    # a cross-validation needs all docs
    assert "--limit" not in explored(stored / "tst").about["tasks"][0]["commands"][0]


def test_runs_that_cannot_be_shown_are_refused_in_one_line(tmp_path, stored, explored):
    with pytest.raises(RecordError, match="a MAGIC task has no cells; type 'lmms-patch magic show"):
        explored(stored / "magic")
    with pytest.raises(RecordError, match="asked different docs"):
        explored(*[write_many(tmp_path / digest, 8, made=Made(docs=digest * 16)) for digest in "ab"])
    damaged = shutil.copytree(stored / "demo", tmp_path / "damaged")
    [table] = damaged.glob("*_samples_mosaic_center_rci3.parquet")
    table.write_bytes(table.read_bytes()[:50] + b"damage" + table.read_bytes()[56:])
    with pytest.raises(RecordError, match=r"mosaic_center_rci3\.parquet: cut, or damaged"):
        explored(damaged)


def test_where_lower_is_better_nothing_is_right_or_wrong(tmp_path, explored):
    found = explored(write_many(tmp_path / "out", 8, metrics={"acc": False}))
    assert found.side()["need"] == "-" * 8
    [task] = found.about["tasks"]
    assert task["note"].startswith("acc is better when lower, so answers have a score, but are not right or wrong")
    assert task["maps"] == [None]
    assert found.doc(0)["sides"][0]["views"][0]["score"] == 1.0


def test_explorer_and_report_say_the_same_shares(stored, explored):
    """Of all docs, and of each category: the composition is computed by one function, with its gate."""
    found = explored(stored / "demo")
    task = found.about["tasks"][found.tasks.index("mosaic_local_rci3")]
    (run,) = [one for one in recompute.load(newest_of(stored / "demo").run) if one.name == "mosaic_local_rci3"]
    by_category, _ = recompute.by_category(run)
    assert len(by_category) > 1
    pairs = [(run.result.analysis, task["maps"]), *((of, task["parts"][name]) for name, of in by_category.items())]
    for analysis, [said] in pairs:
        shares = analysis.necessity[0].shares
        assert said["shares"] == {need: [one.value, one.low, one.high] for need, one in shares.items()}
