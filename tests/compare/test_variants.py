"""The MAGIC tasks of finished runs: what is set side by side, and what is not."""

import polars as pl
import pytest

from lmms_patch.compare.magic import gather
from lmms_patch.errors import RecordError
from lmms_patch.present.terminal import magic
from lmms_patch.runs import samples
from tests.making.files import reworked
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
    assert [task.label for task in found.tasks] == ["toy", "toy_relevant", "toy_nobox"]
    assert found.tasks[0].result.measures["acc_synonym"].value == 0.5
    # docs 10..19 used R1 and R2 of which R1 is relevant: precision 20 / 30
    assert found.tasks[0].result.measures["magiscore_precision_micro"].value == pytest.approx(2 / 3)
    values = {one.name: one.found.by_name["acc_synonym"].difference.value for one in found.contrasts}
    assert values == {"distraction": 0.25, "boxes": 0.25, "hints": 0.5}
    assert found.notes == ()


def test_variants_of_several_runs_of_a_folder_are_set_together_the_newest_of_each(tmp_path):
    made = variants()
    write_magic_run(tmp_path, {"all": variants(all_right=0)["all"]}, date="20260101_000000")
    write_magic_run(tmp_path, {"all": made["all"]}, date="20260102_000000")
    write_magic_run(tmp_path, {"relevant": made["relevant"]}, date="20260103_000000")
    found = gather([tmp_path])
    assert [one.found.by_name["acc_exact"].difference.value for one in found.contrasts] == [0.25]
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
    assert one.minds[0].endswith("verdict in one of the runs; the difference is +0.250 to +0.450 with the unjudged")
    assert "mind: acc_short: 4 of 20 docs are left out" in magic.contrast_table(one)


def of_magic(path, task, **facts):
    """Say other facts of a task in the footer of its table."""
    table = samples.path_of(path, task)
    reworked(table, magic=samples.about_of(table).magic | facts)


def test_other_judges_are_compared_by_words_alone(tmp_path):
    path = write_magic_run(
        tmp_path, {name: docs for name, docs in variants(short=True, full=True).items() if name != "none"}
    )
    of_magic(path, "toy", judge="other")
    (one,) = gather([tmp_path]).contrasts
    assert "acc_short" not in one.found.by_name
    assert one.minds[0].startswith("toy and toy_relevant differ in judge")


def test_no_magic_task(tmp_path):
    write_run(tmp_path, {"toy_rci2": mc_run(n=20)})
    with pytest.raises(RecordError, match="no MAGIC task with a score in this run; ask for one"):
        gather([tmp_path])
    with pytest.raises(RecordError, match="no such run"):
        gather([tmp_path / "none"])


def test_other_questions_or_boxes_under_the_same_ids_are_not_compared(tmp_path):
    write_magic_run(tmp_path, variants())
    asked = pl.when(doc_id=3).then(pl.lit('{"data": "another question"}')).otherwise(pl.field("asked"))
    table = next(tmp_path.glob("*_samples_toy_relevant.parquet"))
    reworked(table, pl.col("magic").struct.with_fields(asked=asked))
    found = gather([tmp_path])
    assert [one.name for one in found.contrasts] == ["boxes"]
    assert (
        "toy_relevant is not compared with toy: toy_relevant: q3 has another question, answer, image or boxes"
        in found.notes[0]
    )


def test_data_of_other_names_are_named_and_not_compared(tmp_path):
    path = write_magic_run(tmp_path, variants())
    of_magic(path, "toy_relevant", dataset="kitchen")
    found = gather([tmp_path])
    assert [one.name for one in found.contrasts] == ["boxes"]
    assert "toy_relevant is not compared with toy: other data" in found.notes
