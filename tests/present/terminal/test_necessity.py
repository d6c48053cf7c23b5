from lmms_patch.present.terminal import necessity
from lmms_patch.runs.numbers import to_json
from tests.making.analyses import labelled
from tests.making.reports import necessity as made


def table(maps):
    """The table of tasks with these compositions, by name; None: a task without."""
    return necessity.table([labelled(task, {}, {"necessity": [one] if one else []}) for task, one in maps.items()])


def found(**more):
    return to_json(made(0.25, 0.125, 0.0, **{"text": 0.5, "docs": 40, "again": 30, **more}))


def test_a_row_for_each_task_that_has_cells():
    lines = table({"gqa_rci3": found(), "coco_rci": None}).splitlines()
    assert lines[1].split("  ")[-1].strip() == "asked again"
    assert " ".join(lines[3].split()) == "gqa_rci3 50 [47, 53] 25 [22, 28] 12 [10, 16] 0 [-3, 3] 14 [11, 17] 30/40"
    assert len(lines) == 4


def test_a_task_whose_docs_were_asked_once_has_no_shares_and_says_why():
    once, why = found(text=None), "no doc was asked again"
    for share in once["shares"].values():
        share["reason"] = why
    lines = table({"gqa_rci3": once}).splitlines()
    assert lines[3].split() == ["gqa_rci3", *["N/A"] * 5, "0/40"]
    assert lines[-1] == f"gqa_rci3: {why}"
    assert table({"pope_blind": None}) == ""


def test_text_and_cell_that_are_not_told_apart_are_named():
    both = {**found(), "told_apart": False}
    assert table({"gqa_rci3": both}).splitlines()[-1] == f"gqa_rci3: {necessity.BOTH}"


def test_tasks_of_clips_have_a_table_in_their_own_words():
    space, time = table({"gqa_rci3": found(), "film_trci4": found()}).split("\n\n")
    assert "one cell" in space
    assert "gqa_rci3" in space
    assert "one segment" in time
