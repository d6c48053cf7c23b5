"""``<base>_hidden``: all relevant, or all adversarial, boxes of a doc hidden, through the real evaluator, in-process."""

from pathlib import Path

import datasets
import numpy as np
import pytest
from lmms_eval.tasks import TaskManager
from PIL import Image

from lmms_patch.resources import folder as resource
from tests.harness.toys import Model, metrics, rows, run, simple_evaluate, write_task
from tests.sizes import DEEP

GREY = 128
SIDE = 60
LEFT, RIGHT, BOTH, OUTSIDE = [0, 0, 20, 60], [40, 0, 60, 60], [10, 0, 50, 30], [50, 0, 61, 60]
DOCS = {
    0: ([LEFT, RIGHT], [True, False]),
    1: ([LEFT, BOTH], [True, False]),  # they overlap: x 10 to 20, y 0 to 30
    2: ([LEFT, [5, 5, 15, 15]], [True, False]),  # the adversarial box lies within the relevant one
    3: ([[0, 0, 60, 60], RIGHT], [True, False]),  # the relevant box covers the whole image, and all of the other box
    4: ([RIGHT, LEFT], [False, False]),
    5: ([LEFT], [True]),
    6: ([LEFT, OUTSIDE], [True, False]),
    7: ([], []),
    8: ([LEFT, [10, 0, 40, 60], RIGHT], [True, True, False]),  # two relevant boxes, which overlap
}
HIDDEN = {0: ([LEFT], [RIGHT]), 1: ([LEFT], [[20, 0, 50, 30]]), 2: ([LEFT], None), 3: (None, None), 4: (None, [LEFT, RIGHT]), 5: ([LEFT], None),
          6: (None, None), 7: (None, None), 8: ([[0, 0, 40, 60]], [RIGHT])}  # fmt: skip
"""What is grey with the relevant, and with the adversarial, boxes of each doc hidden; None: not asked. By hand."""


def greyed(image):
    return (np.asarray(image.convert("RGB")) == GREY).all(axis=2)


def painted(areas):
    out = np.zeros((SIDE, SIDE), bool)
    for left, top, right, bottom in areas:
        out[top:bottom, left:right] = True
    return out


def dark(doc):
    """An image without a grey pixel."""
    return Image.fromarray(np.full((SIDE, SIDE, 3), 10 + doc, np.uint8))


@pytest.fixture
def asked(tmp_path):
    """A model that is right unless a pixel of the evidence, the lower left corner, is hidden."""
    write_task(tmp_path, "toy", rows(9, image=dark, boxes=lambda i: DOCS[i][0], relevant=lambda i: DOCS[i][1]))
    model = Model(
        lambda prompt, images: "no" if greyed(images[0])[-1, 0] else str(np.asarray(images[0])[-1, 0, 0] - 10)
    )
    return model, run(model, "toy_hidden", tmp_path)


def test_each_set_is_hidden_at_once_and_the_adversarial_boxes_hide_no_evidence(asked):
    model, _ = asked
    views = {}
    for _, key, images, _ in model.seen:
        views.setdefault(key // 3, []).append(greyed(images[0]))
    for doc, sides in HIDDEN.items():
        want = [painted([]), *(painted(areas) for areas in sides if areas)]
        assert len(views[doc]) == len(want)
        for got, wanted in zip(views[doc], want, strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_docs_without_a_set_are_counted_and_not_mixed(asked):
    _, result = asked
    records = {one["doc_id"]: one["patch"] for one in result["samples"]["toy_hidden"]}
    excluded = {
        doc: {key: why.partition(":")[0] for key, why in one["excluded"].items()} for doc, one in records.items()
    }
    leaves = dict.fromkeys(("relevant", "adversarial"), "a box that leaves the image")
    assert excluded == {
        0: {}, 1: {}, 2: {"adversarial": "adversarial boxes that lie within relevant ones"},
        3: {"relevant": "relevant boxes that cover the whole image", "adversarial": "adversarial boxes that lie within relevant ones"},
        4: {"relevant": "no relevant box"}, 5: {"adversarial": "no adversarial box"}, 6: leaves,
        7: {"relevant": "no box", "adversarial": "no box"}, 8: {},
    }  # fmt: skip
    for doc, sides in HIDDEN.items():
        shares = [painted(areas).mean() for areas in sides if areas]
        assert [view["hidden"] for view in records[doc]["views"][1:]] == pytest.approx(shares)
        for view in records[doc]["views"][1:]:
            np.testing.assert_array_equal(painted(view["boxes"]), painted(HIDDEN[doc][0 if view["relevant"] else 1]))


def test_numbers_by_hand(asked):
    """Docs 0, 1, 2, 5 and 8 have relevant boxes, which hold the corner.

    0, 1, 4 and 8 adversarial ones, which hold it in doc 4 alone.
    """
    found = metrics(asked[1], "toy_hidden")
    assert (found["exact_match"], found["hidden_relevant"], found["drop_relevant"]) == (1.0, 0.0, 1.0)
    assert (found["hidden_adversarial"], found["drop_adversarial"], found["drop_extra"]) == (0.75, 0.25, 1.0)
    patch = found["patch"]
    assert [patch[f"n_excluded_{key}"] for key in ("relevant", "adversarial")] == [4, 5]
    hidden = patch["analysis"]["hidden"]
    assert (patch["n_both"], hidden["both"]) == (3, 3)
    assert hidden["left_out"]["adversarial"] == {
        "adversarial boxes that lie within relevant ones": 2, "no adversarial box": 1, "a box that leaves the image": 1, "no box": 1,
    }  # fmt: skip
    assert hidden["share_of_both"] == pytest.approx(
        {"relevant": (1 / 3 + 1 / 3 + 2 / 3) / 3, "adversarial": (1 / 3 + 1 / 4 + 1 / 3) / 3}
    )


# --- the embedded benchmark -----------------------------------------------------------------------


def cell_box(cell, width, height):
    """A cell of the 6×6 cells of a sheet, of which the docs say which hold what is asked for."""
    row, column = divmod(cell, 6)
    return [width * column // 6, height * row // 6, width * (column + 1) // 6, height * (row + 1) // 6]


def with_boxes(path: Path, name: str, docs: int) -> None:
    """Write a task of the first docs of an embedded one: the asked digits' cells are relevant, as many others adversarial, drawn at random."""
    source = resource("tasks") / "mosaic"
    rows = datasets.load_dataset(
        "parquet", data_files={"test": str(source / "data" / f"{name}.parquet")}, split=f"test[:{docs}]"
    )
    stream, data = np.random.default_rng(0), []
    for row in rows:
        others = stream.choice(
            [cell for cell in range(36) if cell not in row["cells"]], len(row["cells"]), replace=False
        ).tolist()
        boxes = [cell_box(cell, *row["image"].size) for cell in (*row["cells"], *others)]
        data.append({**row, "boxes": boxes, "relevant": [True] * len(row["cells"]) + [False] * len(others)})
    acc = [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}]
    own = {"doc_to_visual": "!function utils.doc_to_visual", "doc_to_text": "!function utils.doc_to_text"}
    write_task(path, f"boxed_{name}", data, **own, process_results="!function utils.process_results", metric_list=acc)


@pytest.mark.skipif(not DEEP, reason="the made-up models above show it in less time; make test-deep has this test")
def test_the_embedded_model_needs_the_cells_that_hold_the_answer(tmp_path, monkeypatch):
    """Planted: without the asked digit the score falls to chance, without other cells of the same area it does not fall."""
    monkeypatch.setenv("LMMS_PATCH_JOURNAL", "off")
    (tmp_path / "utils.py").write_text((resource("tasks") / "mosaic" / "utils.py").read_text())
    for family in ("mosaic_local", "mosaic_sum"):
        with_boxes(tmp_path, family, 40)
    manager = TaskManager(verbosity="ERROR", include_path=str(tmp_path))
    asked = ["boxed_mosaic_local_hidden", "boxed_mosaic_sum_hidden"]
    result = simple_evaluate(model="mosaic_vlm", tasks=asked, task_manager=manager, batch_size=16, bootstrap_iters=0)
    for name in asked:
        found = metrics(result, name)
        patch = found["patch"]
        assert found["drop_extra"] > 0.3, name
        assert patch["drop_extra_low"] > 0, name
        assert patch["hidden_relevant_low"] <= found["chance"] + 0.1, name
        assert patch["drop_adversarial_low"] <= 0 <= patch["drop_adversarial_high"], name
        shares = patch["analysis"]["hidden"]["share_of_both"]
        assert shares["relevant"] == pytest.approx(shares["adversarial"])
        assert not any("unequal areas" in line for line in patch["analysis"]["warnings"])
