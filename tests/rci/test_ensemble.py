"""An index over several models, by hand from the answers."""

import json

import numpy as np
import pytest

from lmms_patch import commands
from lmms_patch.app.cli import main
from tests.making.runs import (
    again_run,
    knows,
    never_looks,
    world_run,
    write_run,
)

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


def test_a_model_whose_gate_fails_is_named_and_left_out(tmp_path, capsys):
    worlds = {"org/a": world_run(knows(0.9, 0.8), n=200), "org/blind": world_run(never_looks, n=200, answers=1)}
    folders = write(tmp_path, worlds)
    [one] = commands.analyze(folders, ensemble=True).ensembles
    assert one.raw.of["org/blind"].value is None
    assert one.raw.mean.value == pytest.approx(one.raw.of["org/a"].value)
    assert (one.raw.mean.low, one.raw.mean.high) == (one.raw.of["org/a"].low, one.raw.of["org/a"].high)
    assert one.raw.sd is None
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


def test_the_file_has_every_model(worlds, tmp_path, capsys):
    folders, out = write(tmp_path, worlds), tmp_path / "numbers.json"
    assert main(["analyze", "--ensemble", *map(str, folders), "--json", str(out)]) == 0
    said = capsys.readouterr().out
    [one] = json.loads(out.read_text())["ensemble"]
    assert said.splitlines()[0] == "toy_rci2 at grid 2, over 3 models"
    assert set(one["raw"]["of"]) == set(SAYERS)
