"""What a report says of indices that must not be read as they stand: in tables, on the page, in drawings."""

import dataclasses
import re

import pytest

from lmms_patch.present.report import across, benchmarks, models, published, shapes
from lmms_patch.present.report.data import Report
from lmms_patch.present.report.gather import gather
from lmms_patch.present.report.page import page
from lmms_patch.present.report.points import Point, luck_corrected, points_of
from lmms_patch.runs import run
from lmms_patch.stats.resample import Estimate
from tests.making.pages import rows_of
from tests.making.runs import guesses_on_cells, misled_by_cells, never_looks, one_cell_knows, world_run, write_run
from tests.sizes import size


def without_null(model):
    return lambda stream, gold: (model(stream, gold)[0], None)


WORLDS = {
    "never": (never_looks, 300),
    "guesses": (guesses_on_cells, size(500, 1000)),
    "known": (one_cell_knows, 300),
    "misled": (misled_by_cells, 300),
    "before": (without_null(guesses_on_cells), size(500, 1000)),
}


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    """The results of five models on one benchmark, by name; of the last one no doc was asked on a wrong image."""
    folder = tmp_path_factory.mktemp("runs")
    for name, (model, docs) in WORLDS.items():
        write_run(folder / name, {"toy_rci3": world_run(model, n=docs, grid=3)}, model_name=name)
    found, _, _ = gather(run.find([folder]))
    return {entry.model: entry for entry in found}


@pytest.fixture(scope="module")
def report(entries):
    shown = tuple(entries.values())
    return Report("Toy", {"date": "today"}, shown, across.sheets(shown, points_of(shown)))


@pytest.fixture(scope="module")
def html(report):
    return page(report)


@pytest.fixture
def results(html):
    return {row[1]: row for row in rows_of(html, "results-table")}


def sheet(report, section, name):
    return next(one for one in report.sheets[section] if one.name == name)


def test_what_can_be_read_is_counted_without_what_is_contradicted_or_refused(report, html):
    found = shapes.facts(report)
    assert (found.readable, found.contradicted, found.refused, found.unknown) == (3, 1, {"does not look": 1}, 0)
    tiles = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.partition('<dl class="tiles">')[2].partition("</dl>")[0]))
    assert "Index can be read ✓ 3 Contradicted ! 1 Does not look ✕ 1" in tiles
    assert "Not checked whether the answers depend on the image, in 1 of 5 results" in html


def test_no_tick_stands_beside_a_contradicted_or_refused_index(results):
    """Columns 7 and 8: the index, and the luck-corrected one; 10: the gate."""
    assert {name: row[10] for name, row in results.items()} == {
        "never": "✕ does not look",
        "guesses": "! valid, index contradicted",
        "known": "✓ valid",
        "misled": "✓ valid",
        "before": "✓ valid",
    }
    assert (results["never"][7], results["never"][8]) == ("N/A does not look", "—")
    assert results["guesses"][7].endswith("contradicted")
    assert results["misled"][8] == "1.00 cells mislead"


def test_the_tables_show_the_null(report):
    rows = {row["model"]: row for row in sheet(report, "runs", "runs").rows}
    assert (rows["never"]["gate"], rows["never"]["asked"]) == ("does not look", 300)
    assert rows["never"]["wrong"] == rows["never"]["score"].value
    assert rows["never"]["looks"].value == 0
    assert rows["guesses"]["mark"].endswith("the first is mostly luck")
    assert rows["guesses"]["band"] == "strong global"
    assert "looks" not in rows["before"]
    text = sheet(report, "runs", "runs").to_markdown()
    for words in (", contradicted |", "1.00, cells mislead |"):
        assert words in text


def test_tables_across_benchmarks_are_marked_and_say_what_it_means(report):
    table = sheet(report, "benchmarks", "rci")
    assert "Contradicted: the luck-corrected index lies" in table.note
    assert ", contradicted" in table.to_latex()
    corrected = sheet(report, "benchmarks", "rci_adj")
    (raw,), (other,) = table.rows, corrected.rows
    for name, adj in (("guesses", 1.0), ("known", 0.0)):  # all guess on cells; one cell knows what the image shows
        assert other[f"{name}, n=3"].value == pytest.approx(adj, abs=0.15)
        assert raw[f"{name}, n=3"].value < 0.05
    assert other["before, n=3"] == "luck not measured"
    assert {"guesses, RCI_3", "guesses, luck-corrected RCI_3"} <= {
        column.title for column in (*table.columns, *corrected.columns)
    }
    assert "guesses, luck-corrected RCI\\_3" in corrected.to_latex()
    assert "a cell does worse than a wrong image" in corrected.note  # of "misled"
    assert "worse than a wrong image" not in table.note
    (row,) = sheet(report, "benchmarks", "bands").rows
    assert row["guesses, n=3"].endswith(", contradicted")
    reasons = {row["model"]: row["reason"] for row in sheet(report, "benchmarks", "no_index").rows}
    assert list(reasons) == ["never"]
    assert reasons["never"].startswith("the answers do not depend on the image")


def test_a_contradicted_index_fits_nothing(entries):
    (point,) = points_of([entries["guesses"]])
    assert point.contradicted
    assert {benchmarks.fits(point, domain) for domain in benchmarks.DOMAINS} == {"unclear"}


def test_marks_come_back_from_our_own_tables(report, tmp_path):
    for name in ("rci", "indices"):
        path = tmp_path / f"{name}.csv"
        path.write_text(sheet(report, "benchmarks", name).to_csv(), encoding="utf-8")
        found = {point.model: point.contradicted for point in published.read(path)}
        assert found == {"never": False, "guesses": True, "known": False, "misled": False, "before": False}


# --- models ---------------------------------------------------------------------------------------


def point(model, value, corrected=None, base="x", words=()):
    adj = None if corrected is None else Estimate(corrected, None, corrected - 0.01, corrected + 0.01, 100, 100, 1000)
    return Point(base, model, 3, value, value - 0.01, value + 0.01, 100, "", True, "", words=words, corrected=adj)


def test_models_are_ranked_by_the_corrected_index_where_every_null_is_measured():
    (table,) = models.sheets([point("a", 0.05, 0.6, words=("contradicted",)), point("b", 0.2, 0.1)])
    assert [row["model"] for row in table.rows] == ["b", "a"]
    assert table.title == "Models by |luck-corrected PCRI|"
    assert table.note.startswith("Of the luck-corrected index: luck is measured on wrong images in every run.")


@pytest.mark.parametrize("other", [point("b", 0.2), dataclasses.replace(point("b", 0.2), source="published.csv")])
def test_one_without_and_they_are_ranked_by_the_index_as_published(other):
    (table,) = models.sheets([point("a", 0.05, 0.6, words=("contradicted",)), other])
    assert [row["model"] for row in table.rows] == ["a", "b"]
    assert table.title == "Models by |PCRI|"
    assert table.note.startswith(
        "Of the index, not luck-corrected; the luck-corrected one contradicts it for x with a, 3x3."
    )


def test_a_saturated_point_has_no_place_among_corrected_ones():
    saturated = dataclasses.replace(
        point("c", 0.0), corrected=Estimate(None, None, None, None, 100, 100, 0, reason="luck saturates")
    )
    found, which = luck_corrected([point("a", 0.05, 0.6), saturated])
    assert (which, [(p.model, p.valid, p.value) for p in found]) == (True, [("a", True, 0.6), ("c", False, None)])
    assert not luck_corrected([saturated])[1]
