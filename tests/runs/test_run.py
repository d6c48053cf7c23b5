"""Which results may stand side by side."""

import json

import pytest
from msgspec import structs

from lmms_patch.ask.answers import Asked
from lmms_patch.ask.references import Doc, plan
from lmms_patch.errors import RecordError
from lmms_patch.runs import run as runs
from tests.making.runs import mc_run, write_run


@pytest.fixture(scope="module")
def plain():
    return mc_run(n=40, seed=3)


def write(folder, plain, date="2026-01-01T00-00-00.000000", edit=None, **top):
    def change(data):
        data["configs"]["toy_rci2"] |= {"generation_kwargs": {"temperature": 0}, "task": "toy_rci2"}
        if edit:
            edit(data)

    about = {
        "config": {"model": "m", "model_args": "pretrained=x/y", "limit": None},
        "model_name": "x/y",
        "versions": {"toy_rci2": 1.0},
        "n-shot": {"toy_rci2": 0},
        **top,
    }
    return write_run(folder, {"toy_rci2": plain}, date=date, change=change, **about)


def one(path):
    return runs.read(path).results[0]


def test_a_run_says_what_it_is_of(tmp_path, plain):
    run = runs.read(write(tmp_path, plain))
    assert (run.model, run.adapter, run.model_args) == ("x/y", "m", "pretrained=x/y")
    assert [result.task for result in run.results] == ["toy_rci2"]
    assert run.results[0].path.name.endswith("_samples_toy_rci2.parquet")


def test_without_a_checkpoint_the_adapter_is_the_model(tmp_path, plain):
    assert runs.read(write(tmp_path, plain, model_name="", config={"model": "mosaic_vlm"})).model == "mosaic_vlm"


@pytest.mark.parametrize(
    ("given", "shown"),
    [("Qwen/Qwen2-VL", "Qwen/Qwen2-VL"), ("/home/me/ck/step-500", "step-500"), ("./out/best/", "best")],
)
def test_a_local_checkpoint_goes_by_its_own_name(tmp_path, plain, given, shown):
    assert runs.read(write(tmp_path, plain, model_name=given)).model == shown


def test_find_gives_each_run_once_and_the_oldest_first(tmp_path, plain):
    late = write(tmp_path / "b", plain, date="2026-02-01T00-00-00.000000")
    early = write(tmp_path / "a", plain, date="2026-01-05T00-00-00.000000")
    assert [run.path for run in runs.find([tmp_path, late, tmp_path / "a"])] == [early, late]


def test_dates_of_either_form_sort_by_time(tmp_path, plain):
    late = write(tmp_path / "a", plain, date="20260301_120000")
    early = write(tmp_path / "b", plain, date="2026-02-01T00-00-00.000000")
    assert [run.path for run in runs.find([tmp_path])] == [early, late]


def test_newest_counts_the_older_ones_by_model_and_task(tmp_path, plain):
    write(tmp_path / "a", plain)
    write(tmp_path / "b", plain, date="2026-03-01T00-00-00.000000")
    write(tmp_path / "c", plain, model_name="other")
    latest, older = runs.newest(result for run in runs.find([tmp_path]) for result in run.results)
    assert older == 1
    assert {(result.run.model, result.run.date[:7]) for result in latest} == {("x/y", "2026-03"), ("other", "2026-01")}


def test_labels_tell_models_apart_only_by_what_differs(tmp_path, plain):
    write(tmp_path / "a", plain, config={"model": "m", "model_args": "pretrained=x/y,quant=4"})
    write(tmp_path / "b", plain)
    write(tmp_path / "c", plain, model_name="z")
    assert sorted(runs.labels(runs.find([tmp_path])).values()) == [
        "x/y (pretrained=x/y)",
        "x/y (pretrained=x/y,quant=4)",
        "z",
    ]


def test_the_same_run_twice_differs_in_nothing(tmp_path, plain):
    a, b = (one(write(tmp_path / name, plain)).fingerprint for name in "ab")
    assert a == b
    assert runs.differences(a, b) == []


def config(key, value):
    return lambda data: data["configs"]["toy_rci2"].update({key: value})


def described(key, value):
    return lambda data: data["configs"]["toy_rci2"]["lmms_patch"].update({key: value})


def option(key, value):
    return lambda data: data["configs"]["toy_rci2"]["lmms_patch"]["options"].update({key: value})


def made(**changes):
    def edit(data):
        about = data["results"]["toy_rci2"]["patch,none"].about
        about["made"] = structs.replace(about["made"], **changes)

    return edit


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda data: data["config"].update(limit=20), "limit (all and 20)"),
        (
            lambda data: (
                data["config"].update(offset=5),
                data["n-samples"]["toy_rci2"].update(original=45, effective=45),
            ),
            "limit (all and all from 5)",
        ),
        (lambda data: data["config"].update(gen_kwargs="temperature=1"), "generation"),
        (lambda data: data.update({"n-shot": {"toy_rci2": 5}}), "few-shot (0 and 5)"),
        (lambda data: data.update({"versions": {"toy_rci2": 2.0}}), "benchmark version (1.0 and 2.0)"),
        (config("generation_kwargs", {"temperature": 1}), "generation"),
        (described("base", "other"), "benchmark (toy and other)"),
        (described("pixels", 99), "views"),
        (option("min_cell", 28), "views"),
        (option("chance", 0.3), "statistics"),
        (made(docs="0" * 16), "docs"),
        (made(prompts="0" * 16), "prompts"),
        (made(lmms_eval="0.8.0"), "lmms-eval version"),
    ],
)
def test_each_setting_that_matters_tells(tmp_path, plain, edit, told):
    a = one(write(tmp_path / "a", plain)).fingerprint
    b = one(write(tmp_path / "b", plain, edit=edit)).fingerprint
    found = runs.differences(a, b)
    assert len(found) == 1
    assert found[0].startswith(told)
    assert runs.differences(a, b, ignore=[told.split(" (")[0]]) == []


def test_rci_and_pcri_are_one_way_of_asking(tmp_path, plain):
    a = one(write(tmp_path / "a", plain)).fingerprint
    b = one(write(tmp_path / "b", plain, edit=described("kind", "pcri"))).fingerprint
    assert a["kind"] == b["kind"] == "index"


def test_an_unknown_setting_to_ignore_is_refused(tmp_path, plain):
    known = one(write(tmp_path, plain)).fingerprint
    with pytest.raises(RecordError, match="no setting 'promts' to ignore; allowed: benchmark, "):
        runs.check_keys(["promts"], known)


# --- what docs were asked -------------------------------------------------------------------------


def digests(*docs):
    return plan([Doc(i, Asked(prompt, gold)) for i, prompt, gold in docs]).digests


def test_digests_change_with_prompts_golds_and_docs_and_with_nothing_else():
    first = digests((0, "Which?", "cat"), (1, "What?", "dog"))
    assert first == digests((0, "Which?", "cat"), (1, "What?", "dog"))
    other_prompt = digests((0, "Which one?", "cat"), (1, "What?", "dog"))
    assert other_prompt["docs"] == first["docs"]
    assert other_prompt["prompts"] != first["prompts"]
    other_gold = digests((0, "Which?", "cow"), (1, "What?", "dog"))
    assert other_gold["docs"] != first["docs"]
    assert other_gold["prompts"] == first["prompts"]
    fewer = digests((0, "Which?", "cat"))
    assert fewer["docs"] != first["docs"]
    assert fewer["prompts"] != first["prompts"]


# --- asked the same way, and whether it is two runs -------------------------------------------------


def test_a_system_instruction_on_one_side_is_a_difference_and_is_not_shown(tmp_path, plain):
    a = one(write(tmp_path / "a", plain)).fingerprint
    b = one(
        write(tmp_path / "b", plain, system_instruction="You are secret.", system_instruction_sha="f" * 64)
    ).fingerprint
    (told,) = runs.differences(a, b)
    assert told.startswith("system instruction")
    assert "secret" not in json.dumps(b)


def test_what_shows_no_image_has_none_to_compare(tmp_path, plain):
    found = one(write(tmp_path, plain, edit=described("kind", "blind"))).fingerprint
    assert (found["image sizes"], found["images"]) == ("none shown", "none shown")


@pytest.mark.parametrize("path", ["/home/me/data", "./data", "json", "parquet", "../x", "data/../../etc"])
def test_where_data_lie_on_somebodys_disk_is_not_told(tmp_path, plain, path):
    found = one(write(tmp_path, plain, edit=config("dataset_path", path))).fingerprint
    assert found["dataset"] == "local files"


def test_a_copy_is_the_same_run_and_the_same_answers_at_another_time_are_not(tmp_path, plain):
    first = one(write(tmp_path / "a", plain, start_time=1.0))
    copy = one(write(tmp_path / "b", plain, start_time=1.0))
    later = one(write(tmp_path / "c", plain, start_time=2.0))
    edited = one(
        write(
            tmp_path / "d",
            plain,
            start_time=1.0,
            edit=lambda data: data["results"]["toy_rci2"].update({"acc,none": 0.123}),
        )
    )
    other = one(write(tmp_path / "e", plain, start_time=1.0, model_name="z"))
    assert [first.origin == two.origin for two in (first, copy, later, edited, other)] == [
        True,
        True,
        False,
        False,
        False,
    ]
