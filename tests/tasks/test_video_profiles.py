"""The profiles of video benchmarks, on a row with the columns of the real data, through lmms-eval's own prompts and scorers."""

import sys
import types

import datasets
import pytest
from lmms_eval.utils import load_yaml_config

from lmms_patch.ask import profiles
from lmms_patch.ask.answers import Asked, recognise
from lmms_patch.harness.names import catalog
from lmms_patch.harness.wrap.calls import call_native

LETTERED = ["A. red", "B. blue", "C. green", "D. white"]
TEMPCOMPASS = {"video_id": "1021488277", "dim": "action"}
MVBENCH = {
    "video": "ZS9XR.mp4",
    "question": "What did the person do?",
    "candidates": ["Sat down.", "Ate a pear.", "Left.", "B"],
    "answer": "Left.",
}
LONG = {f"option{i}": text for i, text in enumerate(["A cup", "A door", "A hat", "N/A", "N/A"])}
VSI = {
    "id": 0,
    "dataset": "arkitscenes",
    "scene_name": "41069025",
    "question_type": "object_rel_distance",
    "question": "Which is closest?",
}

ROWS = {
    "videomme": {
        "video_id": "001",
        "duration": "short",
        "domain": "Knowledge",
        "sub_category": "Geography",
        "url": "https://example.org",
        "videoID": "fFjv93ACGo8",
        "question_id": "001-1",
        "task_type": "Counting Problem",
        "question": "Which colour?",
        "options": LETTERED,
        "answer": "C",
    },
    "vsibench": {**VSI, "ground_truth": "C", "options": LETTERED, "pruned": False},
    "mvbench_action_sequence": MVBENCH,
    "mvbench_state_change": MVBENCH,
    "nextqa_mc_test": {
        "video": 4010069381,
        "frame_count": 369,
        "width": 640,
        "height": 480,
        "question": "how do the two men play the instrument",
        "answer": 2,
        "qid": 6,
        "type": "CH",
        **{
            f"a{i}": text
            for i, text in enumerate(
                ["roll the handle", "tap their feet", "strum the string", "hit with sticks", "pat with hand"]
            )
        },
    },
    "egoschema_subset": {
        "question_idx": "3",
        "question": "What is the aim of c?",
        "video_idx": "001934bb-81bd-4cd8-a574-0472ef3f6678",
        "option": ["A. C cooks.", "B. C cleans.", "C. C paints.", "D. C reads.", "E. C sleeps."],
        "answer": "2",
    },
    "longvideobench_val_v": {
        "video_id": "86CxyhFV9MI",
        "id": "86CxyhFV9MI_0",
        "video_path": "86CxyhFV9MI.mp4",
        "subtitle_path": "86CxyhFV9MI_en.json",
        "correct_choice": 2,
        "question": "What is beside the lamp?",
        **LONG,
        "duration": 190.16,
        "duration_group": 600,
        "question_category": "S2E",
        "topic_category": "NP-News-Programs",
        "starting_timestamp_for_subtitles": 0.0,
    },
    "mlvu_dev": {
        "video_name": "movie101_66.mp4",
        "duration": 480.0,
        "question": "What colour is the car?\n(A) red\n(B) blue\n(C) green\n(D) white\n",
        "candidates": ["red", "blue", "green", "white"],
        "answer": "C",
        "task_type": "plotQA",
        "question_id": "plotQA_0",
    },
    "tempcompass_multi_choice": {
        **TEMPCOMPASS,
        "question": "What moves?\nA. a cat\nB. a dog\nC. a bird",
        "answer": "C. a bird",
    },
    "tempcompass_yes_no": {**TEMPCOMPASS, "question": "Does the cat walk?", "answer": "yes"},
    "tempcompass_caption_matching": {
        **TEMPCOMPASS,
        "question": "Which caption matches the video better?\nOption 1: A cat walks.\nOption 2: A cat sleeps.",
        "answer": "Option 1: A cat walks.",
    },
}
ROWS["vsibench_debiased"] = ROWS["vsibench_pruned"] = ROWS["vsibench_multiimage"] = ROWS[
    "vsibench_debiased_multiimage"
] = ROWS["vsibench"]
ROWS["videomme_w_subtitle"] = ROWS["videomme_long_w_subtitle"] = ROWS["videomme"]
ROWS["longvideobench_val_i"] = ROWS["longvideobench_val_v"]
ROWS["mlvu_test"] = ROWS["mlvu_dev"] | {"task_type": "tutorialQA"}
SUBTITLED = {"videomme_w_subtitle", "videomme_long_w_subtitle", "longvideobench_val_i"}
"""Their prompts need the files of the subtitles."""
NO_LETTER = {"tempcompass_yes_no": "yes", "tempcompass_caption_matching": "Option 1: A cat walks."}
FULL_MARKS = {"mlvu_dev": 100 / 7, "mlvu_test": 100 / 9} | {
    name: 100.0 for name in ROWS if name.startswith(("videomme", "mvbench", "tempcompass"))
}


@pytest.fixture(scope="module")
def native():
    """The full config of a task, its functions imported.

    LongVideoBench's import a reader of videos that need not be there: no video is opened.
    """
    index = catalog.task_manager().task_index
    with pytest.MonkeyPatch.context() as patch:
        if "decord" not in sys.modules:
            reader = types.ModuleType("decord")
            reader.VideoReader = reader.cpu = None
            patch.setitem(sys.modules, "decord", reader)
        yield lambda name: load_yaml_config(index[name]["yaml_path"])


def named(value):
    return [value] if isinstance(value, str) else value or []


@pytest.mark.parametrize("task", ROWS)
def test_the_profile_names_fields_of_the_data(task):
    options = profiles.of(task)
    assert options.group
    for option in ("cluster", "group", "category", "choices", "gold", "stratum"):
        assert set(named(getattr(options, option))) <= set(ROWS[task]), option


def answer_of(config, task):
    """The answer as it is recognised from the native prompt and target of the row."""
    options, row, kwargs = profiles.of(task), ROWS[task], config.get("lmms_eval_specific_kwargs") or {}
    target = config["doc_to_target"](row) if callable(config["doc_to_target"]) else row[config["doc_to_target"]]
    prompt = config["doc_to_text"](row, kwargs.get("default", {}))
    return recognise([Asked(prompt, target, tuple(row[options.choices]) if options.choices else ())], options.format)[0]


@pytest.mark.parametrize("task", sorted(ROWS.keys() - SUBTITLED))
def test_golds_are_what_the_scorers_compare_with(native, task):
    """Every gold of these rows is the third option, letter C, in whatever way the data says it."""
    answer = answer_of(native(task), task)
    assert answer.gold == NO_LETTER.get(task, "C")
    if task not in NO_LETTER:
        assert answer.format == "mc"
        assert answer.options == tuple("ABCDE"[: len(answer.texts)])


def earned(config, task, answer):
    options = profiles.of(task)
    item = config["process_results"](dict(ROWS[task]), [answer])[options.metric]
    function = next(entry["aggregation"] for entry in config["metric_list"] if entry["metric"] == options.metric)
    return item, function


@pytest.mark.parametrize("task", ROWS)
def test_the_gold_earns_full_marks_and_another_answer_none(native, task):
    config, options = native(task), profiles.of(task)
    gold = NO_LETTER.get(task, "C")
    for answer, right in ((gold, 1), ({"yes": "no", "C": "A"}.get(gold, "Option 2"), 0)):
        item, function = earned(config, task, answer)
        if isinstance(item, dict) and any(key in item for key in [*named(options.score), "score"]):
            assert next(item[key] for key in [*named(options.score), "score"] if key in item) == right
        if task.startswith("vsibench"):
            continue  # its mean needs all question types
        got = float(item) if function == "mean" else call_native(function, [item], None)
        assert got == pytest.approx(right * FULL_MARKS.get(task, 1.0))


def test_videomme_long_has_the_subtitles_of_the_whole_video(native):
    """As the profile says: its prompt is that of videomme_w_subtitle."""
    names = {
        name: native(name)["doc_to_text"].__name__
        for name in ("videomme", "videomme_long", "videomme_long_w_subtitle", "videomme_w_subtitle")
    }
    assert names == {"videomme": "videomme_doc_to_text"} | dict.fromkeys(
        list(names)[1:], "videomme_doc_to_text_subtitle"
    )


def test_mlvu_divides_by_all_task_types(native):
    """Two right answers of one type of nine and a wrong one of another: 100 (1 + 0) / 9."""
    config = native("mlvu_test")
    kinds = [("count", "C"), ("count", "C"), ("order", "A")]
    items = [
        config["process_results"](ROWS["mlvu_test"] | {"task_type": kind}, [said])["mlvu_percetion_score"]
        for kind, said in kinds
    ]
    assert config["metric_list"][0]["aggregation"](items) == pytest.approx(100 / 9)


def test_longvideobench_counts_each_doc_alike(native):
    """Each doc stands in two of its groups, of duration and of category: one right of three is a third."""
    config, row = native("longvideobench_val_v"), ROWS["longvideobench_val_v"]
    docs = [row, row | {"id": "2", "duration_group": 15}, row | {"id": "3", "question_category": "SSS"}]
    items = [config["process_results"](doc, [said])["lvb_acc"] for doc, said in zip(docs, "CAB", strict=True)]
    assert config["metric_list"][0]["aggregation"](items) == round(1 / 3, 5)


def test_a_row_is_what_the_data_set_gives_back():
    """NExT-QA and LongVideoBench store places as whole numbers, which come back as such."""
    for task, field in (("nextqa_mc_test", "answer"), ("longvideobench_val_v", "correct_choice")):
        assert datasets.Dataset.from_list([ROWS[task]])[0][field] == 2
