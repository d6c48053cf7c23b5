"""Record what two real models answer to thousands of mosaic questions: benchmarks/data/mosaic_answers.parquet.

    python scripts/mosaic/record.py

The docs are drawn like those of the embedded benchmark, with another seed. The two models are the shipped one and an
earlier one: the same training with fewer steps, over which its learning rate falls. Each is asked every doc on the full
image and on the nine cells of the 3x3 grid, by lmms-eval, as `mosaic_<family>_rci3` does. What was built or trained
stays in the work folder and is not made again.

Measured, in processor minutes: 2 to draw 4,200 docs, 16 to train the earlier model, 4 to ask each of the two models its
42,000 questions.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SCRIPTS = Path(__file__).resolve().parent
ROOT = SCRIPTS.parents[1]
TASK_DIR = ROOT / "tasks" / "mosaic"
OUT = ROOT / "benchmarks" / "data" / "mosaic_answers.parquet"
WORK = ROOT / "out" / "mosaic_answers"  # git does not see it
DOCS, SEED, STEPS, BATCH_SIZE, THREADS = 600, 7, 3400, 16, 1
FAMILIES = ("local", "center", "count", "sum", "same", "larger", "text")
MODELS = ("shipped", "earlier")
VIEWS = 10  # the full image, then the cells row by row
# Like mosaic_<family>_rci3 of the embedded benchmark, but no doc is asked on a wrong image.
WRAPPED = """task: mosaic_{family}_rci3
class: !function lmms_patch.Wrap
base: mosaic_{family}
kind: rci
grids: [3]
"null": 0
"""
Sample = dict[str, Any]  # a line of lmms-eval's sample log


class Answers(NamedTuple):
    """texts: (docs, views) the answers of one model.

    Scores: (docs, views) 1 where the task's own scorer gave full marks, else 0.
    """

    texts: np.ndarray
    scores: np.ndarray


def run_script(name: str, *arguments: object) -> None:
    """Run another script of this folder and print its command."""
    command = [str(SCRIPTS / name), *map(str, arguments)]
    print("python", *command, flush=True)
    subprocess.run([sys.executable, *command], check=True)


def build_docs(work: Path, docs: int, seed: int) -> Path:
    """Return the folder with the docs; draw them if it is not there."""
    folder = work / f"data_{docs}_{seed}"
    if not folder.exists():
        unfinished = folder.with_suffix(".unfinished")
        run_script("build_data.py", "--docs", docs, "--seed", seed, "--out", unfinished)
        unfinished.rename(folder)
    return folder


def train_earlier(work: Path, steps: int) -> Path:
    """Return the folder with the earlier model; train it if it is not there."""
    folder = work / f"model_{steps}"
    if not folder.exists():
        run_script("train.py", "--steps", steps, "--out", folder)
    return folder


def write_tasks(folder: Path, data: Path) -> None:
    """Write a task folder: the embedded tasks' own prompts and scorers on other docs, and a wrapped task for each."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(
        TASK_DIR, folder, ignore=shutil.ignore_patterns("data", "model", "mosaic.yaml", "*.md", "__pycache__")
    )
    (folder / "data").symlink_to(data.resolve(), target_is_directory=True)
    for family in FAMILIES:
        (folder / f"mosaic_{family}_rci3.yaml").write_text(WRAPPED.format(family=family))


def ask(model: Path, tasks: Path, batch_size: int) -> dict[str, list[Sample]]:
    """Return the sample lines of each family, in the order of the docs."""
    import lmms_eval.models  # noqa: F401 - nothing is used of it: importing it has lmms-eval load the plugin
    from lmms_eval.evaluator import simple_evaluate
    from lmms_eval.tasks import TaskManager

    names = {family: f"mosaic_{family}_rci3" for family in FAMILIES}
    # without lmms-eval's own folders: there the embedded tasks have these names
    manager = TaskManager("ERROR", include_path=str(tasks), include_defaults=False)
    results = simple_evaluate(
        model="mosaic_vlm",
        model_args=f"pretrained={model}",
        batch_size=batch_size,
        tasks=list(names.values()),
        task_manager=manager,
        log_samples=True,
        bootstrap_iters=0,
    )
    return {family: sorted(results["samples"][name], key=lambda line: line["doc_id"]) for family, name in names.items()}


def read(samples: list[Sample]) -> Answers:
    """Return the answers in sample lines, and their scores."""
    texts = np.array([line["filtered_resps"] for line in samples], dtype=object)
    scores = np.array([[view["scores"]["acc"] for view in line["patch"]["views"]] for line in samples])
    if texts.shape[1:] != (VIEWS,) or scores.shape != texts.shape or not np.isin(scores, (0, 1)).all():
        raise ValueError(
            f"expected {VIEWS} answers a doc, each scored 0 or 1; got answers {texts.shape}, scores {scores.shape}"
        )
    return Answers(texts, scores.astype(np.uint8))


def to_table(data: Path, answers: dict[str, dict[str, Answers]]) -> pa.Table:
    """Return one row per doc, from the answers of each model to each family."""
    tables = []
    for family in FAMILIES:
        docs = pq.read_table(data / f"mosaic_{family}.parquet", columns=["answer", "format", "group"]).to_pydict()
        columns = {
            "family": pa.array([family] * len(docs["answer"])),
            "doc": pa.array(range(len(docs["answer"])), pa.int16()),
            "scene": pa.array([int(group.rpartition("_")[2]) for group in docs["group"]], pa.int16()),
            "format": pa.array(docs["format"]),
            "gold": pa.array(docs["answer"]),
        }
        for model in MODELS:
            texts, scores = answers[model][family]
            columns[f"{model}_answers"] = pa.array(texts.tolist(), pa.list_(pa.string()))
            columns[f"{model}_scores"] = pa.array(scores.tolist(), pa.list_(pa.uint8()))
        tables.append(pa.table(columns))
    return pa.concat_tables(tables)


def summary(table: pa.Table) -> str:
    """Return a text table: FIP, MPP and RCI of both models, and how often they agree, by family and over all docs."""
    lines = [
        f"{'family':8}{'docs':>6}{'model':>9}{'FIP':>8}{'MPP_3':>8}{'RCI_3':>8}{'full agree':>12}{'cells agree':>13}"
    ]
    families = np.array(table["family"].to_pylist())
    texts, scores = (
        {model: np.array(table[f"{model}_{kind}"].to_pylist()) for model in MODELS} for kind in ("answers", "scores")
    )
    agree = texts["shipped"] == texts["earlier"]
    for family in (*FAMILIES, "all"):
        rows = (families == family) | (family == "all")
        agreed = f"{agree[rows, 0].mean():12.3f}{agree[rows, 1:].mean():13.3f}"
        for model in MODELS:
            fip, mpp = scores[model][rows, 0].mean(), scores[model][rows, 1:].max(1).mean()
            lines.append(f"{family:8}{rows.sum():6}{model:>9}{fip:8.3f}{mpp:8.3f}{1 - mpp / fip:+8.3f}{agreed}")
            agreed = ""
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--work", type=Path, default=WORK, help="folder for docs, the earlier model and the task files")
    parser.add_argument("--docs", type=int, default=DOCS, help=f"docs of each family, a multiple of 6 (default {DOCS})")
    parser.add_argument("--seed", type=int, default=SEED, help=f"of the docs (default {SEED})")
    parser.add_argument(
        "--steps", type=int, default=STEPS, help=f"training steps of the earlier model (default {STEPS})"
    )
    parser.add_argument("--earlier", type=Path, help="folder of an earlier model that is there already")
    parser.add_argument("--batch-size", type=int, default=BATCH_SIZE)
    parser.add_argument("--threads", type=int, default=THREADS, help=f"of torch, while asking (default {THREADS})")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    # set before anything imports datasets or lmms-eval
    os.environ |= {
        "HF_HOME": str(options.work / "hf"),
        "LMMS_EVAL_HOME": str(options.work / "lmms"),
        "HF_HUB_OFFLINE": "1",
    }
    os.environ |= {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": str(options.threads)}
    data = build_docs(options.work, options.docs, options.seed)
    models = {"shipped": TASK_DIR / "model", "earlier": options.earlier or train_earlier(options.work, options.steps)}
    write_tasks(options.work / "tasks", data)
    answers = {}
    for name in MODELS:
        began = time.monotonic()
        samples = ask(models[name], options.work / "tasks", options.batch_size)
        answers[name] = {family: read(lines) for family, lines in samples.items()}
        print(
            f"{name}: asked {sum(map(len, samples.values()))} docs in {(time.monotonic() - began) / 60:.1f} minutes",
            flush=True,
        )
    table = to_table(data, answers)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, options.out, compression="zstd", compression_level=19)
    print(summary(table))
    print(f"{options.out}: {options.out.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
