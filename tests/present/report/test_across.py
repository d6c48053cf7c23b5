"""Tables across benchmarks and models: against the papers' tables, hand values, brute force and simulation."""

import csv
import io
import itertools
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from lmms_patch.ask.kinds import KINDS
from lmms_patch.errors import RecordError
from lmms_patch.present.ranking import folded_mean
from lmms_patch.present.report import across, benchmarks, figures, models, published
from lmms_patch.present.report.points import Point, distinct
from lmms_patch.stats.resample import Estimate
from tests.making.reports import entry, estimate, tst_entry
from tests.places import SHARED

TABLE_2, TABLES_5_TO_8 = SHARED / "rci_table2.csv", SHARED / "pcri_tables5to8.csv"
published_tables = pytest.mark.skipif(not TABLE_2.is_file(), reason="the published tables are not here")


def point(benchmark, model, n, value, half=None, kind="", valid=True):
    ends = (None, None) if half is None else (value - half, value + half)
    return Point(
        benchmark, model, n, value, *ends, None if half is None else 100, kind, valid, "" if valid else "near chance"
    )


def by_name(found):
    return {sheet.name: sheet for sheets in found.values() for sheet in sheets}


def published_numbers():
    """Straight from the file: (dataset, model, n) -> number as it is written."""
    with TABLE_2.open() as file:
        return {(row["dataset"], row["model"], int(row["n"])): row["rci"] for row in csv.DictReader(file)}


# --- the RCI paper's tables -----------------------------------------------------------------------


@published_tables
def test_table_2_comes_out_as_it_went_in():
    truth = published_numbers()
    sheet = by_name(across.sheets([], published.read(TABLE_2)))["rci"]
    rows = list(csv.DictReader(io.StringIO(sheet.to_csv())))
    heads = [re.fullmatch(r"(.+), n=(\d)", key).groups() for key in list(rows[0])[1:]]
    found = {(row["benchmark"], model, int(n)): float(row[f"{model}, n={n}"]) for row in rows for model, n in heads}
    assert found == {key: float(text) for key, text in truth.items()}
    assert len(rows) == 13
    lines = [line.removesuffix(r" \\").split(" & ") for line in sheet.to_latex().splitlines() if line.count("&") == 6]
    latex = {}
    for name, *cells in lines[1:]:
        latex |= {
            (name.replace("\\_", "_"), model, int(n)): cell for (model, n), cell in zip(heads, cells, strict=True)
        }
    assert {key: float(cell) for key, cell in latex.items()} == {
        key: round(float(text), 3) for key, text in truth.items()
    }
    assert all(cell[0] in "+-" for cell in latex.values())


@published_tables
def test_bands_of_table_2_by_the_papers_own_words():
    def band(x):
        if x <= -0.30:
            return "strong local"
        if -0.30 < x <= -0.10:
            return "moderate local"
        if -0.10 < x <= 0.10:
            return "balanced"
        return "strong global" if x >= 0.30 else "moderate global"

    sheet = by_name(across.sheets([], published.read(TABLE_2)))["bands"]
    found = {
        (row["benchmark"], model, n): row[f"{model}, n={n}"]
        for row in sheet.rows
        for _, model, n in published_numbers()
    }
    assert found == {key: band(float(text)) for key, text in published_numbers().items()}


@published_tables
def test_correlations_of_table_2_span_what_is_published():
    sheets = by_name(across.sheets([], published.read(TABLE_2)))
    pairs = sheets["correlations"].rows
    values = [row["r"].value for row in pairs]
    assert len(pairs) == 15
    assert (f"{min(values):.3f}", f"{max(values):.3f}") == ("0.951", "0.996")
    assert {row["benchmarks"] for row in pairs} == {13}
    numbers = published_numbers()
    names = list(dict.fromkeys(key[0] for key in numbers))
    for row in pairs:
        columns = [_split(row[side]) for side in ("first", "second")]
        x, y = ([float(numbers[b, model, n]) for b in names] for model, n in columns)
        assert row["r"].value == pytest.approx(stats.pearsonr(x, y).statistic)
        assert row["rho"] == pytest.approx(stats.spearmanr(x, y).statistic)
    square = sheets["correlation_matrix"].rows
    assert [
        row[key] for row, key in zip(square, [c.key for c in sheets["correlation_matrix"].columns[1:]], strict=True)
    ] == [1.0] * 6


def _split(label):
    model, n = label.rsplit(", n=", 1)
    return model, int(n)


@published_tables
def test_means_of_the_pcri_papers_tables():
    """PCRI paper, A.4.6: captioning of InternVL2.5-26B goes from -0.492 to -0.755, a drop of 53.4 % (its text says 2B)."""
    found = published.read(TABLES_5_TO_8)
    change = next(one for one in models.changes(found, "caption") if one.model == "InternVL2_5-26B")
    assert (change.first.value, change.second.value) == (-0.4921, -0.7547)
    assert change.relative.value == pytest.approx(-0.534, abs=5e-4)
    everyone = models.standings(found, 3)
    ranked = [one for one in everyone if one.rank is not None]
    with TABLES_5_TO_8.open() as file:
        rows = [row for row in csv.DictReader(file) if row["n"] == "3"]
    have = {m: {row["dataset"] for row in rows if row["model"] == m} for m in {row["model"] for row in rows}}
    common = set.intersection(*have.values())
    shared = set(ranked[0].group.shared)
    assert (len(have), len(common), len(everyone)) == (19, 8, 19)
    assert len(ranked) * len(shared) >= 19 * 8  # more numbers than over what all of them have
    assert {one.model for one in ranked} == {m for m, names in have.items() if shared <= names}
    brute = {
        one.model: np.mean(
            [abs(float(row["pcri"])) for row in rows if row["model"] == one.model and row["dataset"] in shared]
        )
        for one in ranked
    }
    assert {one.model: one.size.value for one in ranked} == pytest.approx(brute)
    assert [one.model for one in ranked] == sorted(brute, key=lambda m: brute[m])
    assert all(one.size.low is None and one.place is None for one in everyone)


# --- fit and percentiles --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "half", "verdicts"),
    [
        (0.45, 0.1, ("fits", "fits", "does not", "does not")),
        (0.30, None, ("fits", "fits", "does not", "does not")),
        (0.20, 0.05, ("does not", "fits", "does not", "does not")),
        (0.28, 0.05, ("unclear", "fits", "does not", "does not")),
        (0.0, 0.05, ("does not", "fits", "fits", "fits")),
        (0.09, 0.05, ("does not", "fits", "unclear", "unclear")),
        (0.10, None, ("does not", "fits", "fits", "fits")),
        (-0.10, None, ("does not", "does not", "fits", "does not")),
        (-0.10, 0.05, ("does not", "unclear", "fits", "unclear")),
        (-0.5, 0.1, ("does not", "does not", "fits", "does not")),
    ],
)
def test_fit_goes_by_the_whole_interval(value, half, verdicts):
    (row,) = benchmarks.fit([point("toy", "m", 3, value, half)]).rows
    assert tuple(row[d.key] for d in benchmarks.DOMAINS) == verdicts


def test_fit_is_unclear_where_models_disagree():
    (row,) = benchmarks.fit(
        [point("toy", "a", 3, -0.3, 0.05), point("toy", "b", 3, 0.0, 0.05), point("toy", "c", 3, None, valid=False)]
    ).rows
    assert (row["models"], row["general"], row["inspection"], row["scene"]) == (2, "unclear", "fits", "does not")
    assert (row["lowest"], row["highest"]) == pytest.approx((-0.35, 0.05))


def test_percentiles_by_brute_force_and_only_from_five():
    stream = np.random.default_rng(0)
    values = np.round(stream.normal(size=9), 1).tolist()
    points = [point(f"b{i}", "m", 3, v) for i, v in enumerate(values)] + [
        point(f"b{i}", "few", 3, 0.1 * i) for i in range(4)
    ]
    sheet = benchmarks.percentiles([*points, point("bad", "m", 3, None, valid=False)])
    found = [row["m, n=3"] for row in sheet.rows]
    assert found == pytest.approx([100 * sum((w < v) + 0.5 * (w == v) for w in values) / 9 for v in values])
    assert "few, n=3" not in [column.key for column in sheet.columns]
    assert "fewer than 5" in sheet.note
    assert "these 9" in sheet.note


# --- models ---------------------------------------------------------------------------------------


def test_only_what_all_models_have_is_averaged():
    points = [
        *(point(b, "a", 3, v) for b, v in (("x", 0.1), ("y", -0.3), ("z", 0.9))),
        *(point(b, "b", 3, v) for b, v in (("x", 0.2), ("y", 0.1))),
        point("z", "b", 3, None, valid=False),
    ]
    first, second = models.standings(points, 3)
    assert [(one.model, one.rank, one.size.value, one.signed.value, one.size.n) for one in (first, second)] == [
        ("b", 1, pytest.approx(0.15), pytest.approx(0.15), 2),
        ("a", 2, pytest.approx(0.2), pytest.approx(-0.1), 2),
    ]
    assert second.own.value == pytest.approx((0.1 + 0.3 + 0.9) / 3)
    assert first.group.left_out == ("z",)
    assert "left out, because some ranked model has no index there: z" in models.ranking(points).note


def test_the_mean_of_a_folded_normal_is_scipys():
    for size, se in itertools.product((0.0, 0.3, 2.0), (0.1, 1.0)):
        assert folded_mean(size, se) == pytest.approx(stats.foldnorm.mean(size / se, scale=se) - size, abs=1e-9)


def test_a_benchmark_near_chance_at_one_grid_is_in_neither_mean():
    points = [
        *(point("x", "a", n, -0.1 * n) for n in (2, 3)),
        point("y", "a", 2, 0.9),
        point("y", "a", 3, None, valid=False),
    ]
    (found,) = models.changes(points)
    assert (found.first.value, found.second.value, found.first.n) == pytest.approx((-0.2, -0.3, 1))


# --- our own runs ---------------------------------------------------------------------------------


def test_two_results_of_one_benchmark_are_told_apart():
    one = entry("a", "m", grids=(3,), indices=(-0.1,))
    other = entry("a", "m", grids=(3,), indices=(-0.2,), kind="pcri", task="a_pcri3")
    assert [p.benchmark for p in across.points_of([one, other, entry("b", "m")])] == [
        "a (a_rci)",
        "a (a_pcri3)",
        "b",
        "b",
    ]


def test_published_models_of_the_same_name_are_named_with_their_table():
    own = across.points_of([entry("a", "m", grids=(3,), indices=(-0.1,))])
    theirs = [
        Point("a", "m", 3, 0.5, None, None, None, "", True, "", source="t.csv"),
        Point("b", "n", 3, 0.1, None, None, None, "", True, "", source="t.csv"),
    ]
    assert [(p.model, p.value) for p in distinct([*own, *theirs, theirs[1]])] == [
        ("m", -0.1),
        ("m (t.csv)", 0.5),
        ("n", 0.1),
    ]
    assert [p.model for p in distinct([theirs[0], replace(theirs[0], value=0.6)])] == ["m (t.csv)", "m (t.csv) #2"]


def test_near_chance_is_in_no_mean_and_is_listed():
    entries = [
        entry(b, m, seed=i, gate=0 if (b, m) == ("b", "one") else 1)
        for i, (b, m) in enumerate(itertools.product("abcde", ("one", "two")))
    ]
    sheets = by_name(across.sheets(entries, across.points_of(entries)))
    assert [(row["benchmark"], row["n"]) for row in sheets["no_index"].rows] == [("b", 2), ("b", 3)]
    assert all("near chance" in row["reason"] for row in sheets["no_index"].rows)
    assert {row["benchmarks"] for row in sheets["ranking"].rows} == {4}
    assert next(row for row in sheets["rci"].rows if row["benchmark"] == "b")["one, n=3"].value is None
    assert next(row for row in sheets["bands"].rows if row["benchmark"] == "b")["one, n=3"] == "N/A"
    assert len(sheets["cells3"].rows) == 9 + 1
    assert {row["benchmarks"] for row in sheets["correlations"].rows} == {4, 5}


def test_what_compares_models_needs_two_of_them():
    """A model agrees with itself by construction, and has the first rank among itself."""
    several = {"fit", "percentiles", "correlations", "correlation_matrix", "ranking", "by_type", "granularity"}
    entries = [entry(b, m, seed=i) for i, (b, m) in enumerate(itertools.product("abcde", ("one", "two")))]
    assert several - {"by_type"} <= set(by_name(across.sheets(entries, across.points_of(entries))))
    of_one = [one for one in entries if one.model == "one"]
    found = set(by_name(across.sheets(of_one, across.points_of(of_one))))
    assert not several & found
    assert {"rci", "bands", "indices", "cells3"} <= found
    drawn = {one.section for one in figures.drawings(of_one, across.points_of(of_one))}
    assert "models" not in drawn


def test_the_cell_table_is_in_percent_and_its_mean_a_mean():
    weights = [0.1, 0.1, 0.9, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]
    entries = [entry(b, grids=(3,), indices=(-0.1,), weights=weights, seed=i) for i, b in enumerate("ab")]
    *rows, mean = by_name(across.sheets(entries, across.points_of(entries)))["cells3"].rows
    assert {row["most"] for row in [*rows, mean]} == {"r1c3"}
    for row in [*rows, mean]:
        assert sum(row[f"r{r}c{c}"] for r in (1, 2, 3) for c in (1, 2, 3)) == pytest.approx(100)
    assert mean["r1c3"] == pytest.approx((rows[0]["r1c3"] + rows[1]["r1c3"]) / 2)


def test_the_runs_table_has_a_row_per_grid():
    one = entry("a", "m", blind=estimate(0.3, 0.05), excluded={3: {"too small": 4}})
    one = replace(one, categories={"x": replace(one.whole, docs=50)})
    sheets = by_name(across.sheets([one, tst_entry("a")], across.points_of([one])))
    first, second, tst = sheets["runs"].rows
    assert (first["n"], first["excluded"], second["n"], second["excluded"]) == (2, 0, 3, 4)
    assert (first["gate"], first["failed"], first["empty"], first["docs"]) == ("valid", 2, 1, 200)
    assert first["band"] == "moderate local to balanced"
    assert tst["kind"] == "tst"
    assert "n" not in tst
    assert [row["docs"] for row in sheets["categories"].rows] == [50, 50]
    assert sheets["excluded"].rows[0]["reason"] == "too small"
    gain = sheets["blind"].rows[0]["gain"]
    assert gain.value == pytest.approx(0.5)
    assert gain.high - gain.low == pytest.approx(2 * math.hypot(0.05, 0.04), rel=1e-3)
    assert sheets["tst"].rows[0]["over_chance"].value == pytest.approx(0.2)


def test_names_of_tables_are_unique_and_all_forms_can_be_written():
    entries = [
        entry(b, m, seed=i, type_="mcq")
        for i, (b, m) in enumerate(itertools.product(("a$_|", "b", "c", "d"), ("<m>", "n")))
    ]
    found = across.sheets([*entries, tst_entry("b")], across.points_of(entries))
    names = [sheet.name for sheets in found.values() for sheet in sheets]
    assert len(set(names)) == len(names)
    assert list(found) == ["runs", "benchmarks", "models", "tst"]
    for sheets in found.values():
        for sheet in sheets:
            assert sheet.to_csv()
            assert sheet.to_latex()
            assert sheet.to_markdown()
            assert len({column.key for column in sheet.columns}) == len(sheet.columns)
            assert not any(
                isinstance(cell, Estimate) and cell.value is None and not cell.reason
                for row in sheet.rows
                for cell in row.values()
            )


def test_shares_of_a_handful_of_docs_are_not_averaged():
    """One right answer among 200 docs puts all of the score into one cell: an accident, not a place."""
    one = [1.0, 0.0, 0.0, 0.0]
    rare = entry("rare", fip=0.8, grids=(2,), indices=(1 - 0.005 / 0.8,), weights=one)
    often = entry("often", fip=0.8, grids=(2,), indices=(0.1,))
    assert rare.whole.measures["mpp2"].value == pytest.approx(0.005)
    assert [one.base for one, _ in benchmarks.readable([rare, often], 2, KINDS["rci"])] == ["often"]
    enough = entry("enough", fip=0.8, grids=(2,), indices=(1 - 0.05 / 0.8,), weights=one)  # 10 of 200
    assert [one.base for one, _ in benchmarks.readable([enough], 2, KINDS["rci"])] == ["enough"]


# --- in time --------------------------------------------------------------------------------------


@pytest.fixture
def both_media():
    """Two models on two benchmarks, each in 4x4 cells and in 4 segments: the same benchmarks, models and number, other indices."""
    entries = []
    for i, (base, model) in enumerate(itertools.product(("film", "play"), ("a", "b"))):
        for kind, index in (("rci", -0.2 - 0.01 * i), ("trci", 0.5 + 0.1 * i)):
            entries.append(entry(base, model, (4,), indices=(index,), kind=kind, label=f"e-{base}-{model}-{kind}"))
    return entries


def test_an_index_of_cells_and_one_of_segments_are_in_no_table_or_mean_together(both_media):
    found = across.sheets(both_media, across.points_of(both_media))
    space, time = by_name({"": found["benchmarks"]}), by_name({"": found["benchmarks_time"]})
    assert [row["a, n=4"].value for row in space["rci"].rows] == pytest.approx([-0.2, -0.22])
    assert [row["a, 4 segments"].value for row in time["trci"].rows] == pytest.approx([0.5, 0.7])
    assert [row["trci"].value for row in time["indices_time"].rows] == pytest.approx([0.5, 0.6, 0.7, 0.8])
    means = {row["model"]: row["signed"].value for row in by_name({"": found["models"]})["ranking"].rows}
    assert means == pytest.approx({"a": -0.21, "b": -0.22})
    ranked = by_name({"": found["models_time"]})["ranking_time"]
    assert {row["model"]: row["signed"].value for row in ranked.rows} == pytest.approx({"a": 0.6, "b": 0.7})
    assert len({sheet.name for sheets in found.values() for sheet in sheets}) == sum(
        map(len, found.values())
    )  # no file is written over another
    said = " ".join(
        f"{sheet.title} {sheet.note} {[(c.title, c.help) for c in sheet.columns]}"
        for end in ("benchmarks", "models")
        for sheet in found[f"{end}_time"]
    )
    assert not re.search(r"\bcells?\b|\bimages?\b|4x4|\bPCRI\b|\bgrid\b", said), said


def test_a_table_in_time_that_is_given_back_is_still_in_time(both_media, tmp_path):
    points = across.points_of(both_media)
    sheet = by_name(across.sheets([], points))["indices_time"]
    (tmp_path / "indices_time.csv").write_text(sheet.to_csv())
    back = published.read(tmp_path / "indices_time.csv")
    assert [(p.benchmark, p.model, p.n, p.value, p.in_time) for p in back] == [
        (p.benchmark, p.model, p.n, pytest.approx(p.value), True) for p in points if p.in_time
    ]
    wide = by_name(across.sheets([], points))["trci"]
    (tmp_path / "wide.csv").write_text(wide.to_csv())
    with pytest.raises(RecordError, match="no column model"):  # its columns say no grid: they are not taken for cells
        published.read(tmp_path / "wide.csv")
