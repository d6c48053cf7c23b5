"""Pruned benchmarks as task folders: in the real harness, with and without lmms_patch, away from where they were made."""

import json
import os
import shutil
import subprocess
import sys

import datasets
import pytest
from lmms_eval.tasks import TaskManager
from lmms_eval.tasks.gqa import utils as gqa

from lmms_patch import resources
from lmms_patch.harness.tst import pruned_task
from lmms_patch.tst.keys import keys_of
from tests.harness import standins, toys
from tests.harness.warm import LIGHTER

UTILS = '''
"""The toy's own code: a neighbour, and a file beside it."""
import os
import sys

HERE = os.path.dirname(__file__)
sys.path.insert(0, HERE)
import neighbour_of_toy

with open(os.path.join(HERE, "words", "greeting.txt")) as file:
    GREETING = file.read()

def odd(rows):
    return rows.filter(lambda row: row["number"] % 2 == 1)

def ask(doc, lmms_eval_specific_kwargs=None):
    return GREETING + doc["question"] + doc["answer"] + lmms_eval_specific_kwargs["post"]

def score(doc, results):
    return {"right": neighbour_of_toy.right(doc, results[0])}
'''


def answer(prompt, images):
    """Right for some docs: it names the number in every third prompt."""
    return str(len(prompt) % 7) + str(images[0].getpixel((0, 0))[2] % 3)


@pytest.fixture
def toy(tmp_path):
    """An include chain over two folders, own code with a neighbour and a text file, few-shot docs, 12 rows of which 6 are docs."""
    folder = tmp_path / "mine" / "toy"
    rows = toys.rows(12, number=lambda i: i, question=lambda i: f"question {i % 2}?", answer=lambda i: str(i % 4))
    toys.write_task(folder, "toy", rows)
    for file in ("toy.parquet", "toy.yaml"):
        (folder / file).rename(folder / file.replace("toy", "data"))
    (folder / "data.yaml").unlink()
    datasets.Dataset.from_list(
        [{k: v for k, v in row.items() if k != "image"} | {"number": 101 + 2 * i} for i, row in enumerate(rows[:3])]
    ).to_parquet(str(folder / "shots.parquet"))
    (folder / "utils.py").write_text(UTILS)
    (folder / "neighbour_of_toy.py").write_text(
        'def right(doc, said):\n    return float(said.endswith(str(doc["number"] % 3)))\n'
    )
    (folder / "words").mkdir()
    (folder / "words" / "greeting.txt").write_text("Hello. ")
    (folder.parent / "common").mkdir()
    (folder.parent / "common" / "utils.py").write_text("def mean(items):\n    return sum(items) / len(items)\n")
    (folder.parent / "common" / "_metrics").write_text(
        "metric_list:\n  - metric: right\n    aggregation: !function utils.mean\n    higher_is_better: true\ndescription: lost\n"
    )
    (folder / "_base").write_text(
        "include: ../common/_metrics\ndataset_path: parquet\ntest_split: test\noutput_type: generate_until\ndescription: \"{{'a'}}: yes\"\n"
        "doc_to_visual: image\ndoc_to_text: !function utils.ask\ndoc_to_target: answer\nprocess_results: !function utils.score\n"
        "generation_kwargs: {max_new_tokens: 4, temperature: 0.0, until: [\"\\n\\n\", 'no']}\nlmms_eval_specific_kwargs: {default: {post: ' ok? '}}\n"
    )
    (folder / "toy.yaml").write_text(
        "include: _base\ntask: toy\ntag: toys\ntask_alias: The toy\nprocess_docs: !function utils.odd\nfewshot_split: train\n"
        "dataset_kwargs:\n  data_files: {test: data.parquet, train: shots.parquet}\nmetadata: {version: 2.5}\n"
    )
    return folder.parent


def rows_of(folder):
    return [
        row
        for row in datasets.Dataset.from_parquet(str(folder / "toy" / "data.parquet")).remove_columns("image")
        if row["number"] % 2
    ]


def loaded(folder, name, **kwargs):
    return TaskManager(verbosity="ERROR", include_path=str(folder), **kwargs).load_task_or_group([name])[name]


# --- a user's own task ----------------------------------------------------------------------------


def test_a_pruned_task_asks_and_scores_the_kept_docs_as_the_base_does(toy, tmp_path):
    keys = keys_of(rows_of(toy))
    folder = tmp_path / "out"
    path = pruned_task.prepare("toy", folder, include_path=str(toy)).write([keys[4], keys[0], keys[3]])
    assert path == folder / "toy_pruned.yaml"
    shutil.move(toy / "toy" / "utils.py", toy / "toy" / "gone.txt")  # nothing of the base's folder is needed
    moved = shutil.move(folder, tmp_path / "elsewhere")
    model = toys.Model(answer)
    pruned = toys.run(model, "toy_pruned", moved)
    shutil.move(toy / "toy" / "gone.txt", toy / "toy" / "utils.py")
    base_model = toys.Model(answer)
    base = toys.run(base_model, "toy", toy)
    own = [{k: sample[k] for k in ("doc", "target", "resps", "right")} for sample in pruned["samples"]["toy_pruned"]]
    assert own == [{k: base["samples"]["toy"][i][k] for k in own[0]} for i in (0, 3, 4)]
    assert [doc["doc"]["number"] for doc in own] == [1, 7, 9]
    assert 0 < toys.metrics(pruned, "toy_pruned")["right"] == pytest.approx(sum(doc["right"] for doc in own) / 3)
    assert [(prompt, [image.tobytes() for image in images]) for _, _, images, prompt in model.seen] == [
        (prompt, [image.tobytes() for image in images])
        for _, doc, images, prompt in base_model.seen
        if doc in (0, 3, 4)
    ]


def test_other_splits_stay_whole(toy, tmp_path):
    keys = keys_of(rows_of(toy))
    pruned_task.prepare("toy", tmp_path / "out", include_path=str(toy)).write(keys[:2])
    task = loaded(tmp_path / "out", "toy_pruned")
    assert len(task.eval_docs) == len(task.eval_docs_no_media) == 2
    assert [doc["number"] for doc in task.fewshot_docs()] == [101, 103, 105]


def test_the_folder_has_what_it_needs_and_no_path_of_this_machine(toy, tmp_path):
    keys = keys_of(rows_of(toy))
    folder = tmp_path / "out"
    pruned_task.prepare("toy", folder, include_path=str(toy)).write([keys[2], keys[1]])
    files = sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )
    own = [
        "base/data.parquet", "base/neighbour_of_toy.py", "base/shots.parquet", "base/utils.py",
        "base/words/greeting.txt", "base2/utils.py",
    ]  # fmt: skip
    assert files == [*own, "kept_ids.txt", "pruned_filter.py", "pruned_task.json", "toy_pruned.yaml"]
    assert (folder / "kept_ids.txt").read_text() == f"{keys[1]}\n{keys[2]}\n"
    assert str(tmp_path) not in (folder / "toy_pruned.yaml").read_text() + (folder / "pruned_task.json").read_text()
    about = json.loads((folder / "pruned_task.json").read_text())
    assert (about["docs"], about["kept"], about["split"], about["other_splits"]) == (6, 2, "test", ["train"])


def test_a_field_as_key(toy, tmp_path):
    pruned_task.prepare("toy", tmp_path / "out", include_path=str(toy), key="number").write(["11", "3"])
    assert [doc["number"] for doc in loaded(tmp_path / "out", "toy_pruned").eval_docs] == [3, 11]


# --- the dataset or the folder has changed --------------------------------------------------------


def rewrite(folder, change):
    """Change the rows of the copied data."""
    path = folder / "base" / "data.parquet"
    rows = change(list(datasets.Dataset.from_parquet(str(path))))
    features = datasets.Dataset.from_parquet(str(path)).features
    path.unlink()
    datasets.Dataset.from_list(rows, features=features).to_parquet(str(path))


def edited(rows):
    return [{**row, "question": "Edited?"} if row["number"] == 3 else row for row in rows]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            lambda rows: [*rows, {**rows[0], "number": 13}],
            "split 'test' of toy: it has 7 docs, and had 6; get the dataset",
        ),
        (lambda rows: rows[:4], "it has 2 docs, and had 6"),
        (edited, "1 of the 3 kept docs are not in it (the first: "),
    ],
)
def test_a_changed_dataset_is_one_line(toy, tmp_path, change, line):
    pruned_task.prepare("toy", tmp_path / "out", include_path=str(toy)).write(keys_of(rows_of(toy))[:3])
    rewrite(tmp_path / "out", change)
    with pytest.raises(SystemExit) as error:
        loaded(tmp_path / "out", "toy_pruned")
    assert str(error.value).startswith("toy_pruned: the dataset is not the one that was pruned: ")
    assert line in str(error.value)
    assert "\n" not in str(error.value)


def test_another_order_of_the_dataset_keeps_the_same_docs(toy, tmp_path):
    pruned_task.prepare("toy", tmp_path / "out", include_path=str(toy)).write(keys_of(rows_of(toy))[:3])
    rewrite(tmp_path / "out", lambda rows: rows[::-1])
    assert [doc["number"] for doc in loaded(tmp_path / "out", "toy_pruned").eval_docs] == [5, 3, 1]


# --- tasks of the host and of the plugin ----------------------------------------------------------


def test_a_task_of_the_host(tmp_path, monkeypatch):
    """MMStar, with only the loading of its data replaced: every function comes from the installed lmms-eval, and no file is copied."""
    standin = standins.mmstar()
    monkeypatch.setattr(datasets, "load_dataset", standin.loader())
    rows = [{k: v for k, v in row.items() if k != "image"} for row in standin.data["Lin-Chen/MMStar", None]["val"]]
    keys = keys_of(rows)
    path = pruned_task.prepare("mmstar", tmp_path / "out").write([keys[i] for i in (1, 4, 8)])
    text = path.read_text()
    assert "lmms_eval.tasks.mmstar.utils." in text
    assert str(tmp_path) not in text
    assert "site-packages" not in text
    assert not (path.parent / "base").exists()
    base, pruned = (
        toys.run(toys.Model(standin.answer), name, tmp_path / "out") for name in ("mmstar", "mmstar_pruned")
    )
    scores = [scored(sample) for sample in pruned["samples"]["mmstar_pruned"]]
    assert scores == [scored(base["samples"]["mmstar"][i]) for i in (1, 4, 8)]
    assert all(len(sample) > 4 for sample in scores)


def scored(sample):
    """A doc, its prompt, its answers and its scores, without its number, the name of its task and hashes of these."""
    same = {k: v for k, v in sample.items() if k not in ("doc_id", "arguments") and not k.endswith("_hash")}
    return {**same, "asked": sample["arguments"][:2]}


def test_own_process_docs_of_a_host_task_run_first(tmp_path, monkeypatch):
    """GQA, whose process_docs is the host's own; it loads its images beside the docs."""
    standin = standins.gqa()
    for module in (datasets, gqa):
        monkeypatch.setattr(module, "load_dataset", standin.loader())
    path = pruned_task.prepare("gqa", tmp_path / "out", key="id").write(["202", "207"])
    assert json.loads((path.parent / "pruned_task.json").read_text())["process_docs"].startswith(
        "lmms_eval.tasks.gqa.utils."
    )
    base, pruned = (toys.run(toys.Model(standin.answer), name, tmp_path / "out") for name in ("gqa", "gqa_pruned"))
    assert [scored(sample) for sample in pruned["samples"]["gqa_pruned"]] == [
        scored(base["samples"]["gqa"][i]) for i in (2, 7)
    ]


def mosaic_keys():
    path = resources.folder("tasks") / "mosaic" / "data" / "mosaic_text.parquet"
    return keys_of(datasets.Dataset.from_parquet(str(path)))


# Blocks lmms_patch as if it were not installed, and the entry point through which it would be loaded.
WITHOUT = """
import importlib.metadata, sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "lmms_patch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Block())
original = importlib.metadata.entry_points
importlib.metadata.entry_points = lambda **k: [e for e in original(**k) if not e.value.startswith("lmms_patch")] if k else original()
from lmms_eval.tasks import TaskManager
def load(folder):
    manager = TaskManager(verbosity="ERROR", include_path=folder, include_defaults=False)
    return manager.load_task_or_group([sys.argv[1]])[sys.argv[1]]
task = load(sys.argv[2])
docs = task.eval_docs
doc = docs[0]
import json
out = {"n": len(docs), "questions": list(docs["question"]), "score": task.process_results(doc, [doc["answer"]]), "prompt": task.doc_to_text(doc),
       "shown": len(task.doc_to_visual(doc)), "ours": sorted(m for m in sys.modules if m.startswith("lmms_patch"))}
print("OUT" + json.dumps(out), flush=True)
load(sys.argv[3])
print("not refused")
"""


def test_a_task_of_the_plugin_runs_where_the_plugin_is_not_installed(tmp_path):
    keys = mosaic_keys()
    kept = [keys[i] for i in (3, 11, 40)]
    pruned_task.prepare("mosaic_text", tmp_path / "made").write(kept)
    folder = shutil.move(tmp_path / "made", tmp_path / "moved")
    damaged = shutil.copytree(folder, tmp_path / "damaged")
    (damaged / "kept_ids.txt").write_text("\n".join(kept[:2]) + "\n")
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [
        sys.executable,
        "-c",
        LIGHTER + WITHOUT,
        "mosaic_text_pruned",
        str(folder),
        str(damaged),
    ]  # one start for both
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert "OUT" in done.stdout, done.stderr
    found = json.loads(done.stdout.split("OUT")[-1])
    base = datasets.Dataset.from_parquet(str(resources.folder("tasks") / "mosaic" / "data" / "mosaic_text.parquet"))
    questions = list(base["question"])
    assert found["questions"] == [questions[i] for i in (3, 11, 40)]
    assert (found["n"], found["score"], found["prompt"], found["shown"], found["ours"]) == (
        3,
        {"acc": 1.0},
        questions[3],
        1,
        [],
    )
    assert done.returncode == 1
    last = done.stderr.rstrip("\n").splitlines()[-1]
    assert last.endswith("(2 ids, then 3; or others); take the whole folder from where it came")
    assert "Traceback" not in done.stderr
