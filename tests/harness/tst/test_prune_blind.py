"""``lmms-patch prune TASK --blind RUN...``: runs of five made-up models whose knowledge is known, from the command to the folder."""

# ruff: noqa: F811 - fixtures are imported
import json
import re
from collections import Counter

import msgspec
import pytest

from lmms_patch.app.cli import main
from lmms_patch.tst.formats import PrunedJson
from lmms_patch.tst.selection import hashed
from tests.harness import toys
from tests.harness.tst.pruning import DOCS, ids, kind_of, pruned, refused, save, tasks  # noqa: F401 - fixtures are imported

KNOWS = {"guesser": 0, "read": 0.9, "prior": 0.95, "weak": 0.8, "looker": 0}
"""Of the 40 planted docs the share whose answer a model knows without looking. What a looker says is always yes."""
LOOKS = {"guesser": 0.5, "read": 0.6, "prior": 0.65, "weak": 0.7, "looker": 0.95}
"""The share of the docs whose answer a model reads off the image."""

NAME = re.compile(r"pretrained=(\w+)")


def model_of(name, knows):
    def answer(prompt, images):
        at = int(prompt.split("picture ")[1].split("?")[0])
        if images and hashed(2, name, at) < LOOKS[name]:
            return DOCS[at]["answer"]
        if DOCS[at]["known"] and hashed(1, name, at) < knows:
            return DOCS[at]["answer"]
        return "yes" if name == "looker" or hashed(7, name, at) < 0.5 else "no"

    return toys.Model(answer)


def run_of(folder, tasks, name, knows, asked="toy_blind,toy_rci2"):
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


def test_known_docs_go_and_models_are_ranked_again(tasks, models, tmp_path, capsys):
    assert prune(tasks, tmp_path, *models) == 0
    printed = capsys.readouterr().out
    gone = Counter(map(kind_of, ids(tmp_path, "removed")))
    assert gone["planted"] >= 30
    innocent = gone.total() - gone["planted"]
    assert innocent <= 20, "80 docs, of which three guesses by coin get 10 right"
    found = pruned(tmp_path)
    told = float(re.search(r"docs removed, (\S+) of them expected by luck", printed)[1])
    assert told == pytest.approx(innocent, abs=8)
    msgspec.convert(found, PrunedJson)
    assert found["settings"]["by"] == "blind"
    models_told = {NAME.search(one["model"])[1]: one for one in found["blind"]["models"]}
    assert sorted(name for name, one in models_told.items() if one["counts"]) == ["prior", "read", "weak"]
    for name, one in models_told.items():
        run = next(path for path in models if path.name == name)
        (log,) = run.rglob("*_samples_toy_blind.jsonl")
        assert one["right"] == pytest.approx(
            sum(json.loads(line)["exact_match"] for line in log.read_text().splitlines()) / 120
        )
    ranks = {NAME.search(one["model"])[1]: one for one in found["blind"]["ranks"]}
    kept = {int(key.removeprefix("doc-")) for key in ids(tmp_path, "kept")}
    for name, one in ranks.items():
        run = next(path for path in models if path.name == name)
        (log,) = run.rglob("*_samples_toy_rci2.jsonl")
        marks = {line["doc_id"]: line["exact_match"] for line in map(json.loads, log.read_text().splitlines())}
        assert one["before"][0] == pytest.approx(sum(marks.values()) / 120)
        assert one["after"][0] == pytest.approx(sum(marks[i] for i in kept) / len(kept))
        assert one["before"][1] < one["before"][0] < one["before"][2]
        assert one["random"][1] <= one["random"][0] <= one["random"][2]
    assert ranks["looker"]["rank_before"] == ranks["looker"]["rank_after"] == 1
    assert sorted(one["rank_after"] for one in ranks.values()) == [1, 2, 3, 4, 5]
    assert "WARNING" not in printed
    assert "toy: " in printed
    assert f"to run the kept docs: lmms-eval --tasks toy_pruned --include_path {tmp_path / 'task'} ..." in printed
    asked = toys.run(toys.Model(), "toy_pruned", tmp_path / "task")
    assert len(asked["samples"]["toy_pruned"]) == len(kept)


def test_at_chance_nothing_goes(tasks, tmp_path, capsys):
    runs = [run_of(tmp_path / "runs", tasks, name, 0, "toy_blind") for name in ("guesser", "read", "prior", "weak")]
    assert prune(tasks, tmp_path / "out", *runs) == 0
    printed = capsys.readouterr().out
    assert "0 of 120 docs removed" in printed
    assert "no model is right more often than by guessing with its own answers" in printed
    assert "These runs have no two models on the full image" in printed


def test_copies_of_one_model_are_warned_of(tasks, tmp_path, capsys):
    """Three files of one model under three names: by any right answer each lucky guess would go, and a majority of three would be no better."""
    runs = []
    for name in ("a", "b", "c"):
        results = toys.run(model_of("prior", 0.95), "toy_blind", tasks)
        results["config"]["model_args"] = f"pretrained={name}"
        runs.append(save(tmp_path / name, results))
    assert prune(tasks, tmp_path / "out", *runs) == 0
    assert "WARNING: models err together" in capsys.readouterr().out
    assert pruned(tmp_path / "out")["blind"]["as_many_as"] == pytest.approx(1, abs=0.3)


def test_the_dataset_has_a_card_that_says_so(tasks, models, tmp_path):
    made = tmp_path / "made"
    assert prune(tasks, tmp_path / "out", *models, "--to", made, "--copy", "--license", "mit") == 0
    text = (made / "README.md").read_text()
    assert "more likely known to models without the image than not, by answers of 5 models" in text
    assert "https://arxiv.org/abs/2603.21687" in text
    assert "2511.04655" not in text
    assert re.search(r"looker\S* \| toy\S*rci2 \| 1 \| 0\.\d{3} ", text)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "--blind and RUN... go together"),
        (("RUN", "--budget", "5"), "budget is of pruning by a text-only model"),
        (("RUN", "--shuffles", "0"), "shuffles is of pruning by a text-only model"),
        (("RUN",), "1 models were asked toy without its image"),
        (("nowhere",), "nowhere"),
    ],
)
def test_what_does_not_fit_is_one_line(tasks, models, tmp_path, capsys, arguments, says):
    assert prune(tasks, tmp_path / "out", *(models[0] if word == "RUN" else word for word in arguments)) == 2
    assert says in refused(capsys)
    assert not (tmp_path / "out").exists()


def test_runs_without_blind_are_refused(tasks, models, tmp_path, capsys):
    assert main(["prune", "toy", str(models[0]), "--output", str(tmp_path / "out")]) == 2
    assert "--blind and RUN... go together" in refused(capsys)
