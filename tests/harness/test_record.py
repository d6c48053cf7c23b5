"""The table of a run is the same for the same answers: of one rank or two, killed and resumed, in any order of rows; a quick run's is a part of it."""

import re
from argparse import Namespace

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from lmms_patch.errors import RecordError
from lmms_patch.harness.asking import in_portions as portions
from lmms_patch.harness.wrap.task import WrappedTask
from lmms_patch.runs import cache, samples
from lmms_patch.runs.numbers import to_json
from lmms_patch.runs.run import find
from lmms_patch.runs.schema import OF_DOC, OF_VIEW
from tests.harness.askers import Counting, Killed, PerRequestK, written
from tests.harness.toys import Model, rows, run, write_task
from tests.sizes import size, some

DOCS = size(16, 60)
TEXTS = ["a cat", "a dog", "a pig", "an ox"]
KINDS = ("rci3", "pcri2", "rcicurve", "lowres", "rotate", "regions", "hidden")
MORE = ("swap2", "occlude2", "shuffle2", "blind", "blank")
"""Kinds without an index, or whose views are not the doc's own."""
SCENES = "scenes_rci2"
"""Two docs in each scene, and docs of a scene stay together when intervals are drawn."""
TASKS = [*(f"toy_{kind}" for kind in (*KINDS, *MORE)), SCENES]


def answer(prompt, images):
    """The gold's letter for two views in three, by the pixels and the size of the image; else some letter."""
    *place, doc = images[0].getpixel((0, 0))[:3] if images else (0, 0, len(prompt))
    known = images and (sum(place) + 3 * doc + images[0].width // 6) % 7 > 2
    if known and (letter := re.search(rf"\((\w)\) {TEXTS[doc % 4]}\b", prompt)):
        return letter.group()[:3]
    return f"({'ABCD'[(sum(place) + doc + len(prompt)) % 4]})"


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    columns = {
        "question": lambda i: f"Which is {i}?",
        "choices": lambda i: TEXTS,
        "answer": lambda i: f"({'ABCD'[i % 4]})",
        "scene": lambda i: f"scene {i // 2}",
        "boxes": lambda i: [[0, 0, 20, 60], [40, 0, 60, 60]],
        "relevant": lambda i: [True, False],
    }
    listed = "{{question}}\n{% for one in choices %}({{ 'ABCD'[loop.index0] }}) {{ one }}\n{% endfor %}Answer."
    options = {"null": 10, "choices": "choices", "format": "mc"}
    for name, more in (("toy", {}), ("scenes", {"cluster": "scene"})):
        write_task(folder, name, rows(DOCS, **columns), doc_to_text=listed, metadata={"lmms_patch": options | more})
    return folder


@pytest.fixture(scope="module")
def results(tasks):
    return run(Model(answer), TASKS, tasks)


@pytest.fixture(scope="module")
def of_two_ranks(tasks):
    """The same with docs in the order in which the first of two ranks gathers them: it takes every second doc, and then come the other rank's."""
    plain = WrappedTask.doc_iterator

    def gathered(self, **kwargs):
        docs = list(plain(self, **kwargs))
        return iter(docs[::2] + docs[1::2])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WrappedTask, "doc_iterator", gathered)
        return run(Model(answer), TASKS, tasks)


def table(found, task):
    """The rows that a run writes of a task."""
    return found["results"][task]["patch,none"].frame()


@pytest.mark.parametrize("task", some(TASKS))
def test_two_ranks_leave_the_table_and_the_numbers_of_one(results, of_two_ranks, task):
    assert [one["doc_id"] for one in of_two_ranks["samples"][task]] == [*range(0, DOCS, 2), *range(1, DOCS, 2)]
    assert_frame_equal(table(of_two_ranks, task), table(results, task))
    one, two = (found["results"][task] for found in (results, of_two_ranks))
    assert {name: str(value) for name, value in two.items()} == {name: str(value) for name, value in one.items()}


@pytest.mark.parametrize("task", some([*(f"toy_{kind}" for kind in KINDS), SCENES]))
def test_no_number_depends_on_the_order_of_rows(results, task, tmp_path):
    alone = {key: {task: value[task]} for key in ("results", "configs", "n-samples") if task in (value := results[key])}
    [run] = find([written(alone, tmp_path / "run", task)])
    [result] = run.results
    numbers = to_json(cache.compute(result))
    for seed in range(size(1, 3)):
        rows = pl.read_parquet(result.path).sample(fraction=1, shuffle=True, seed=seed)
        samples.write(result.path, rows, result.about)
        assert to_json(cache.compute(find([result.path])[0].results[0])) == numbers


def asked(tasks, out, model, names):
    cli = Namespace(output_path=str(out), process_with_media=False, reasoning_tags=None, model="m", model_args="", batch_size=1)  # fmt: skip
    return run(model, names, tasks, cli_args=cli)


def test_a_run_that_was_killed_and_resumed_leaves_the_table_of_one_that_was_not(tasks, tmp_path):
    """Tokens among its columns."""
    for lives in (40, 90):
        with pytest.raises(Killed):
            asked(tasks, tmp_path / "killed", Counting(lives), "toy_rci3,toy_blank")
    again = asked(tasks, tmp_path / "killed", survivor := Counting(), "toy_rci3,toy_blank")
    whole = asked(tasks, tmp_path / "whole", first := Counting(), "toy_rci3,toy_blank")
    assert len(survivor.asked) < len(first.asked)
    for task in ("toy_rci3", "toy_blank"):
        assert_frame_equal(table(again, task), table(whole, task))
        assert table(whole, task)["tokens_out"].null_count() == 0


def test_the_rows_of_a_quick_run_are_those_of_the_full_run(tmp_path, monkeypatch):
    """Apart from the best views of docs that were not asked whole, and the plan."""
    monkeypatch.setattr(portions, "SECONDS", 1e9)
    options = {"null": 20, "pilot": 30, "precision": 0.12, "seed": 1}
    write_task(tmp_path / "tasks", "toy", rows(150), metadata={"lmms_patch": options})
    found = asked(tmp_path / "tasks", tmp_path / "out", PerRequestK(), "toy_rci3,toy_rci3_quick")
    full, quick = (table(found, name).with_columns(pl.col("swapped").fill_null(False)) for name in ("toy_rci3", "toy_rci3_quick"))  # fmt: skip
    quick = quick.filter(pl.col("answer").is_not_null())
    key = ["doc_id", "swapped", "kind", "cell"]
    # lists of a doc stand in its first row, which a quick run may not have asked
    own = [name for name in OF_VIEW + OF_DOC if name in full.columns and name not in ("view", "best")]
    whole = full.join(quick.select(key), on=key, how="semi", nulls_equal=True)
    assert 0 < len(quick) < len(full)
    assert_frame_equal(whole.select(own).sort(key), quick.select(own).sort(key))


def test_a_rank_s_part_alone_is_not_a_run(results, tmp_path):
    task = "toy_rci3"
    alone = {key: {task: results[key][task]} for key in ("results", "configs", "n-samples")}
    [table_] = written(alone, tmp_path / "run", task).glob("*_samples_*.parquet")
    samples.write(table_, pl.read_parquet(table_).filter(pl.col("doc_id") % 2 == 0), samples.about_of(table_))
    with pytest.raises(RecordError, match=f"{DOCS // 2} docs have rows, but the harness asked {DOCS}; a rank's part"):
        find([tmp_path])
