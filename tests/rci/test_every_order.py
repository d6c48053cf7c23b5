"""RCI of what is right in every order of the options: by definition, in worlds whose truth is known, and in worlds that break what it hopes for."""

import csv

import numpy as np
import pytest
from scipy import stats

from lmms_patch import commands
from lmms_patch.app.commands.show import text
from lmms_patch.ask.spec import parse
from lmms_patch.errors import UnknownNameError
from lmms_patch.harness.wrap.choice import worst_orders
from lmms_patch.present.explore.docs import Docs, table_of
from lmms_patch.present.terminal.rci import pooled_table
from lmms_patch.rci.analysis import analyse
from lmms_patch.runs.details import Settings
from lmms_patch.runs.need import NEEDS
from lmms_patch.runs.run import read
from tests.making.docs import in_table
from tests.making.recordings import table
from tests.making.runs import crci_run, in_worst_orders, views_run, world_run, write_run
from tests.sizes import size


def numbers(choose, draws=400, grid=3, **more):
    records = crci_run(choose, grid=grid, **more)[1]
    return analyse(
        table(records), in_worst_orders(records, lambda items: float(np.mean(items))), Settings(draws=draws), (grid,)
    ), records


def guesses(doc, view, order, gold, stream):
    return int(stream.integers(len(order)))


def knows(full, cell, otherwise=guesses):
    """Right on a share of the docs on their full image, and on a share of them on cell 5, wherever the gold stands.

    Else by another rule.
    """

    def choose(doc, view, order, gold, stream):
        share = {"full": full, 5: cell}.get(view, 0)
        return order.index(gold) if doc % 100 < 100 * share else otherwise(doc, view, order, gold, stream)

    return choose


# --- by definition --------------------------------------------------------------------------------


def test_every_number_by_its_definition():
    """Of each doc, each view and each order, counted by hand.

    Two docs whose options stay, one with a failed call on a cell, one on its image.
    """
    found, records = numbers(
        knows(0.6, 0.3),
        n=90,
        options=lambda doc: 2 + doc % 3,
        left_out=(3, 4),
        failed=((7, 2, 1), (9, "full", 1)),
        draws=50,
    )
    full, best = [], []
    for record in records:
        scores = {}
        for view in record["views"]:
            scores.setdefault(view.get("cell"), []).append(view["scores"].get("acc"))
        if record["doc_id"] in (3, 4, 9):
            continue
        full.append(min(scores[None]))
        if record["doc_id"] != 7:
            best.append((min(scores[None]), max(min(scores[cell]) for cell in range(1, 10))))
    grid = found.grids[3]
    assert (found.fip.value, found.n_docs) == (pytest.approx(np.mean(full)), 87)
    assert (grid.fip, grid.mpp.value) == (
        pytest.approx(np.mean([one for one, _ in best])),
        pytest.approx(np.mean([two for _, two in best])),
    )
    assert (grid.mpp.n, grid.excluded) == (86, 1)
    assert grid.index.value == pytest.approx(1 - grid.mpp.value / grid.fip)
    assert found.turned.every.value == pytest.approx(np.mean(full))
    assert found.turned.left_out == {"two of its options are the same": 2, "a call failed": 1}
    wrong = [
        [view for view in record["wrong_image"]["views"] if "cell" not in view]
        for record in records
        if record["doc_id"] not in (3, 4, 9)
    ]
    (looked,) = found.gate.looks
    assert looked.other == pytest.approx(np.mean([min(view["scores"]["acc"] for view in views) for views in wrong]))


@pytest.mark.parametrize("higher", [True, False])
def test_the_worst_order_decides_and_an_order_without_a_score_does(higher):
    views = [("a", 1.0), ("b", 0.5), ("c", None), ("a", 0.0), ("b", 0.5), ("c", 1.0)]
    assert worst_orders(views, lambda one: one[0], lambda one: one[1], higher) == [3 if higher else 0, 1, 2]


# --- known worlds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [2, 3, 4])
def test_independent_guesses_on_nine_cells(options):
    """MPP is 1 − (1 − k^−k)^9, within 4 standard errors; one order alone has 1 − (1 − 1/k)^9: 1.00, 0.97 and 0.92."""
    docs = size(200, 1200)
    found = numbers(knows(1.0, 0.0), n=docs, options=options, null=0, draws=20)[0].grids[3]
    expected = 1 - (1 - options**-options) ** 9
    assert found.mpp.value == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / docs))
    assert found.luck_ceiling == pytest.approx(expected)


def test_the_luck_that_hides_the_truth_in_one_order_is_gone():
    """The full image is known on 90 of 100 docs, cell 5 on 60: RCI is 1/3.

    In one order the best of nine guesses makes it about 0.
    """
    every = numbers(knows(0.9, 0.6), n=size(300, 600))[0].grids[3].index
    assert every.low < 1 / 3 < every.high
    assert every.high - every.low < size(0.28, 0.2)

    def say(stream, gold):
        def one(share):
            return gold if stream.random() < share else "ABCD"[stream.integers(4)]

        return [one(0.9), *[one(0.6) if cell == 5 else one(0) for cell in range(1, 10)]], None

    _, records, _ = world_run(say, n=size(300, 600), grid=3)
    scores = [[view["scores"]["acc"] for view in record["views"]] for record in records]
    once = 1 - np.mean([max(one[1:]) for one in scores]) / np.mean([one[0] for one in scores])
    assert abs(once) < 0.1


def test_places_earn_nothing():
    """Who answers A on every cell is right in one order of four, and never in all."""
    found = numbers(knows(0.8, 0.0, otherwise=lambda *_: 0), n=200, draws=50)[0].grids[3]
    assert (found.mpp.value, found.index.value) == (0, 1)


# --- worlds that break it -----------------------------------------------------------------------------


def by_text(doc, view, order, gold, stream):
    """An option's text drawn for each cell, the same in every order."""
    drawn = np.random.default_rng([doc, 9 + sum(map(ord, str(view)))]).integers(len(order))
    return order.index(int(drawn))


def test_guesses_of_texts_keep_their_luck_and_the_null_takes_it_off():
    """A model that takes one text per cell in every order keeps the luck of nine guesses: MPP is .92 again, and the index that is not luck-corrected is wrong
    (truth 1). Wrong images show as much luck, so the corrected index covers the truth, with a wide interval."""
    found = numbers(knows(0.8, 0.0, otherwise=by_text), n=size(300, 600))[0].grids[3]
    assert found.mpp.value == pytest.approx(1 - 0.75**9, abs=0.05)
    assert found.index.value < 0.1
    assert found.adj.estimate.low < 1 < found.adj.estimate.high
    assert found.adj.estimate.low > found.index.high


def test_who_knows_by_the_question_alone_is_refused():
    """Right on every view and in every order, also on wrong images: text, not sight."""
    found = numbers(lambda doc, view, order, gold, stream: order.index(gold) if doc % 2 else 0, n=200)[0]
    assert found.gate.valid is False
    assert "do not depend on the image" in found.gate.reason
    assert found.grids[3].index.value is None


@pytest.mark.parametrize(("full", "cell"), [(0.9, 0.45), *size([], [(0.7, 0.7), (0.9, 0.0)])])
def test_the_corrected_index_finds_the_truth(full, cell):
    """Truth 1 − cell/full; guesses elsewhere.

    The measured null is one order's luck to the fourth power, so the correction is small.
    """
    found = numbers(knows(full, cell), n=size(300, 800), null=size(150, 300))[0].grids[3].adj.estimate
    assert found.low - 0.02 <= 1 - cell / full <= found.high + 0.02
    assert found.value == pytest.approx(1 - cell / full, abs=size(0.1, 0.06))


def test_intervals_cover_the_truth():
    """Runs on other docs, with other docs that the image and the cell know: 95 % intervals seldom miss the truth (20 runs: 4 times, but for p = 0.003)."""

    def drawn(seed):
        stream = np.random.default_rng(seed)
        full = stream.random(100) < 0.8
        cell = full & (stream.random(100) < 0.5)

        def choose(doc, view, order, gold, stream):
            known = full[doc] if view == "full" else view == 5 and cell[doc]
            return order.index(gold) if known else guesses(doc, view, order, gold, stream)

        return numbers(choose, n=100, seed=seed, null=0, draws=200)[0].grids[3].index

    found = [drawn(seed) for seed in range(size(4, 20))]
    # what an endless run would show: guesses lift FIP by a 256th of the docs that nobody knows, and MPP by up to nine
    truth = 1 - (0.4 + 0.6 * (1 - (1 - 4**-4) ** 9)) / (0.8 + 0.2 * 4**-4)
    assert sum(not one.low <= truth <= one.high for one in found) <= stats.binom.ppf(0.997, len(found), 0.05)


# --- a finished run -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crci")
    for name, (full, cell) in {"a": (0.9, 0.6), "b": (0.7, 0.2)}.items():
        tasks = {
            "sheet_crci3": crci_run(knows(full, cell), n=100, left_out=(99,), failed=((7, 2, 1),)),
            "sheet_rci3": world_run(lambda stream, gold: ([gold] * 10, ["A"] * 10), n=100, grid=3, base="sheet"),
        }
        write_run(folder / name, tasks, model_name=f"org/{name}")
    return folder


def of(folder, name):
    return next(one for one in read(next(folder.glob("*_results.json"))).results if one.task == name)


def test_people_see_that_scores_are_of_every_order(runs):
    """The harness's own number is of one order: the table shows the one that the index is made of."""
    result, shown = of(runs / "a", "sheet_crci3"), commands.show(runs / "a")
    lines = text(shown).splitlines()
    head = next(i for i, line in enumerate(lines) if "CRCI" in line and line.startswith("task"))
    row = next(line.split() for line in lines[head:] if line.startswith("sheet_crci3"))
    grid = result.analysis.grids[3]
    assert result.native.values["acc"] > result.measures["fip"].value
    assert f"{grid.fip:.3f}" in row
    assert f"{grid.mpp.value:.3f}" in row
    assert any("sheet (luck-corrected CRCI" in one.text for one in shown.findings)


def test_boards_and_reports_never_mix_it_with_rci(runs, tmp_path, monkeypatch):
    monkeypatch.setattr("lmms_patch.present.report.build.figures.figures", lambda *_: ())  # they take most of the time
    commands.leaderboard([runs], tmp_path / "board")
    with (tmp_path / "board" / "leaderboard.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {(row["kind"], row["model"]) for row in rows} == {
        (kind, f"org/{name}") for kind in ("index", "crci") for name in "ab"
    }
    assert [row["rank_first"] for row in rows if row["kind"] == "crci"] == ["1", "2"]
    commands.report([runs], tmp_path / "report")
    told = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert "CRCI / RCI</th>" in told
    assert "sheet, every order" in told


@pytest.mark.parametrize("name", ["gqa_crci1", "gqa_crci10"])
def test_grids_that_are_not_possible(name):
    with pytest.raises(UnknownNameError, match=r"allowed: 2 to 9; type '\.\.\._crci3'"):
        parse(name)


def test_the_explorer_counts_views_by_their_worst_order(runs):
    """By hand, of each doc: right on its image in every order, and on how many cells in every order."""
    result = of(runs / "a", "sheet_crci3")
    docs = Docs(table_of(result))
    for place, record in enumerate(in_table(result).values()):
        scores = {}
        for view in record["views"]:
            scores.setdefault(view.get("cell"), []).append(view["scores"].get("acc"))
        known = None not in scores[None]
        assert (docs.views.first_right[place] == 1) == (known and min(scores[None]) == 1)
        assert docs.views.right_cells[place] == sum(
            None not in one and min(one) == 1 for cell, one in scores.items() if cell
        )
        views = docs.answers(place)["views"]
        assert sum(view["counts"] for view in views) == len(scores)
    stored = result.analysis.necessity[0].counts
    assert {name: (docs.found().classes == NEEDS.index(name)).sum() for name in stored} == stored


def test_groups_and_ensembles_name_the_index_that_they_pool(tmp_path):
    """Two members and two models: pooled and averaged as CRCI, beside the same of RCI.

    Tasks without an index are in neither.
    """
    for name, full in {"a": 0.9, "b": 0.7}.items():
        tasks = {f"part{i}_crci2": crci_run(knows(full, 0.0), n=60, grid=2, base=f"part{i}", seed=i) for i in (1, 2)}
        tasks |= {f"part{i}_lowres": views_run("lowres", [0.9, 0.5], n=60, grids=(2,), base=f"part{i}") for i in (1, 2)}
        groups = {f"parts_{kind}": [f"part{i}_{kind}" for i in (1, 2)] for kind in ("crci2", "lowres")}
        write_run(tmp_path / name, tasks, groups=groups, model_name=f"org/{name}")
    found = commands.analyze([tmp_path / "a"])
    (pooled,) = found.pooled[0]
    assert (pooled.group, pooled.asked.index) == ("parts_crci2", "crci")
    assert pooled.fip == pytest.approx(np.mean([one.analysis.fip.value for one in found.runs[0] if one.analysis.grids]))
    assert "CRCI [interval]" in pooled_table(found.pooled[0])
    models = commands.analyze([tmp_path / "a", tmp_path / "b"], ensemble=True).ensembles
    assert {one.index for one in models} == {"crci2"}
