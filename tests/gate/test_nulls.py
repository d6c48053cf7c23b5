"""Rules and luck: a model must look, and a contradicted index does not pass."""

import pytest

from tests.gate.running import gate, rules_file
from tests.making import lean
from tests.making.runs import (
    again_run,
    guesses_on_cells,
    never_looks,
    one_cell_knows,
    world_run,
    write_run,
)
from tests.sizes import size

LOOKS = {"require": "looks"}


def ran(folder, model, *, docs=300, null=True, grid=3, kind="rci"):
    """The folder of a finished run of a planted model"""
    write_run(folder, {f"toy_{kind}{grid}": world_run(model if null else unasked(model), n=docs, grid=grid, kind=kind)})
    return folder


def again(folder, needs, grid):
    """The same of a model of which it is known what it needs, with every doc asked again."""
    write_run(folder, {f"toy_pcri{grid}": again_run(needs, grid=grid, kind="pcri")})
    return folder


def unasked(model):
    return lambda stream, gold: (model(stream, gold)[0], None)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = tmp_path_factory.mktemp("runs")
    return {
        "never": ran(made / "never", never_looks, kind="pcri"),
        "guesses": again(made / "guesses", ("whole", "whole", "whole", "unsolved"), 3),
        "known": ran(made / "known", one_cell_knows, grid=2, kind="pcri"),
        "cell": again(made / "cell", ("cell", "cell", "cell", "unsolved"), 2),
        "before": ran(made / "before", guesses_on_cells, docs=size(500, 1000), null=False, kind="pcri"),
    }


def test_a_model_that_never_looks_does_not_comply(capsys, tmp_path, folders):
    """Its answers are the same on every view, so |PCRI| is 0, which keeps any limit; it fails for what it is."""
    ended = gate(capsys, tmp_path, folders["never"], "model-compliance")
    assert ended.status == 1
    for metric in ("gate", "looks"):
        assert ended.of(metric=metric)["verdict"] == "fail"
        assert ended.of(metric=metric)["reason"].startswith("the answers do not depend on the image")
    assert ended.of(metric="|pcri3|")["reason"].startswith("not defined: the answers do not depend on the image")


def test_a_benchmark_that_is_answered_without_looking_is_not_released(capsys, tmp_path):
    write_run(tmp_path / "out" / "rci", {"toy_rci3": again_run(("text",), n=300, grid=3)})
    lean.write(tmp_path / "out" / "tst", [lean.stressed()])
    ended = gate(capsys, tmp_path, tmp_path / "out", "benchmark-release")
    assert ended.status == 1
    assert (ended.of(rule="needs the image")["verdict"], ended.of(rule="enough docs", task="toy_rci3")["verdict"]) == (
        "fail",
        "pass",
    )


@pytest.mark.parametrize(
    ("needs", "verdict"),
    [
        (("whole",), "pass"),
        (("whole", "whole", "whole", "cell", "unsolved"), "pass"),
        (("cell", "cell", "cell", "unsolved"), "fail"),
        (("text", "text", "text", "whole"), "fail"),
        (("text", "cell", "whole"), "fail"),
        (("cell", "whole"), "inconclusive"),
    ],
)
def test_a_benchmark_is_released_where_most_of_what_is_solved_needs_the_whole_image(capsys, tmp_path, needs, verdict):
    """Shares are planted: a half is neither shown nor ruled out."""
    write_run(tmp_path / "out" / "rci", {"toy_rci3": again_run(needs, n=300, grid=3)})
    lean.write(tmp_path / "out" / "tst", [lean.stressed(n=2000, accuracy=0.25)])
    ended = gate(capsys, tmp_path, tmp_path / "out", "benchmark-release")
    one = ended.of(metric="needs_whole3")
    assert one["verdict"] == verdict
    solved = [need for need in needs if need != "unsolved"]
    assert one["value"]["low"] <= solved.count("whole") / len(solved) <= one["value"]["high"]
    if verdict == "pass":
        assert ended.status == 0


OLD = ("text", "cell", "whole", "whole")


@pytest.mark.parametrize(
    ("needs", "guesses", "status"),
    [
        (OLD, False, 0),
        (OLD, True, 0),
        (("text", "cell", "text", "text"), True, 1),
        (("text", "cell", "cell", "cell"), True, 1),
        (("text", "cell", "unsolved", "unsolved"), False, 1),
    ],
    ids=["abstains", "guesses otherwise", "text in place of the image", "a cell in its place", "solves less"],
)
def test_a_model_regresses_where_it_uses_the_whole_image_less(capsys, tmp_path, needs, guesses, status):
    """A model that abstains on cells where it guessed has another RCI, and is no worse; one that no longer looks as well is."""
    write_run(tmp_path / "old", {"toy_rci3": again_run(OLD, n=500, grid=3)})
    write_run(tmp_path / "new", {"toy_rci3": again_run(needs, n=500, grid=3, guesses=guesses, answers=1)})
    ended = gate(capsys, tmp_path, tmp_path / "new", "model-regression", tmp_path / "old")
    assert ended.status == status, ended.out
    if not guesses and not status:
        assert ended.of(metric="whole3")["verdict"] != "fail"
        rule = rules_file(tmp_path, {"metric": "rci3", "max_rise": 0, "margin": 0.05})
        assert gate(capsys, tmp_path, tmp_path / "new", rule, tmp_path / "old").status == 1, (
            "RCI of one pass would fail it"
        )


def test_a_run_without_a_null_does_not_comply_silently(capsys, tmp_path, folders):
    ended = gate(capsys, tmp_path, folders["before"], "model-compliance")
    assert ended.status == 3
    one = ended.of(metric="looks")
    assert (one["verdict"], one["value"]["low"], one["value"]["high"]) == ("inconclusive", 0, 1)
    assert one["reason"].startswith("not checked whether the answers depend on the image")
    assert "run it again with the option 'null'" in one["reason"]
    assert ended.of(metric="gate")["reason"].startswith("not checked whether the answers depend on the image")


def test_looks_is_asked_alone_or_with_the_gate(asked, folders):
    for require in ("looks", ["looks"], ["valid gate", "looks"]):
        assert asked(folders["known"], {"require": require}).status == 0
        assert asked(folders["never"], {"require": require}).status == 1
    assert asked(folders["before"], LOOKS).status == 3
    ended = asked(folders["before"], {**LOOKS, "inconclusive": "warn"})
    assert (ended.status, ended.of()["warned"]) == (0, True)
    # or cutting the wrong images out of the samples would turn a failure into a pass
    assert asked(folders["before"], {"require": "valid gate"}).status == 3


def test_a_rule_may_ask_the_steady_index(asked, folders):
    """Of a model that knows the answer from a cell it is 0, and passes; of one that guesses on cells it is 1, though one pass says less than 0."""
    assert asked(folders["cell"], {"metric": "rci2_steady", "max": 0.3}).status == 0
    assert asked(folders["guesses"], {"metric": "rci3_steady", "max": 0.3}).status == 1
    ended = asked(folders["known"], {"metric": "rci2_steady", "max": 0.3})
    assert ended.status == 2, "no doc was asked again"


def test_a_contradicted_index_does_not_pass(asked, folders):
    """|-0.1| is within 0.3, but asked again it is 1: a pass is not shown. A fail stays one."""
    ended = asked(folders["guesses"], {"metric": "pcri3", "max": 0.3, "absolute": True})
    assert ended.status == 3
    assert ended.of()["reason"].startswith("contradicted: from one pass -0.")
    assert ", contradicted" in ended.out
    assert asked(folders["guesses"], {"metric": "pcri3", "max": -0.5}).status == 1
