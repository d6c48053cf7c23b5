"""Numbers that cannot all be true have no rank, are named, and go into no card."""

import dataclasses
import json
import random
import shutil

import pytest
from msgspec.structs import replace

from lmms_patch.app.commands.leaderboard import notes
from lmms_patch.compare import audit
from lmms_patch.present.board import store
from lmms_patch.present.board.build import leaderboard
from lmms_patch.runs import run
from tests.making.boards import document, index_task, write
from tests.making.runs import mc_run, write_run


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """What a run as we write it leaves on a board."""
    return store.remember(run.read(write_run(tmp_path_factory.mktemp("plain"), {"toy_rci2": mc_run(n=80, seed=4)})))[0]


def with_number(result, name, **changes):
    return replace(result, numbers={**result.numbers, name: dataclasses.replace(result.numbers[name], **changes)})


def with_note(result, **changes):
    return replace(result, notes={2: replace(result.notes[2], **changes)})


def test_a_run_as_we_write_it_is_no_nonsense(plain):
    assert plain.nonsense == ""
    assert plain.numbers["rci2"].value is not None


def consistent(result, fip, mpp):
    """The result with other FIP and MPP, and everything that follows from them as it should be."""
    for name, value in (("fip", fip), ("mpp2", mpp), ("rci2", 1 - mpp / fip), ("gap2", fip - mpp)):
        result = with_number(result, name, value=value, low=value - 0.01, high=value + 0.01)
    return with_note(result, fip=fip)


def test_other_numbers_that_fit_each_other_are_no_nonsense(plain):
    for fip, mpp in ((0.5, 0.5), (0.9, 1.0), (1.0, 0.3), (0.001, 1.0)):
        assert consistent(plain, fip, mpp).nonsense == ""


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda one: consistent(one, 7.0, 0.5), "FIP 7 is above 1, which the gold answers score"),
        (lambda one: consistent(one, 0.5, 7.0), "mpp2 7 is above 1, which the gold answers score"),
        (lambda one: consistent(one, 0.5, -3.0), "mpp2 -3 is below 0"),
        (lambda one: consistent(one, -0.5, 0.2), "FIP -0.5 is below 0"),
        (lambda one: with_number(one, "rci2", value=-0.9, low=-1, high=-0.8), "rci2 -0.9 is not 1 - MPP / FIP"),
        (lambda one: with_number(one, "gap2", value=0.9, low=0.8, high=1.0), "gap2 0.9 is not FIP - MPP"),
        (lambda one: with_note(one, fip=0.123), "is not 1 - MPP / FIP of FIP 0.123"),
        (lambda one: with_number(one, "mpp2", value=None, low=None, high=None), "rci2 has a value, but mpp2 has none"),
        (lambda one: with_number(one, "fip", low=0.1, high=0.2), "is outside its interval [0.1, 0.2]"),
        (lambda one: with_number(one, "chance", se=-0.1), "chance has the standard error -0.1"),
        (lambda one: with_number(one, "mpp2", n=100_000), "mpp2 is over 100000 of 80 docs"),
        (lambda one: with_note(one, excluded=81), "81 of 80 docs are excluded at grid 2"),
        (lambda one: replace(one, gate=0), "rci2 has a value, but the gate refuses it"),
    ],
)
def test_each_contradiction_is_named(plain, spoil, told):
    spoiled = spoil(plain)
    assert told in spoiled.nonsense


def test_a_metric_below_0_without_an_index_is_no_nonsense(plain):
    """Its scale goes below 0, so it has none."""
    signed = consistent(plain, 0.5, 0.2)
    signed = with_number(
        with_number(signed, "rci2", value=None, low=None, high=None), "mpp2", value=-0.4, low=-0.5, high=-0.3
    )
    assert signed.nonsense == ""


def test_any_index_but_that_of_its_fip_and_mpp_is_found(plain):
    """1 - MPP / FIP by hand, in random numbers."""
    stream = random.Random(1)
    for _ in range(200):
        fip, mpp = stream.uniform(0.05, 1), stream.uniform(0, 1)
        off = stream.choice([-1, 1]) * stream.uniform(0.001, 0.5)
        value = 1 - mpp / fip + off
        assert consistent(plain, fip, mpp).nonsense == ""
        assert (
            "is not 1 - MPP / FIP"
            in with_number(consistent(plain, fip, mpp), "rci2", value=value, low=value, high=value).nonsense
        )


# --- on a board -----------------------------------------------------------------------------------


def spoiled(model, *path, value):
    """A document of which one number of the analysis was changed."""
    made = document(model, [index_task("toy")])
    at = made["results"]["toy_pcri3"]["patch,none"]["analysis"]
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return made


@pytest.mark.parametrize("by", ["pcri", "fip", "mpp", "gap"])
def test_nonsense_has_no_rank_is_named_and_goes_into_no_card(tmp_path, monkeypatch, by):
    """Of a board that took in its runs before results files were checked as they are read."""
    monkeypatch.setattr("lmms_patch.compare.audit.check", lambda *args, **options: audit.Audit(()))
    write(
        tmp_path / "runs",
        document("good", [index_task("toy")]),
        spoiled("bad", "grids", "3", "mpp", "value", value=0.1),
    )
    built = leaderboard([tmp_path / "runs"], tmp_path / "board", by=by)
    (group,) = built.board.groups
    assert [entry.model for _, entry in group.ranked] == ["good"]
    ((entry, reason),) = group.unranked
    assert entry.model == "bad"
    assert reason.startswith("contradicts itself: mpp3 0.1 is outside its interval")
    assert any(
        line.startswith("bad: toy_pcri3 is not ranked, it contradicts itself: mpp3 0.1") for line in notes(built)
    )
    assert [path.name for path in (tmp_path / "board" / "model-index").iterdir()] == ["good.md"]
    assert "contradicts itself" in (tmp_path / "board" / "index.html").read_text()


def test_a_board_whose_own_file_was_changed_does_not_rank_it(tmp_path):
    """Of a board of an earlier version, whose runs' files have gone, the row itself says what cannot be."""
    write(tmp_path / "runs", document("m", [index_task("toy")]))
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    path = tmp_path / "board" / "leaderboard.json"
    data = json.loads(path.read_text())
    shutil.rmtree(tmp_path / "runs")
    del data["runs"][0]["digest"]
    data["runs"][0]["results"][0]["numbers"]["fip"] |= {"value": 7.0, "low": 6.9, "high": 7.1}
    data["runs"][0]["results"][0]["numbers"]["score"] |= {"value": 7.0, "low": 6.9, "high": 7.1}
    path.write_text(json.dumps(data))
    (group,) = leaderboard([], tmp_path / "board").board.groups
    assert group.ranked == ()
    assert "FIP 7 is above 1" in group.unranked[0][1]
