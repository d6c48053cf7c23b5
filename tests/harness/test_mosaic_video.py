"""The embedded clips, ``tasks/mosaic_video``: golds, times and pixels, checked by other means than those that made them."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from lmms_patch.harness.models.mosaic_reader import frames_of

from lmms_patch.resources import folder
from tests.places import ROOT

HERE = folder("tasks") / "mosaic_video"
SCRIPTS = ROOT / "scripts" / "mosaic_video"
FAMILIES = ("moment", "count", "order", "still", "text")
ROWS = {
    family: [
        json.loads(line)
        for line in (HERE / "data" / f"mosaic_video_{family}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    for family in FAMILIES
}
WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
every_family = pytest.mark.parametrize("family", FAMILIES)


def clip(row):
    """All 64 frames, (64, 120, 160, 3)."""
    return np.stack(frames_of(str(HERE / "clips" / row["video"]), 1000)).astype(int)


# --- the rows -----------------------------------------------------------------------------------


def test_golds_follow_from_the_digits_of_the_clip():
    """From the words of the question and the times alone."""
    for row in ROWS["count"]:
        assert int(row["answer"]) == len(row["digits"])
    for row in ROWS["order"]:
        start = {digit["value"]: digit["start"] for digit in row["digits"]}
        first, second = (int(word.strip("?")) for word in row["question"].split() if word.strip("?").isdigit())
        assert row["answer"] == ("yes" if start[first] < start[second] else "no")
    for row in ROWS["text"]:
        assert row["question"] == f"Which digit is written as the word {WORDS[int(row['answer'])]}?"
    for row in ROWS["still"]:
        assert [str(digit["value"]) for digit in row["digits"] if (digit["start"], digit["stop"]) == (0, 64)] == [
            row["answer"]
        ]


def test_golds_are_balanced():
    assert Counter(row["answer"] for row in ROWS["count"]) == dict.fromkeys("23456", 16)
    assert Counter(row["answer"] for row in ROWS["order"]) == {"yes": 40, "no": 40}
    assert Counter(row["answer"] for row in ROWS["text"]) == dict.fromkeys("0123456789", 8)
    quarters = [
        next(d for d in row["digits"] if str(d["value"]) == row["answer"])["start"] // 16 for row in ROWS["moment"]
    ]
    assert Counter(quarters) == dict.fromkeys(range(4), 20)
    by_answer = Counter((row["answer"], len(row["digits"])) for row in ROWS["order"])
    assert by_answer == {(answer, count): 8 for answer in ("yes", "no") for count in range(2, 7)}, (
        "how much appears does not give the order away"
    )


@every_family
@pytest.mark.parametrize("sampled", [8, 16, 32, 64])
def test_where_the_evidence_is_in_time(family, sampled):
    """Of 8 to 64 uniform frames, cut into 2 to 9 segments: who shows what, from the times of the rows alone."""
    frames = np.linspace(0, 63, sampled, dtype=int)
    for row in ROWS[family]:
        shown = [(digit["start"] <= frames) & (frames < digit["stop"]) for digit in row["digits"]]
        if sampled >= 32:
            assert all(digit.sum() >= 3 for digit in shown)
        if family == "moment":  # one of four segments shows the digit each time that it is shown
            gold = next(at for at, digit in enumerate(row["digits"]) if str(digit["value"]) == row["answer"])
            parts = [shown[gold][sampled * i // 4 : sampled * (i + 1) // 4].any() for i in range(4)]
            assert sum(parts) == 1 or sampled == 8  # of so few frames, none may show it
        if family in ("count", "order"):  # whatever the cut, no segment shows both the first and the last digit
            first, last = (np.flatnonzero(digit) for digit in shown[:2])
            for k in range(2, 10):
                starts = [sampled * i // k for i in range(k)]
                assert not set(np.searchsorted(starts, first, "right")) & set(np.searchsorted(starts, last, "right"))


# --- the pixels ---------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ROWS["count"][:10], ids=lambda row: row["id"])
def test_digits_are_there_at_their_times_and_at_no_other(row):
    frames = clip(row)
    assert frames.shape == (64, 120, 160, 3)
    for digit in row["digits"]:
        around = frames[:, digit["y"] - 11 : digit["y"] + 11, digit["x"] - 11 : digit["x"] + 11]
        is_inked = (around.max(3) < 110).sum((1, 2)) > 20
        assert np.flatnonzero(is_inked).tolist() == list(range(digit["start"], digit["stop"]))


@pytest.mark.parametrize("number", range(8))
def test_boxes_are_around_the_digits_that_they_are_asked_for(number):
    frames = clip(ROWS["moment"][number])
    for family, channel in (("moment", 0), ("still", 2)):
        row = ROWS[family][number]
        others = np.delete(frames[0], channel, 2).max(2)
        y, x = np.nonzero(frames[0][..., channel] - others > 60)
        inside = [d for d in row["digits"] if x.min() < d["x"] < x.max() and y.min() < d["y"] < y.max()]
        assert [str(digit["value"]) for digit in inside] == [row["answer"]]


def test_the_script_gives_the_same_scenes_questions_and_nearly_the_same_pixels(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import build_video

    lines = dict.fromkeys(FAMILIES, 0)
    for name, (scene, frames, asked) in build_video.build(3, build_video.SEED).items():
        for family, question in asked.items():
            assert build_video.row(name, family, lines[family], scene, question) == ROWS[family][lines[family]]
            lines[family] += 1
        stored = frames_of(str(HERE / "clips" / f"{name}.mp4"), 64)
        assert np.abs(stored - frames.astype(int)).mean() < 4
        build_video.encode(frames, tmp_path / "again.mp4")
        assert np.abs(frames_of(str(tmp_path / "again.mp4"), 64) - frames.astype(int)).mean() < 4
    assert set(lines.values()) == {3}
