"""Tables of a page: against the papers' tables, hand values, brute force and simulation."""

import csv
import io
import itertools
import json
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lmms_patch.ask.kinds import KINDS
from lmms_patch.present.page import published, tables
from lmms_patch.present.page.report import _sheets, _with_published
from lmms_patch.present.page.rows import Row
from lmms_patch.present.ranking import BY, folded_mean, mean, mean_size, shared_benchmarks
from lmms_patch.stats.resample import Estimate
from tests.making.boards import board_of, document, index_task
from tests.making.reports import NEAR, entry, estimate, rows, tst_entry
from tests.places import SHARED

TABLE_2, TABLES_5_TO_8 = SHARED / "rci_table2.csv", SHARED / "pcri_tables5to8.csv"
published_tables = pytest.mark.skipif(not TABLE_2.is_file(), reason="the published tables are not here")


def row(benchmark, model, n, value, half=None, kind="rci", **numbers):
    given = {"index": estimate(value, half, reason="" if value is not None else NEAR), **numbers}
    return Row(benchmark, model, KINDS[kind], n, given)


def sheets(entries, some=None, by="score"):
    """The tables by name."""
    made = _sheets(entries, rows(entries) if some is None else some, BY[by], (), [], [], [])
    return {sheet.name: sheet for of_section in made.values() for sheet in of_section}


def lines(sheet):
    return {line["model"]: line for line in sheet.rows}


# --- the papers' tables ---------------------------------------------------------------------------


def published_numbers():
    """Straight from the file: (dataset, model, n) -> number as it is written."""
    with TABLE_2.open() as file:
        return {(row["dataset"], row["model"], int(row["n"])): row["rci"] for row in csv.DictReader(file)}


@published_tables
def test_table_2_comes_out_as_it_went_in():
    truth = published_numbers()
    sheet = sheets([], published.read(TABLE_2))["rci"]
    found = list(csv.DictReader(io.StringIO(sheet.to_csv())))
    heads = [
        re.fullmatch(r"(.+), n=(\d)", key).groups() for key in list(found[0])[1:] if not key.endswith(("_low", "_high"))
    ]
    numbers = {
        (line["benchmark"], model, int(n)): float(line[f"{model}, n={n}"]) for line in found for model, n in heads
    }
    assert numbers == {key: float(text) for key, text in truth.items()}
    assert len(found) == 13
    latex = [line for line in sheet.to_latex().splitlines() if line.count("&") == 6]
    assert len(latex) == 14
    assert all(cell.strip()[0] in "+-" for line in latex[1:] for cell in line.split("&")[1:])


@published_tables
def test_correlations_of_table_2_span_what_is_published():
    pairs = sheets([], published.read(TABLE_2))["correlations"].rows
    values = [line["r"].value for line in pairs]
    assert len(pairs) == 15
    assert (f"{min(values):.3f}", f"{max(values):.3f}") == ("0.951", "0.996")
    assert {line["benchmarks"] for line in pairs} == {13}
    numbers = published_numbers()
    names = list(dict.fromkeys(key[0] for key in numbers))
    for line in pairs:
        columns = [line[side].rsplit(", n=", 1) for side in ("one", "other")]
        x, y = ([float(numbers[b, model, int(n)]) for b in names] for model, n in columns)
        assert line["r"].value == pytest.approx(stats.pearsonr(x, y).statistic)
        assert line["rho"] == pytest.approx(stats.spearmanr(x, y).statistic)


@published_tables
def test_means_of_the_pcri_papers_tables():
    """PCRI paper, A.4.6: captioning of InternVL2.5-26B goes from -0.492 to -0.755, a drop of 53.4 % (its text says 2B)."""
    found = published.read(TABLES_5_TO_8)
    change = lines(tables.changes([one for one in found if one.type == "caption"]))["InternVL2_5-26B"]
    assert (change["first"].value, change["second"].value) == (-0.4921, -0.7547)
    assert change["change"] == pytest.approx(-53.4, abs=0.05)
    overall, types = tables.overall(found, BY["score"])
    assert {line["of"] for line in types.rows} == set(published.TYPES.values())
    everyone = [line for line in overall.rows if line["n"] == 3]
    ranked = [line for line in everyone if line["rank"]]
    with TABLES_5_TO_8.open() as file:
        given = [one for one in csv.DictReader(file) if one["n"] == "3"]
    have = {m: {one["dataset"] for one in given if one["model"] == m} for m in {one["model"] for one in given}}
    assert (len(have), len(everyone)) == (19, 19)
    shared = set.intersection(*(have[line["model"]] for line in ranked))
    assert len(ranked) * len(shared) >= 19 * len(set.intersection(*have.values()))
    brute = {
        line["model"]: np.mean(
            [abs(float(one["pcri"])) for one in given if one["model"] == line["model"] and one["dataset"] in shared]
        )
        for line in ranked
    }
    assert {line["model"]: line["size"].value for line in ranked} == pytest.approx(brute)
    assert [line["model"] for line in ranked] == sorted(brute, key=lambda m: brute[m])
    assert all(line["rank"] == f"1–{len(ranked)}" and line["size"].low is None for line in ranked), (
        "no intervals: any place"
    )


# --- fit ------------------------------------------------------------------------------------------


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
    assert tuple(tables.fits(row("toy", "m", 3, value, half), domain) for domain in tables.DOMAINS) == verdicts


def test_fit_is_unclear_where_models_disagree_or_the_steady_index_contradicts():
    found = [row("toy", "a", 3, -0.3, 0.05), row("toy", "b", 3, 0.0, 0.05), row("toy", "c", 3, None)]
    (line,) = sheets([], found)["fit"].rows
    assert (line["models"], line["general"], line["inspection"], line["scene"]) == (2, "unclear", "fits", "does not")
    (contradicted,) = rows([entry("a", grids=(3,), indices=(0.0,), steady=(0.9,))])
    assert {tables.fits(contradicted, domain) for domain in tables.DOMAINS} == {"unclear"}


# --- results --------------------------------------------------------------------------------------


def test_results_say_the_composition_beside_score_and_index():
    one = entry("a", "m", grids=(2, 3), steady=(0.3, 0.4), needs=(0.3, 0.2, 0.4, 0.1))
    sheet = sheets([one])["results"]
    heads = [column.key for column in sheet.columns if not column.aside]
    assert heads == [
        "benchmark",
        "model",
        "grid",
        "docs",
        "score",
        "text",
        "one",
        "whole",
        "unsolved",
        "steady",
        "index",
        "mpp",
        "gap",
        "gate",
    ]
    first, second = sheet.rows
    assert (first["n"], first["grid"], second["n"], second["grid"]) == (2, "2×2", 3, "3×3")
    by_key = {column.key: column for column in sheet.columns}
    shown = [sheet.shown(second, by_key[key]) for key in ("score", "text", "one", "whole", "unsolved")]
    assert shown == ["0.800 [0.760, 0.840]", "10 % [7, 13]", "30 % [27, 33]", "20 % [17, 23]", "40 % [37, 43]"]
    assert second["band"] == "strong global"
    assert "text" not in sheets([entry("b")])["results"].rows[0]


def test_an_index_can_be_checked_from_its_row(tmp_path):
    """60 of 200 docs are left out: FIP 0.9 over all, 0.8 over the others.

    Index -0.1, so MPP is 0.88 and 1 - 0.88 / 0.9 is not it.
    """
    made, _ = board_of(
        tmp_path, document("a", [index_task(docs=200, excluded=60, fip_all=0.9)]), document("b", [index_task(docs=200)])
    )
    found = lines(tables.results(made)[0])
    assert (found["a"]["docs"], found["a"]["excluded"], found["b"]["excluded"]) == (200, 60, None)
    assert found["a"]["score"].value == 0.9
    assert 1 - found["a"]["mpp"].value / found["a"]["fip_used"] == pytest.approx(found["a"]["index"].value)


def test_a_refused_result_has_no_index_and_says_why():
    (sheet,) = tables.results(rows([entry("a", grids=(3,), indices=(0.1,), refused=NEAR)]))
    (line,) = sheet.rows
    assert (line["index"].value, line["gate"], line["band"]) == (None, "near chance", None)


def test_of_a_metric_that_counts_errors_the_table_says_so():
    (sheet,) = tables.results(rows([entry("a", higher_is_better={"acc": False})]))
    assert "Lower is better for a." in sheet.note


def test_names_of_tables_are_unique_and_all_forms_can_be_written():
    pairs = enumerate(itertools.product(("a$_|", "b", "c", "d"), ("<m>", "n")))
    entries = [entry(b, m, seed=i, type_=("mcq", "vqa")[i % 2], blind=estimate(0.2, 0.1)) for i, (b, m) in pairs]
    entries += [tst_entry("b"), *(entry(b, m, (4,), indices=(0.5,), kind="trci") for b in "ab" for m in "mn")]
    made = _sheets(entries, rows(entries), BY["score"], (), [], [], [])
    every = [sheet for of_section in made.values() for sheet in of_section]
    assert list(made) == ["results", "models", "benchmarks", "text"]
    assert {
        "results",
        "trci",
        "results_trci",
        "results_tst",
        "without_image",
        "overall",
        "overall_time",
        "types",
        "grids",
        "rci",
        "fit",
        "correlations",
        "cells",
    } <= {one.name for one in every}
    assert len({sheet.name for sheet in every}) == len(every)
    for sheet in every:
        assert sheet.to_csv()
        assert sheet.to_latex()
        assert sheet.to_markdown()
        assert json.dumps(sheet.to_json(), allow_nan=False)
        assert len({column.key for column in sheet.columns}) == len(sheet.columns)
        cells = [cell for line in sheet.rows for cell in line.values()]
        assert not any(isinstance(cell, Estimate) and cell.value is None and not cell.reason for cell in cells)


def test_what_compares_models_needs_two_of_them():
    """A model agrees with itself by construction, and has the first rank among itself."""
    several = {"fit", "correlations", "overall", "rci"}
    entries = [entry(b, m, seed=i) for i, (b, m) in enumerate(itertools.product("abcde", ("one", "two")))]
    assert several <= set(sheets(entries))
    assert not several & set(sheets([one for one in entries if one.model == "one"]))


def test_shares_of_cells_are_of_the_whole_score():
    entries = [
        entry(b, grids=(3,), indices=(-0.1,), weights=[0.1, 0.1, 0.9, *[0.1] * 6], seed=i) for i, b in enumerate("ab")
    ]
    found = sheets(entries)["cells"].rows
    assert len(found) == 18
    assert sum(line["share"] for line in found) == pytest.approx(2)
    assert {(line["row"], line["column"]) for line in sorted(found, key=lambda line: -line["share"])[:2]} == {(1, 3)}


def test_what_the_image_adds_is_wider_where_docs_cannot_be_paired():
    one = entry("a", "m", blind=estimate(0.3, 0.05))
    (line,) = sheets([one])["without_image"].rows
    assert line["gain"].value == pytest.approx(0.5)
    assert line["gain"].high - line["gain"].low == pytest.approx(2 * math.hypot(0.05, 0.04), rel=1e-3)


def test_clips_and_images_are_in_no_mean_or_table_together():
    """Two models on two benchmarks, each in 4x4 cells and in 4 segments: the same benchmarks, models and number, other indices."""
    entries = []
    for i, (base, model) in enumerate(itertools.product(("film", "play"), ("a", "b"))):
        for kind, index in (("rci", -0.2 - 0.01 * i), ("trci", 0.5 + 0.1 * i)):
            entries.append(entry(base, model, (4,), indices=(index,), kind=kind, label=f"e-{base}-{model}-{kind}"))
    found = sheets(entries)
    assert [line["a, n=4"].value for line in found["rci"].rows] == pytest.approx([-0.2, -0.22])
    assert [line["a, 4 segments"].value for line in found["trci"].rows] == pytest.approx([0.5, 0.7])
    means = {
        name: {line["model"]: line["index"].value for line in found[name].rows} for name in ("overall", "overall_time")
    }
    assert means["overall"] == pytest.approx({"a": -0.21, "b": -0.22})
    assert means["overall_time"] == pytest.approx({"a": 0.6, "b": 0.7})


# --- models over benchmarks -----------------------------------------------------------------------


def run(model, indices, grid=3, half=0.01, fip=0.8, **task):
    """A run with an index on each benchmark; None: near chance."""
    tasks = [
        index_task(
            base, grids={grid: None if v is None else (v, v - half, v + half)}, valid=v is not None, fip=fip, **task
        )
        for base, v in indices.items()
    ]
    return document(model, tasks)


def over(folder, *documents, by="fip", over=()):
    made, _ = board_of(folder, *documents, by=by)
    return tables.overall(made, BY[{"fip": "score", "pcri": "index"}.get(by, by)], over)


def test_means_by_hand_and_only_over_shared_benchmarks(tmp_path):
    """a: |-0.1|, |0.3| -> 0.2, signed 0.1. b: 0.05, 0.05 -> 0.05, signed -0.05. c lacks y, d is near chance on it."""
    runs = (
        run("a", {"x": -0.1, "y": 0.3}),
        run("b", {"x": -0.05, "y": -0.05, "z": 0.9}),
        run("c", {"x": 0.0}),
        run("d", {"x": 0.0, "y": None}),
    )
    (table,) = over(tmp_path / "1", *runs, by="pcri", over=["x", "y"])
    found = lines(table)
    assert list(found) == ["b", "a", "c", "d"]
    assert (found["a"]["size"].value, found["a"]["index"].value) == pytest.approx((0.2, 0.1))
    half = math.hypot(0.01, 0.01) / 2
    assert (found["a"]["size"].low, found["a"]["size"].high) == pytest.approx((0.2 - half, 0.2 + half))
    assert [found[name]["rank"] for name in "abcd"] == ["2", "1", None, None]
    assert (found["c"]["lacks"], found["d"]["lacks"]) == ("y", "y")
    (table,) = over(tmp_path / "2", *runs)
    assert {line["model"]: line["rank"] for line in table.rows} == {"a": "1–3", "b": "1–3", "d": "1–3", "c": None}, (
        "a score near chance is a score"
    )
    assert "score" in table.note


def test_scores_come_first_and_on_different_scales_have_no_mean(tmp_path):
    """By hand: (0.8 + 0.6) / 2, each with the standard error 0.05 / 1.96."""
    tasks = [
        index_task("x", "rci", {3: (0.1, 0.0, 0.2)}, fip=0.8),
        index_task("y", "rci", {3: (0.3, 0.2, 0.4)}, fip=0.6),
    ]
    (table,) = over(tmp_path / "a", document("a", tasks), document("b", tasks))
    line = table.rows[0]
    half = math.hypot(0.05, 0.05) / 2
    assert (line["mean"].value, line["mean"].low, line["mean"].high) == pytest.approx((0.7, 0.7 - half, 0.7 + half))
    assert [column.key for column in table.columns] == ["model", "n", "rank", "mean", "size", "index"]
    mixed = [tasks[0], index_task("y", "rci", fip=60.0)]
    (table,) = over(tmp_path / "b", document("a", mixed), document("b", mixed))
    assert all(line["mean"] is None and line["rank"] is None for line in table.rows)


def test_the_composition_has_means_too(tmp_path):
    steady = {"steady": (0.5, 0.4, 0.6), "looks": True}
    tasks = [index_task(name, grids={3: (0.1, 0.0, 0.2)}, **steady) for name in "xy"]
    (table,) = over(tmp_path, document("a", tasks), document("b", tasks))
    assert table.rows[0]["whole"].value == pytest.approx(0.25)
    assert table.rows[0]["index"].value == pytest.approx(0.5), "the steady one, where all were asked again"
    assert "steady index" in table.note


def test_one_run_without_and_all_means_are_of_one_pass(tmp_path):
    """Means of some steady indices and some of one pass would be of nothing."""
    again = [index_task(name, grids={3: (0.1, 0.0, 0.2)}, steady=(0.5, 0.4, 0.6), looks=True) for name in "xy"]
    (table,) = over(tmp_path, document("a", again), run("b", {"x": 0.1, "y": 0.1}))
    assert {line["model"]: line["index"].value for line in table.rows} == pytest.approx({"a": 0.1, "b": 0.1})


def test_later_tries_with_a_limit_never_become_the_headline(tmp_path):
    tries = [
        document(
            m,
            [index_task("x", grids={3: (0.9, 0.8, 0.95)}, docs=20, made={"docs": "d"})],
            "20260301_000000",
            config={"limit": 20},
        )
        for m in "abc"
    ]
    (table,) = over(tmp_path, run("a", {"x": 0.01}), run("b", {"x": 0.25}), *tries)
    assert {line["model"]: line["index"].value for line in table.rows} == pytest.approx({"a": 0.01, "b": 0.25})


def test_task_types_have_lines_of_their_own(tmp_path):
    tasks = [index_task("x", type="mcq"), index_task("y", type="caption", grids={3: (-0.6, -0.7, -0.5)})]
    _, types = over(tmp_path, document("m", tasks), document("n", tasks))
    assert {(line["of"], line["model"]): line["size"].value for line in types.rows} == pytest.approx(
        {
            ("multiple choice", "m"): 0.1,
            ("multiple choice", "n"): 0.1,
            ("captioning", "m"): 0.6,
            ("captioning", "n"): 0.6,
        }
    )


def test_the_relative_change_is_the_papers(tmp_path):
    """PCRI paper, A.4.6: -0.036 at 2x2 to -0.079 at 3x3 is a relative drop of 119 % (119.6 % before rounding)."""
    grids = {2: (-0.036, -0.037, -0.035), 3: (-0.079, -0.089, -0.069)}
    made, _ = board_of(tmp_path, document("InternVL2.5-26B", [index_task("mcq", grids=grids)]))
    (line,) = tables.changes(made).rows
    assert line["change"] == pytest.approx(-119.4, abs=0.1)


def test_many_models_are_as_the_definition_says():
    """Brute force over random rows: means, and ranges of places."""
    stream = np.random.default_rng(3)
    made = {
        f"m{i}": {f"b{j}": (float(stream.normal(0, 0.2)), float(h)) for j, h in enumerate(stream.uniform(0, 0.05, 3))}
        for i in range(8)
    }
    some = [row(base, model, 3, *one) for model, of in made.items() for base, one in of.items()]
    (table,) = tables.overall(some, BY["index"])
    spans = {}
    for model, of in made.items():
        sizes, halves = np.abs([v for v, _ in of.values()]), np.array([h for _, h in of.values()])
        nearest = np.maximum(0, sizes - halves)
        surplus = stats.foldnorm.mean(nearest / (halves / 1.959964), scale=halves / 1.959964) - nearest
        half = np.sqrt((halves**2).sum()) / 3
        spans[model] = (max(0, sizes.mean() - half - surplus.mean()), sizes.mean() + half)
    for line in table.rows:
        assert line["size"].value == pytest.approx(np.mean([abs(v) for v, _ in made[line["model"]].values()]))
        low, high = spans[line["model"]]
        first, last = (
            1 + sum(other[1] < low for other in spans.values()),
            8 - sum(other[0] > high for other in spans.values()),
        )
        assert line["rank"] == (str(first) if first == last else f"{first}–{last}")
    values = [line["size"].value for line in table.rows]
    assert values == sorted(values)


# --- means ----------------------------------------------------------------------------------------


def test_the_mean_of_a_folded_normal_is_scipys():
    for size, se in itertools.product((0.0, 0.3, 2.0), (0.1, 1.0)):
        assert folded_mean(size, se) == pytest.approx(stats.foldnorm.mean(size / se, scale=se) - size, abs=1e-9)


@pytest.mark.parametrize("truths", [[0.0] * 12, [0.0] * 3, [0.1, -0.1, 0.3, 0.0], [-0.02, 0.02], [0.3, -0.3], [0.1]])
@pytest.mark.parametrize("skew", [0.0, 0.4])
def test_the_intervals_of_means_cover_the_truth(truths, skew):
    """By simulation, independent benchmarks: at least 95 % of 1500, less three standard errors (0.017).

    Also where intervals are lopsided. Means of folded ends would not: with twelve truths of 0 they hold 0.55 of the
    time. Lopsided: x = truth + g(z), g(z) = 0.05 · (e^(kz) - 1) / k less its mean, whose exact interval is
    [x - g(1.96), x - g(-1.96)].
    """
    stream = np.random.default_rng(1)
    held = {mean_size: 0, mean: 0}

    def g(z):
        return 0.05 * (z if not skew else np.expm1(skew * z) / skew)

    centre = 0.05 * (np.exp(skew**2 / 2) - 1) / skew if skew else 0.0
    for noise in g(stream.normal(0, 1, (1500, len(truths)))) - centre:
        values = np.asarray(truths) + noise
        ends = [(float(v - g(1.959964) + centre), float(v - g(-1.959964) + centre)) for v in values]
        seen = [Estimate(float(v), None, *pair, 9, 9, 0) for v, pair in zip(values, ends, strict=True)]
        for of, truth in ((mean_size, np.abs(truths).mean()), (mean, np.mean(truths))):
            found = of(seen)
            held[of] += found.low <= truth <= found.high
    assert min(held.values()) / 1500 > 0.933


@pytest.mark.parametrize(
    ("have", "expected"),
    [
        ({"a": "xy", "b": "xy", "c": "x"}, "xy"),  # 2 models x 2 = 4 numbers against 3 x 1
        ({"a": "xyz", "b": "x"}, "x"),  # a ranking of one model is none, however many numbers it has
        ({"a": "xyz"}, "xyz"),
        ({"a": "ac", "b": "ac", "c": "bd", "d": "bd", "e": "bd"}, "bd"),
        ({"a": "", "b": ""}, ""),
        ({}, ""),
    ],
)
def test_which_benchmarks_means_are_over(have, expected):
    assert "".join(shared_benchmarks({model: list(names) for model, names in have.items()})) == expected


@given(st.dictionaries(st.integers(0, 9), st.sets(st.sampled_from("abcdef")), max_size=8))
def test_somebody_has_all_of_them(have):
    chosen = set(shared_benchmarks(have))
    assert bool(chosen) == any(have.values())
    if chosen:
        assert any(chosen <= names for names in have.values())


def test_published_models_of_the_same_name_are_named_with_their_table():
    own = rows([entry("a", "m", grids=(3,), indices=(-0.1,))])
    theirs = [
        Row("a", "m", KINDS["rci"], 3, {"index": estimate(0.5)}, source="t.csv"),
        Row("b", "n", KINDS["rci"], 3, {"index": estimate(0.1)}, source="t.csv"),
    ]
    found = _with_published(own, [*theirs, theirs[1]])
    assert [(one.model, one.numbers["index"].value) for one in found] == [("m", -0.1), ("m (t.csv)", 0.5), ("n", 0.1)]
