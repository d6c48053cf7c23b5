"""An index over several models, by hand from the answers."""

import itertools
import json

import numpy as np
import pytest

from lmms_patch import commands
from lmms_patch.app.cli import main
from lmms_patch.rci.ensemble import one_cell
from tests.making.recordings import table
from tests.making.runs import (
    again_run,
    guess,
    knows,
    never_looks,
    one_cell_knows,
    world_run,
    write_run,
)
from tests.sizes import size

SAYERS = {"org/a": knows(0.9, 0.8), "org/b": knows(0.8, 0.5, lucky=True), "org/c": knows(0.95, 0.7)}


@pytest.fixture(scope="module")
def worlds():
    """Runs of three models on the same 120 docs, in clusters of two."""
    return {name: world_run(say, n=120, per_cluster=2, answers=k) for k, (name, say) in enumerate(SAYERS.items())}


def write(folder, worlds, task="toy_rci2"):
    return [
        write_run(folder / str(k), {task: world}, model_name=name).parent
        for k, (name, world) in enumerate(worlds.items())
    ]


@pytest.fixture(scope="module")
def found(worlds, tmp_path_factory):
    """The ensemble of the three models."""
    folders = write(tmp_path_factory.mktemp("models"), worlds)
    [one] = commands.analyze(folders, ensemble=True).ensembles
    return one


def scores(world):
    """Scores of shape (docs, 5): the full image and four cells."""
    return np.array([[view["scores"]["acc"] for view in record["views"]] for record in world[1]])


def test_the_mean_is_that_of_the_models(found, worlds):
    of = {
        name: 1 - scores(world)[:, 1:].max(axis=1).mean() / scores(world)[:, 0].mean() for name, world in worlds.items()
    }
    assert {name: one.value for name, one in found.raw.of.items()} == pytest.approx(of)
    assert found.raw.mean.value == pytest.approx(np.mean([*of.values()]))
    assert found.raw.sd == pytest.approx(np.std([*of.values()], ddof=1))
    assert (found.raw.least, found.raw.most) == pytest.approx((min(of.values()), max(of.values())))
    assert found.raw.mean.low < found.raw.mean.value < found.raw.mean.high


def test_a_cell_chosen_by_one_model_is_scored_by_another(found, worlds):
    every = [scores(world) for world in worlds.values()]
    pairs = []
    for a, b in itertools.permutations(every, 2):
        chosen = a[:, 1:].argmax(axis=1)
        pairs.append(1 - b[np.arange(len(b)), 1 + chosen].mean() / b[:, 0].mean())
    assert found.other.value == pytest.approx(np.mean(pairs))


def test_docs_of_one_cell_by_hand(found, worlds):
    right = np.stack([scores(world)[:, 1:] for world in worlds.values()]) == 1
    same = {str(doc): tuple(cell for cell in range(4) if right[:, doc, cell].all()) for doc in range(120)}
    assert found.one_cell.cells == {doc: cells for doc, cells in same.items() if cells}
    assert found.one_cell.docs == 120
    assert found.one_cell.same.value == pytest.approx(sum(map(bool, same.values())) / 120)
    assert found.one_cell.each.value == pytest.approx(right.any(axis=2).all(axis=0).mean())
    assert found.one_cell.same.clusters == 60


def test_wrong_images_by_hand(found, worlds):
    of_models = [
        {
            record["doc_id"]: [view["scores"]["acc"] for view in record["wrong_image"]["views"][1:]]
            for record in world[1]
            if "wrong_image" in record
        }
        for world in worlds.values()
    ]
    asked = set.intersection(*map(set, of_models))
    lost = [any(all(of[doc][cell] == 1 for of in of_models) for cell in range(4)) for doc in asked]
    assert found.one_cell.wrong.n == len(asked) == 120
    assert found.one_cell.wrong.value == pytest.approx(np.mean(lost))


def test_planted_worlds(tmp_path):
    """Where models guess on cells, hardly a doc has a cell that all are right on.

    Where one cell knows, most docs have it.
    """

    def guesses(stream, gold):
        return [gold] + [guess(stream) for _ in range(9)], [guess(stream) for _ in range(10)]

    def of(say, place):
        worlds = {f"m{k}": world_run(say, n=size(150, 400), answers=k) for k in range(3)}
        [one] = commands.analyze(write(tmp_path / place, worlds), ensemble=True).ensembles
        return one

    guessed, known = of(guesses, "guesses"), of(one_cell_knows, "known")
    expected = 1 - (1 - 0.25**3) ** 4  # some of four cells, all of three guesses
    assert guessed.one_cell.same.low < expected < guessed.one_cell.same.high
    assert guessed.one_cell.wrong.low < expected < guessed.one_cell.wrong.high
    assert guessed.one_cell.each.value > 0.2
    assert known.one_cell.same.low > 0.8**3 - 0.1 > known.one_cell.wrong.high
    assert guessed.other.value > 0.7 > abs(known.other.value)  # a guess that hit is one in four for the next model


def test_a_model_whose_gate_fails_is_named_and_left_out(tmp_path, capsys):
    worlds = {"org/a": world_run(knows(0.9, 0.8), n=200), "org/blind": world_run(never_looks, n=200, answers=1)}
    folders = write(tmp_path, worlds)
    [one] = commands.analyze(folders, ensemble=True).ensembles
    assert one.raw.of["org/blind"].value is None
    assert one.raw.mean.value == pytest.approx(one.raw.of["org/a"].value)
    assert (one.raw.mean.low, one.raw.mean.high) == (one.raw.of["org/a"].low, one.raw.of["org/a"].high)
    assert (one.raw.sd, one.other) == (None, None)
    assert main(["analyze", "--ensemble", *map(str, folders)]) == 0
    assert "the mean of RCI_2 leaves out org/blind (" in " ".join(capsys.readouterr().out.split())


def once(world):
    """The same run, but that no doc is asked again."""
    spec, records, made = world

    def first(views):
        return [one for one in views if not one.get("repeat")]

    lost = [{**one["wrong_image"], "views": first(one["wrong_image"]["views"])} for one in records]
    return (
        spec,
        [{**one, "views": first(one["views"]), "wrong_image": wrong} for one, wrong in zip(records, lost, strict=True)],
        made,
    )


def test_the_steady_index_is_over_the_models_that_were_asked_again(tmp_path):
    """One needs the whole image in half of the docs, one in a quarter; the third was asked once, and says so.

    The interval of their mean is no narrower than theirs on average.
    """
    worlds = {
        "org/half": again_run(("cell", "whole"), n=160),
        "org/quarter": again_run(("cell", "cell", "cell", "whole"), n=160),
        "org/once": once(again_run(("cell", "whole"), n=160)),
    }
    [one] = commands.analyze(write(tmp_path, worlds), ensemble=True).ensembles
    known = [one.steady.of[name] for name in ("org/half", "org/quarter")]
    for found, truth in zip(known, (1 / 2, 1 / 4), strict=True):
        assert found.low <= truth <= found.high
        assert found.value == pytest.approx(truth, abs=0.05)
    assert one.steady.of["org/once"].value is None
    assert one.steady.of["org/once"].reason.startswith("no doc was asked again")
    assert one.steady.mean.value == pytest.approx(np.mean([found.value for found in known]))
    assert (one.steady.mean.low, one.steady.mean.high) == pytest.approx(
        (np.mean([found.low for found in known]), np.mean([found.high for found in known]))
    )
    assert (one.steady.least, one.steady.most) == (known[1].value, known[0].value)
    assert None not in [found.value for found in one.raw.of.values()]


def test_docs_of_one_cell_are_of_right_and_wrong_answers_alone(worlds):
    """Of an error rate, and of captions, no cell is right or wrong."""
    how = {"draws": 50, "level": 0.95, "seed": 0}
    records = [world[1] for world in worlds.values()]
    assert one_cell([table(own) for own in records], 2, how) is not None
    assert one_cell([table(own, higher=False) for own in records], 2, how) is None
    captions = [
        [{**one, "answer": {**one["answer"], "format": "caption", "label": "caption"}} for one in own]
        for own in records
    ]
    assert one_cell([table(own) for own in captions], 2, how) is None


def test_the_file_has_every_doc(worlds, tmp_path, capsys):
    folders, out = write(tmp_path, worlds), tmp_path / "numbers.json"
    assert main(["analyze", "--ensemble", *map(str, folders), "--json", str(out)]) == 0
    said = capsys.readouterr().out
    [one] = json.loads(out.read_text())["ensemble"]
    assert said.splitlines()[0] == "toy_rci2 at grid 2, over 3 models"
    named = said[said.index("answers docs") :].split(" (--json")[0]
    assert str(len(one["one_cell"]["cells"]) - 20) in named
    assert set(one["raw"]["of"]) == set(SAYERS)
