"""Tasks that cut clips in time, wherever people see them: they are about segments and clips, never about cells and images."""

import re

import pytest

from lmms_patch import commands
from lmms_patch.app.commands.show import text
from lmms_patch.compare.tasks import compare
from lmms_patch.errors import RecordError
from lmms_patch.present.explore.docs import docs_of
from lmms_patch.present.terminal import compare as compare_text
from lmms_patch.runs.run import newest_of
from tests.making.html import Read
from tests.making.runs import again_run, knows, never_looks, views_run, world_run, write_run

SPATIAL = re.compile(r"\b(cells?|images?|pictures?|looks?|looking|2×2|4×4|4x4|pixels)\b", re.IGNORECASE)


def needing(full, base, grid, kind):
    """The whole is needed in so many tenths of 60 docs, which were asked again; nothing is right by luck."""
    needs = [*["whole"] * round(10 * full), *["unsolved"] * round(10 * (1 - full))]
    return again_run(needs, n=60, grid=grid, kind=kind, base=base, guesses=False)


def asked(answers=0, full=0.9):
    """A run of three benchmarks in time: the whole clip is needed, nobody watches, one segment is enough.

    And a curve of frames.
    """
    return {
        "film_trci4": needing(full, "film", 4, "trci"),
        "radio_trci4": world_run(never_looks, n=60, grid=4, kind="trci", base="radio", answers=answers),
        "moment_trci4": again_run(["cell"], n=60, grid=4, kind="trci", base="moment", guesses=False),
        "film_frames": views_run(
            "frames", [0.3, 0.45, 0.6, full - 0.1], n=60, grids=(1, 2, 4, 8), base="film", short=(0,)
        ),
        "film_treverse": views_run("treverse", [0.5], n=60, base="film"),
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("time")
    write_run(folder, asked())
    return folder


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Two models, each on one benchmark at 2×2 cells, and in 4 segments."""
    folder = tmp_path_factory.mktemp("mixed")
    for name, full in (("a", 0.9), ("b", 0.6)):
        write_run(
            folder / name,
            {"film_rci2": needing(full, "film", 2, "rci"), **asked(ord(name), full)},
            model_name=f"org/{name}",
        )
    return folder


def assert_in_time(said):
    assert not SPATIAL.search(said), SPATIAL.search(said)


def test_the_findings_are_sentences_about_clips(run):
    told = [one.text for one in commands.show(run).findings]
    assert told[0].startswith("Most of what is solved needs the whole clip in film (0 % [")
    assert re.search(r"\] without its clip, .* on one segment, 90 % \[.*\] only with the whole clip, ", told[0])
    assert told[1].startswith("One segment is enough for most of what is solved in moment (0 % [")
    assert told[2].startswith("No clip is needed for radio (acc 0.")
    assert re.search(r" with wrong clips; the right clip adds 0\.03[78] at most\)\.$", told[2])
    assert told[3].startswith(
        "Shown otherwise: film (1 frame 0.300, 2 frames 0.450, 4 frames 0.600, 8 frames 0.797 (59 of 60 docs), full clip 0."
    )
    assert_in_time(" ".join(told))


def test_the_terminal_has_a_table_of_segments_and_the_curve_as_a_row(run):
    shown = text(commands.show(run), cells=True, chance=True)
    assert_in_time(shown)
    head = next(line for line in shown.splitlines() if line.startswith("task") and "best" in line)
    assert "one segment" in head
    assert "TRCI [95 %]" in head
    curve = [re.split(r"\s{2,}", line)[1:] for line in shown.splitlines() if line.startswith("film_frames")]
    scores = {at: score.split()[0] for at, _, score, *_ in curve if at.endswith(("frame", "frames"))}
    assert scores == {"1 frame": "0.300", "2 frames": "0.450", "4 frames": "0.600", "8 frames": "0.797"}
    assert "radio_trci4, 4 segments: share of the segments' score, in % (even: p = 1.000;" in shown
    assert re.search(r"\n 25 +25 +25 +25 *\n", shown)
    assert "does not watch" in shown


def test_tasks_in_space_and_in_time_have_tables_of_their_own(mixed):
    shown = text(commands.show(mixed / "a"))
    heads = [line for line in shown.splitlines() if line.startswith("task") and "best" in line]
    assert [re.findall(r"(?:steady )?T?RCI|one \w+|whole \w+", head)[:4] for head in heads] == [
        ["one cell", "whole image", "RCI", "steady RCI"],
        ["one segment", "whole clip", "TRCI", "steady TRCI"],
    ]
    told = " ".join(shown.split())
    assert "needs the whole image in film (" in told
    assert "needs the whole clip in film (" in told


def test_where_a_run_was_not_checked_it_says_so_of_clips(tmp_path):
    spec, records, made = world_run(knows(0.9, 0.0), n=40, grid=4, kind="trci", base="film")
    write_run(
        tmp_path,
        {"film_trci4": (spec, [{key: one[key] for key in one if key != "wrong_image"} for one in records], made)},
    )
    shown = text(commands.show(tmp_path))
    assert "not checked whether the answers depend on the clip: no doc was asked on a wrong clip" in " ".join(
        shown.split()
    )
    assert_in_time(shown)


def test_the_report_shows_a_row_of_segments(run, tmp_path):
    made = commands.report([run], tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    words = " ".join(" ".join(Read(page).texts).split())
    results = words[: words.index("How to read it")]
    for said in (
        "Where in the clip",
        "4 segments : share of the segments’ score, in %",
        "Steady TRCI, 4 segments",
        "Score, 8 frames",
        "does not watch",
    ):
        assert said in results, said
    assert "1 doc is not used at 8 frames: 7 frames are too few" in results
    assert "TRCI The same index in time" in words
    names = {figure.name for figure in made.figures}
    assert {"fip-mpp-time", "cells-e-radio-trci4"} & names
    assert not {"headline", "fip-mpp"} & names  # what is drawn of cells is not drawn of segments
    told = " ".join(f"{figure.title} {figure.caption} {figure.alt}" for figure in made.figures)
    assert_in_time(told)
    assert "segment 1" in told


def test_the_report_compares_what_is_in_space_apart_from_what_is_in_time(mixed, tmp_path):
    made = commands.report([mixed], tmp_path)
    benchmarks = {sheet.name: sheet for sheet in made.sheets["benchmarks"]}
    assert {row["n"] for row in benchmarks["indices"].rows} == {2}
    time = {sheet.name: sheet for sheet in made.sheets["benchmarks_time"]}
    assert {row["n"] for row in time["indices_time"].rows} == {4}
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "does it need the whole clip, or is one segment enough?" in page
    assert {"fip-mpp", "fip-mpp-time"} <= {figure.name for figure in made.figures}


def test_the_board_ranks_segments_apart(mixed, tmp_path):
    commands.leaderboard([mixed], tmp_path)
    board = (tmp_path / "leaderboard.md").read_text(encoding="utf-8")
    space, time = board.index("### film, 2×2, RCI"), board.index("## In time: the full clip and its segments")
    assert space < time < board.index("### film, 4 segments, TRCI") < board.index("## Few frames of the clip")
    assert "### film, 1 frame, frames" in board
    assert "### film, 8 frames, frames" in board
    cells, segments = (
        board[board.index(f"## All benchmarks, {size}") :].partition("\n## ")[0] for size in ("2×2", "4 segments")
    )
    assert ("Mean \\|steady RCI\\|" in cells, "radio" in cells) == (True, False)
    assert ("Mean \\|steady TRCI\\|" in segments, "radio" in segments, "whole clips" in segments) == (
        True,
        True,
        False,
    )
    eight = board[board.index("### film, 8 frames, frames") :].split("###")[1]
    assert "| org/a | 0.797" in eight


def test_two_runs_are_compared_segment_by_segment(mixed):
    found = compare(mixed / "a", mixed / "b")
    by_task = {task.second: task for task in found.tasks}
    assert by_task["film_trci4"].kind == "trci"
    assert {"mpp4", "trci4", "gap4"} <= set(by_task["film_trci4"].by_name)
    assert [name for name in by_task["film_frames"].by_name if name != "score"] == [
        "frames1",
        "frames2",
        "frames4",
        "frames8",
    ]
    said = " ".join(
        line for task in found.tasks if task.second != "film_rci2" for line in compare_text.notes(found, task)
    )
    assert_in_time(said)


def test_a_task_in_time_is_no_partner_of_one_in_space(mixed, tmp_path):
    write_run(tmp_path / "space", {"film_rci2": world_run(knows(0.9, 0.0), n=40, grid=2, base="film")})
    write_run(tmp_path / "time", {"film_trci4": world_run(knows(0.9, 0.0), n=40, grid=4, kind="trci", base="film")})
    with pytest.raises(RecordError):
        compare(tmp_path / "space", tmp_path / "time")


def test_a_gate_holds_segments_to_its_rules(run, tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "schema: 1\nrules:\n"
        "- {name: reads, kind: trci, require: [valid gate, looks], max_excluded: 0}\n"
        "- {name: whole, kind: trci, task: film_trci4, metric: trci4, min: 0.5}\n"
    )
    judged = commands.gate(run, rules)
    calls = {(one.task, one.metric): one.verdict for one in judged.verdicts}
    assert calls["film_trci4", "trci4"] == "pass"
    assert calls["film_trci4", "looks"] == "pass"
    assert calls["radio_trci4", "looks"] == "fail"
    assert "depend on the clip" in next(
        one.reason for one in judged.verdicts if (one.task, one.metric) == ("radio_trci4", "looks")
    )


def test_the_explorer_names_segments(run):
    (result,) = [one for one in newest_of(run).run.results if one.task == "film_trci4"]
    docs = docs_of(result)
    views = docs["views"][0].to_list()
    assert [view["name"] for view in views] == ["full clip", *(f"4 segments, segment {i}" for i in range(1, 5))]
    assert [(view["kind"], view["n"], view["col"]) for view in views[1:]] == [("segment", 4, i) for i in range(4)]
    assert set(docs["image"]) <= {2, 3}  # no segment is right: the whole clip, or unsolved
