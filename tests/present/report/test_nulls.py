"""What a report says of indices that must not be read as they stand: in tables, on the page, in drawings."""

import dataclasses
import re

import pytest

from lmms_patch.present.report import across, benchmarks, models, published, shapes
from lmms_patch.present.report.data import Report
from lmms_patch.present.report.gather import gather
from lmms_patch.present.report.page import page
from lmms_patch.present.report.points import Point, as_means, points_of
from lmms_patch.runs import run
from lmms_patch.stats.resample import Estimate
from tests.making.pages import rows_of
from tests.making.runs import again_run, guesses_on_cells, world_run, write_run

DOCS = {"n": 300, "grid": 3}


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    """The results of four models on one benchmark, by name; of the last one no doc was asked again, nor on a wrong image."""
    folder = tmp_path_factory.mktemp("runs")
    made = {
        "never": again_run(["text", "text", "text", "unsolved", "unsolved"], guesses=False, **DOCS),
        "guesses": again_run([*["whole"] * 4, "unsolved"], **DOCS),
        "known": again_run(["cell"], **DOCS),
        "before": world_run(lambda stream, gold: (guesses_on_cells(stream, gold)[0], None), **DOCS),
    }
    for name, one in made.items():
        write_run(folder / name, {"toy_rci3": one}, model_name=name)
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
    assert (found.readable, found.contradicted, found.refused, found.unknown) == (2, 1, {"does not look": 1}, 0)
    tiles = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.partition('<dl class="tiles">')[2].partition("</dl>")[0]))
    assert "Index can be read ✓ 2 Contradicted ! 1 Does not look ✕ 1" in tiles
    assert "Not checked whether the answers depend on the image, in 1 of 4 results" in html


def test_no_tick_stands_beside_a_contradicted_or_refused_index(results):
    """Columns 7 and 8: the index, and the steady one; 10: the gate."""
    assert {name: row[10] for name, row in results.items()} == {
        "never": "✕ does not look",
        "guesses": "! valid, index contradicted",
        "known": "✓ valid",
        "before": "✓ valid",
    }
    assert (results["never"][7], results["never"][8]) == ("N/A does not look", "N/A does not look")
    assert results["guesses"][7].endswith("contradicted")
    assert (results["known"][8].split()[0], results["before"][8]) == ("0.000", "—")


def test_the_index_to_go_by_is_coloured_and_named_where_a_phone_shows_no_other(html, results):
    """The steady one of those that were asked again, else the index of one pass; none where none may be read."""
    body = html.partition('id="results-table"')[2].partition("<tbody>")[2].partition("</tbody>")[0]
    coloured = {}
    for row, (model, shown) in zip(re.findall(r"<tr.*?</tr>", body, re.DOTALL), results.items(), strict=True):
        looks = re.findall(r"<t[hd]([^>]*)>", row)
        bands = [place for place, look in enumerate(looks) if re.search(r"local|global|balanced", look)]
        coloured[model] = shown[0], bands
    assert coloured == {
        "never": ("toy never, 3×3", []),
        "guesses": ("toy guesses, 3×3, steady", [8]),
        "known": ("toy known, 3×3, steady", [8]),
        "before": ("toy before, 3×3", [7]),
    }


def test_the_tables_show_what_wrong_images_earn_and_what_is_mostly_luck(report):
    rows = {row["model"]: row for row in sheet(report, "runs", "runs").rows}
    assert (rows["never"]["gate"], rows["never"]["asked"]) == ("does not look", 300)
    assert rows["never"]["wrong"] == rows["never"]["score"].value
    assert rows["never"]["looks"].value == 0
    assert rows["guesses"]["mark"].endswith("the first is mostly luck")
    assert rows["guesses"]["band"] == "strong global"
    assert "looks" not in rows["before"]
    text = sheet(report, "runs", "runs").to_markdown()
    assert ", contradicted |" in text


def test_tables_across_benchmarks_are_marked_and_say_what_it_means(report):
    table = sheet(report, "benchmarks", "rci")
    assert "Contradicted: the steady index lies" in table.note
    assert ", contradicted" in table.to_latex()
    steady = sheet(report, "benchmarks", "rci_steady")
    (raw,), (other,) = table.rows, steady.rows
    for name, share in (("guesses", 1.0), ("known", 0.0)):  # all guess on cells; one cell knows what the image shows
        assert other[f"{name}, n=3"].value == pytest.approx(share, abs=0.05)
        assert raw[f"{name}, n=3"].value < 0.05
    assert other["before, n=3"] == "not asked again"
    assert {"guesses, RCI_3", "guesses, steady RCI_3"} <= {column.title for column in (*table.columns, *steady.columns)}
    assert "guesses, steady RCI\\_3" in steady.to_latex()
    assert ["Below 0 one cell beats the whole image" in one.note for one in (table, steady)] == [True, False]
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
        assert found == {"never": False, "guesses": True, "known": False, "before": False}


# --- models ---------------------------------------------------------------------------------------


def point(model, value, steady=None, base="x", words=()):
    again = None if steady is None else Estimate(steady, None, steady - 0.01, steady + 0.01, 100, 100, 1000)
    return Point(base, model, 3, value, value - 0.01, value + 0.01, 100, "", True, "", words=words, steady=again)


def test_models_are_ranked_by_the_steady_index_where_all_were_asked_again():
    (table,) = models.sheets([point("a", 0.05, 0.6, words=("contradicted",)), point("b", 0.2, 0.1)])
    assert [row["model"] for row in table.rows] == ["b", "a"]
    assert table.title == "Models by |steady PCRI|"
    assert table.note.startswith("Of the steady index: docs were asked again in every run.")


NOT_TOLD = Estimate.nothing(100, "repeated guesses cannot be told from knowledge")


@pytest.mark.parametrize(
    "other",
    [
        point("b", 0.2),
        dataclasses.replace(point("b", 0.2), steady=NOT_TOLD),
        dataclasses.replace(point("b", 0.2), source="published.csv"),
    ],
)
def test_one_without_and_they_are_ranked_by_the_index_as_published(other):
    (table,) = models.sheets([point("a", 0.05, 0.6, words=("contradicted",)), other])
    assert [row["model"] for row in table.rows] == ["a", "b"]
    assert table.title == "Models by |PCRI|"
    assert table.note.startswith("Of the index of one pass; the steady one contradicts it for x with a, 3x3.")


def test_answers_that_do_not_tell_say_so_in_the_table_of_the_steady_index():
    points = [point("a", 0.05, 0.6), dataclasses.replace(point("b", 0.2), steady=NOT_TOLD)]
    assert as_means(points) == (points, False)
    (row,) = benchmarks.table2(points, steady=True).rows
    assert (row["a, n=3"].value, row["b, n=3"].value, row["b, n=3"].reason) == (0.6, None, NOT_TOLD.reason)
