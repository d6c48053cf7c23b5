"""The MAGIC tasks in-process: docs, pictures, prompts, records, and what a config says of them."""

import json

import numpy as np
import pytest
from lmms_eval.tasks import TaskManager, get_task_dict

from lmms_patch.errors import PatchError
from lmms_patch.harness.magic import docs, tasks
from lmms_patch.magic.draw import upright
from tests.harness.magic.items import HEIGHT, WIDTH, picture, row
from tests.harness.toys import ChatModel, Model, metrics, run


def load(name, model="toy", chat=False):
    manager = TaskManager(verbosity="ERROR", model_name=model)
    return get_task_dict([name], manager, task_type="chat" if chat else "simple")[name]


def file_place(box):
    """A box's place in the file's list, from 1."""
    return [[10, 10, 50, 50], [70, 10, 110, 50], [10, 90, 50, 130], [130, 90, 180, 130]].index(box) + 1


# --- docs -----------------------------------------------------------------------------------------


def test_docs_of_each_variant(magic_data):
    magic_data([row(0), row(1)])
    shown = {name: load(f"magic{name}").eval_docs[0] for name in ("", "_relevant", "_nobox", "_selfheal")}
    assert shown[""]["drawn"] == [1, 2, 3, 4]
    assert shown["_nobox"]["drawn"] == [0, 0, 0, 0]
    assert sorted(shown["_relevant"]["drawn"]) == [0, 0, 1, 2]
    assert [bool(number) for number in shown["_relevant"]["drawn"]] == shown["_relevant"]["relevant"]
    for doc in shown.values():
        assert sorted(map(file_place, doc["boxes"])) == [1, 2, 3, 4]
        assert all(
            relevant == (file_place(box) in (1, 3)) for box, relevant in zip(doc["boxes"], doc["relevant"], strict=True)
        )
    assert shown["_selfheal"]["id"] == "q0/3-3"
    assert (shown["_selfheal"]["first"], shown["_selfheal"]["last"]) == (3, 3)


@pytest.mark.parametrize("seed", range(5))
def test_injected_texts_name_the_boxes_as_they_are_drawn(magic_data, monkeypatch, seed):
    magic_data([row(0)])
    monkeypatch.setenv("MAGIC_SEED", str(seed))
    doc = load("magic_selfheal").eval_docs[0]
    number = {file_place(box): drawn for box, drawn in zip(doc["boxes"], doc["drawn"], strict=True)}
    assert doc["prefix"] == ["I look at the whole image.", f"R{number[1]} shows a thing.", f"R{number[3]} is green."]
    assert doc["corrections"] == [f"R{number[3]} is red."]


def test_the_seed_mixes_the_boxes(magic_data, monkeypatch):
    magic_data([row(0)])
    orders = set()
    for seed in range(8):
        monkeypatch.setenv("MAGIC_SEED", str(seed))
        orders.add(tuple(map(file_place, load("magic").eval_docs[0]["boxes"])))
    assert len(orders) > 3


def test_regions_are_shown_as_they_are_and_outlined(magic_data):
    magic_data([row(0)])
    for name, outlined in (("magic", 4), ("magic_relevant", 2), ("magic_nobox", 0)):
        task = load(name)
        doc = task.eval_docs[0]
        (seen,) = task.doc_to_visual(doc)
        plain = np.asarray(upright(picture(0)))
        changed = (np.asarray(seen) != plain).any(axis=2)
        assert changed.any() == bool(outlined)
        ringed = 0
        for left, top, right, bottom in doc["boxes"]:
            inside = changed[top + 1 : bottom - 1, left + 1 : right - 1]
            assert inside.mean() < 0.2  # a plate may stand in a corner, the region itself is not painted over
            ringed += bool(changed[top - 1, left:right].all())
        assert ringed == outlined


def test_the_prompt_speaks_of_the_boxes_that_are_drawn(magic_data):
    magic_data([row(0)])
    texts = {
        name: (task := load(name)).doc_to_text(task.eval_docs[0])
        for name in ("magic", "magic_relevant", "magic_nobox", "magic_selfheal")
    }
    assert "`R1` to `R4`" in texts["magic"]
    assert "`R1` to `R2`" in texts["magic_relevant"]
    assert "R1" not in texts["magic_nobox"]
    assert "not finished" in texts["magic_selfheal"]
    assert "is green." in texts["magic_selfheal"]
    assert all("What is in picture 0?" in text for text in texts.values())


# --- mistakes -------------------------------------------------------------------------------------


def refusal(name):
    with pytest.raises(PatchError) as caught:
        load(name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_nothing_to_inject_is_one_line(magic_data):
    magic_data([row(0, steps=[])])
    assert "Self-Heal has nothing to inject" in refusal("magic_selfheal")
    assert len(load("magic").eval_docs) == 1


def test_items_that_cannot_be_used_are_left_out_and_counted(magic_data):
    outside = row(1, boxes=[{"box": [10, 10, 5000, 50], "relevant": True}])
    folder = magic_data([row(0), outside, row(2, image="gone.png")])
    task = load("magic")
    assert [doc["id"] for doc in task.eval_docs] == ["q0"]
    found = run(Model(lambda prompt, images: "R1. Answer: red"), "magic")
    assert found["results"]["magic"]["magic,none"]["magic"]["left_out"]["items"] == 2
    (folder / "0.png").write_bytes(b"no image")
    monkey = folder.parent / "other"
    monkey.mkdir()
    (monkey / "items.jsonl").write_text(json.dumps(row(0)) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAGIC_DATA", str(monkey))
        assert "none of its 1 items can be used" in refusal("magic")


# --- what the harness's response cache goes by ----------------------------------------------------


def config(name="magic"):
    return json.dumps(load(name).dump_config()["metadata"], sort_keys=True)


def test_other_data_boxes_images_or_seeds_are_another_config_and_a_judge_is_not(magic_data, monkeypatch, tmp_path):
    folder = magic_data([row(0), row(1)])
    first = config()
    assert config() == first
    monkeypatch.setenv("MAGIC_SEED", "5")
    assert config() != first
    monkeypatch.delenv("MAGIC_SEED")
    monkeypatch.setenv("MAGIC_JUDGE", "some-model")
    assert config() == first
    monkeypatch.delenv("MAGIC_JUDGE")
    magic_data([row(0), row(1, answer="blue")], "other gold")
    assert config() != first
    moved = magic_data([row(0), row(1)], "same elsewhere")
    assert config() == first
    picture(3).save(moved / "0.png")
    monkeypatch.setenv("MAGIC_DATA", str(folder))
    magic_data([row(0), row(1)], "another image")
    picture(3).save(tmp_path / "another image" / "0.png")
    assert config() != first


# --- one response ---------------------------------------------------------------------------------


def doc_of(variant="all", **changes):
    doc = {
        "row": 0,
        "id": "q",
        "data": docs.MOSAIC,
        "item": "q",
        "group": "",
        "type": "query",
        "question": "What?",
        "answer": "red",
        "full_answer": "It is red.",
        "image_digest": "0",
        "variant": variant,
        "boxes": [[0, 0, 9, 9]] * 4,
        "relevant": [False, True, False, True],
        "drawn": [1, 2, 3, 4],
        "prefix": [],
        "corrections": [],
    }
    return {**doc, **changes}


def test_a_response_is_read_as_boxes_and_answer(monkeypatch):
    monkeypatch.delenv("MAGIC_JUDGE", raising=False)
    said = "I look around. R2 shows a cup, and box 9 a plate. Region 1 is empty.\n**Answer**: It is red, as in R4."
    items = tasks.process_results(doc_of(), [said])
    record = items["magic"].record
    assert (record.relevant, record.used, record.invented) == (
        [2, 4],
        [1, 2],
        [9],
    )  # R4 is named in the answer, not in a step
    assert (record.answer, record.answer_found, record.exact, record.synonym) == (
        "It is red, as in R4.",
        True,
        False,
        True,
    )
    assert items["magiscore_precision_macro"] == 0.5
    assert items["magiscore_recall_macro"] == 0.5
    assert items["magiscore_f1_micro"] == {"tp": 1, "fp": 1, "fn": 1}
    assert items["regions_invented"] == 1.0
    assert "acc_short" not in items


def test_boxes_that_are_not_drawn_cannot_be_used():
    record = tasks.process_results(doc_of("relevant", drawn=[0, 1, 0, 2]), ["R1 and R3. Answer: red"])["magic"].record
    assert (record.boxes, record.relevant, record.used, record.invented) == (2, [1, 2], [1], [3])
    none = tasks.process_results(doc_of("none", drawn=[0, 0, 0, 0]), ["R1 shows it. Answer: red"])
    assert (none["magic"].record.used, none["magic"].record.invented, none["regions_invented"]) == ([], [1], 1.0)
    assert "magiscore_f1_macro" not in none


@pytest.mark.parametrize("said", [None, "[LMMS_EVAL_BUDGET_EXCEEDED]"])
def test_a_failed_call_is_no_response(said):
    items = tasks.process_results(doc_of(), [said])
    assert items["magic"].record.failed
    assert {name: value for name, value in items.items() if value is not None} == {"magic": items["magic"]}


# --- whole runs -----------------------------------------------------------------------------------


def named(prompt, images):
    """Names R1 always, and says red."""
    return "The thing is in R1.\n**Answer**: red"


@pytest.mark.parametrize("kind", [Model, ChatModel])
def test_a_run_gives_the_numbers_and_the_log(magic_data, kind, monkeypatch):
    monkeypatch.delenv("MAGIC_JUDGE", raising=False)
    magic_data([row(0), row(1), row(2, answer="blue")])
    found = run(kind(named), "magic,magic_relevant,magic_nobox,magic_selfheal")
    docs = load("magic").eval_docs
    hits = sum(doc["relevant"][0] for doc in docs)  # R1 is relevant: TP 1, FN 1; else FP 1, FN 2
    got = metrics(found, "magic")
    assert got["magiscore_recall_micro"] == pytest.approx(hits / 6)
    assert got["magiscore_precision_micro"] == pytest.approx(hits / 3)
    assert got["magiscore_f1_macro"] == pytest.approx(hits * (2 / 3) / 3)
    assert got["acc_exact"] == pytest.approx(2 / 3)
    assert metrics(found, "magic_relevant")["magiscore_f1_macro"] == pytest.approx(2 / 3)  # of two, one
    assert metrics(found, "magic_nobox")["regions_invented"] == 1.0
    assert not any("heal" in name for name in metrics(found, "magic_selfheal"))  # a judge's number, and there is none
    details = found["results"]["magic"]["magic,none"]
    assert details["magic"]["numbers"]["magiscore_f1_macro"]["value"] == pytest.approx(got["magiscore_f1_macro"])
    assert details["records"] == 3
    assert [sample["magic"]["id"] for sample in found["samples"]["magic"]] == ["q0", "q1", "q2"]


def test_a_chat_model_that_continues_its_turn_gets_the_steps_as_one(magic_data, monkeypatch):
    magic_data([row(0)])
    for model, setting, turns in [
        ("toy", "", 1),
        ("mosaic_vlm", "", 2),
        ("toy", "assistant", 2),
        ("mosaic_vlm", "prompt", 1),
    ]:
        monkeypatch.setenv("MAGIC_PREFILL", setting)
        task = load("magic_selfheal", model, chat=True)
        doc = task.eval_docs[0]
        sent = task.doc_to_messages(doc)
        assert [turn["role"] for turn in sent] == ["user", "assistant"][:turns]
        texts = ["".join(part.get("text", "") for part in turn["content"]) for turn in sent]
        assert all((doc["prefix"][-1] in text) == (place == turns - 1) for place, text in enumerate(texts))
        assert task.dump_config()["metadata"]["magic"]["prefill"] == ("assistant" if turns == 2 else "prompt")


def test_examples_are_told_apart_by_image_and_boxes_and_name_no_box_that_is_not_drawn(magic_data, monkeypatch):
    from lmms_patch.harness.magic.docs import examples

    steps = [
        {"text": text, "correct": True}
        for text in ("I look around.", "R2 shows a dog, which is not what I need.", "R1 is red.")
    ]
    shots = magic_data([row(0, steps=steps), row(1)], "shots")
    magic_data([row(0)])
    monkeypatch.setenv("MAGIC_EXAMPLES", str(shots))
    assert [len(examples(variant)) for variant in ("all", "relevant", "none")] == [2, 1, 0]
    assert "nother region" not in load("magic_relevant").doc_to_text(load("magic_relevant").eval_docs[0])
    first = [shot.key for shot in examples("all")]
    moved = [dict(box) for box in row(0)["boxes"]]
    moved[1]["box"] = [71, 10, 110, 50]
    magic_data([row(0, steps=steps, boxes=moved), row(1)], "shots")
    magic_data([row(0)])
    assert [shot.key for shot in examples("all")] != first
    assert examples("all")[1].key == first[1]


def test_examples_show_corrected_chains_with_their_own_numbers(magic_data, monkeypatch):
    shots = magic_data([row(0, question="First?"), row(1, question="Second?"), row(2, steps=[])], "shots")
    magic_data([row(0)])
    monkeypatch.setenv("MAGIC_EXAMPLES", str(shots))
    task = load("magic")
    text = task.doc_to_text(task.eval_docs[0])
    assert text.index("First?") < text.index("Second?") < text.index("What is in picture 0?")
    assert "is green" not in text
    assert text.count("is red.") == 4  # a corrected step and the full answer of each
    assert len(task.doc_to_visual(task.eval_docs[0])) == 1
    monkeypatch.setenv("MAGIC_EXAMPLE_IMAGES", "1")
    monkeypatch.setenv("MAGIC_SHOTS", "1")
    task = load("magic")
    assert len(task.doc_to_visual(task.eval_docs[0])) == 2
    assert "Second?" not in task.doc_to_text(task.eval_docs[0])
    monkeypatch.setenv("MAGIC_EXAMPLES", str(magic_data([row(0, steps=[])], "useless")))
    magic_data([row(0)])
    assert "no item of" in refusal("magic")


# --- wrapped --------------------------------------------------------------------------------------


def test_any_wrapped_name_works(magic_data, monkeypatch):
    monkeypatch.delenv("MAGIC_JUDGE", raising=False)
    magic_data([row(0), row(1)])

    def answer(prompt, images):
        return "Answer: red" if images and images[0].size == (WIDTH, HEIGHT) else "Answer: blue"

    found = run(Model(answer), "magic_nobox_rci2,magic_nobox_blind")
    got = metrics(found, "magic_nobox_rci2")
    assert (got["acc_synonym"], got["acc_synonym_mpp2"]) == (1.0, 0.0)
    assert metrics(found, "magic_nobox_blind")["acc_synonym"] == 0.0
    about = found["configs"]["magic_nobox_rci2"]["metadata"]["magic"]
    assert (
        about["docs"] == load("magic_nobox").dump_config()["metadata"]["magic"]["docs"]
    )  # the response cache goes by it
