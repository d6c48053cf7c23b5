"""``lmms-patch prune TASK --blind RUN...``: runs of five made-up models whose knowledge is known, from the command to the folder."""

# ruff: noqa: F811 - fixtures are imported
import json
import re
from collections import Counter

import pytest

from lmms_patch.app.cli import main
from lmms_patch.tst.selection import hashed
from tests.harness import toys
from tests.harness.tst.pruning import DOCS, ids, kind_of, pruned, refused, save, tasks  # noqa: F401 - fixtures are imported

KNOWS = {"guesser": 0, "read": 0.9, "prior": 0.95, "weak": 0.8, "looker": 0}
"""Of the 40 planted docs the share whose answer a model knows without looking. What a looker says is always yes."""

NAME = re.compile(r"pretrained=(\w+)")


def model_of(name, knows):
    def answer(prompt, images):
        at = int(prompt.split("picture ")[1].split("?")[0])
        if DOCS[at]["known"] and hashed(1, name, at) < knows:
            return DOCS[at]["answer"]
        return "yes" if name == "looker" or hashed(7, name, at) < 0.5 else "no"

    return toys.Model(answer)


def run_of(folder, tasks, name, knows, asked="toy_blind"):
    results = toys.run(model_of(name, knows), asked, tasks)
    results["config"]["model_args"] = f"pretrained={name}"
    return save(folder / name, results)


@pytest.fixture(scope="module")
def models(tasks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return [run_of(folder, tasks, name, knows) for name, knows in KNOWS.items()]


def prune(tasks, out, *more):
    return main(
        [
            "prune",
            "toy",
            "--include-path",
            str(tasks),
            "--output",
            str(out),
            "--key",
            "name",
            "--blind",
            *map(str, more),
        ]
    )


def test_known_docs_go(tasks, models, tmp_path, capsys):
    assert prune(tasks, tmp_path, *models) == 0
    printed = capsys.readouterr().out
    gone = Counter(map(kind_of, ids(tmp_path, "removed")))
    assert gone["planted"] >= 30
    innocent = gone.total() - gone["planted"]
    assert innocent <= 20, "80 docs, of which three guesses by coin get 10 right"
    found = pruned(tmp_path)
    told = float(re.search(r"docs removed, (\S+) of them expected by luck", printed)[1])
    assert told == pytest.approx(innocent, abs=8)
    assert found["settings"]["by"] == "blind"
    models_told = {NAME.search(one["model"])[1]: one for one in found["blind"]["models"]}
    assert sorted(name for name, one in models_told.items() if one["counts"]) == ["prior", "read", "weak"]
    for name, one in models_told.items():
        run = next(path for path in models if path.name == name)
        (log,) = run.rglob("*_samples_toy_blind.jsonl")
        assert one["right"] == pytest.approx(
            sum(json.loads(line)["exact_match"] for line in log.read_text().splitlines()) / 120
        )
    assert "toy: " in printed
    assert f"to run the kept docs: lmms-eval --tasks toy_pruned --include_path {tmp_path / 'task'} ..." in printed
    kept = ids(tmp_path, "kept")
    asked = toys.run(toys.Model(), "toy_pruned", tmp_path / "task")
    assert len(asked["samples"]["toy_pruned"]) == len(kept)


def test_at_chance_nothing_goes(tasks, tmp_path, capsys):
    runs = [run_of(tmp_path / "runs", tasks, name, 0, "toy_blind") for name in ("guesser", "read", "prior", "weak")]
    assert prune(tasks, tmp_path / "out", *runs) == 0
    printed = capsys.readouterr().out
    assert "0 of 120 docs removed" in printed
    assert "no model is right more often than by guessing with its own answers" in printed


def test_copies_of_one_model_count_as_one(tasks, tmp_path, capsys):
    """Three files of one model under three names: by any right answer each lucky guess would go, and a majority of three would be no better."""
    runs = []
    for name in ("a", "b", "c"):
        results = toys.run(model_of("prior", 0.95), "toy_blind", tasks)
        results["config"]["model_args"] = f"pretrained={name}"
        runs.append(save(tmp_path / name, results))
    assert prune(tasks, tmp_path / "out", *runs) == 0
    assert "the 3 that count are taken for 1.0 independent ones" in capsys.readouterr().out
    assert pruned(tmp_path / "out")["blind"]["as_many_as"] == pytest.approx(1, abs=0.3)
