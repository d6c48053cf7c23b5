"""What the pages of a board say: dates, ranges, the chart, and a page for each model; numbers by hand."""

import json
import re

import pytest

from lmms_patch.present.board import chart, model_page, tables
from lmms_patch.present.board.board import day
from lmms_patch.present.board.build import leaderboard
from lmms_patch.present.findings import case, findings
from lmms_patch.present.ranking import Place
from lmms_patch.stats.resample import Estimate
from tests.making.boards import blind_task, board_of, document, index_task, tst_task, write

DAYS = [
    ("20261123_120000", "2026-11-23"), ("2026-11-23T13-01-07.123456", "2026-11-23"), ("20261123", "2026-11-23"),
    ("", ""), ("last week", "last week"), ("202611", "202611"), ("123456789", "123456789"),
]  # fmt: skip


@pytest.mark.parametrize(("stamp", "said"), DAYS)
def test_a_date_is_a_day(stamp, said):
    assert day(stamp) == said


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ([], ""),
        ([Place(1, 1, 2), Place(2, 2, 2), None], ""),
        (
            [Place(1, 1, 3), Place(2, 3, 3), Place(2, 3, 3)],
            "Rank 2–3 means the intervals cannot separate second from third.",
        ),
        ([Place(1, 4, 9), Place(1, 2, 9)], "Rank 1–4 means the intervals cannot separate first from fourth."),
        ([Place(10, 11, 99)], "Rank 10–11 means the intervals cannot separate tenth from 11th."),
    ],
)
def test_what_a_range_of_ranks_means(places, said):
    assert tables.range_words(places) == said


def est(value, low=None, high=None):
    return Estimate(value, None, low, high, 100, 100, 1000)


def test_the_places_of_a_chart():
    """From −0.5 to 0.5 and 4 % free at both ends: an axis of 1.08, on which 0 lies in the middle and 0.27 three quarters on."""
    found = chart.chart(
        "PCRI", [("a", est(0.27, 0.0, 0.5)), ("b", est(-0.27, -0.5, 0.0)), ("none", est(None)), ("c", est(0.0))]
    )
    assert found.zero == 50.0
    assert [(bar.name, bar.at, bar.low, bar.high) for bar in found.bars] == [
        ("a", 75.0, 50.0, 96.3),
        ("b", 25.0, 3.7, 50.0),
        ("c", 50.0, 50.0, 50.0),
    ]
    assert found.ticks == ((12.96, "−0.4"), (31.48, "−0.2"), (50.0, "0"), (68.52, "0.2"), (87.04, "0.4"))
    assert found.of == 3
    assert found.intervals == "95 % intervals"


def test_a_chart_says_which_intervals_it_shows(tmp_path):
    """In the caption of a table of runs at another level; a mean over benchmarks has its own."""

    def shown(*levels):
        numbers = [
            (str(i), Estimate(0.1, None, 0.0, 0.2, 100, 100, 1000, level=level)) for i, level in enumerate(levels)
        ]
        return chart.chart("x", [*numbers, ("none", est(0.3)), ("nor", est(0.4))]).intervals

    assert shown(0.9, 0.9) == "90 % intervals"
    assert shown(0.975, 0.9) == "90 % or 97.5 % intervals"
    assert shown() == ""
    write(
        tmp_path / "runs",
        *(json.loads(json.dumps(document(name)).replace('"level": 0.95', '"level": 0.9')) for name in "ab"),
    )
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    captions = re.findall(r"<caption>(.*?)</caption>", (tmp_path / "board" / "index.html").read_text())
    assert "All 2 ranked: PCRI, with 90 % intervals" in captions


def test_a_chart_of_many_has_the_first_and_one_of_few_is_none():
    assert [bar.name for bar in chart.chart("x", [(str(i), est(i / 100)) for i in range(50)]).bars] == list(
        map(str, range(20))
    )
    assert chart.chart("x", [("a", est(0.1)), ("b", None), ("c", est(None))]) is None
    assert chart.chart("x", [("a", est(0.0)), ("b", est(0.0))]).bars[0].at == 50.0  # no width at all


# --- a model's page -----------------------------------------------------------------------------------

TASKS = [
    index_task("gqa", grids={2: (0.0, -0.1, 0.1), 3: (-0.2, -0.3, -0.1)}, fip=0.7, looks=True),
    index_task("pope", grids={3: None}, valid=False, fip=0.26),
    blind_task("gqa", 0.3),
    tst_task("gqa", 0.5),
]


def pages(tmp_path, *documents):
    write(tmp_path / "runs", *documents)
    built = leaderboard([tmp_path / "runs"], tmp_path / "board")
    return {path.stem: path.read_text() for path in (tmp_path / "board" / "models").iterdir()}, built


def rows_of(text):
    """Rows of the table of numbers as texts, without markup."""
    body = text.partition('id="numbers-table"')[2].partition("</table>")[0].partition("<tbody>")[2]
    return [
        [re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", cell)).strip() for cell in re.split(r"</t[hd]>", row)[:-1]]
        for row in body.split("</tr>")[:-1]
    ]


def test_a_model_has_its_numbers_over_benchmarks(tmp_path):
    found, _ = pages(tmp_path, document("m", TASKS, "20261123_120000"))
    rows = {(row[0], row[1]): row for row in rows_of(found["m"])}
    full, day_ = "full image and cells", "2026-11-23"
    score = "0.700 [0.650, 0.750]"
    assert rows["gqa, 3×3", full][2:] == [
        "−0.200 [−0.300, −0.100]",
        score,
        "0.840 [0.770, 0.910]",
        "0.250 [0.200, 0.300]",
        "✓ valid",
        "100",
        day_,
    ]
    assert rows["gqa, 2×2", full][2:5] == ["0.000 [−0.100, +0.100]", score, "0.700 [0.630, 0.770]"]
    assert rows["pope, 3×3", full][2].startswith("N/A near chance")
    assert rows["gqa", "no image"][3] == "0.300 [0.200, 0.400]"
    assert rows["gqa", "text only"][3] == "0.500 [0.400, 0.600]"
    assert len(rows) == 5
    assert '<a href="../index.html">Leaderboard</a>' in found["m"]
    assert "20261123" not in re.sub(r"[\w/.]*_results\.json", "", found["m"])


def test_its_findings_are_those_of_its_results(tmp_path):
    found, built = pages(tmp_path, document("m", TASKS))
    cases = {
        id(entry.result): case(entry.result, "m", str(i))
        for i, entry in enumerate(e for g in built.board.groups for e in g.entries)
    }
    for one in findings(list(cases.values())):
        assert one.text.replace("'", "&#39;") in found["m"].replace("−", "-")
    low = "PCRI_2 0.00 [−0.10, +0.10], PCRI_3 −0.20 [−0.30, −0.10]"
    assert f"hat the docs need was not asked in gqa ({low})." in found["m"]
    assert "No result for pope (acc 0.260, where guesses earn 0.250)." in found["m"]
    assert 'id="findings"' in (tmp_path / "board" / "index.html").read_text()


def test_its_runs_and_the_commands_that_made_them(tmp_path):
    args = "pretrained=org/m,api_key=sk-abcdefgh12345678"
    first = document("m", TASKS, "20260101_000000", args)
    second = document("m", [blind_task("gqa", 0.4)], "20260201_000000", args, {"limit": 40, "offset": 80})
    found, _ = pages(tmp_path, first, second)
    commands = re.findall(r"<code>(.*?)</code>", found["m"])
    assert commands == [
        "lmms-eval --model adapter --model_args pretrained=org/m,api_key=... --tasks gqa_blind --limit 40 --offset 80 --output_path out",
        "lmms-eval --model adapter --model_args pretrained=org/m,api_key=... --tasks gqa_pcri,pope_pcri3,gqa_blind,gqa_tst5 --output_path out"
        "",
    ]
    assert "sk-abcdefgh" not in found["m"]
    assert found["m"].index("2026-02-01: gqa_blind") < found["m"].index("2026-01-01: gqa_pcri")
    assert "../runs/run0/20260101_000000_results.json" in found["m"]
    many, _ = pages(tmp_path / "many", document("m", [blind_task(f"b{i}") for i in range(6)]))
    assert "<li>2026-01-01: 6 tasks" in many["m"]
    assert "--tasks b0_blind,b1_blind,b2_blind,b3_blind,b4_blind,b5_blind --output_path" in many["m"]


@pytest.mark.parametrize("place", ["runs/run0/report", "runs/report", "report"])
def test_a_report_that_lies_beside_a_run_is_linked(tmp_path, place):
    folder = tmp_path / place
    folder.mkdir(parents=True)
    (folder / "index.html").write_text("x")
    found, _ = pages(tmp_path, document("m"))
    assert ">report</a>" not in found["m"], "a page that is no report of ours"
    (folder / "report.json").write_text("{}")
    leaderboard([tmp_path / "runs"], tmp_path / "board")
    assert f'<a href="../../{place}/index.html">report</a>' in (tmp_path / "board" / "models" / "m.html").read_text()


def test_what_differs_from_the_first_group_is_said(tmp_path):
    found, _ = pages(tmp_path, document("a"), document("b"), document("c", [index_task(made={"prompts": "other"})]))
    assert any("prompts" in row[-1] for row in rows_of(found["c"]))
    assert not any("prompts" in cell for row in rows_of(found["a"]) for cell in row)


def test_findings_are_of_the_first_group_and_those_of_a_model_of_its_own_first(tmp_path):
    """m and n are ranked together; of m there is a shorter try too, and o was asked otherwise."""
    whole, low = {3: (0.5, 0.4, 0.6)}, {3: (0.2, 0.1, 0.3)}
    short = document("m", [index_task(grids=low, looks=True)], "20260301_000000", config={"limit": 40})
    found, _ = pages(
        tmp_path,
        document("m", [index_task(grids=whole, looks=True)]),
        document("n", [index_task(grids=whole, looks=True)]),
        short,
        document("o", [index_task(grids=low, looks=True, made={"prompts": "other"})]),
    )
    index = (tmp_path / "board" / "index.html").read_text()
    assert "What the docs need was not asked in toy (all 2 models, PCRI +0.50)." in index
    assert "PCRI +0.20" not in index + found["m"]
    assert "What the docs need was not asked in toy (PCRI +0.50" in found["m"]
    assert "What the docs need was not asked in toy (PCRI +0.20" in found["o"]
    left_out = "Results in other groups (run with other settings) are not among them."
    assert [left_out in text for text in (index, found["m"])] == [True, False]
    left_out = "The sentences leave out results under further settings of a benchmark"
    assert [left_out in found[name] for name in "mno"] == [True, False, False]
    assert "Over all results" not in index


def test_a_finding_links_the_first_tables_and_counts_the_others(tmp_path):
    pages(tmp_path, document("m", [blind_task(f"b{i:02d}") for i in range(15)]))
    told = (tmp_path / "board" / "index.html").read_text().partition('<ul class="findings">')[2].partition("</ul>")[0]
    assert re.findall(r">(b\d\d), blind</a>", told) == [f"b{i:02d}" for i in range(12)]
    assert "</a> and 3 more</span>" in told


def test_older_runs_are_counted_where_they_have_results(tmp_path, monkeypatch):
    monkeypatch.setattr(model_page, "RUNS", 2)
    dates = ["20260101_000000", "20260102_000000", "20260103_000000", "20260104_000000"]
    runs = [document("m", date=date) for date in dates]
    for many, said in ((2, ""), (3, "1 older run is not listed."), (4, "2 older runs are not listed.")):
        place = tmp_path / str(many)
        found, built = pages(place, *runs[:many])
        assert len(built.board.runs) == many
        assert re.findall(r"\d+ older [a-z ]+\.", found["m"]) == [said] * bool(said)
        assert re.findall(r"<li>(\S+): toy_pcri3", found["m"]) == [f"2026-01-0{many}", f"2026-01-0{many - 1}"]


def test_a_command_is_shown_whole_or_says_how_long_it_is(tmp_path):
    tasks = [f"benchmark{i:03d}" for i in range(300)]
    found, _ = pages(tmp_path, document("m", [blind_task(base) for base in tasks]))
    (command,) = re.findall(r"<code>(.*?)</code>", found["m"])
    assert (
        command == f"lmms-eval --model adapter --tasks {','.join(f'{base}_blind' for base in tasks)} --output_path out"
    )
    assert len(command) > 5_000
    found, _ = pages(tmp_path / "longer", document("m", args="x=<b>" + "y" * 30_000))
    (command,) = re.findall(r"<code>(.*?)</code>", found["m"])
    assert re.fullmatch(r"lmms-eval --model adapter --model_args &#39;x=&lt;b&gt;y+… \(30,\d\d\d characters\)", command)


# --- findings of stored results -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (
            index_task("toy", grids={3: (0.2, 0.1, 0.3)}, steady=(0.5, 0.4, 0.6), looks=True),
            "What is solved needs no image, one cell or the whole image, none of them mostly, in toy (25 % [20, 30] without its image, 25 % [20, 30] "
            "on one cell, 25 % [20, 30] only with the whole image, 25 % [20, 30] not solved); 95 % intervals.",
        ),
        (
            index_task("toy", grids={3: (0.2, 0.1, 0.3)}),
            "What the docs need was not asked in toy (PCRI +0.20 [+0.10, +0.30], not checked that it looks); 95 % intervals.",
        ),
        (
            index_task(
                "toy",
                grids={3: None},
                valid=False,
                why="the answers do not depend on the image (0.6 and 0.6)",
                looks=False,
            ),
            "No image is needed for toy (acc 0.800 with its images, 0.100 with wrong images; the right image adds 0.800 at most).",
        ),
    ],
)
def test_a_stored_result_is_a_case(tmp_path, task, said):
    (group,) = board_of(tmp_path, document("m", [task])).groups
    assert findings([case(group.entries[0].result, "m", "k")])[0].text == said


# --- quick runs, and metrics that are better when lower -----------------------------------------------


def estimated(task):
    """A task as a quick run leaves it: numbers are estimated from 60 of its docs, and images that were not asked were not looked at."""
    name, values, described = task
    asked = {"calls": 600, "of": 1000, "docs": 60, "whole": 20, "estimated": True}
    patch = values["patch"]
    made = {key: one for key, one in patch["made"].items() if key not in ("image_sizes", "images")}
    return (
        name,
        {**values, "patch": {**patch, "made": made, "analysis": {**patch["analysis"], "asked": asked}}},
        described,
    )


def test_a_quick_run_stands_among_whole_ones_says_so_and_does_not_replace_one(tmp_path):
    """m: a whole run, and a newer quick one; n: a quick run alone; o: a quick run, and a newer one."""
    high, low = {3: (-0.4, -0.5, -0.3)}, {3: (-0.2, -0.3, -0.1)}
    found, _ = pages(
        tmp_path,
        document("m", [index_task(grids=low, looks=True)], "20260101_000000"),
        document("m", [estimated(index_task(grids=high, looks=True))], "20260201_000000"),
        document("n", [estimated(index_task(grids=high, looks=True))]),
        document("o", [estimated(index_task(grids=high, looks=True))], "20260101_000000"),
        document("o", [estimated(index_task(grids=low, looks=True))], "20260201_000000"),
    )
    assert rows_of(found["m"])[0][2] == "−0.200 [−0.300, −0.100]"
    assert rows_of(found["n"])[0][2] == "−0.400 [−0.500, −0.300] sampled"
    assert rows_of(found["o"])[0][2] == "−0.200 [−0.300, −0.100] sampled"
    told = "What the docs need was not asked in toy (PCRI −{} [−{}, −{}]{}); 95 % intervals."
    assert told.format("0.20", "0.30", "0.10", "") in found["m"]
    assert told.format("0.40", "0.50", "0.30", ", sampled") in found["n"]
    index = (tmp_path / "board" / "index.html").read_text()
    assert "toy (100 docs, 2 estimated from a part of them)" in index
    assert (
        "Not comparable with group 1" not in index
    )  # one group: the images are those of the whole run with the same settings


def lower(fip):
    """A task whose metric counts errors: an index has no meaning, and the gate is unknown."""
    name, values, described = index_task(
        grids={3: None}, fip=fip, valid=None, why="unknown: the metric is better when lower"
    )
    return name, {**values, "patch": {**values["patch"], "higher_is_better": {"acc": False}}}, described


def test_of_a_metric_that_counts_errors_the_lowest_is_first_and_the_table_says_so(tmp_path):
    """FIP ± 0.05: 0.40 is surely lower than 0.60, which cannot be told from 0.62.

    Without the word, rank 1 of 0.40 reads as a mistake.
    """
    runs = [document(model, [lower(fip)]) for model, fip in (("a", 0.62), ("b", 0.4), ("c", 0.6))]
    (group,) = board_of(tmp_path / "of", *runs, by="fip").groups
    assert [(entry.model, place.first, place.last) for place, entry in group.ranked] == [
        ("b", 1, 1),
        ("c", 2, 3),
        ("a", 2, 3),
    ]
    write(tmp_path / "runs", *runs)
    leaderboard([tmp_path / "runs"], tmp_path / "board", by="fip")
    for name in ("index.html", "leaderboard.md"):
        assert "metric acc (lower is better)" in (tmp_path / "board" / name).read_text()
    higher = [document(model, [index_task(fip=fip)]) for model, fip in (("a", 0.62), ("b", 0.4), ("c", 0.6))]
    (group,) = board_of(tmp_path / "more", *higher, by="fip").groups
    assert [entry.model for _, entry in group.ranked] == ["a", "c", "b"]
    assert "lower" not in tables.settings(group)
