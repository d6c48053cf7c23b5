"""Runs that are killed and started again: nothing is lost but the portion at hand, and the numbers are those of an undisturbed run."""

import json
from argparse import Namespace

import pytest

from lmms_patch.harness.asking import journal
from tests.harness import toys
from tests.harness.askers import KINDS, Killed, PerRequest, pixels, without_kept, written
from tests.harness.toys import rows, write_task
from tests.sizes import size

DOCS = 12
NULL = 4
"""Docs that are also asked on the whole of a wrong image."""
PORTION = 16


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    write_task(folder, "toy", rows(DOCS), metadata={"lmms_patch": {"null": NULL}})
    write_task(folder, "other", rows(DOCS, task=1))
    words = {"options": lambda i: ["red", "blue"], "answer": lambda i: i % 2}
    write_task(folder, "choice", rows(DOCS, **words), output_type="multiple_choice", doc_to_choice="options", generation_kwargs=None,
               metric_list=[{"metric": "acc", "aggregation": "mean", "higher_is_better": True}])  # fmt: skip
    return folder


def asked_in(folder, model, tasks, names="toy_rci3", /, **options):
    """Run as the command line does, into a folder.

    What comes out, without what differs from run to run and how many answers were there before.
    """
    return dumped(without_kept(found_in(folder, model, tasks, names, **options)))


def dumped(found):
    return json.dumps([found["results"], found["samples"]], sort_keys=True, default=str)


def found_in(folder, model, tasks, names, /, run=None, **options):
    """All that comes out of a run as the command line does it, into a folder."""
    cli = Namespace(
        output_path=str(folder),
        process_with_media=False,
        reasoning_tags=None,
        model=type(model).__name__,
        model_args="",
        batch_size=1,
    )
    vars(cli).update(options)
    return toys.run(model, names, tasks, cli_args=cli, **(run or {}))


def files(folder):
    return sorted(path.name for path in folder.rglob("*.jsonl"))


@pytest.mark.parametrize("kind", size(KINDS[1::2], KINDS), ids=lambda kind: kind.__name__)
def test_a_killed_run_goes_on_where_it_was(kind, tasks, tmp_path):
    whole = asked_in(tmp_path / "whole", first := kind(), tasks, "toy_rci3,other_rci2")
    planned = len(first.asked)
    assert planned == len(set(first.asked)) == 10 * DOCS + NULL + 5 * DOCS
    seen = []
    for lives in (0, 5, 40, 100):
        with pytest.raises(Killed):
            asked_in(tmp_path / "killed", dying := kind(lives), tasks, "toy_rci3,other_rci2")
        seen.append(dying.asked)
    last = asked_in(tmp_path / "killed", survivor := kind(), tasks, "toy_rci3,other_rci2")
    assert last == whole
    every = [request for part in (*seen, survivor.asked) for request in part]
    assert set(every) == set(first.asked)
    assert len(every) - planned <= PORTION * len(seen), "at most one portion is asked again for each kill"
    assert len(survivor.asked) <= planned - 40 - 100 + 2 * PORTION


@pytest.mark.parametrize(
    "change",
    [{"model": "Another"}, {"model_args": "temperature=1"}, {"system_instruction": "Think."}, {"seed": [1, 2, 3, 4]}],
    ids=str,
)
def test_nothing_is_taken_from_another_model(tasks, tmp_path, change):
    with pytest.raises(Killed):
        asked_in(tmp_path, PerRequest(100), tasks)
    asked_in(tmp_path, survivor := PerRequest(), tasks, "toy_rci3", **change)
    assert len(survivor.asked) == 10 * DOCS + NULL


@pytest.mark.parametrize(
    "change",
    [
        {"doc_to_text": "Please: {{question}}"},
        {"generation_kwargs": {"max_new_tokens": 5}},
        {"metadata": {"lmms_patch": {"null": NULL, "min_cell": 40}}},
        {"data": rows(DOCS, image=lambda i: toys.coded_image(i, task=2 if i == 3 else 0))},
        {"data": rows(DOCS, question=lambda i: f"question {i % 3}?" if i != 3 else "question 5?")},
    ],
    ids=["prompt", "settings", "cut", "image", "question"],
)
def test_nothing_is_taken_from_other_data_or_options(tmp_path, change):
    """Of one changed doc the other docs' answers are taken, as far as their wrong image is not the changed one."""
    folder, out = tmp_path / "tasks", tmp_path / "out"
    metadata = {"metadata": {"lmms_patch": {"null": NULL}}}
    write_task(folder, "toy", rows(DOCS), **metadata)
    with pytest.raises(Killed):
        asked_in(out, dying := PerRequest(10 * DOCS), folder)
    data = change.pop("data", None)
    write_task(folder, "toy", data or rows(DOCS), **{**metadata, **change})
    again = asked_in(out, survivor := PerRequest(), folder)
    assert again == asked_in(tmp_path / "fresh", fresh := PerRequest(), folder)
    kept = set(dying.asked[: 10 * DOCS // PORTION * PORTION])
    asked_again = kept & set(survivor.asked)
    if data is None:
        assert survivor.asked == fresh.asked
    else:
        of_the_doc = {one for one in kept if one[1] // (10 + 1) == 3}
        assert of_the_doc <= asked_again < kept


@pytest.mark.parametrize(
    ("code", "asked_anew"),
    [
        ("def helper(image):\n    return image.rotate(90)\n", True),
        ("def helper(image):\n    return image  # as it is\n", False),
        ("def helper(image):\n    return image\n\ndef score(doc, results):\n    return {'exact_match': 0}\n", False),
    ],
    ids=["what is shown", "a comment", "another function"],
)
def test_the_code_that_shows_a_doc_counts(tmp_path, code, asked_anew):
    from lmms_patch.harness.names import effects

    folder, show = tmp_path / "tasks", "\ndef visual(doc):\n    return [helper(doc['image'])]\n"
    write_task(folder, "toy", rows(DOCS), doc_to_visual="!function utils.visual", metadata={"lmms_patch": {"null": 0}})
    asked = []
    for text in ("def helper(image):\n    return image\n", code):
        (folder / "utils.py").write_text(text + show)
        for kept in (effects.Module.of, effects._reach):  # another process would read the file anew
            kept.cache_clear()
        asked_in(tmp_path / "out", model := PerRequest(), folder)
        asked.append(len(model.asked))
    assert asked == [10 * DOCS, 10 * DOCS if asked_anew else 0]


def test_a_journal_stays_where_something_failed(tasks, tmp_path, monkeypatch):
    """If a scorer failed, the journal is not removed.

    After the scorer is mended, the same command asks the model nothing again.
    """
    endings = []
    monkeypatch.setattr(journal.atexit, "register", endings.append)
    monkeypatch.setattr(journal, "has_failed", lambda: True)
    written(found_in(tmp_path, PerRequest(), tasks, "toy_rci3"), tmp_path / "x", "toy_rci3")
    endings.pop()()
    assert files(tmp_path)


@pytest.mark.parametrize("failed", ["[LMMS_EVAL_REQUEST_FAILED after 5 retries] busy", None])
def test_failed_calls_are_asked_again(tasks, tmp_path, monkeypatch, failed):
    """A server that dies in the middle: the run ends, with failed calls, and the same command asks for these alone."""
    endings = []
    monkeypatch.setattr(journal.atexit, "register", endings.append)
    first = PerRequest()
    first.answer = lambda prompt, images: pixels(prompt, images) if len(first.asked) <= 90 else failed
    asked_in(tmp_path, first, tasks)
    assert not endings, "the journal stays"
    again = asked_in(tmp_path, survivor := PerRequest(), tasks)
    assert survivor.asked == first.asked[90:]
    assert len(endings) == 1, "and goes now"
    assert again == asked_in(tmp_path / "whole", PerRequest(), tasks)


def test_the_response_cache_keeps_each_portion(tasks, tmp_path, monkeypatch):
    """With --use_cache and no journal, a killed run loses one portion; without portions it lost everything."""
    monkeypatch.setenv("LMMS_PATCH_JOURNAL", "off")
    monkeypatch.setenv("LMMS_CACHE_RUN_ID", "same")
    cli = Namespace(
        output_path=None, process_with_media=False, reasoning_tags=None, model="m", model_args="", batch_size=1
    )
    with pytest.raises(Killed):
        toys.run(PerRequest(100), "toy_rci3", tasks, cli_args=cli, use_cache=str(tmp_path))
    toys.run(survivor := PerRequest(), "toy_rci3", tasks, cli_args=cli, use_cache=str(tmp_path))
    assert len(survivor.asked) == 10 * DOCS + NULL - 100 // PORTION * PORTION
