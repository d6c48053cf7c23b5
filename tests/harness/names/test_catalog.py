"""What ``lmms-patch tasks`` says, and how judges are found."""

import json

import pytest

from lmms_patch import commands
from lmms_patch.app.cli import main
from lmms_patch.errors import OptionError
from lmms_patch.harness.names import catalog, configs, sizes
from lmms_patch.harness.names.effects import judge_in
from tests.harness.toys import rows, write_task


@pytest.fixture(scope="module")
def manager():
    return catalog.task_manager()


@pytest.fixture(scope="module")
def covered(manager):
    return catalog.coverage(manager)


def test_coverage_of_the_installed_host(covered):
    found = {e.name: e for e in covered}
    assert len(found) >= 1711
    assert not any("cannot be read" in e.reason for e in found.values())
    # the visual tasks of the papers wrap; their neighbours that do not have a reason that a user accepts
    for name in (
        "gqa",
        "pope",
        "mme",
        "mmstar",
        "ai2d",
        "scienceqa_img",
        "realworldqa",
        "textvqa_val",
        "chartqa",
        "mmmu_val",
        "blink_counting",
    ):
        assert found[name].verdict == "wraps", name
    for name in (
        "vbench",
        "vbench2_thermotics",
        "WISE",
        "browsecomp",
        "ueval",
        "safety_jailbreakbench_harmful",
        "videomme_no_visual",
    ):
        assert (found[name].verdict, found[name].reason) == (
            "no",
            "it shows no image: its doc_to_visual always returns nothing",
        ), name
    assert sum("always returns nothing" in e.reason for e in found.values() if "no_visual" not in e.name) == 36 + 5
    for name, reason in {
        "mmlu_flan_n_shot_generative_astronomy": "text-only",
        "librispeech_test_other": "sound",
        "moviechat_breakpoint": "a stretch of a video",
        "megabench_core": "still images or what its code does not tell",
        "refcoco_bbox_rec_val": "a box or a point",
        "mathvista_testmini_cot": "judge",
    }.items():
        assert reason in found[name].reason, name
    refused = [e for e in found.values() if e.verdict == "no"]
    reasons = ("text-only", "shows no image", "sound", "stretch", "does not have", "a box or a point", "output type")
    assert all(any(r in e.reason for r in reasons) for e in refused)


def test_what_the_tasks_of_the_installed_host_show(covered):
    """Read by hand from their code: paths of videos, single images, sound, frames that come as images, and what only the docs tell."""
    verdicts = {e.name: (e.verdict, e.in_time[0]) for e in covered}
    by_hand = {
        (
            "wraps",
            "wraps",
        ): "videomme mlvu_dev nextqa_mc_test tvbench_action_count neptune_full_v site_bench_video av_speakerbench_visual",
        (
            "wraps",
            "no",
        ): "gqa pope mmmu_val osi_bench_frames vsibench_multiimage neptune_full_i longvideobench_val_i mix_evals_image2text_mc",
        ("wraps", "data"): "cgav_counting_clue mmsi_video",
        ("no", "no"): "librispeech_test_other omni_bench moviechat_breakpoint videomme_no_visual lvbench_random_choice",
        ("data", "data"): "megabench_core xmod_bench_audio_video egotempo av_asr av_odyssey",
        ("judge", "judge"): "moviechat_global capability_scene",
    }
    assert {name: verdicts[name] for names in by_hand.values() for name in names.split()} == {
        name: expected for expected, names in by_hand.items() for name in names.split()
    }
    mmmu = {
        f"video_mmmu_{part}_{way}"
        for part in ("adaptation", "comprehension", "perception")
        for way in ("gt_none_option", "number_option", "random_choice")
    }
    lost = {e.name for e in covered if "itself cannot load it" in e.reason}
    assert lost == {"longvideobench_random_choice", "lvbench_random_choice"} | mmmu, (
        "their config names functions of another folder"
    )


def test_from_python_tasks_and_coverage_are_data(covered, capsys):
    found = commands.tasks("mosaic_rci")
    assert (found.kind, found.asked) == ("rci", 14)
    assert [(e.name, e.verdict, e.docs) for e in found.entries] == [("mosaic", "wraps", 840)]
    assert commands.tasks("mosaic_sum", "blind").asked == 1
    assert [(e.name, e.verdict, e.reason) for e in commands.tasks(every=True).entries] == [
        (e.name, e.verdict, e.reason) for e in covered
    ]
    assert capsys.readouterr().out == ""


def test_prices(manager, capsys):
    """120 docs per family, in its parquet, 60 of them also on a wrong image; 14 requests per doc for both grids."""
    assert main(["tasks", "mosaic_rci"]) == 0
    assert (
        "mosaic_rci  [group] wraps, 840 docs, 17,640 requests (420 docs also on another doc's image)"
        in capsys.readouterr().out
    )
    assert main(["tasks", "mosaic_sum", "--as", "blind"]) == 0
    assert "mosaic_sum_blind  [task] wraps, 120 docs, 120 requests" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["tasks", "gqaa"], "did you mean gqa"),
        (["tasks", "gqa_rcii3"], "did you mean gqa_rci3?"),
        (["tasks", "gqa", "--as", "rci1"], "2 to 9"),
        (["tasks", "gqa", "--as", "x"], "allowed: rci3"),
    ],
)
def test_wrong_questions_are_one_line_and_status_2(arguments, says, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "text",
    ["class: x\n", "class: x\ntask: [a]\n", "task: 5\n", "task: [a]\ngroup: [b]\n", "task: a\ntag: 5\n", "[1]\n"],
)
def test_a_file_that_the_hosts_index_cannot_use_is_named(text, tmp_path):
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(OptionError, match=r"mine\.yaml cannot be read as a task file"):
        catalog.task_manager(tmp_path)


def test_sizes_of_local_files_and_prepared_datasets(tmp_path, monkeypatch):
    write_task(tmp_path, "toy", rows(7))
    local = {
        "dataset_path": "parquet",
        "test_split": "test",
        "dataset_kwargs": {"data_files": {"test": str(tmp_path / "toy.parquet")}},
    }
    assert sizes.docs_of(local) == 7
    (tmp_path / "lines.jsonl").write_text('{"a": 1}\n{"a": 2}\n\n')
    assert (
        sizes.docs_of(
            {
                **local,
                "dataset_path": "json",
                "dataset_kwargs": {"data_files": {"test": [str(tmp_path / "lines.jsonl")]}},
            }
        )
        == 2
    )
    for odd in (5, [{"a": 1}], {"test": 1.5}, ["nothing.parquet"]):
        assert sizes.docs_of({**local, "dataset_kwargs": {"data_files": odd}}) is None
    assert sizes.docs_of({**local, "test_split": ["test"]}) is None
    prepared = tmp_path / "cache" / "lmms-lab___gqa" / "default" / "0.0.0" / "abc"
    prepared.mkdir(parents=True)
    (prepared / "dataset_info.json").write_text(json.dumps({"splits": {"testdev": {"num_examples": 12578}}}))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    hub = {"dataset_path": "lmms-lab/GQA", "test_split": "testdev"}
    assert sizes.docs_of(hub) == 12578
    assert sizes.docs_of({**hub, "test_split": "test"}) is None
    assert sizes.docs_of({**hub, "dataset_path": "lmms-lab/POPE"}) is None


JUDGED = """
import json
import openai as oa
from lmms_eval.llm_judge import get_server
from .other import helper, innocent
client = oa.OpenAI()

def through_a_global(doc, results):
    return client.ask(results)

def through_a_function(doc, results):
    return inner(results)

def inner(results):
    return get_server("x")

def through_a_module(doc, results):
    return helper(results)

def inside():
    import requests
    return requests.post("x")

def clean(doc, results):
    return innocent(json.dumps(results))
"""


@pytest.mark.parametrize(
    ("name", "client"),
    [
        ("through_a_global", "openai"),
        ("through_a_function", "llm_judge"),
        ("through_a_module", "anthropic"),
        ("inside", "requests"),
        ("clean", None),
        ("missing", None),
    ],
)
def test_judges_are_found_in_what_a_scorer_can_reach(tmp_path, name, client):
    (tmp_path / "utils.py").write_text(JUDGED)
    (tmp_path / "other.py").write_text(
        "from anthropic import Client\ndef helper(x):\n    return Client(x)\ndef innocent(x):\n    return x\n"
    )
    found = judge_in(str(tmp_path / "utils.py"), name)
    assert found is None if client is None else client in found


def test_explicit_files_are_recognised_in_both_reading_modes(tmp_path):
    from lmms_eval.utils import load_yaml_config

    path = tmp_path / "mine.yaml"
    path.write_text("task: mine\nclass: !function lmms_patch.Wrap\nbase: gqa\ngrids: [2]\n")
    for mode in ("simple", "full"):
        assert configs.explicit_spec(load_yaml_config(str(path), mode=mode)).grids == (2,)
    path.write_text("task: mine\nclass: !function utils.Special\n")
    assert configs.explicit_spec(load_yaml_config(str(path), mode="simple")) is None
