import pytest

from lmms_patch.app.cli import main
from lmms_patch.ask.spec import parse
from tests.making.runs import mc_run, write_run


def written(folder, **about):
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
    return write_run(folder, {"toy_rci2": made, "toy_blind": (parse("toy_blind"), blind, None)}, **about)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return written(tmp_path_factory.mktemp("run"))


def test_the_gap_of_a_run(run, capsys):
    full = sum(view["scores"]["acc"] for view in (r["views"][0] for r in mc_run(n=60)[1])) / 60
    assert main(["gap", str(run), str(run.parent)]) == 0
    header, _, row, *_ = capsys.readouterr().out.splitlines()
    assert header.split() == ["docs", "n", "full", "blind", "gap"]
    assert row.split()[:5] == ["original", "60", f"{full:.3f}", "0.333", f"{full - 1 / 3:+.3f}"]


@pytest.mark.parametrize(
    ("words", "says"), [(["--task", "other"], "choose with --task"), (["--subset", "/nowhere"], "/nowhere")]
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
    written(tmp_path / "blind", change=edit)
    assert main(["gap", str(run), str(tmp_path / "blind")]) == 0
    assert told in capsys.readouterr().out
    assert main(["gap", str(run), str(run)]) == 0
    out = capsys.readouterr().out
    assert "differ in" not in out
    assert "not recorded in both runs, so not compared: docs, prompts\n" in out
