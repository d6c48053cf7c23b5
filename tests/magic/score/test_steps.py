"""Steps of a run, to be labelled; and what its table is refused for."""

from dataclasses import replace

import polars as pl
import pytest

from lmms_patch.app.commands.magic_steps import Steps, text
from lmms_patch.errors import RecordError
from lmms_patch.magic.method import read
from lmms_patch.magic.score.steps import Chain, chain_of, rows, sample
from lmms_patch.runs.run import find
from tests.making.files import reworked
from tests.making.magic import doc, write_magic_run

TEXT = "R1 shows a dog. It is brown.\n**Answer**: brown"


@pytest.fixture
def table(tmp_path):
    docs = [doc(f"q{i}", TEXT if i else "", gold="brown", group="g") for i in range(6)]
    write_magic_run(tmp_path, {"all": docs})
    return next(tmp_path.glob("*_samples_*"))


def chains_of(table):
    return [chain_of(record) for record in read(find([table])[0].results[0]).values()]


def test_a_chain_is_what_the_model_said(table):
    chains = chains_of(table)
    assert chains[1] == Chain("q1", "g", "What is in q1?", "brown", "brown", ("R1 shows a dog.", "It is brown."), 2)
    assert chains[0].steps == ()


def test_a_sample_depends_on_seed_and_ids_alone(table):
    chains = chains_of(table)
    three = sample(chains, 3, 1)
    assert three == sample(chains[::-1], 3, 1)
    assert {one.item for one in three} < {one.item for one in sample(chains, 4, 1)}
    assert len({tuple(one.item for one in sample(chains, 3, seed)) for seed in range(20)}) > 3
    assert [one.item for one in sample(chains, None)] == ["q1", "q2", "q3", "q4", "q5"]  # q0 has no step


def test_rows_are_one_a_step(table):
    chains = sample(chains_of(table), 2)
    empty = rows(chains)
    assert [(row.item, row.step, row.annotator, row.correct, row.source) for row in empty[:2]] == [
        (chains[0].item, 1, "", None, "human"),
        (chains[0].item, 2, "", None, "human"),
    ]
    judged = rows(chains, "m", "judge", {chains[0].item: [True, None], chains[1].item: [False, True]})
    assert [row.correct for row in judged] == [1, None, 0, 1]
    assert {row.annotator for row in judged} == {"m"}


CHANGED = [
    ("used", [4], "doc 0: magic: it names box 4 of 3"),
    ("relevant", [None], r"magic.relevant\[0\] must be `int`, not `null`"),
    ("boxes", None, "magic.boxes must be `int`, not `null`"), ("boxes", 20_000, "magic.boxes must be `int` <= 10000"),
    ("exact", None, "magic.exact must be `bool`, not `null`"), ("first", "[" * 2000, "magic.first is not JSON"),
    ("id", "q1", "doc 'q1' is there twice"),
]  # fmt: skip


@pytest.mark.parametrize(("part", "value", "message"), CHANGED)
def test_a_changed_table_is_refused(table, part, value, message):
    first = pl.col("doc_id") == 0
    new = pl.lit(pl.Series([value], dtype=pl.read_parquet_schema(table)["magic"].to_schema()[part])).first()
    inner = pl.col("magic").struct
    reworked(table, inner.with_fields(pl.when(first).then(new).otherwise(inner.field(part)).alias(part)))
    with pytest.raises(RecordError, match=message):
        chains_of(table)


def test_a_row_of_another_task_is_refused(table):
    reworked(table, pl.when(pl.col("doc_id") != 2).then("magic"))
    with pytest.raises(RecordError, match="doc 2: magic is missing"):
        chains_of(table)


def test_a_judge_without_any_verdict_leaves_nothing_to_score(tmp_path):
    lines = tuple(rows([Chain("a", "g", "Is it?", "yes", "yes", ("It is.", "So.", "Yes."), 3)], "m", "judge"))
    found = Steps("toy", lines, 1, 1, 0, 0, "m", 3, ("no answer", "malformed", *"abcde"))
    said = text(found, tmp_path / "judge.jsonl")
    assert "3 steps have no verdict (no answer; malformed; a; b; c; and 2 more reasons)" in said
    assert "score them" not in said
    assert said.endswith("there is nothing to score yet")
    assert "score them" in text(replace(found, unjudged=2, errors=("no answer",)), tmp_path / "judge.jsonl")
