import pytest

from lmms_patch.cli import main
from lmms_patch.spec import parse
from tests.runs import mc_run, write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Images answer most of 60 docs; without them every third is right."""
    made = mc_run(n=60)
    blind = [
        {**{k: r[k] for k in ("schema", "base", "doc_id", "answer", "stratum", "fields")}, "task": "toy_blind", "kind": "blind", "grids": []}
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
    assert main(["gap", str(run), str(run), "--subset", str(tmp_path / "ids.txt"), "--match", "none"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].split()[:2] == ["pruned", "30"]
    assert lines[4].startswith("random (200)")


@pytest.mark.parametrize(
    ("words", "says"),
    [(["--metric", "f1"], "f1"), (["--task", "other"], "other"), (["--subset", "/nowhere"], "/nowhere")],
)
def test_what_is_not_there_is_one_line(run, capsys, words, says):
    assert main(["gap", str(run), str(run), *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line
