"""The MAGIC tasks of finished runs: what is set side by side, and what is not."""

import json

import pytest

from lmms_patch.compare.variants import gather, lines_of
from lmms_patch.errors import OptionError, RecordError
from lmms_patch.present.terminal import magic
from tests.making.magic import doc, write_magic_run
from tests.making.runs import mc_run, write_run

DOG, CAT = "R1 has a dog.\n**Answer**: dog", "R1 and R2 have a cat.\n**Answer**: cat"
N = 20


def variants(all_right=10, relevant_right=15, none_right=5, **more):
    """Docs of three variants, of which the first so many are answered right."""

    def docs(right, **how):
        return [doc(f"q{i}", DOG if i < right else CAT, **how, **more) for i in range(N)]

    return {
        "all": docs(all_right),
        "relevant": docs(relevant_right, boxes=1),
        "none": docs(none_right, boxes=0, relevant=()),
    }


def test_three_variants_of_one_run(tmp_path):
    write_magic_run(tmp_path, variants())
    found = gather([tmp_path])
    assert [task.task for task in found.tasks] == ["toy", "toy_relevant", "toy_nobox"]
    assert found.tasks[0].numbers["acc_synonym"].value == 0.5
    # docs 10..19 used R1 and R2 of which R1 is relevant: precision 20 / 30
    assert found.tasks[0].numbers["magiscore_precision_micro"].value == pytest.approx(2 / 3)
    values = {one.found.name: one.found.differences["acc_synonym"].estimate.value for one in found.contrasts}
    assert values == {"distraction": 0.25, "boxes": 0.25, "hints": 0.5}
    assert found.notes == ()


def test_variants_of_several_runs_of_a_folder_are_set_together_the_newest_of_each(tmp_path):
    made = variants()
    write_magic_run(tmp_path, {"all": variants(all_right=0)["all"]}, date="20260101_000000")
    write_magic_run(tmp_path, {"all": made["all"]}, date="20260102_000000")
    write_magic_run(tmp_path, {"relevant": made["relevant"]}, date="20260103_000000")
    found = gather([tmp_path])
    assert [one.found.differences["acc_exact"].estimate.value for one in found.contrasts] == [0.25]
    assert found.notes == ("1 older result of the same tasks left aside",)


def test_what_the_unjudged_could_change_of_a_contrast_is_told(tmp_path):
    """All boxes: 10 of 20 right, all judged.

    Relevant ones: 15 right of the first 16, and 4 without a verdict: +5/20 to +9/20.
    """

    def judged(right, known, **how):
        return [
            doc(f"q{i}", DOG, short=i < right if i < known else None, judge={"model": "j", "short": {}}, **how)
            for i in range(N)
        ]

    write_magic_run(tmp_path, {"all": judged(10, 20), "relevant": judged(15, 16, boxes=1)})
    (one,) = gather([tmp_path]).contrasts
    assert [end.estimate.value for end in one.found.bounds["acc_short"]] == [
        pytest.approx(5 / 20),
        pytest.approx(9 / 20),
    ]
    assert "acc_short: the difference is +0.250 to +0.450 with the unjudged" in one.minds
    assert "mind: acc_short: the difference is" in magic.contrast_table(one)


def test_models_are_not_mixed(tmp_path):
    write_magic_run(tmp_path / "a", {"all": variants()["all"]}, model="a")
    write_magic_run(tmp_path / "b", {"relevant": variants()["relevant"]}, model="b")
    found = gather([tmp_path])
    assert [(task.model, task.task) for task in found.tasks] == [("a", "toy"), ("b", "toy_relevant")]
    assert found.contrasts == ()
    assert "\n\nb\n\n" in magic.text(found)


def test_other_data_under_the_same_name_is_not_compared(tmp_path):
    made = variants()
    write_magic_run(tmp_path / "a", {"all": made["all"], "relevant": variants(gold="wolf")["relevant"]})
    found = gather([tmp_path / "a"])
    assert found.contrasts == ()
    assert "item q0 has the gold 'dog' in one and 'wolf' in the other: other data" in found.notes[0]


def test_other_judges_are_compared_by_words_alone(tmp_path):
    path = write_magic_run(
        tmp_path, {name: docs for name, docs in variants(short=True, full=True).items() if name != "none"}
    )
    data = json.loads(path.read_text())
    data["results"]["toy"]["magic,none"]["magic"]["judge"] = "other"
    path.write_text(json.dumps(data))
    (one,) = gather([tmp_path]).contrasts
    assert "acc_short" not in one.found.differences
    assert one.minds[0].startswith("toy and toy_relevant differ in judge")


def test_a_lines_of_another_run_is_found_out(tmp_path):
    write_magic_run(tmp_path / "one", variants())
    write_magic_run(tmp_path / "two", variants(all_right=3))
    name = "20260101_000000_samples_toy.jsonl"
    (tmp_path / "one" / name).write_text((tmp_path / "two" / name).read_text())
    found = gather([tmp_path / "one"])
    assert [one.found.name for one in found.contrasts] == ["hints"]
    assert "but the run reported 0.6667; the log is of another run, or was changed" in found.notes[0]
    assert str(tmp_path) not in found.notes[0]  # notes stand in reports that others read
    lines = (tmp_path / "one" / name).read_text().splitlines()[:-1]
    (tmp_path / "one" / name).write_text("\n".join(lines) + "\n")
    assert ": 19 docs, but the run scored 20" in gather([tmp_path / "one"]).notes[0]


def test_without_logs_there_are_numbers_and_no_contrasts(tmp_path):
    write_magic_run(tmp_path, variants(), log=False)
    found = gather([tmp_path])
    assert len(found.tasks) == 3
    assert found.contrasts == ()
    assert "run with --log_samples" in found.notes[0]


def test_no_magic_task(tmp_path):
    write_run(tmp_path, {"toy_rci2": mc_run(n=20)})
    with pytest.raises(RecordError, match="no MAGIC task in this run; ask for one"):
        gather([tmp_path])
    with pytest.raises(RecordError, match=r"no \*_results\.json here"):
        gather([tmp_path / "none"])


def test_which_task_has_the_steps(tmp_path):
    write_magic_run(tmp_path, variants())
    assert lines_of(tmp_path)[0] == "toy"
    assert lines_of(tmp_path, "toy_nobox")[0] == "toy_nobox"
    with pytest.raises(OptionError, match="no task 'toy_nobx' with steps of its own; did you mean toy_nobox"):
        lines_of(tmp_path, "toy_nobx")
    write_magic_run(tmp_path / "b", variants(), model="b")
    with pytest.raises(OptionError, match="several tasks"):
        lines_of(tmp_path)
    write_magic_run(tmp_path / "c", {"relevant": variants()["relevant"], "none": variants()["none"]})
    with pytest.raises(OptionError, match=r"several tasks .*toy_nobox.*toy_relevant.*--task"):
        lines_of(tmp_path / "c")


def changed(path, task, **about):
    """The results file with other facts about a task."""
    data = json.loads(path.read_text())
    data["results"][task]["magic,none"]["magic"] |= about
    path.write_text(json.dumps(data))


def test_other_questions_or_boxes_under_the_same_ids_are_not_compared(tmp_path):
    write_magic_run(tmp_path, variants())
    log = next(tmp_path.glob("*_samples_toy_relevant.jsonl"))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    lines[3]["magic"]["asked"]["data"] = "another question"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = gather([tmp_path])
    assert [one.found.name for one in found.contrasts] == ["boxes"]
    assert (
        "toy_relevant is not compared with toy: item q3 has another question, answer, image or boxes" in found.notes[0]
    )


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"seed": 7}, "the numbering of boxes"),
        ({"examples": ["k"]}, "in-context examples"),
        ({"prompts": 2}, "the prompt's wording"),
        ({"pixels": 2}, "how boxes are drawn"),
    ],
)
def test_what_else_differs_is_said(tmp_path, about, said):
    path = write_magic_run(tmp_path, variants())
    changed(path, "toy_relevant", **about)
    distraction = gather([tmp_path]).contrasts[0]
    assert any(f"differ in {said}" in line for line in distraction.minds)


def test_data_of_other_names_are_named_and_not_compared(tmp_path):
    path = write_magic_run(tmp_path, variants())
    changed(path, "toy_relevant", dataset="kitchen")
    found = gather([tmp_path])
    assert [one.found.name for one in found.contrasts] == ["boxes"]
    assert "toy_relevant (of kitchen) is not compared with toy (of toy): other data" in found.notes
