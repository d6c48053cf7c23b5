"""The suites, the profiles and the run files name only what lmms-eval has."""

import json
import os
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml

from lmms_patch import resources
from lmms_patch.ask import profiles
from lmms_patch.ask.spec import parse
from lmms_patch.harness.names import catalog, configs, facts
from tests.harness import warm

# RCI paper, Table 2 (13 rows); PCRI paper, Tables 5 to 8 (6 + 4 + 4 + 1)
RCI = {
    "AI2D_TEST": "ai2d",
    "AMBER": "amber_discriminative",
    "BLINK": "blink",
    "ChartQA_TEST": "chartqa",
    "GQA_TestDev_Balanced": "gqa",
    "HallusionBench": "hallusion_bench_yesno",
    "MME": "mme",
    "MMStar": "mmstar",
    "POPE": "pope",
    "RealWorldQA": "realworldqa",
    "ScienceQA_TEST": "scienceqa_img",
    "TextVQA_VAL": "textvqa_val",
    "VizWiz": "vizwiz_vqa_val",
}
PCRI = {**RCI, "MMMU": "mmmu_val", "COCO VAL": "coco2017_cap_val"}
SUITES = {"rci_suite": RCI, "pcri_suite": PCRI}
WITH_LITE_SET = {"ai2d", "chartqa", "gqa", "textvqa_val", "vizwiz_vqa_val", "coco2017_cap_val"}
FOLDER = resources.folder("configs") / "profiles"
PROFILES = sorted(FOLDER.glob("*.yaml"))


@pytest.fixture(scope="module")
def manager():
    return catalog.task_manager()


def members(manager, suite):
    return facts.read(manager, suite)["task"]


@pytest.mark.parametrize("suite", SUITES)
def test_suites_are_the_papers_tables(manager, suite):
    assert sorted(members(manager, suite)) == sorted(SUITES[suite].values())
    lite = [f"{name}_lite" if name in WITH_LITE_SET else name for name in members(manager, suite)]
    assert members(manager, f"{suite}_lite") == lite


@pytest.mark.parametrize("suite", [*SUITES, *(f"{suite}_lite" for suite in SUITES)])
def test_suites_can_be_asked_for(manager, suite):
    """Every member is known, nothing is pooled, no judge, no text-only or video task: 13 or 15 with BLINK's 14 parts."""
    assert manager.task_index[suite]["type"] == "group"
    assert "aggregate_metric_list" not in facts.read(manager, suite)
    assert set(members(manager, suite)) <= set(manager.task_index)
    leaves = list(facts.leaves(manager, suite))
    assert len(leaves) == len(members(manager, suite)) - 1 + 14
    assert not any(leaf.problem or leaf.judge for leaf in leaves)
    for kind in ("rci", "pcri", "rci3", "blind", "shuffle3", "occlude3"):
        assert [spec.name for spec in configs.expand(manager, [f"{suite}_{kind}"])] == [f"{suite}_{kind}"]
        configs.check(manager, parse(f"{suite}_{kind}"))


def test_lite_sets_of_the_host_are_all_used(manager):
    """No other member has a lite set."""
    for name in PCRI.values():
        assert (f"{name}_lite" in manager.task_index) == (name in WITH_LITE_SET), name


def matches(manager, pattern):
    return [
        name for name, entry in manager.task_index.items() if entry["type"] == "task" and fnmatchcase(name, pattern)
    ]


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_profiles_name_tasks_and_metrics_that_exist(manager, path):
    profile = profiles.read(path)
    for pattern in profile.tasks:
        found = matches(manager, pattern)
        assert found, pattern
        for name in found:
            listed = [entry["metric"] for entry in facts.read(manager, name)["metric_list"]]
            assert profile.options.metric in listed, name
            assert set(profile.options.aggregation or {}) <= set(listed), name


def test_every_member_of_a_suite_has_one_profile(manager):
    read = [profiles.read(path) for path in PROFILES]
    for suite in ("pcri_suite", "pcri_suite_lite"):
        for leaf in facts.leaves(manager, suite):
            found = [p.name for p in read if any(fnmatchcase(leaf.name, pattern) for pattern in p.tasks)]
            assert len(found) == 1, (leaf.name, found)


def test_profiles_and_judges(manager):
    """Of all tasks with a profile, only these call a judge.

    Their chance is documented, as the scorer is never called for it.
    """
    judged = {
        name
        for path in PROFILES
        for pattern in profiles.read(path).tasks
        for name in matches(manager, pattern)
        if any(leaf.judge for leaf in facts.leaves(manager, name))
    }
    assert judged == {
        "hallusion_bench_image",
        "tempcompass_caption_matching",
        "tempcompass_multi_choice",
        "tempcompass_yes_no",
    }
    assert all(options is not None and options.chance is not None for options in map(profiles.of, judged))


RUNS = sorted((resources.folder("configs") / "runs").glob("*.yaml"))


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_run_files_have_keys_and_names_of_the_host(manager, path, monkeypatch):
    from lmms_eval.__main__ import parse_eval_args

    monkeypatch.setattr("sys.argv", ["lmms-eval"])
    known = {action.dest for action in parse_eval_args()[0]._actions}
    config = yaml.safe_load(Path(path).read_text())
    assert set(config) <= known
    assert parse(config["tasks"]).base == path.stem
    assert configs.expand(manager, [config["tasks"]])


def test_there_is_a_run_file_for_each_suite():
    assert [path.stem for path in RUNS] == sorted([*SUITES, *(f"{suite}_lite" for suite in SUITES)])


@pytest.mark.cli
def test_a_run_file_through_the_command_line(tmp_path):
    """Its keys are taken, and flags win over it."""
    run_file = resources.folder("configs") / "runs" / "rci_suite_lite.yaml"
    flags = ["--model", "mosaic_vlm", "--tasks", "mosaic_local", "--limit", "2", "--output_path", str(tmp_path)]
    status, printed, said = warm.run(["lmms-eval", "--config", str(run_file), *flags], os.environ)
    assert status == 0, (printed + said)[-3000:]
    results = json.loads(next(tmp_path.rglob("*_results.json")).read_text())
    assert set(results["results"]) == {"mosaic_local"}
    assert results["n-samples"]["mosaic_local"]["effective"] == 2
