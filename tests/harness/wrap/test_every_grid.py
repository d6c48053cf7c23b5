"""The index at every grid, through the real evaluator: a square is seen whole in one cell or it is not, which the places of both decide."""

import numpy as np
import pytest
from PIL import Image

from lmms_patch.ask.spec import parse
from lmms_patch.errors import UnknownNameError
from tests.harness.toys import Model, metrics, run, write_task

SIDE = 90
SQUARES = [(0, 0, 5), (33, 62, 11), (40, 40, 10), (10, 50, 20), (2, 2, 41), (81, 80, 9), (29, 3, 2), (60, 60, 15)]
"""Left, top and side in pixels of the square of each doc, on a sheet of 90 × 90 pixels."""
TINY = 8
"""The doc after them: a sheet of 8 × 8 pixels, too small for 9 × 9 cells, with a square of one pixel."""


def sheet(side, left, top, size):
    pixels = np.full((side, side, 3), 255, np.uint8)
    pixels[top : top + size, left : left + size] = (255, 0, 0)
    return Image.fromarray(pixels)


def fits(side, square, n):
    """Whether one cell of n × n holds the square, by brute force: it is cut where a cell begins inside it."""
    left, top, size = square
    begins = {side * i // n for i in range(1, n)}
    return not any(at in begins for start in (left, top) for at in range(start + 1, start + size))


def rows(squares):
    return [
        {"image": sheet(side, *square), "question": f"{square[2] ** 2} {i}?", "answer": f"word {i}"}
        for i, (side, square) in enumerate(squares)
    ]


def says(prompt, images):
    red = int((np.asarray(images[0].convert("RGB")) == (255, 0, 0)).all(axis=2).sum())
    size, word = prompt.rstrip("?").split()
    return f"word {word}" if red == int(size) else "part"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grids")
    write_task(folder, "square", rows([(SIDE, square) for square in SQUARES] + [(TINY, (3, 3, 1))]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMMS_PATCH_JOURNAL", "off")
        return metrics(run(Model(says), "square_rcicurve", folder), "square_rcicurve")


def test_each_grid_has_the_share_of_squares_that_one_of_its_cells_holds(found):
    for n in range(2, 10):
        used = [(SIDE, square) for square in SQUARES] + ([(TINY, (3, 3, 1))] if n < 9 else [])
        held = [fits(side, square, n) for side, square in used]
        assert found[f"exact_match_mpp{n}"] == pytest.approx(np.mean(held)), n
        assert found[f"rci{n}"] == found[f"gap{n}"] == pytest.approx(1 - np.mean(held)), n
        assert found["patch"][f"n_excluded{n}"] == int(n > TINY)
    curve = [found[f"exact_match_mpp{n}"] for n in range(2, 10)]
    assert curve[0] > curve[-1]


def test_it_is_one_run_of_285_views():
    spec = parse("gqa_rcicurve")
    assert spec.grids == tuple(range(2, 10))
    assert parse("gqa_rcicurve_quick").options.quick
    with pytest.raises(UnknownNameError, match="takes no grid size"):
        parse("gqa_rcicurve3")


# --- early exit -----------------------------------------------------------------------------------

EXIT = {"null": 0, "pilot": 10}
WHOLE = "task: whole\nbase: square\nkind: rcicurve\nexit: false\nclass: !function lmms_patch.Wrap\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """30 docs, each with a square of a few pixels somewhere."""
    monkeypatch.setenv("LMMS_PATCH_JOURNAL", "off")
    stream = np.random.default_rng(0)
    squares = [(SIDE, (*stream.integers(0, 82, 2).tolist(), int(stream.integers(1, 9)))) for _ in range(30)]
    (tmp_path / "whole.yaml").write_text(WHOLE)
    write_task(tmp_path, "square", rows(squares), metadata={"lmms_patch": EXIT})
    return tmp_path


def test_a_name_alone_leaves_out_cells_and_no_number_changes(folder):
    some, every = Model(says), Model(says)
    part, whole = (
        metrics(run(some, "square_rcicurve", folder), "square_rcicurve"),
        metrics(run(every, "whole", folder), "whole"),
    )
    assert len(every.seen) == 30 * 285
    assert len(some.seen) < 0.75 * len(every.seen)
    names = [
        "exact_match",
        "chance",
        *(f"{name}{n}" for name in ("exact_match_mpp", "rci", "gap") for n in range(2, 10)),
    ]
    assert {name: part[name] for name in names} == {name: whole[name] for name in names}
    asked = part["patch"]["analysis"]["asked"]
    assert (asked["calls"], asked["of"], asked["whole"], asked["estimated"]) == (len(some.seen), 30 * 285, 10, False)
