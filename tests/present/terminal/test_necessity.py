from lmms_patch.present.terminal.necessity import UNCHECKED, table
from lmms_patch.runs.need import NEEDS


def found(text, checked=30):
    shares = {
        need: {"value": value, "low": None if value is None else value / 2, "high": value}
        for need, value in zip(NEEDS, (text, 0.25, 0.125, 0), strict=True)
    }
    return {"necessity": [{"shares": shares, "checked": checked, "docs": 40}]}


def test_a_row_for_each_task_that_has_a_map():
    lines = table([("gqa_rci3", found(0.5)), ("pope_blind", {}), ("coco_rci", {"necessity": []})]).splitlines()
    assert lines[1].split("  ")[-1].strip() == "checked"
    assert lines[3].split() == ["gqa_rci3", "50", "[25,", "50]", "25", "[12,", "25]", "12", "[6,", "12]", "0", "[0,", "0]", "30/40"]
    assert len(lines) == 4
    assert max(map(len, lines)) <= 80


def test_where_text_is_not_known_it_says_so():
    assert table([("gqa_rci3", found(None))]).splitlines()[-1] == UNCHECKED
    assert table([("pope_blind", {})]) == ""
