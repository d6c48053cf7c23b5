"""The golden numbers: ``tests.golden`` says what they are made of. ``make test`` replays some scenes, ``make test-deep`` all."""

from collections import defaultdict

import pytest

from lmms_patch.ask.kinds import KINDS
from tests import golden
from tests.golden.scenes import SCENES
from tests.sizes import DEEP


@pytest.fixture(scope="module")
def before():
    """The stored numbers, by scene."""
    found = defaultdict(list)
    for row in golden.table():
        found[row.scene].append(row)
    return found


@pytest.mark.parametrize("name", [name for name, scene in SCENES.items() if DEEP or scene.quick])
def test_every_number_stays(name, before, tmp_path):
    names = dict.fromkeys(filter(None, [SCENES[name].of, name]))
    rows = [row for row in golden.every(tmp_path, names) if row.scene == name]
    assert not sorted(golden.differences(before[name], rows))[:20]


def test_the_scenes_can_see_a_loss(before):
    """Each form of an aggregation, and none; several filters and metrics; each state of an answer; each kind."""
    assert set(before) == set(SCENES)
    measures = {name: {(row.task, row.measure): row.value for row in rows} for name, rows in before.items()}
    assert measures["mme"]["pairs_rci2", "metric mme_cognition_score"] is not None
    assert {task for task, _ in measures["filters"]} == {"pipes_rci2, as it is", "pipes_rci2, digits"}
    assert {"exact", "length"} <= {measure for _, measure in measures["metrics"]}
    assert measures["states"]["odd_rci2", "analysis.failed.docs"] > 0
    assert measures["items"]["parsed_rci2", "rci2"] is not None
    assert measures["corpus"]["said_rci2", "rci2"] is not None
    assert measures["lora"]["words_tst2", "tst_delta"] is not None
    named = ",".join(scene.tasks for scene in SCENES.values())
    assert [kind for kind in KINDS if f"_{kind}" not in named and kind != "magic"] == []


def test_a_difference_is_seen(before):
    rows = before["f1"]
    at = next(at for at, row in enumerate(rows) if row.value not in (None, 0.0))
    near, far = (
        [*rows[:at], rows[at]._replace(value=rows[at].value * (1 + step)), *rows[at + 1 :]] for step in (1e-12, 1e-6)
    )
    assert not list(golden.differences(rows, near))
    assert len(list(golden.differences(rows, far))) == 1
    assert len(list(golden.differences(rows, rows[1:]))) == 1
    gone = [*rows[:at], rows[at]._replace(value=None), *rows[at + 1 :]]
    assert len(list(golden.differences(rows, gone))) == 1


def test_another_view_finds_no_answer():
    """The key is every pixel and the prompt."""
    from PIL import Image

    image = Image.new("RGB", (4, 4))
    other = image.copy()
    other.putpixel((3, 3), (0, 0, 1))
    keys = {
        golden.digest("a", [image]),
        golden.digest("a", [other]),
        golden.digest("b", [image]),
        golden.digest("a", []),
    }
    assert len(keys) == 4
