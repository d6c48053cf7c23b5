"""Prompts that hold subtitles, in the forms of lmms-eval's benchmarks, and prompts that only speak of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_patch.ask.subtitles import with_subtitles

SELECT = "Select the best answer to the following multiple-choice question based on the video and the subtitles. Respond with only the letter."
OPTIONS = "\nA. a cat\nB. a dog\nThe best answer is:"
FORMS = {
    "videomme_w_subtitle": "This video's subtitles are listed below: \n{}\n" + SELECT + "\n{}" + OPTIONS,
    "cinepile": "You will be given a movie.\n\n**Subtitles:**\n{}\n\n{}" + OPTIONS,
    "in one line": "Transcript: {}\nQuestion: {}" + OPTIONS,
    "Chinese": "视频的字幕如下：\n{}\n" + "请回答。\n{}",
}
SAID = ["Good morning.\nHow are you?", "No, I will not go.", "None of us saw it.", "she said: wait"]
NOTHING = ["No subtitles available", "No subtitles available.", "None", "N/A"]


def prompts_of(form, texts):
    questions = [f"Who is number {i}?" for i in range(len(texts))]
    return [FORMS[form].format(text, question) for text, question in zip(texts, questions, strict=True)], questions


@pytest.mark.parametrize("form", FORMS)
def test_each_prompt_with_subtitles_is_found(form):
    prompts, questions = prompts_of(form, [*SAID, *NOTHING])
    assert with_subtitles(prompts, questions) == [True] * len(SAID) + [False] * len(NOTHING)
    assert with_subtitles(prompts, [""] * len(prompts)) == [True] * len(SAID) + [False] * len(NOTHING)


@pytest.mark.parametrize("form", ["videomme_w_subtitle", "cinepile"])
def test_a_heading_over_nothing_is_no_subtitles(form):
    """Video-TT without its sound: the heading stays, and the instructions, or the question, follow at once."""
    prompts, questions = prompts_of(form, ["", "", ""])
    assert with_subtitles(prompts, questions) == [False] * 3


def test_questions_on_one_video_share_its_subtitles():
    prompts, questions = prompts_of("cinepile", ["Good morning.", "Good morning.", "Good night.", "Good night."])
    assert with_subtitles(prompts, questions) == [True] * 4


@pytest.mark.parametrize(
    "prompt",
    [
        f"{SELECT}\nWho waves?{OPTIONS}",  # videomme, which shows none
        "What do the subtitles say?\nA. yes\nB. no",
        "Which transcript is right:\nA. good morning\nB. good night",
        "Who reads the subtitles of the film aloud, and why?",
        "",
    ],
)
def test_to_speak_of_subtitles_is_not_to_hold_them(prompt):
    assert with_subtitles([prompt, f"{prompt} "], ["", ""]) == [False, False]
    assert with_subtitles([prompt], [""]) == [False]


@given(st.lists(st.text(alphabet="subtitle: \nAB.", max_size=60), max_size=4))
def test_any_prompts_are_answered(prompts):
    assert len(with_subtitles(prompts, [""] * len(prompts))) == len(prompts)
