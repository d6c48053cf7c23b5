"""Questions that point into the clip's own time. The labels of timeline_questions.yaml were made by reading."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.ask.timeline import asked_times, points_into_clip, questions_in
from tests.places import SHARED

LABELLED = yaml.safe_load((Path(__file__).parent / "timeline_questions.yaml").read_text(encoding="utf-8"))


def entries(label):
    return [
        (entry, ()) if isinstance(entry, str) else (entry["question"], entry["options"]) for entry in LABELLED[label]
    ]


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
        wrong = [
            name
            for name in LABELLED["video_mme"][label]
            if bool(points_into_clip(rows[name]["question"], rows[name]["choices"])) != wanted
        ]
        assert wrong == []


def test_no_question_of_vsi_bench_points_into_the_clip():
    """Sizes, distances, directions, routes, and the order of first appearance."""
    assert [
        row["question"]
        for row in [*items("vsi_bench").values()][::7]
        if points_into_clip(row["question"], row["choices"] or ())
    ] == []


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
    assert (
        points_into_clip("When does it rain?", ["(A) At the end of the video.", "(B) 00:10 - 00:20"])
        == "At the end of the video"
    )


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_half_of_the_options_and_two_must_be_times(count):
    options = [f"00:{second}0 - 00:{second}5" for second in range(count)] + ["Never."] * (4 - count)
    assert bool(points_into_clip("When does he leave?", options)) == (count >= 2)


def test_an_option_that_only_mentions_the_end_is_no_time():
    options = [
        "The man at the end of the video in a restaurant.",
        "The man with the red helmet at the beginning of the video.",
    ]
    assert points_into_clip("Who resembles the cook?", options) == ""


# --- what of a prompt is its question ----------------------------------------------------------------

_BEFORE = "The video runs from 00:00 to 01:00. Watch to the end of the video and answer the question: "
_AFTER = "\nSelect one option.\nAnswer at the end of the video has played, in the last 10 seconds.\n"
_OPTIONS = "\nA. At the end of the video {}\nB. a {} at 00:35\nC. nobody"


def pointing(*prompts):
    return [bool(points_into_clip(one)) for one in questions_in(prompts)]


def test_instructions_before_and_after_the_question_do_not_point():
    asked = ["Who waves?", "Who sits down?", "What falls in the last 10 seconds?", "Is it red?"]
    assert pointing(*(f"{_BEFORE}{one}{_AFTER}" for one in asked)) == [False, False, True, False]


def test_options_after_the_question_are_not_the_question():
    asked = ["Who waves?", "Who sits down at 00:35?", "Who laughs?"]
    assert pointing(*(_BEFORE + one + _OPTIONS.format(i, i) + _AFTER for i, one in enumerate(asked))) == [
        False,
        True,
        False,
    ]


def test_options_without_letters_are_not_the_question():
    options = ["The man waves. At the end of the video he sits.", "Nobody"]
    prompts = [f"Who is number {i}?\n" + "\n".join(options) for i in range(2)]
    assert [bool(points_into_clip(one)) for one in questions_in(prompts, [options] * 2)] == [False, False]


def test_a_question_after_its_options_is_the_question():
    asked = ["Who waves?", "Who sits down at 00:35?", "Who laughs?"]
    assert pointing(
        *(f"Options:{_OPTIONS.format(i, i)}\nThe question is: {one}{_AFTER}" for i, one in enumerate(asked))
    ) == [False, True, False]


@pytest.mark.parametrize(
    "asked",
    [
        [
            "At the end of the video, who waves?",
            "At the end of the video, who sits?",
            "At the end of the video, what falls?",
        ],
        [
            "Who waves at the end of the video?",
            "Who sits at the end of the video?",
            "Who is it at the end of the video?",
        ],
        ["What happens at the end of the video?"] * 3,
        ["Describe the last 10 seconds of the video."] * 3,
        ["Describe what happens at 00:35.", "Describe what happens at 01:10.", "Describe what happens at 02:00."],
    ],
    ids=["a beginning in common", "an ending in common", "the same question", "the same order", "times alone"],
)
def test_where_all_questions_point_none_is_taken_for_an_instruction(asked):
    assert pointing(*asked) == [True] * 3
    after = [one + _OPTIONS.format(i, i) + "\nAnswer with a letter." for i, one in enumerate(asked)]
    assert pointing(*after) == [True] * 3


def test_of_two_prompts_and_of_one():
    assert pointing(f"Who waves?{_AFTER}", f"Who sits at 00:35?{_AFTER}") == [False, True]
    assert pointing("Who waves at the end of the video?", "Who sits at the end of the video?") == [True, True]
    assert pointing("Who waves at 00:35?") == [True]
    assert pointing("Who waves?") == [False]
    assert questions_in([]) == []


def test_two_sorts_of_prompts_have_instructions_of_their_own():
    one = [f"Who waves {i}?\nPick the best at the end of the video." for i in range(3)]
    other = [
        f"Count {what} of it.\nWrite a number after the last 10 seconds of the video."
        for what in ("cats", "dogs", "cars")
    ]
    assert pointing(*one, *other) == [False] * 6


def test_numbers_in_an_instruction_may_differ():
    asked = [
        f"You see {n} frames at 0.{n} seconds up to the end of the video.\nWho waves at {place}?"
        for n, place in ((8, "home"), (16, "sea"))
    ]
    assert pointing(*asked) == [False, False]


def test_chinese_prompts_have_no_spaces_between_sentences():
    assert pointing(
        "请看到视频的结尾。谁在挥手？请用一个词回答。", "请看到视频的结尾。视频第35秒时谁坐下？请用一个词回答。"
    ) == [False, True]


def test_where_a_start_and_an_end_are_asked_for_the_answer_lies_in_the_clips_own_time():
    """The prompt of ``temporal_grounding_charades``."""
    event = "Please find the visual event described by a sentence in the video, determining its starting and ending times. a person runs. "
    assert asked_times(f"{event}Please return its start time and end time.") == "starting and ending times"
    assert asked_times("provide the start and end frame of when 'he sits' happens") == "start and end frame"
    assert asked_times("返回事件的开始时间和结束时间。") == "开始时间和结束时间"
    for other in (
        "Which team has the best start and end of the match?",
        "What happens?\nA. its start time and end time\nB. no",
    ):
        assert asked_times(other) == ""


@given(st.lists(st.text(alphabet="ab?.:\n 1A", max_size=30), max_size=5))
def test_a_question_is_a_part_of_its_prompt(prompts):
    for found, prompt in zip(questions_in(prompts), prompts, strict=True):
        assert set(found.split()) <= set(prompt.split()) | {
            word for line in prompt.splitlines() for word in line.split()
        }


@given(
    st.text(alphabet="at the en0123:分秒第视频of video.?() ", max_size=300), st.lists(st.text(max_size=30), max_size=4)
)
def test_any_text_is_answered_with_words_of_one_line(question, options):
    words = points_into_clip(question, options)
    assert words == words.strip()
    assert "\n" not in words


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "text",
    [
        "the " * 20_000,
        "1:2" * 20_000,
        "at what point " * 5_000,
        "first " * 20_000,
        "a few " * 10_000,
        "在1分" * 20_000,
        "half a-" * 9_000,
    ],
)
def test_long_texts_take_no_long_time(text):
    points_into_clip(text, [text, text])
    questions_in([text, text])
    asked_times(text)
