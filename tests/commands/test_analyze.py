import json

import pytest

from lmms_patch.cli import main
from tests.runs import mc_run, write_run


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two runs of the same two tasks, which are a group."""
    out = []
    for seed in (0, 1):
        folder = tmp_path_factory.mktemp("run")
        runs = {f"{name}_rci2": mc_run(n=60, seed=seed) for name in "ab"}
        write_run(folder, runs, groups={"g_rci2": ["a_rci2", "b_rci2"]})
        out.append(str(folder))
    return out


def test_one_run(folders, capsys):
    assert main(["analyze", folders[0]]) == 0
    printed = capsys.readouterr()
    assert "a_rci2" in printed.out
    assert "g_rci2" in printed.out
    assert "SD between runs" not in printed.out
    assert printed.out.rstrip().splitlines()[-1].startswith("In words: ")
    assert printed.err == "", "no bar where stderr is no terminal"


def test_quiet_is_the_same_result(folders, capsys):
    assert main(["analyze", *folders]) == 0
    told = capsys.readouterr().out
    assert main(["analyze", *folders, "-q"]) == 0
    assert capsys.readouterr().out == told
    assert "SD between runs" in told


def test_settings_reach_the_numbers(folders, tmp_path, capsys):
    out = tmp_path / "numbers.json"
    words = ["--draws", "200", "--level", "0.9", "--seed", "3", "--delta", "0.05", "--chance", "0.3", "--metric", "acc", "--cluster", "none"]
    assert main(["analyze", folders[0], *words, "--category", "a", "--json", str(out)]) == 0
    assert capsys.readouterr().out.endswith(f"written: {out}\n")
    (task, _) = json.loads(out.read_text())["runs"][0]["tasks"]
    found = task["analysis"]
    assert (found["fip"]["level"], found["n_docs"], found["clusters"]) == (0.9, 30, None)
    assert found["grids"]["2"]["gap"]["draws"] == 200  # FIP, right or wrong of independent docs, has an exact interval: no draws
    assert (found["gate"]["delta"], found["chance"]["value"], found["chance"]["floor"]) == (0.05, 0.3, "documented")


def test_a_bad_setting_is_told_before_anything_is_read(capsys):
    assert main(["analyze", "/nowhere", "--draws", "199"]) == 2
    assert capsys.readouterr().err == "lmms-patch: draws must be a whole number from 200 to 100000, not 199\n"


def test_runs_of_two_models_are_not_averaged(tmp_path, capsys):
    """As lmms-eval writes it: the model in the results file."""
    for name in ("a", "b"):
        path = write_run(tmp_path / name, {"toy_rci2": mc_run(n=60)})
        path.write_text(json.dumps({**json.loads(path.read_text()), "model_name": f"org/{name}", "config": {"model": "hf"}}))
    assert main(["analyze", str(tmp_path / "a"), str(tmp_path / "b")]) == 2
    assert "runs of 2 models (org/a, org/b)" in capsys.readouterr().err
