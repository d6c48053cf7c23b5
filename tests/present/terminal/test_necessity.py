from lmms_patch.present.terminal import necessity
from lmms_patch.present.terminal.necessity import UNCHECKED
from lmms_patch.runs.need import NEEDS
from tests.making.analyses import labelled


def table(maps):
    """The table of tasks with these maps, by name; None: a task without."""
    return necessity.table(
        [labelled(task, {}, {"necessity": [found] if found else []}) for task, found in maps.items()]
    )


def found(text, checked=30, without_luck=True):
    values = dict(zip(NEEDS, (text, 0.25, 0.125, 0.0), strict=True))
    shares = {
        need: {"value": value, "low": None if value is None else value / 2, "high": value}
        for need, value in values.items()
    }
    sources = [] if text is None else ["wrong images"]
    return {"n": 3, "shares": shares, "checked": checked, "docs": 40, "sources": sources, "without_luck": without_luck}


def test_a_row_for_each_task_that_has_a_map():
    lines = table({"gqa_rci3": found(0.5), "coco_rci": None}).splitlines()
    assert lines[1].split("  ")[-1].strip() == "checked"
    assert " ".join(lines[3].split()) == "gqa_rci3 50 [25, 50] 25 [12, 25] 12 [6, 12] 0 [0, 0] 30/40"
    assert len(lines) == 4
    assert max(map(len, lines)) <= 80


def test_docs_that_are_counted_with_their_luck_are_named():
    lines = table({"gqa_rci3": found(0.5), "old_rci3": found(0.5, without_luck=False)}).splitlines()
    assert lines[-1] == "counted as the docs answer, lucky guesses among them: old_rci3"


def test_a_refused_task_has_no_shares_and_needs_no_note():
    refused = found(0.5)
    refused["shares"] = {need: {"value": None, "low": None, "high": None} for need in NEEDS}
    assert table({"gqa_rci3": refused}).splitlines()[-1].split() == ["gqa_rci3", *["N/A"] * 4, "30/40"]


def test_where_text_is_not_known_it_says_so():
    assert table({"gqa_rci3": found(None)}).splitlines()[-1] == UNCHECKED
    assert table({"pope_blind": None}) == ""


def test_tasks_of_clips_have_a_table_in_their_own_words():
    space, time = table({"gqa_rci3": found(0.5), "film_trci4": found(None)}).split("\n\n")
    assert "one cell" in space
    assert "gqa_rci3" in space
    assert "one segment" in time
    assert time.splitlines()[-1] == UNCHECKED.replace("image", "clip")
