"""What ``lmms-patch tasks`` says, and how judges are found."""

import pytest

from lmms_patch import commands, resources
from lmms_patch.app.cli import main
from lmms_patch.harness.names import catalog
from lmms_patch.harness.names.effects import judge_in


@pytest.fixture(scope="module")
def manager():
    return catalog.task_manager()


@pytest.fixture(scope="module")
def covered(manager):
    """The verdict for ``_rci3`` on every task of the installed lmms-eval."""
    spec, own = catalog.spec_of_suffix("rci3"), str(resources.folder("tasks"))
    rows = {name: row for name, row in manager.task_index.items() if row["type"] in ("task", "python_task")}
    return [catalog.entry(manager, name, spec) for name, row in rows.items() if not row["yaml_path"].startswith(own)]


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


def test_from_python_tasks_are_data(capsys):
    found = commands.tasks("mosaic_rci")
    assert (found.kind, found.asked) == ("rci", 14)
    assert [(e.name, e.verdict, e.docs) for e in found.entries] == [("mosaic", "wraps", 840)]
    assert commands.tasks("mosaic_sum", "blind").asked == 1
    assert capsys.readouterr().out == ""


def test_prices(manager, capsys):
    """120 docs for each of seven families, in its parquet; 14 requests per doc for both grids.

    Of each family, 60 docs are also on a wrong image, 40 of these in 14 requests again, 20 in one: 7 x (120 x 14 + 40 x 14 + 20).
    """
    assert main(["tasks", "mosaic_rci"]) == 0
    assert (
        "mosaic_rci  [group] wraps, 840 docs, 15,820 requests (420 docs also on another doc's image; 280 asked again, most often 3,920 to 11,760 requests more)"
        in capsys.readouterr().out
    )
    assert main(["tasks", "mosaic_sum", "--as", "blind"]) == 0
    assert "mosaic_sum_blind  [task] wraps, 120 docs, 120 requests" in capsys.readouterr().out


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
