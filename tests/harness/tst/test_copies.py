"""Copies end to end: a balanced set that is answered in reverse, from the task to the verdict."""

import pytest

from lmms_patch.app.cli import main
from tests.harness import toys as harness_toys
from tests.harness.tst.pruning import save
from tests.harness.tst.toys import Rf, details, tst_of, write

CAPTIONS = 60


@pytest.fixture(scope="module")
def balanced(tmp_path_factory):
    """60 captions of one picture each and the next, true of one of the two: a chain of captions and pictures.

    The folder, and its results.
    """
    folder = tmp_path_factory.mktemp("balanced")
    rows = []
    for j in range(CAPTIONS):
        for side in (0, 1):
            scene, right = f"scene {(j + side) % CAPTIONS}", side == j * 7 % 3 % 2
            order = ["true", "false"] if (j + side) % 2 else ["false", "true"]
            rows.append(
                {
                    "question": f"Thing {j} is left of it.",
                    "choices": order,
                    "answer": "AB"[order.index("true" if right else "false")],
                    "scene": scene,
                }
            )
    write(folder, rows=rows, profile={"group": "scene", "choices": "choices", "fold_seeds": 2})
    results = harness_toys.run(Rf(trees=20, groupings="all"), "toy_tst5", folder)
    save(folder / "out", dict(results))
    return folder, results


def test_the_number_is_there_and_its_verdict_is_withheld(balanced, capsys):
    folder, results = balanced
    found = details(results)["tst_details"]
    assert found["headline"] == "source"
    assert "a chain of shared sources and texts connects 120 of 120 docs" in found["unusable"]["joined"]
    assert found["texts"] == {"different": 60, "repeated": 120, "conflicting": 120, "near": 0}, (
        "options in any order, golds by their texts"
    )
    head = found["by_grouping"]["source"]
    assert head["accuracy"]["value"] > 0.7
    assert head["withheld"] == "conflicting"
    assert {name: one["docs"] for name, one in head["copies"].items()} == {
        "agreeing": 0,
        "conflicting": 120,
        "single": 0,
    }
    assert {record["copies"] for record in tst_of(results)} == {"conflicting"}
    assert found["by_grouping"]["text"]["withheld"] is None
    assert main(["show", str(folder / "out"), "--wide"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        "A text-only model answers copies of a question in reverse, which is no shortcut of the language, in toy"
        in printed
    )
    assert "toy_tst5: the verdict is withheld" in printed
    assert (
        "100 % of the questions stand more than once (60 different texts), 100 % with different answers; without copies"
        in printed
    )
