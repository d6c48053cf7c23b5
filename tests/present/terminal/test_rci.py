import dataclasses
import re

import pytest
from rich.cells import cell_len

from lmms_patch.present.findings import case, findings
from lmms_patch.present.terminal.rci import (
    averaged_table,
    cell_tables,
    chances,
    load,
    pooled_table,
    table,
    warnings,
)
from lmms_patch.rci.pooling import average, groups
from lmms_patch.rci.recompute import load as recompute_load
from lmms_patch.rci.recompute import recompute
from lmms_patch.runs.numbers import to_json
from lmms_patch.runs.run import read
from lmms_patch.stats.resample import Estimate
from tests.making.analyses import labelled
from tests.making.reports import necessity
from tests.making.runs import again_run, mc_run, never_looks, world_run, write_run


def shown(base, fip, mpp2, mpp3, docs=100, name=None, ends=(-0.05, 0.05), chance=None, gate=None,
          excluded=(0, 0), index=None, steady=None, fips=(None,) * 2):  # fmt: skip
    grids = {}
    for n, mpp, left_out, used in zip((2, 3), (mpp2, mpp3), excluded, fips, strict=True):
        value = None if not fip or (gate or {}).get("valid") is False else 1 - mpp / fip if index is None else index
        low, high = (None if value is None else value + by for by in ends)
        grids[n] = {
            "n": n,
            "fip": used,
            "excluded": left_out,
            "mpp": {"value": mpp},
            "index": {"value": value, "low": low, "high": high, "effective": 9},
        }
    analysis = {
        "n_docs": docs,
        "chance": {"value": chance},
        "gate": gate or {"valid": True, "looks": SEEN},
        "grids": grids,
        "necessity": [] if steady is None else [_asked_again(n, steady) for n in (2, 3)],
    }
    return labelled(f"{base}_rci", {"acc": fip, "acc_mpp2": mpp2, "acc_mpp3": mpp3, "records": docs}, analysis, name)


def _asked_again(n, index):
    return to_json(dataclasses.replace(necessity(0.25, 0.25, 0.25, 0.25, n), index=index))


SEEN = [{"value": True}]
RUN = [
    shown("local", 0.8, 0.9, 0.88, chance=0.1),
    shown("count", 0.9, 0.1, 0.0, chance=0.2, excluded=(0, 3)),
    shown("larger", 0.55, 0.0, 0.0, chance=0.5, gate={"valid": False}),
    shown("zero", 0.0, 0.5, 0.5),
]


def signed(one):
    return f"{one.value:+.3f} [{one.low:+.3f}, {one.high:+.3f}]"


def cells_in(made):
    """The cells of tables by task and grid, by the heads of their columns; parts of a table that was cut are joined."""
    out = {}
    for part in made.split("\n\n"):
        rule = next(at for at, line in enumerate(part.splitlines()) if set(line) == {"-"})
        head, _, *rows = part.splitlines()[rule - 1 :]
        ends = [match.end() for match in re.finditer(r"\S+( \S+)*", head)]
        for row in rows:
            # names begin their column, numbers end theirs
            cells = re.split(r"\s{2,}", row.strip()) if len(re.split(r"\s{2,}", row.strip())) == len(ends) else None
            titles = re.split(r"\s{2,}", head.strip())
            cells = cells or [row[begin:end].strip() for begin, end in zip([0, *ends], ends, strict=False)]
            told = dict(zip(titles, cells, strict=True))
            key = told.pop("task"), told.pop("grid", None)
            out[key] = {**out.get(key, {}), **told}
    return out


def test_table_shows_every_number():
    rows = cells_in(table(RUN, 120))
    assert rows["local_rci", "2x2"] == {
        "RCI [95 %]": "-0.125 [-0.175, -0.075]", "full": "0.800", "best": "0.900", "chance": "0.100", "docs": "100",
    }  # fmt: skip
    assert rows["larger_rci", "3x3"]["RCI [95 %]"] == "near chance"
    assert rows["zero_rci", "2x2"]["RCI [95 %]"] == "N/A"


@pytest.mark.parametrize(
    ("two", "three", "cells"),
    [
        ((0.5, 4), (0.5, 4), ["0.500", "0.500"]),
        ((0.8, 0), (0.5, 4), ["0.800", "0.500"]),
        ((0.8, 0), (0.8, 0), ["0.800", "0.800"]),
        ((None, 4), (0.5, 4), ["0.800", "0.500"]),
    ],
)
def test_fip_is_of_the_docs_that_the_index_is_of(two, three, cells):
    """0.8 over all 100 docs, 0.5 over those of the index: 1 - 0.4 / 0.5 is +0.200, and stands beside 0.500."""
    made = shown("toy", 0.8, 0.4, 0.4, fips=(two[0], three[0]), excluded=(two[1], three[1]))
    rows = cells_in(table([made], 120))
    assert [rows["toy_rci", grid]["full"] for grid in ("2x2", "3x3")] == cells
    told = [line for line in warnings([made]) if "over all 100 docs it is 0.800" in line]
    assert len(told) == (set(cells) != {"0.800"})


def test_a_run_shows_what_it_computed(tmp_path):
    """Cell 1 knows, the others guess: 300 docs leave no doubt that cell 1 earns more than an even share."""
    path = write_run(tmp_path, {"toy_rci2": mc_run()})
    (shown,) = load(read(path))
    measures = shown.result.measures
    row = table([shown]).splitlines()[2]
    assert signed(measures["rci2"]) in row
    text = cell_tables([shown]).splitlines()
    assert "p = 0.001" in text[0]
    assert "*" in text[1].split()[0]
    line = chances([shown]).splitlines()[3].split()
    assert line[3] == "valid"
    assert line[4:7] == ["N/A"] * 3  # nothing was asked on a wrong image
    assert line[7] == "0.250"  # a random one of four letters
    assert any("not checked whether the answers depend on the image" in line for line in warnings([shown]))


@pytest.mark.parametrize(
    ("task", "what"),
    [
        ("toy_blind", "no image"),
        ("toy_blank", "grey image"),
        ("toy_shuffle3", "cells shuffled, 3×3"),
        ("toy_tshuffle4", "segments shuffled, 4 segments"),
        ("toy_treverse", "clip reversed"),
        ("toy_frame", "middle frame"),
        ("toy_swap", "another doc’s image"),
        ("toy_swap3", "another doc’s image"),
    ],
)
@pytest.mark.parametrize("width", [None, 80])
def test_a_run_without_the_whole_image_says_what_it_shows_and_has_no_fip(task, what, width):
    cells = {"grids": {3: {"n": 3, "mpp": {"value": 0.9}}}} if task == "toy_swap3" else {}
    one = labelled(task, {"acc": 0.35}, {"n_docs": 120, "chance": {"value": 0.25}, **cells})
    head, _, row = table([one], width).split("\n\n")[-1].splitlines()
    told = dict(zip(re.split(r"\s{2,}", head.strip()), re.split(r"\s{2,}", row.strip()), strict=True))
    best = {"best": "0.900", "at": "3x3"} if task == "toy_swap3" else {}
    metric = {} if width else {"metric": "acc"}
    about = {"task": task, "shown": what, "docs": "120", "chance": "0.250", "score": "0.350"}
    assert {name: cell for name, cell in told.items() if name not in ("ceiling", "full - best [95 %]")} == {
        **about,
        **best,
        **metric,
    }
    full = shown("toy", 0.8, 0.7, 0.75)
    of_full, of_other = table([full, one], width).split("\n\n")
    assert task not in of_full
    assert "full" in of_full
    assert "full" not in of_other


def test_an_index_below_chance_is_said_not_shown(tmp_path):
    path = write_run(tmp_path, {"toy_rci2": mc_run(know_full=0.0)})
    assert "near chance" in table(load(read(path)))
    (said,) = told(path)
    assert said.startswith("No result for toy (acc 0.")


def test_why_a_group_has_no_index_is_said_once(tmp_path):
    """Two grids, and members that guess: one reason for both."""
    path = write_run(
        tmp_path, {name: mc_run(know_full=0.0) for name in ("a_rci2", "b_rci2")}, groups={"g": ["a_rci2", "b_rci2"]}
    )
    (two,) = groups([recompute(run) for run in recompute_load(read(path))])
    text = pooled_table([two, dataclasses.replace(two, n=3)], 80)
    assert text.splitlines()[0] == "All tasks of a group, pooled"
    assert [line.split()[-1] for line in text.splitlines()[3:5]] == ["N/A", "N/A"]
    assert text.count("- g: near chance") == text.count("near chance") == 1
    assert max(map(len, text.splitlines())) <= 80


def test_groups_and_averages_are_tables(tmp_path):
    path = write_run(
        tmp_path, {"a_rci2": mc_run(n=60, seed=1), "b_rci2": mc_run(n=60, seed=2)}, groups={"g": ["a_rci2", "b_rci2"]}
    )
    analyzed = [recompute(run) for run in recompute_load(read(path))]
    assert pooled_table(groups(analyzed)).splitlines()[3].split()[:3] == ["g", "2x2", "120"]
    averaged = averaged_table(average([analyzed, analyzed]), [analyzed, analyzed])
    assert "SD between runs" in averaged


# --- whether it looks, what contradicts what ------------------------------------------------------


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """The results file of a task of each planted model, 3×3; the last two were asked again."""
    made = {
        "never": world_run(never_looks, grid=3),
        "guesses": again_run([*["whole"] * 4, "unsolved"], n=300, grid=3),
        "known": again_run(["cell"], grid=3),
    }
    return {name: write_run(tmp_path_factory.mktemp(name), {"toy_rci3": one}) for name, one in made.items()}


def told(path):
    """What a run found, in sentences."""
    return [one.text for one in findings([case(result) for result in read(path).results])]


def cells_of(one):
    """Two cells of the table: the index, and the steady one."""
    (row,) = cells_in(table([one])).values()
    return [cell for title, cell in row.items() if "RCI" in title]


def test_a_model_that_never_looks_is_refused_with_the_reason(worlds):
    """Right in 60 % from the text, alike on every view: FIP = MPP, an index of 0 that would read "balanced"."""
    (one,) = load(read(worlds["never"]))
    assert one.result.measures["acc"].value == one.result.measures["mpp3"].value > 0.5
    assert "does not look" in table([one])
    assert "near chance" not in table([one])
    assert any("toy_rci3: the answers do not depend on the image (full image 0.58" in line for line in warnings([one]))
    (said,) = told(worlds["never"])
    assert re.fullmatch(
        r"No image is needed for toy \(acc 0\.58\d with its images, 0\.58\d with wrong images; the right image adds 0\.00\d at most\)\.",
        said,
    )
    for row in (chances([one]).splitlines()[3], chances([one], floors=False).splitlines()[3]):
        assert "does not look" in row
        known, low, high = re.search(
            rf"{one.result.measures['acc'].value:.3f}  (0\.000) \[(-0\.\d+), (\+0\.\d+)\]", row
        ).groups()
        assert float(known) == 0 > float(low) > -0.01
        assert float(high) == -float(low)


def test_pure_guessing_on_cells_is_marked(worlds):
    """All that is solved needs the whole image: 1 - (3/4)^9 = 0.925 by luck alone against 0.8 + 0.2 / 4 = 0.85 on the full image."""
    (one,) = load(read(worlds["guesses"]))
    measures = one.result.measures
    raw, steady = (measures[name].value for name in ("rci3", "rci3_steady"))
    assert raw == pytest.approx(1 - 0.925 / 0.85, abs=0.05)
    assert steady == pytest.approx(1, abs=0.05)
    assert cells_of(one) == [f"{signed(measures['rci3'])}, contradicted", signed(measures["rci3_steady"])]
    (line,) = [line for line in warnings([one]) if "contradicted" in line]
    assert line.startswith(f"toy_rci3: 3x3, contradicted: from one pass {raw:.3f} (")
    assert line.endswith(f"), steady {steady:.3f} (strong global): the first is mostly luck")
    (said,) = told(worlds["guesses"])
    assert said.startswith("Most of what is solved needs the whole image in toy (")


def test_a_steady_index_of_0_stands_plainly_with_its_interval(worlds):
    (one,) = load(read(worlds["known"]))
    steady = one.result.measures["rci3_steady"]
    assert steady.value == steady.low == 0  # 0 has no sign
    assert cells_of(one)[1] == f"0.000 [0.000, {steady.high:+.3f}]"
    assert warnings([one]) == []


def test_answers_that_do_not_tell_are_said_in_place_of_the_steady_index():
    why = "repeated guesses cannot be told from knowledge: what views repeat names nearly every option"
    made = table([judged({"valid": True, "looks": SEEN}, steady=Estimate.nothing(100, why))])
    assert made.count("  repeated guesses cannot be told from knowledge") == 2
    assert "nearly every option" not in made


def judged(gate, name="toy", steady=None):
    return shown(name, 0.8, 0.64, 0.64, gate=gate, index=0.2, ends=(-0.1, 0.1), steady=steady)


def test_a_marginal_pass_is_marked_beside_the_index():
    looks = [{"against": "wrong images", "value": True, "reason": ""}]
    one = judged({"valid": True, "marginal": True, "looks": looks, "reason": ""})
    assert "+0.200 [+0.100, +0.300], marginal" in table([one])
    assert any("one further standard error" in line for line in warnings([one]))
    assert "valid, marginal" in chances([one])
    assert "valid, marginal" in chances([one], floors=False)


def test_too_few_docs_to_tell_reads_otherwise_than_a_model_that_does_not_look():
    reason = "not shown that it looks (full image 0.6, a wrong image 0.56, 300 docs); null: 1200 would settle it"
    one = judged(
        {"valid": False, "looks": [{"against": "wrong images", "value": False, "reason": reason}], "reason": reason}
    )
    assert "not shown that it looks" in table([one])
    assert f"{one.label}: {reason}" in warnings([one])


# --- how wide it is -------------------------------------------------------------------------------


def widths(made):
    return {cell_len(line) for line in made.splitlines()}


@pytest.mark.parametrize("width", [120, 80, 60])
@pytest.mark.parametrize("name", ["a", "mosaic_center", "a_benchmark_whose_name_takes_fifty_characters_by_itself"])
def test_a_table_fits_and_keeps_its_names_and_indices(width, name):
    """Every form has the name, and the index with its interval; one of 110 characters and more the steady index too."""
    one = judged({"valid": True, "looks": [], "reason": ""}, name, Estimate(0.5, None, 0.4, 0.6, 100, 100, 1000))
    made = table([one], width)
    assert max(widths(made)) <= width
    assert f"{name}_rci" in made
    assert made.count("+0.200 [+0.100, +0.300]") == 2
    assert made.count("+0.500 [+0.400, +0.600]") == 2 * (width >= 110)


def test_docs_left_out_are_told_in_every_form():
    for width in (None, 120, 80):
        assert "100 (3 left out)" in table(RUN, width)


def test_an_occluded_task_keeps_its_drops_in_every_form():
    hidden = labelled("gqa_occlude2", {"acc": 0.8, "acc_drop2": 0.25, "records": 10})
    for width in (None, 120, 80):
        assert "0.250" in table([hidden, *RUN], width)
