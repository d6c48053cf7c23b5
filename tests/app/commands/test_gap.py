import json
import shutil

import pytest

from lmms_patch.app.cli import main
from lmms_patch.ask.spec import parse
from tests.making.runs import mc_run, write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Images answer most of 60 docs; without them every third is right."""
    made = mc_run(n=60)
    blind = [
        {
            **{k: r[k] for k in ("schema", "base", "doc_id", "answer", "stratum", "fields")},
            "task": "toy_blind",
            "kind": "blind",
            "grids": [],
        }
        | {"image_sizes": [], "best": {}, "excluded": {}}
        | {"views": [{"kind": "blind", "scores": {"acc": float(i % 3 == 0)}, "items": {"acc": float(i % 3 == 0)}}]}
        for i, r in enumerate(made[1])
    ]
    return write_run(tmp_path_factory.mktemp("run"), {"toy_rci2": made, "toy_blind": (parse("toy_blind"), blind, None)})


def test_the_gap_of_a_run(run, capsys):
    full = sum(view["scores"]["acc"] for view in (r["views"][0] for r in mc_run(n=60)[1])) / 60
    assert main(["gap", str(run), str(run.parent)]) == 0
    header, _, row, *_ = capsys.readouterr().out.splitlines()
    assert header.split() == ["docs", "n", "full", "blind", "gap", "interval"]
    assert row.split()[:5] == ["original", "60", f"{full:.3f}", "0.333", f"{full - 1 / 3:.3f}"]


def test_a_subset_is_set_beside(run, tmp_path, capsys):
    (tmp_path / "ids.txt").write_text("".join(f"{i}\n" for i in range(30)))
    assert main(["gap", str(run), str(run), "--subset", str(tmp_path / "ids.txt")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].split()[:2] == ["pruned", "30"]
    assert lines[4].startswith("random (200)")


def test_the_language_model_gives_leakage(run, tmp_path, capsys):
    folder = tmp_path / "llm"
    shutil.copytree(run.parent, folder)
    results = next(folder.glob("*_results.json"))
    results.write_text(json.dumps({**json.loads(results.read_text()), "model_name": "llm", "config": {"model": "llm"}}))
    assert main(["gap", str(run), str(run), "--language-model", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "no multi-modal leakage is shown: 0.000" in said
    assert main(["gap", str(folder), str(folder), "--language-model", str(folder)]) == 2
    assert "both runs without images are of llm" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [(["--metric", "f1"], "f1"), (["--task", "other"], "other"), (["--subset", "/nowhere"], "/nowhere")],
)
def test_what_is_not_there_is_one_line(run, capsys, words, says):
    assert main(["gap", str(run), str(run), *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda data: data.update(system_instruction_sha="ab"), "differ in system instruction too"),
        (
            lambda data: data["configs"]["toy_blind"].update(dataset_kwargs={"revision": "v2"}),
            "differ in revision (none and v2) too",
        ),
        (lambda data: data["configs"]["toy_blind"].update(test_split="train"), "differ in split (test and train) too"),
        (lambda data: data["n-shot"].update(toy_blind=5), "differ in few-shot (0 and 5) too"),
        (lambda data: data.pop("versions"), "not compared: docs, prompts, benchmark version"),
    ],
)
def test_what_the_two_sides_were_asked_otherwise_is_told(run, tmp_path, capsys, edit, told):
    """The blind side here has no digests of docs and prompts: that is told too."""
    shutil.copytree(run.parent, tmp_path / "blind")
    (path,) = (tmp_path / "blind").glob("*_results.json")
    data = json.loads(path.read_text())
    edit(data)
    path.write_text(json.dumps(data))
    assert main(["gap", str(run), str(tmp_path / "blind")]) == 0
    assert told in capsys.readouterr().out
    assert main(["gap", str(run), str(run)]) == 0
    out = capsys.readouterr().out
    assert "differ in" not in out
    assert "not recorded in both runs, so not compared: docs, prompts\n" in out


def test_a_plain_task_is_held_to_what_its_file_says(run, tmp_path, capsys):
    """A native task beside the blind one: its config and the settings of its run."""
    shutil.copytree(run.parent, tmp_path / "plain")
    (path,) = (tmp_path / "plain").glob("*_results.json")
    data = json.loads(path.read_text())
    data["configs"] = {"toy": {"dataset_path": "org/other", "test_split": "test"}}
    data |= {"results": {"toy": {"acc,none": 0.5}}, "n-shot": {"toy": 0}, "versions": {"toy": 1.0}}
    path.write_text(json.dumps(data))
    log = path.with_name(path.name.replace("_results.json", "_samples_toy.jsonl"))
    log.write_text("".join(json.dumps({"doc_id": i, "acc": float(i < 30)}) + "\n" for i in range(60)))
    assert main(["gap", str(tmp_path / "plain"), str(run)]) == 0
    out = capsys.readouterr().out
    assert "differ in dataset (org/other and org/toy) too: the gap is not of the image alone" in out
    assert "not recorded in both runs, so not compared: docs, prompts, lmms-eval version" in out
