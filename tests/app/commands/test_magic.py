"""The commands of ``lmms-patch magic``: what they print and write, and how they end."""

import json
import re

import pytest
from jsonschema import Draft202012Validator
from PIL import Image

from lmms_patch import commands
from lmms_patch.app import schemas
from lmms_patch.app.cli import main
from lmms_patch.magic.rows import Faults, parse
from lmms_patch.magic.score.selfheal import wrong_runs
from lmms_patch.magic.settings import NAMES
from tests.magic.worlds import World
from tests.making.magic import doc, write_magic_run
from tests.making.runs import mc_run, write_run

DOG, CAT = "R1 has a dog. It is big.\n**Answer**: dog", "R1 and R2 have a cat. It is big.\n**Answer**: cat"


def call(capsys, *words, status=0):
    """What a command prints on stdout."""
    found = main(["magic", *map(str, words)])
    printed = capsys.readouterr()
    assert found == status, printed.err
    return printed.out


def refused(capsys, *words):
    """The one line of a call that is a user's mistake."""
    assert main(["magic", *map(str, words)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    return line.removeprefix("lmms-patch: ")


def written(path):
    return json.loads(path.read_text())


# --- check ----------------------------------------------------------------------------------------


def row(number, **changes):
    good = {
        "id": f"q{number}", "image": "a.png", "question": "Where?", "answer": "left", "full_answer": "It is left.",
        "boxes": [{"box": [2, 2, 10, 10], "relevant": True}, {"box": [20, 20, 30, 30], "relevant": False}],
        "steps": [{"text": text, "correct": text != "R2 is it.", "correction": "R1 is it." * (text == "R2 is it.")} for text in ("I look.", "R2 is it.", "So.", "Left.") ],
    }  # fmt: skip
    return {**good, **changes}


def boxed(*boxes):
    return [{"box": list(box), "relevant": True} for box in boxes]


@pytest.fixture
def data(tmp_path):
    Image.effect_noise((40, 40), 50).convert("RGB").save(tmp_path / "a.png")
    (tmp_path / "broken.png").write_bytes((tmp_path / "a.png").read_bytes()[:300])

    def write(*lines):
        path = tmp_path / "items.jsonl"
        path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
        return path

    return write


def test_a_clean_dataset(capsys, data):
    printed = call(capsys, "check", data(row(1), row(2)))
    assert printed.splitlines() == [
        f"{data(row(1), row(2))}: 2 items, no fault",
        "in it: 1 image; 2 relevant and 2 adversarial boxes; 8 steps of 2 items, 2 of them wrong",
        "Self-Heal: 2 runs of wrong steps to test",
    ]


def test_each_planted_fault_is_named_with_its_line_and_counted(capsys, data, tmp_path):
    """Faults of either level, one a line, by kind (``tests/magic/test_dataset.py`` has all): what the counts must say is what was planted."""
    steps = [{"text": text, "correct": text != "No.", "correction": ""} for text in ("Yes.", "No.", "So.", "Left.")]
    planted = [
        (row(1, boxes=boxed((0, 0, 41, 8))), "error", "box outside the image"),
        (row(2, image="broken.png"), "error", "image unreadable"),
        (row(3, steps=steps), "warning", "correction missing"),
        ("{", "error", "line unreadable"),
        (row(1), "error", "id twice"),
    ]
    path, report = data(*(line for line, _, _ in planted)), tmp_path / "faults.json"
    printed = call(capsys, "check", path, "--json", report, status=1)
    found = written(report)
    for number, (_, level, kind) in enumerate(planted, 1):
        assert (number, level, kind) in {(one["line"], one["level"], one["kind"]) for one in found["faults"]}
        assert f"  line {number}" in printed
    assert (found["items"], found["usable"], found["errors"]) == (5, 1, 4)
    assert "5 items, 1 of them can be used; 4 errors and" in printed
    assert printed.index("errors (4 of 5 items") < printed.index("warnings (the items are used)")
    assert found["counts"]["wrong runs without correction"] == 1
    assert "(left out: 1 without correction)" in printed


def test_warnings_alone_are_no_failure_and_do_not_flood(capsys, data):
    path = data(*(row(n, boxes=boxed((2, 2, 10, 10)), steps=[]) for n in range(30)))
    printed = call(capsys, "check", path)
    assert "  ... and 10 more of: no adversarial box (--json FILE has all)" in printed
    assert printed.count("\n  line ") == 20
    assert "nothing for Self-Heal" in printed


def test_the_item_of_the_documentation_is_a_good_one(request):
    """It has no fault, and Self-Heal tests its wrong step."""
    text = (request.config.rootpath / "docs" / "magic.md").read_text(encoding="utf-8")
    faults = Faults(1)
    item = parse(json.loads(re.search(r"```json\n(.*?)```", text, re.S)[1]), faults)
    assert faults.found == []
    assert [(run.first, run.last) for run in wrong_runs(item.steps).tested] == [(2, 2)]
    assert [name for name in NAMES if not name.startswith("MAGIC_JUDGE") and f"`{name}`" not in text] == []


# --- build ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return World(tmp_path_factory.mktemp("world") / "w")


def inputs(world):
    return [world.folder / "questions.json", world.folder / "scenes.json", world.images]


def test_a_build_says_what_it_made_and_where_to_look(capsys, world, tmp_path):
    printed = call(capsys, "build", *inputs(world), "--saliency", world.maps, "--output", tmp_path / "out")
    # World: five questions on two images; 1a has 2 objects and a hotspot, ... (tests/magic/build/test_builder.py)
    assert printed.startswith(
        "5 items of 5 questions, on 2 images\n14 relevant and 15 adversarial boxes, 4 of these synthetic\n"
    )
    assert "check: 5 items, no error" in printed
    written(tmp_path / "out" / "build.json")
    assert call(capsys, "check", tmp_path / "out").startswith(f"{tmp_path / 'out' / 'items.jsonl'}: 5 items, no fault")


def test_the_weak_split_has_neither_maps_nor_adversarial_boxes(capsys, world, tmp_path):
    weak = ("build", *inputs(world), "--weak", "--output")
    assert "9 relevant and 0 adversarial boxes" in call(capsys, *weak, tmp_path / "weak")


def test_mistakes_of_a_build(capsys, world, tmp_path):
    files = inputs(world)
    assert refused(capsys, "build", *files).startswith("no saliency maps: give --saliency")
    assert refused(capsys, "build", *files, "--weak", "--saliency", world.maps).startswith(
        "the weakly supervised split takes no saliency maps"
    )
    assert "no such folder of images" in refused(capsys, "build", *files[:2], tmp_path / "none", "--weak")
    assert "questions cannot be read" in refused(capsys, "build", tmp_path / "none.json", *files[1:], "--weak")
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refused(capsys, "build", *files, "--weak", "--output", tmp_path / "file")
    assert "cannot be written" in refused(capsys, "build", *files, "--weak", "--output", tmp_path / "file" / "in")
    call(capsys, "build", *files, "--weak", "--output", tmp_path / "out")
    assert "items.jsonl is there already" in refused(capsys, "build", *files, "--weak", "--output", tmp_path / "out")


# --- show -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """20 items on 20 images: right on the first 10 with all boxes, on 15 with the relevant ones."""
    folder = tmp_path_factory.mktemp("run")
    docs = {
        name: [doc(f"q{i}", DOG if i < right else CAT, boxes=boxes) for i in range(20)]
        for name, right, boxes in (("all", 10, 3), ("relevant", 15, 1))
    }
    write_magic_run(folder, docs)
    return folder


def test_show_prints_and_writes_the_same_numbers(capsys, run, tmp_path):
    printed = call(capsys, "show", run, "--json", tmp_path / "a.json")
    assert "acc_synonym                0.500" in printed
    assert "toy_relevant - toy, without adversarial boxes: 20 items in both" in printed
    assert "acc_synonym 0.500 0.750 +0.250" in " ".join(printed.split())
    found = written(tmp_path / "a.json")
    (one,) = found["contrasts"]
    assert one["differences"]["acc_synonym"]["difference"]["value"] == 0.25


def test_lmms_patch_show_has_the_table_too(capsys, run, tmp_path):
    assert main(["show", str(run)]) == 0
    printed = capsys.readouterr().out
    assert "magiscore_f1_macro" in printed
    assert f"lmms-patch magic show {run}" in printed
    assert [task.task for task in commands.show(run).magic] == ["toy", "toy_relevant"]
    assert commands.show(run).shown == []
    write_run(tmp_path, {"toy_rci2": mc_run(n=20)})
    assert "no MAGIC task with a score" in refused(capsys, "show", tmp_path)


# --- steps, stepsense -----------------------------------------------------------------------------


def test_from_a_run_to_stepsense(capsys, run, tmp_path):
    """Two people label three items: the first all steps right, the second one step of each item wrong."""
    for name, verdicts in (("ann", "11"), ("bob", "10")):
        path = tmp_path / f"{name}.jsonl"
        printed = call(capsys, "steps", run, "--task", "toy", "--items", 3, "--annotator", name, "--output", path)
        assert printed.startswith("toy: 6 steps of 3 items (of 20)\n")
        assert f"lmms-patch magic stepsense {path}" in printed
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps({**row, "correct": int(verdicts[row["step"] - 1])}) + "\n" for row in rows))
    files = [tmp_path / "ann.jsonl", tmp_path / "bob.jsonl"]
    printed = call(capsys, "stepsense", *files, "--json", tmp_path / "s.json")
    found = written(tmp_path / "s.json")
    (score,) = found["scores"]
    assert (score["micro"]["value"], score["items"], score["steps"], score["disputed"]) == (0.75, 3, 6, 3)
    assert (score["agreement"]["agreed"]["value"], score["agreement"]["kappa"]["value"]) == (0.5, 0)
    assert found["clustered"]
    assert "human ann, bob 3 6 0.750" in " ".join(printed.split())
    assert "StepSense (micro)" in printed


def test_labels_are_not_overwritten(capsys, run, tmp_path):
    path = tmp_path / "steps.jsonl"
    call(capsys, "steps", run, "--output", path)
    for line in path.read_text().splitlines():
        Draft202012Validator(schemas.load("magic-label")).validate(json.loads(line))
    before = path.read_bytes()
    assert "is there already, and may hold labels" in refused(capsys, "steps", run, "--items", 2, "--output", path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--items", "0"], "items is 0; allowed: 1 or more"),
        (["--task", "toy_relevnt"], "name one MAGIC task with steps of its own by --task"),
        (["--judge", "m", "--annotator", "a"], "annotator and judge exclude each other"),
    ],
)
def test_mistakes_of_steps(capsys, run, tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    assert says in refused(capsys, "steps", run, *words)
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_steps(capsys, tmp_path):
    write_magic_run(tmp_path, {"all": [doc("q", "")]})
    assert "no response of toy has a reasoning step" in refused(
        capsys, "steps", tmp_path, "--output", tmp_path / "a.jsonl"
    )
