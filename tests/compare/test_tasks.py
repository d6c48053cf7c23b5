"""Two folders of runs: which results go together, Holm's correction by hand, and what is said of them."""

import json
import re

import numpy as np
import pytest

from lmms_patch.compare.tasks import compare
from lmms_patch.errors import RecordError
from lmms_patch.present.terminal import compare as show_compare
from lmms_patch.runs.numbers import to_json
from lmms_patch.stats.paired import detectable
from tests.making.finished import FEW, finish
from tests.making.recordings import record
from tests.making.runs import again_run, mc_run, write_run
from tests.sizes import size


def docs(right, *, grids=(2,), n=200, seed=0, cells=0.0, **more):
    """Docs that are right with some probability, the same easy ones for every run of one seed.

    Of the cells the first is right.
    """
    easy = np.random.default_rng(seed).random(n)
    return [
        record(i, float(easy[i] < right), {g: [1.0] + [cells] * (g * g - 1) for g in grids}, **more) for i in range(n)
    ]


def shown_of(found):
    assert json.loads(json.dumps(to_json(found), allow_nan=False)) == to_json(found)
    return show_compare.text(found)


def model(name):
    return {"model_name": name, "config": {"model": "adapter", "model_args": f"pretrained={name}"}}


def write_two(folder, shares=((0.5, 0.7), (0.5, 0.52), (0.5, 0.6)), **more):
    """The docs that are easy for one model are so for the other, but in the second task."""
    for k, share in enumerate(shares):
        for side, right in zip("ab", share, strict=True):
            finish(
                folder / side,
                docs(right, seed=k + 100 * (side == "b" and k == 1), **more),
                name=f"t{k}",
                date=f"2026-01-0{k + 1}",
                about=model(side),
            )
    return folder / "a", folder / "b"


# --- Holm and power --------------------------------------------------------------------------------


def by_holm(p_values):
    """Holm (1979) by hand: the smallest p times m, the next times m − 1, ..., never falling, at most 1."""
    order, out, least = sorted(range(len(p_values)), key=p_values.__getitem__), {}, 0.0
    for step, k in enumerate(order):
        least = max(least, (len(p_values) - step) * p_values[k])
        out[k] = min(1.0, least)
    return [out[k] for k in range(len(p_values))]


def test_holm_by_hand(tmp_path):
    """Three tasks: fip is primary, corrected over the three; mpp2, rci2 and gap2 of all of them together, over nine."""
    found = compare(*write_two(tmp_path), draws=FEW)
    assert [task.first for task in found.tasks] == ["t0_rci2", "t1_rci2", "t2_rci2"]
    assert [[number.name for number in task.numbers if number.primary] for task in found.tasks] == [["fip"]] * 3
    for primary, count in ((True, 3), (False, 9)):
        own = [number for task in found.tasks for number in task.numbers if number.primary is primary]
        assert [one.p_holm for one in own] == pytest.approx(by_holm([one.p for one in own]))
        assert ({one.tests for one in own}, len(own)) == ({count}, count)
        for one in own:  # Bonferroni: the level at which Holm's first step decides
            if one.detectable is not None:
                assert one.detectable == pytest.approx(detectable(one.difference.se, level=1 - 0.05 / count))


def test_the_primary_number_of_a_single_task_keeps_its_p(tmp_path):
    for side, right in (("a", 0.5), ("b", 0.6)):
        finish(tmp_path / side, docs(right, grids=(2, 3)), name="t0")
    numbers = compare(tmp_path / "a", tmp_path / "b", draws=FEW).tasks[0].numbers
    assert (numbers[0].name, numbers[0].primary, numbers[0].tests) == ("fip", True, 1)
    assert numbers[0].p_holm == numbers[0].p
    assert {(one.primary, one.tests) for one in numbers[1:]} == {(False, 6)}


# --- words ----------------------------------------------------------------------------------------


def test_what_is_said(tmp_path):
    found = compare(*write_two(tmp_path), draws=FEW)
    text = shown_of(found)
    assert re.match(
        r"B \(b\) is better on t0 \(acc 0\.\d+ → 0\.\d+, B - A = \+0\..*; no difference is shown on t1", text
    )
    # 2.8 · √(0.5 / 200) = 0.14, Holm more
    assert re.search(r"no difference is shown on t1 \(0\.1\d\d would be found in 4 of 5 comparisons\)", text)
    assert "t0_rci2, acc: 200 docs\n" in text
    assert (
        "The first number of each task is primary (Holm over 3 tasks). All other numbers are corrected together: Holm over 9."
        in text
    )
    assert "A: a (" in text
    turned = shown_of(compare(tmp_path / "b", tmp_path / "a", draws=FEW))
    assert re.match(r"A \(b\) is better on t0 \(acc 0\.\d+ → 0\.\d+, B - A = -0\.", turned)


def test_a_handful_of_docs_is_not_called_a_difference(tmp_path):
    """Four docs of 200 that only B has right: exact p 2 / 16. No power is claimed from so few."""
    one, two = docs(0.5), docs(0.5)
    for i in [i for i, r in enumerate(one) if r["views"][0]["scores"]["acc"] == 0][:4]:
        two[i] = record(i, 1.0, {2: [1.0, 0.0, 0.0, 0.0]})
    finish(tmp_path / "a", one)
    finish(tmp_path / "b", two)
    found = compare(tmp_path / "a", tmp_path / "b")
    fip = found.tasks[0].by_name["fip"]
    assert (fip.p, fip.detectable) == (0.125, None)
    text = shown_of(found)
    assert "Full image (FIP): the runs differ in only 4 docs" in text
    assert "right in A only: 0 docs, in B only: 4; McNemar's exact p 0.125" in text


def test_lower_is_better(tmp_path):
    for side, right in (("a", 0.3), ("b", 0.7)):
        finish(tmp_path / side, docs(right, cells=1.0), higher=False)
    text = shown_of(compare(tmp_path / "a", tmp_path / "b", draws=FEW))
    assert re.match(r"A \(.*\) is better on toy \(acc 0.\d+ → 0.\d+, B - A = \+0.", text)
    assert "RCI 2×2: not defined in A: the metric is better when lower" in text


def test_one_run_twice(tmp_path):
    path = write_run(tmp_path / "a", {"toy_rci2": mc_run(n=100)})
    found = compare(path, tmp_path / "a", draws=FEW)
    assert found.same_run
    assert {number.p for number in found.tasks[0].numbers} == {1.0}
    text = shown_of(found)
    assert "A and B are the same run: every difference is 0." in text
    assert "is better" not in text


def test_clusters_and_mcnemar(tmp_path):
    write_run(tmp_path / "a", {"toy_rci2": mc_run(n=120, per_cluster=4)})
    write_run(tmp_path / "b", {"toy_rci2": mc_run(n=120, per_cluster=4, know_full=0.5)})
    text = shown_of(compare(tmp_path / "a", tmp_path / "b", draws=FEW))
    assert "120 docs in 30 clusters" in text
    assert "McNemar's test takes docs as independent, but they hang together in 30 clusters" in text


def indices(tmp_path, *right, best):
    """Two runs of 400 docs with an exact index of 1 − best / right each."""
    for side, share in zip("ab", right, strict=True):
        made = [
            record(i, float(i < 400 * share), {2: [float(i % 2 == 0 or i < 400 * (2 * best - 1)), 0.0, 0.0, 0.0]})
            for i in range(400)
        ]
        finish(tmp_path / side, made)
    return shown_of(compare(tmp_path / "a", tmp_path / "b", draws=FEW))


@pytest.mark.parametrize(
    ("right", "best", "said"),
    [
        ((0.90, 0.60), 0.54, "RCI 2×2: A needs more of the image\n"),  # 0.40 and 0.10
        (
            (0.60, 0.54),
            0.80,
            "RCI 2×2: one cell beats the full image in both, by more in B\n",
        ),  # −0.333 and −0.481
        ((0.54, 0.60), 0.80, "RCI 2×2: one cell beats the full image in both, by more in A\n"),
        (
            (0.60, 0.90),
            0.75,
            "RCI 2×2: B needs more of the image; in A one cell beats the full image\n",
        ),  # −0.25 and +0.167
        (
            (0.60, 0.59),
            0.80,
            "",
        ),  # −0.333 and −0.356
    ],
)
def test_what_is_said_of_two_indices_goes_by_their_signs(tmp_path, right, best, said):
    text = indices(tmp_path, *right, best=best)
    assert said in text
    assert said or "RCI 2×2:" not in text


# --- which results ----------------------------------------------------------------------------------


def test_the_newest_of_each_task(tmp_path):
    finish(tmp_path / "a", docs(0.1), date="2026-01-01")
    finish(tmp_path / "a", docs(0.5), date="2026-01-02")
    finish(tmp_path / "b", docs(0.5))
    found = compare(tmp_path / "a", tmp_path / "b", draws=FEW)
    assert (found.first.older, found.second.older) == (1, 0)
    assert found.tasks[0].identical
    assert "1 older result of the same tasks left aside" in shown_of(found)


def test_tasks_of_one_side_are_named(tmp_path):
    write_two(tmp_path)
    finish(tmp_path / "a", docs(0.5), name="more", date="2026-02-01", about=model("a"))
    found = compare(tmp_path / "a", tmp_path / "b", draws=FEW)
    assert (found.first.only, found.second.only) == (("more_rci2",), ())
    assert "1 task only in A, not in B: more_rci2" in shown_of(found)


def test_tasks_of_one_name_go_together_first(tmp_path):
    """A has grids 2 and 3 in runs of their own, B also both in one, which is named."""
    for side, sets in (("a", ((2,), (3,))), ("b", ((2, 3), (3,), (2,)))):
        for k, grids in enumerate(sets):
            finish(tmp_path / side, docs(0.5, grids=grids), date=f"2026-01-0{k + 1}")
    found = compare(tmp_path / "a", tmp_path / "b", draws=FEW)
    assert [(task.first, task.second) for task in found.tasks] == [("toy_rci2", "toy_rci2"), ("toy_rci3", "toy_rci3")]
    assert found.second.only == ("toy_rci",)


def test_a_wildcard(tmp_path):
    one, two = write_two(tmp_path)
    assert [task.first for task in compare(one, two, task="t[12]_*", draws=FEW).tasks] == ["t1_rci2", "t2_rci2"]
    assert [task.first for task in compare(one, two, task="t1", draws=FEW).tasks] == ["t1_rci2"]
    with pytest.raises(RecordError, match=r"no task t1_rci; there is .*t1_rci2"):
        compare(one, two, task="t1_rci")


def test_two_models_in_a_folder(tmp_path):
    write_two(tmp_path)
    with pytest.raises(
        RecordError,
        match=r"2 models in this folder \(a, b\); give the folder or the file of one",
    ):
        compare(tmp_path, tmp_path / "b")


def test_nothing_in_common(tmp_path):
    finish(tmp_path / "a", docs(0.5), name="one")
    finish(tmp_path / "b", docs(0.5), name="two")
    with pytest.raises(RecordError, match=r"no task in both: .*one_rci2; .*two_rci2"):
        compare(tmp_path / "a", tmp_path / "b")


# --- docs that are asked again ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def guesser_and_knower(tmp_path_factory):
    """The runs of both models on the same docs, and the second as it is where no doc is asked again.

    The first needs the whole image and guesses on cells, the second knows from one cell, or says nothing.
    """
    folder, docs = tmp_path_factory.mktemp("planted"), size(500, 1000)
    guesses = again_run(("whole",) * 4 + ("unsolved",), n=docs, grid=3)
    spec, known, made = again_run(("cell",) * 4 + ("unsolved",), n=docs, grid=3, guesses=False)
    once = [{**one, "views": one["views"][:10], "wrong_image": None} for one in known]
    runs = {"a": guesses, "b": (spec, known, made), "once": (spec, once, made)}
    for name, world in runs.items():
        write_run(folder / name, {"toy_rci3": world})
    return [folder / name for name in runs]


def test_a_contradicted_index_is_marked_in_the_table_the_sentence_and_the_files(guesser_and_knower):
    """A guesses on cells (RCI -0.1, steady 1), B knows from one cell (0 and 0): by RCI B needs more of the image, which is wrong."""
    first, second, _ = guesser_and_knower
    found = compare(first, second)
    text = shown_of(found)
    assert "RCI 3×3, contradicted" in text
    (said,) = [line for line in text.splitlines() if "is mostly luck" in line]
    assert re.match(
        r"RCI 3×3: of A is contradicted: from one pass -0\.\d+ \(\w+.*\), steady .* \(strong global\): the first is mostly luck$",
        said,
    )
    assert "Steady RCI 3×3: A needs more of the image" in text
    assert list(to_json(found)["tasks"][0]["marks"]) == ["rci3"]


def test_steady_indices_are_set_side_by_side_only_where_both_runs_asked_again(guesser_and_knower):
    """Their difference is that of the runs' own numbers."""
    first, second, once = guesser_and_knower
    (task,) = compare(first, second).tasks
    number = task.by_name["rci3_steady"]
    own = [
        json.loads(next(folder.glob("*_results.json")).read_text())["results"]["toy_rci3"]["rci3_steady,none"]
        for folder in (first, second)
    ]
    assert [number.first, number.second] == own
    assert number.difference.value == pytest.approx(own[1] - own[0])
    assert any("compared as if on other docs" in line for line in task.warnings)
    (task,) = compare(first, once).tasks
    assert "rci3" in task.by_name
    assert "rci3_steady" not in task.by_name
