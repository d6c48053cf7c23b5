import json
import shutil

import pytest
from msgspec import structs

from lmms_patch import commands
from lmms_patch.app.cli import main
from tests.making.runs import mc_run, views_run, write_run


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two runs of the same two tasks, which are a group."""
    out = []
    for seed in (0, 1):
        folder = tmp_path_factory.mktemp("run")
        runs = {f"{name}_rci2": mc_run(n=60, answers=seed) for name in "ab"}
        write_run(folder, runs, groups={"g_rci2": ["a_rci2", "b_rci2"]})
        out.append(str(folder))
    return out


def test_one_run(folders, capsys):
    assert main(["analyze", folders[0]]) == 0
    printed = capsys.readouterr()
    assert "a_rci2" in printed.out
    assert "g_rci2" in printed.out
    assert "SD between runs" not in printed.out
    assert printed.out.startswith("- ")
    assert printed.err == "", "no bar where stderr is no terminal"


def blank(docs):
    """A task without an index."""
    return {"toy_blank": views_run("blank", [0.5], docs)}


def test_of_several_runs_the_newest_with_an_index(tmp_path, capsys):
    """Three runs under one folder, as after the README's blocks: an index, a newer index, and the newest, which has none."""
    write_run(tmp_path / "last", {"toy_rci2": mc_run(n=60)})
    wanted = write_run(tmp_path / "new", {"toy_rci2": mc_run(n=70)}, date="2026-02-01T00-00-00.000000")
    write_run(tmp_path / "blank", blank(80), date="2026-03-01T00-00-00.000000")
    assert main(["analyze", str(wanted)]) == 0
    alone = capsys.readouterr()
    assert alone.err == ""
    assert main(["analyze", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert printed.out == alone.out
    assert (
        printed.err
        == f"{wanted}: taken as the newest with an index of 3 runs here (2 left aside); to take another, give its *_results.json\n"
    )
    found = commands.analyze([tmp_path])
    assert [(one.path, one.aside) for one in found.taken] == [(wanted, 2)]


def test_where_no_run_has_an_index_the_newest_is_named(tmp_path, capsys):
    for month in ("1", "2"):
        path = write_run(tmp_path, blank(40), date=f"2026-0{month}-01T00-00-00.000000")
    assert main(["analyze", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"lmms-patch: {path}: no task with an index in this run")


def test_settings_reach_the_numbers(folders, tmp_path, capsys):
    out = tmp_path / "numbers.json"
    words = [
        "--draws", "200", "--level", "0.9", "--delta", "0.05", "--chance", "0.3", "--metric", "acc",
    ]  # fmt: skip
    assert main(["analyze", folders[0], *words, "--json", str(out)]) == 0
    assert capsys.readouterr().out.endswith(f"written: {out}\n")
    (task, _) = json.loads(out.read_text())["runs"][0]["tasks"]
    found = task["analysis"]
    assert (found["fip"]["level"], found["n_docs"]) == (0.9, 60)
    assert (
        found["grids"]["2"]["gap"]["draws"] == 200
    )  # FIP, right or wrong of independent docs, has an exact interval: no draws
    assert (found["gate"]["delta"], found["chance"]["value"], found["chance"]["floor"]) == (0.05, 0.3, "documented")


def test_a_bad_setting_is_told_before_anything_is_read(capsys):
    assert main(["analyze", "/nowhere", "--draws", "199"]) == 2
    assert capsys.readouterr().err == "lmms-patch: draws must be a whole number from 200 to 100000, not 199\n"


def test_runs_of_two_models_are_not_averaged(tmp_path, capsys):
    for name in ("a", "b"):
        write_run(tmp_path / name, {"toy_rci2": mc_run(n=60)}, model_name=f"org/{name}", config={"model": "hf"})
    assert main(["analyze", str(tmp_path / "a"), str(tmp_path / "b")]) == 2
    assert "runs of 2 models (org/a, org/b)" in capsys.readouterr().err


# --- several runs ---------------------------------------------------------------------------------


def made_of(data, **made):
    details = data["results"]["toy_rci2"]["patch,none"]
    details.about = {**details.about, "made": structs.replace(details.about["made"], **made)}


@pytest.fixture
def two(tmp_path):
    """Two runs of one model that answered otherwise; ``change`` may alter what the host has of the second."""

    def write(change=None):
        made = [{"toy_rci2": mc_run(n=60, answers=k)} for k in (0, 1)]
        more = ({"model_name": "m"}, {"model_name": "m", "change": change})
        return [write_run(tmp_path / f"run{k}", made[k], **more[k]) for k in (0, 1)]

    return write


def test_one_run_given_twice_is_not_two(two, tmp_path, capsys):
    first, copy = two()[0], tmp_path / "copy"
    shutil.copytree(first.parent, copy)
    (tmp_path / "link").symlink_to(first.parent)
    for again in (first, first.parent, tmp_path / "link", copy):
        assert main(["analyze", str(first), str(again)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "are one run, not two: toy_rci2 has the same date, model and numbers; give each once" in line


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda data: data.update(system_instruction_sha="ab"), "system instruction"),
        (lambda data: data["configs"]["toy_rci2"].update(dataset_kwargs={"revision": "v2"}), "revision (none and v2)"),
        (lambda data: data["configs"]["toy_rci2"].update(dataset_path="org/other"), "dataset (org/toy and org/other)"),
        (lambda data: data["configs"]["toy_rci2"].update(generation_kwargs={"temperature": 1}), "generation"),
        (lambda data: data["n-shot"].update(toy_rci2=5), "few-shot (0 and 5)"),
        (lambda data: made_of(data, images="0"), "images"),
    ],
)
def test_runs_that_were_asked_otherwise_are_not_averaged(two, capsys, edit, told):
    assert main(["analyze", *map(str, two(edit))]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"differ in {told}; average only runs that were asked alike" in line


def test_what_is_not_recorded_and_other_versions_are_told_beside_the_average(two, tmp_path, capsys):
    runs = two(lambda data: [data.pop("versions"), made_of(data, lmms_eval="9.9")])
    assert main(["analyze", *map(str, runs), "--json", str(tmp_path / "out.json")]) == 0
    out = capsys.readouterr().out
    said = json.loads((tmp_path / "out.json").read_text())["warnings"]
    assert len(said) == 2
    assert said[0].startswith("toy_rci2: the runs differ in lmms-eval version")
    assert said[1] == "toy_rci2: not recorded in both runs, so not compared: benchmark version"
    assert all(line in " ".join(out.split()) for line in said)
