"""What the atlas adds to lmms-eval: a reader of text, docs from local images, and models of random weights."""

import json
import sys
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from PIL import Image

from benchmarks import atlas, here
from benchmarks.own.models.ocr_reader import OcrReader, answer, rapidocr
from lmms_patch.errors import PatchError
from tests.harness.toys import metrics, rows, run, write_task
from tests.places import ROOT
from tests.sizes import DEEP

OPTIONS = "What is the missing number?\nA. 6\nB. 3\n(C) 14\nAnswer with the letter of one option."


@pytest.mark.parametrize(
    ("prompt", "pieces", "said"),
    [
        (OPTIONS, ["9", " 3 "], "B"),
        (OPTIONS, ["14"], "C"),
        (OPTIONS, ["6", "3"], ""),
        (OPTIONS, ["9"], ""),
        (OPTIONS, [], ""),
        ("A. red\nB. Blue", ["blue"], "B"),
        ("How many rows are in the table?", ["apple", "book"], "apple book"),
        ("How many rows are in the table?\nA. one line alone is no list", ["apple"], "apple"),
    ],
)
def test_a_reader_answers_by_what_it_read_alone(prompt, pieces, said):
    assert answer(prompt, pieces) == said


def test_the_reader_runs_through_the_harness_and_reads_each_image_once(tmp_path):
    read = []

    def reads(image):
        read.append(image)
        return [str(image.getpixel((0, 0))[2])]

    # the blue of a coded image is the number of its doc, which is the gold
    write_task(tmp_path, "toy", [*rows(4), rows(1)[0]])
    results = run(OcrReader(reads), "toy_rci2,toy_blind", tmp_path)
    assert metrics(results, "toy_rci2")["exact_match"] == 1
    assert metrics(results, "toy_blind")["exact_match"] == 0
    assert all(image.mode == "RGB" for image in read)
    assert len(read) == 4 * 5


def test_without_its_package_the_reader_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "rapidocr_onnxruntime", None)
    with pytest.raises(SystemExit, match="pip install rapidocr-onnxruntime"):
        rapidocr()


def test_the_harness_finds_the_plugin(monkeypatch):
    from lmms_eval import models
    from lmms_eval.models.registry_v2 import ModelRegistryV2

    monkeypatch.setenv("LMMS_EVAL_PLUGINS", "benchmarks.own")
    monkeypatch.setattr(models, "AVAILABLE_SIMPLE_MODELS", {})
    registry = ModelRegistryV2()
    with pytest.warns(DeprecationWarning, match="LMMS_EVAL_PLUGINS"):
        models._merge_legacy_plugin_models(registry)
    assert registry.get_model_class("ocr_reader") is OcrReader


def test_a_plan_says_where_its_plugin_keeps_tasks():
    plan = msgspec.yaml.decode((ROOT / "benchmarks" / "data" / "atlas-here.yaml").read_bytes(), type=atlas.Plan)
    named = {path.stem for path in Path(atlas._tasks(plan)).glob("*.yaml")}
    assert {name for name in plan.benchmarks if name.startswith("local_")} == named
    with pytest.raises(PatchError, match="no_such_plugin"):
        atlas.costs(atlas.Plan([], ["mosaic_local"], plugin="no_such_plugin"))


def test_docs_are_the_first_of_each_category_that_have_an_image(tmp_path):
    Image.new("RGB", (8, 6), "red").save(tmp_path / "red.png")
    lines = [
        {"id": f"{kind}-{i}", "question": "Which?", "choices": ["x", "y"] if kind == "mc" else None, "answer": "B"}
        | {"category": kind, **({} if i == 0 else {"image": "red.png"})}
        for i in range(here.OF_EACH + 3)
        for kind in ("mc", "open")
    ]
    (tmp_path / "toy.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert here.write_docs(tmp_path, "toy", tmp_path / "docs" / "toy.parquet") == 2 * here.OF_EACH
    docs = pq.read_table(tmp_path / "docs" / "toy.parquet").to_pylist()
    assert [doc["id"] for doc in docs[:2]] == ["mc-1", "mc-2"]
    assert docs[0]["question"] == "Which?\nA. x\nB. y\nAnswer with the letter of one option."
    assert docs[-1]["question"] == "Which?"
    assert docs[0]["image"]["bytes"] == (tmp_path / "red.png").read_bytes()


@pytest.mark.parametrize(
    ("said", "gold", "score"),
    [("{4}", "4", 1), (" (b).", "B", 1), ("(5, 6)", "(5,6)", 1), ("Yes.", "Yes", 1), ("", "4", 0), ("14", "4", 0)],
)
def test_the_score_of_local_docs(said, gold, score, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "own" / "tasks"))
    monkeypatch.delitem(sys.modules, "utils", raising=False)
    import utils

    assert utils.process_results({"answer": gold}, [said]) == {"acc": score}


@pytest.mark.skipif(not DEEP, reason="two adapters take ten seconds to start; make test-deep has this test")
@pytest.mark.parametrize("name", here.TINY)
def test_a_tiny_model_of_random_weights_answers_by_its_own_adapter(name, tmp_path):
    from lmms_eval.models import get_model

    assert here.TINY[name](tmp_path / name) < 200_000
    adapter = {"qwen2.5-vl": "qwen2_5_vl", "llava-onevision": "llava_hf"}[name]
    model = get_model(adapter)(pretrained=str(tmp_path / name), device="cpu", device_map="cpu")
    write_task(tmp_path, "toy", rows(2))
    found = run(model, "toy_rci2", tmp_path)
    said = [text for sample in found["samples"]["toy_rci2"] for text in sample["filtered_resps"]]
    assert len(said) == 2 * 5
    assert any(said)
    assert metrics(found, "toy_rci2")["patch"]["n_failed"] == 0
