"""``lmms-patch prune`` as a command: on a toy whose answerable docs are known, and on the embedded benchmark."""

# ruff: noqa: F401, F811 - fixtures are imported
import csv
import json
from collections import Counter

import pyarrow.parquet as pq
import pytest
import yaml

from lmms_patch.app.cli import main
from lmms_patch.resources import folder
from lmms_patch.tst.keys import keys_of
from tests.harness import toys, warm
from tests.harness.command import environment, lmms_eval, samples
from tests.harness.tst.pruning import DOCS, FAST, KINDS, command, ids, kind_of, knows, pruned, refused, see, tasks
from tests.sizes import size

# --- one real pruning ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(tasks, tmp_path_factory):
    """40 of 120 docs with the real diagnostics, and what was printed."""
    out = tmp_path_factory.mktemp("real") / "out"
    with pytest.MonkeyPatch.context() as patch:
        lines = []
        patch.setattr("builtins.print", lambda *words, **more: lines.extend(" ".join(map(str, words)).split("\n")))
        assert command(tasks, out, "--budget", "40", "--shuffles", "2", "--controls", "2") == 0
    return out, lines


def test_kept_and_removed_ids_are_all_docs(real):
    out, _ = real
    kept, removed = ids(out, "kept"), ids(out, "removed")
    assert len(removed) == 40
    assert sorted([*kept, *removed]) == [f"doc-{i:03}" for i in range(120)]
    about = pruned(out)
    assert [[one["key"] for one in about[name]] for name in ("kept", "removed")] == [kept, removed]
    assert all(one["key"] == f"doc-{one['doc_id']:03}" for one in about["kept"] + about["removed"])


def test_the_planted_category_goes_first(real):
    """A fifth of the budget a round: the first eight are all planted, where a third of the docs are."""
    out, _ = real
    rows = list(csv.DictReader((out / "removed.csv").open()))
    assert [row["key"] for row in rows] == ids(out, "removed")
    assert Counter(row["round"] for row in rows) == dict.fromkeys("12345", 8)
    assert {row["category"] for row in rows if row["round"] == "1"} == {"planted"}
    gone = Counter(kind_of(row["key"]) for row in rows)
    assert gone["planted"] >= 24
    assert all(row["category"] == kind_of(row["key"]) for row in rows)


def test_two_shuffles_are_too_few_to_claim_a_reduction(real):
    out, printed = real
    judged = pruned(out)["judged"]
    assert [one["match"] for one in judged["compared"]] == ["category", "none"]
    for one in judged["compared"]:
        assert (len(one["controls"]), len(one["shuffled"])) == (2, 2)
        assert one["p"] >= 1 / 3
        assert one["fall"] == pytest.approx(sum(one["controls"]) / 2 - judged["kept"])
    assert judged["verdict"] in ("selection noise", "over-pruned")
    assert judged["sentence"] in printed


def test_the_written_task_asks_the_kept_docs(real):
    out, printed = real
    assert printed[-1] == f"to run the kept docs: lmms-eval --tasks toy_pruned --include_path {out / 'task'} ..."
    found = toys.run(toys.Model(see), "toy_pruned", out / "task")
    kept = ids(out, "kept")
    assert [sample["doc"]["name"] for sample in found["samples"]["toy_pruned"]] == kept
    right = sum(int(key.removeprefix("doc-")) % 10 != 0 for key in kept)
    assert toys.metrics(found, "toy_pruned")["exact_match"] == pytest.approx(right / 80)


def test_docs_without_a_gold_never_go(tmp_path):
    """Four of the first ten docs are planted.

    Without golds they have no score. 30 of the 36 others go, and none of them.
    """
    rows = [{**row, "answer": row["answer"] if i >= 10 else ""} for i, row in enumerate(DOCS)]
    toys.write_task(
        tmp_path / "tasks", "holes", rows, metadata={"version": 0.0, "lmms_patch": {"category": "kind", "null": 0}}
    )
    assert command(tmp_path / "tasks", tmp_path / "out", "--budget", "30", "--batch", "30", task="holes") == 0
    removed = ids(tmp_path / "out", "removed")
    assert {kind_of(key) for key in removed} == {"planted"}
    assert len(removed) == 30
    assert min(removed) >= "doc-010"


# --- interrupted, resumed, begun anew -----------------------------------------------------------


BATCHES = ("--budget", "30", "--batch", "10")


def test_an_interrupted_pruning_goes_on_to_the_same_end(tasks, tmp_path, knows):
    """Killed in the second round: the first is kept, and not asked again."""
    assert command(tasks, tmp_path / "whole", *BATCHES) == 0
    whole = knows.docs.copy()
    assert whole[:4] == [120, 110, 100, 90], "three rounds, and the kept docs"
    knows.docs.clear()
    knows.dies = 2
    assert command(tasks, tmp_path / "killed", *BATCHES) == 130
    assert [path.name for path in (tmp_path / "killed").iterdir()] == ["history.json"]
    assert len(json.loads((tmp_path / "killed" / "history.json").read_text())["rounds"]) == 1
    knows.docs.clear()
    knows.dies = None
    assert command(tasks, tmp_path / "killed", *BATCHES) == 0
    assert knows.docs == whole[1:]
    for name in ("pruned.json", "history.json", "judge.json", "removed.csv", "kept_ids.txt", "categories.md"):
        assert (tmp_path / "killed" / name).read_text() == (tmp_path / "whole" / name).read_text(), name


def test_a_judgement_can_be_made_longer(tasks, tmp_path, knows):
    """First without shuffles, which say how much is noise.

    Then with them: only these, and the last round, are still to do.
    """
    assert command(tasks, tmp_path, *BATCHES) == 0
    before = pruned(tmp_path)
    assert (before["judged"]["verdict"], [one["p"] for one in before["judged"]["compared"]]) == (
        "unknown",
        [None, None],
    )
    knows.docs.clear()
    assert command(tasks, tmp_path, *BATCHES, "--shuffles", "2") == 0
    assert knows.docs[:2] == [90, 120], "no round, and neither original, kept nor control"
    after = pruned(tmp_path)
    assert [len(one["shuffled"]) for one in after["judged"]["compared"]] == [2, 2]
    assert after["kept"] == before["kept"]
    assert [one["controls"] for one in after["judged"]["compared"]] == [
        one["controls"] for one in before["judged"]["compared"]
    ]


def test_a_finished_pruning_is_not_done_again(tasks, tmp_path, knows):
    assert command(tasks, tmp_path, *BATCHES) == 0
    before = pruned(tmp_path)
    knows.docs.clear()
    assert command(tasks, tmp_path, *BATCHES) == 0
    assert knows.docs == [90], "the last round, which removed nothing, is the only one to be asked again"
    assert pruned(tmp_path) == before


# --- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "gone"),
    [
        (("--allocate", "planted=0.5,plain=4"), {"planted": 20, "plain": 4}),
        (("--allocate", "size = 0.1 , plain=0"), {"size": 4}),
        (("--allocate", "category", "--budget", "0.25"), {"planted": 10, "plain": 10, "size": 10}),
        (("--budget", "30"), {"planted": 30}),
    ],
)
def test_budgets_by_category(tasks, tmp_path, knows, arguments, gone):
    """Planted docs have the highest scores: but for budgets they go first."""
    assert command(tasks, tmp_path, *arguments) == 0
    found = Counter(map(kind_of, ids(tmp_path, "removed")))
    assert found == gone


def test_it_stops_where_text_no_longer_helps(tasks, tmp_path, knows):
    """Rounds of ten: when the 40 planted docs are gone, what is left is answered by luck."""
    arguments = [word for word in FAST if word != "--no-near-chance-stop"]
    assert (
        main(
            [
                "prune",
                "toy",
                "--include-path",
                str(tasks),
                "--output",
                str(tmp_path),
                *arguments,
                "--budget",
                "90",
                "--batch",
                "10",
            ]
        )
        == 0
    )
    assert Counter(map(kind_of, ids(tmp_path, "removed"))) == {"planted": 40}
    assert pruned(tmp_path)["stopped"] == "text-only scores are not significantly above those under golds dealt anew"


# --- the folder ---------------------------------------------------------------------------------


def test_ids_are_made_of_the_content_where_no_field_is_named(tasks, tmp_path, knows):
    """The same ids as of the rows themselves; the folder's task finds the docs by them."""
    arguments = [word for word in FAST if word not in ("--key", "name")]
    assert (
        main(["prune", "toy", "--include-path", str(tasks), "--output", str(tmp_path), *arguments, "--budget", "10"])
        == 0
    )
    keys = keys_of([{name: value for name, value in row.items() if name != "image"} for row in DOCS])
    removed = [keys.index(key) for key in ids(tmp_path, "removed")]
    assert len(removed) == 10
    assert {KINDS[i % 3] for i in removed} == {"planted"}
    found = toys.run(toys.Model(see), "toy_pruned", tmp_path / "task")
    assert [sample["doc"]["name"] for sample in found["samples"]["toy_pruned"]] == [
        row["name"] for i, row in enumerate(DOCS) if i not in removed
    ]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema": 1}', '{"schema": 1, "fingerprint": "x", "rounds": []}'])
def test_a_folder_with_another_history_is_refused_and_left_as_it_is(tasks, tmp_path, knows, capsys, content):
    (tmp_path / "history.json").write_text(content)
    assert command(tasks, tmp_path) == 2
    assert "history.json" in (line := refused(capsys))
    assert "--fresh" in line
    assert [path.name for path in tmp_path.iterdir()] == ["history.json"]
    assert (tmp_path / "history.json").read_text() == content
    assert command(tasks, tmp_path, "--fresh") == 0


# --- the embedded benchmark, end to end ---------------------------------------------------------


FAMILIES = size(("count", "text"), ("local", "count", "same", "text"))
EACH = size(60, 120)
"""Docs of a family."""


def write_mosaic(out):
    """Some families as one task; only the text family can be answered without its sheet."""
    mosaic = folder("tasks") / "mosaic"
    out.mkdir()
    files = [str(out / f"{family}.parquet") for family in FAMILIES]
    for family, file in zip(FAMILIES, files, strict=True):
        pq.write_table(pq.read_table(mosaic / "data" / f"mosaic_{family}.parquet").slice(0, EACH), file)
    task = {
        "include": str(mosaic / "_default_template_yaml"),
        "task": "mosaic_all",
        "dataset_kwargs": {"data_files": {"test": files}},
    }
    (out / "mosaic_all.yaml").write_text(yaml.safe_dump(task))
    return out


def lmms_patch(*arguments):
    status, printed, said = warm.run(["lmms-patch", *map(str, arguments)], environment())
    assert status == 0, said[-4000:]
    return printed


@pytest.mark.cli
def test_pruning_the_embedded_benchmark_takes_its_text_family(tmp_path):
    """Some docs of each family, of which only those of the text family go, and the embedded model without its images loses there alone."""
    tasks, out, run = write_mosaic(tmp_path / "tasks"), tmp_path / "out", tmp_path / "run"
    fast = ("--folds", 3, "--batch", EACH * 3 // 20, "--shuffles", 0, "--controls", 1)
    lmms_patch(
        "prune",
        "mosaic_all",
        "--include-path",
        tasks,
        "--output",
        out,
        "--budget",
        EACH * 3 // 10,
        "--key",
        "id",
        *fast,
    )
    removed, kept = ids(out, "removed"), ids(out, "kept")
    assert len(removed) == EACH * 3 // 10
    assert len(kept) == EACH * len(FAMILIES) - len(removed)
    assert {key.rpartition("_")[0] for key in removed} == {"mosaic_text"}

    common = {"model": "mosaic_vlm", "batch_size": 32, "log_samples": True, "output_path": str(run)}
    asked = (("mosaic_all_lowres2,mosaic_all_blind", tasks), ("mosaic_all_pruned", out / "task"))
    (tmp_path / "runs.yaml").write_text(
        yaml.safe_dump([{**common, "tasks": names, "include_path": str(place)} for names, place in asked])
    )
    lmms_eval("--config", tmp_path / "runs.yaml")
    full, blind, left = (samples(run, task) for task in ("mosaic_all_lowres2", "mosaic_all_blind", "mosaic_all_pruned"))
    places = [one["doc_id"] for one in pruned(out)["kept"]]
    assert [(line["target"], line["filtered_resps"][0], line["acc"]) for line in left.values()] == [
        (full[i]["target"], full[i]["filtered_resps"][0], full[i]["acc"]) for i in places
    ]

    results = next(run.rglob("*_samples_mosaic_all_blind.parquet"))
    _, _, original, after, verdict, *_ = lmms_patch("gap", results, results, "--subset", out).splitlines()
    for line, name, docs in ((original, "original", range(EACH * len(FAMILIES))), (after, "pruned", places)):
        means = [sum(score(log[i]) for i in docs) / len(docs) for log in (full, blind)]
        assert line.split()[:5] == [
            name,
            str(len(docs)),
            *(f"{one:.3f}" for one in means),
            f"{means[0] - means[1]:+.3f}",
        ]
    assert "the kept docs" in verdict or verdict.startswith("no widening is shown: ")


def score(line):
    """Of a plain task, or of a wrapped one, where it is that of the only view."""
    return line["patch"]["views"][0]["scores"]["acc"] if "patch" in line else line["acc"]
