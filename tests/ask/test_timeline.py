"""Questions that point into the clip's own time. The labels of timeline_questions.yaml were made by reading."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.ask.timeline import points_into_clip
from tests.places import SHARED

LABELLED = yaml.safe_load((Path(__file__).parent / "timeline_questions.yaml").read_text(encoding="utf-8"))


def entries(label):
    return [(entry, ()) if isinstance(entry, str) else (entry["question"], entry["options"]) for entry in LABELLED[label]]


def items(name):
    path = SHARED / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip(f"{path} is not here: public data that is not part of the repository")
    return {row["id"]: row for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())}


@pytest.mark.parametrize(("question", "options"), entries("points"))
def test_questions_that_point_into_the_clip(question, options):
    assert points_into_clip(question, options)


@pytest.mark.parametrize(("question", "options"), entries("stays"))
def test_questions_that_stay_what_they_are(question, options):
    assert points_into_clip(question, options) == ""


def test_items_of_video_mme():
    rows = items("videomme")
    for label, wanted in (("points", True), ("stays", False)):
        wrong = [name for name in LABELLED["video_mme"][label] if bool(points_into_clip(rows[name]["question"], rows[name]["choices"])) != wanted]
        assert wrong == []


def test_no_question_of_vsi_bench_points_into_the_clip():
    """Sizes, distances, directions, routes, and the order of first appearance."""
    assert [row["question"] for row in [*items("vsi_bench").values()][::7] if points_into_clip(row["question"], row["choices"] or ())] == []


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("In the last 10 seconds, who waves?", "last 10 seconds"),
        ("Who waves AT THE  END of\nthe video?", "END of the video"),
        ("What is seen between 1:20 and 1:45?", "between 1:20"),
        ("What is seen at 0:20?", "0:20"),
        ("视频第35秒时有什么？", "第35秒"),
        ("00：35 时有什么？", "00:35"),
    ],
)
def test_the_words_are_those_of_the_question(question, words):
    assert points_into_clip(question) == words


def test_the_words_may_be_those_of_an_option():
    assert points_into_clip("When does it rain?", ["(A) At the end of the video.", "(B) 00:10 - 00:20"]) == "At the end of the video"


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_half_of_the_options_and_two_must_be_times(count):
    options = [f"00:{second}0 - 00:{second}5" for second in range(count)] + ["Never."] * (4 - count)
    assert bool(points_into_clip("When does he leave?", options)) == (count >= 2)


def test_an_option_that_only_mentions_the_end_is_no_time():
    options = ["The man at the end of the video in a restaurant.", "The man with the red helmet at the beginning of the video."]
    assert points_into_clip("Who resembles the cook?", options) == ""


@given(st.text(alphabet="at the en0123:分秒第视频of video.?() ", max_size=300), st.lists(st.text(max_size=30), max_size=4))
def test_any_text_is_answered_with_words_of_one_line(question, options):
    words = points_into_clip(question, options)
    assert words == words.strip()
    assert "\n" not in words


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "text", ["the " * 20_000, "1:2" * 20_000, "at what point " * 5_000, "first " * 20_000, "a few " * 10_000, "在1分" * 20_000, "half a-" * 9_000]
)
def test_long_texts_take_no_long_time(text):
    points_into_clip(text, [text, text])
