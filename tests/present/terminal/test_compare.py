"""The first line of ``lmms-patch compare``, and how wide its tables are; comparisons are made by hand."""

import re

import pytest

from lmms_patch.compare.formats import Change, Comparison, Side, Task
from lmms_patch.present.terminal import compare
from lmms_patch.stats.resample import Estimate
from tests.making.terminal import cells


def number(name, first, second, low, high, p, *, primary=False, p_holm=None, tests=1, detectable=0.05):
    estimate = Estimate(second - first, 0.02, low, high, 400, 400, 1000)
    return Change(name, primary, first, second, estimate, p, p if p_holm is None else p_holm, tests, detectable, 40)


def task(base, primary, *others, kind="rci", name="", **about):
    given = {"metric": "accuracy", "docs": 400, "only_first": (), "only_second": (), "unscored": 0, "mcnemar": None}
    given |= {"settings": (), "warnings": (), "index": None, "higher": True, "clusters": None, "draws": 0}
    given |= {"identical": False, **about}
    label = name or f"{base}_{kind}3"
    return Task(first=label, second=label, base=base, kind=kind, numbers=(primary, *others), **given)


def comparison(*tasks, same_run=False, models=("first", "second")):
    sides = [Side(f"out/{model}", model, 0, ()) for model in models]
    return Comparison(first=sides[0], second=sides[1], tasks=tasks, level=0.95, same_run=same_run)


BETTER = number("fip", 0.61, 0.69, 0.02, 0.14, 0.002, primary=True)
WORSE = number("fip", 0.5, 0.4, -0.16, -0.04, 0.001, primary=True)
OPEN = number("fip", 0.61, 0.62, -0.02, 0.04, 0.4, primary=True)


NO_HOLM = number("fip", 0.61, 0.69, 0.02, 0.14, 0.03, primary=True, p_holm=0.06, tests=2, detectable=None)
"""p is below 0.05, but not after Holm's correction."""
UP = "(accuracy 0.610 → 0.690, B - A = +0.080 [+0.020, +0.140])"
DOWN = "(accuracy 0.500 → 0.400, B - A = -0.100 [-0.160, -0.040])"
FOUND = "0.050 would be found in 4 of 5 comparisons"


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        ([("gqa", BETTER)], f"B (second) is better on gqa {UP}."),
        ([("gqa", WORSE)], f"A (first) is better on gqa {DOWN}."),
        (
            [("gqa", OPEN)],
            f"A and B cannot be told apart on gqa (accuracy 0.610 → 0.620, B - A = +0.010 [-0.020, +0.040]; {FOUND}).",
        ),
        (
            [("gqa", NO_HOLM)],
            f"A and B cannot be told apart on gqa {UP[:-1]}; too little differs to say what would be found).",
        ),
        (
            [("gqa", BETTER), ("pope", WORSE), ("vqa", OPEN)],
            f"B (second) is better on gqa {UP}; A (first) is better on pope {DOWN}; no difference is shown on vqa ({FOUND}).",
        ),
        (  # one task with two filters; of the other benchmark there is one task alone
            [("gqa", BETTER, "gqa_rci3, strict"), ("pope", OPEN, ""), ("gqa", WORSE, "gqa_rci3, flexible")],
            f"B (second) is better on gqa_rci3, strict {UP}; A (first) is better on gqa_rci3, flexible {DOWN}; "
            f"no difference is shown on pope ({FOUND}).",
        ),
    ],
)
def test_the_first_line_says_which_is_better_on_what_and_by_how_much(tasks, said):
    given = comparison(*(task(base, one, name="".join(name)) for base, one, *name in tasks))
    assert compare.headline(given) == said
    assert compare.text(given).splitlines()[:3] == [said, "A: first (out/first)", "B: second (out/second)"]


def test_hostile_names_stay_text():
    said = compare.headline(comparison(task("a\x1b[31m", BETTER), models=("a", "b\n::error::x" + "y" * 500)))
    assert "\x1b" not in said
    assert "\n" not in said
    assert len(said) < 200


def test_the_table_fits_80_columns_and_wide_has_all():
    """By default the p that decides: the corrected one where there are several numbers."""
    others = (number(name, -0.5, -0.25, 0.1, 0.4, 0.01, p_holm=0.02, tests=2) for name in ("rci2", "rci2_steady"))
    given = comparison(task("gqa", BETTER, *others, marks={"rci2": ("x",)}))
    narrow, wide = compare.text(given, most=80), compare.text(given, wide=True)
    assert max(map(len, narrow.splitlines())) <= 80
    assert _heads(narrow) == ["A", "B", "B - A", "p (Holm)"]
    assert _heads(wide) == ["A", "B", "B - A", "p", "p (Holm)", "would be found"]
    assert "RCI 2×2, contradicted  -0.500  -0.250  +0.250 [+0.100, +0.400]     0.020" in narrow
    assert "Steady RCI 2×2         -0.500" in narrow


def test_what_is_to_mind_of_several_tasks_is_said_once():
    """Three tasks: a note of all, one of two and one of the third, which alone stands at its task."""
    notes = {
        "a": ("a_rci3: of all", "of two"),
        "b": ("b_rci3: of all", "of two"),
        "c": ("c_rci3: of all", "c_rci3: of c alone", "of c alone"),
    }
    given = comparison(*(task(name, BETTER, warnings=own) for name, own in notes.items()))
    text = compare.text(given)
    assert [text.count(note) for note in ("of all", "of two", "of c alone")] == [1, 1, 1]
    *blocks, shared, _ = text.split("\n\n")
    assert shared.splitlines() == [
        "What to mind of several tasks",
        "- all 3 tasks: of all",
        "- a_rci3 and b_rci3: of two",
    ]
    assert [block.partition(",")[0] for block in blocks if "mind: of c alone" in block] == ["c_rci3"]


def test_wide_characters_fit_80_columns():
    """Lines of Chinese text are at most 80 cells wide, where each character takes two cells, and no interval is broken across lines."""
    name = "这个模型不需要整张图片就能回答一半以上的问题因此它的分数不能说明它看了图"
    given = comparison(task(name, BETTER), task("gqa", WORSE), models=(f"甲{name}", f"乙{name}"))
    shown = compare.text(given, most=80).splitlines()
    assert max(map(cells, shown)) <= 80
    assert "".join("".join(shown).split()) == "".join(compare.text(given).split())
    assert sum("[" in line for line in shown) == sum("[" in line and "]" in line for line in shown)


def _heads(text):
    return re.split(r"\s{2,}", re.search(r"\n(.*)\n-{9,}", text)[1].strip())
