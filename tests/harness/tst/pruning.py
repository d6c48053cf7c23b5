"""A toy whose answerable docs are known, finished runs of it, and a diagnostic at no cost: for tests of ``lmms-patch prune`` and ``gap``."""

import json

import numpy as np
import polars as pl
import pytest
from lmms_eval.loggers.evaluation_tracker import EvaluationTracker

from lmms_patch.app import pruning as wiring
from lmms_patch.app.cli import main
from lmms_patch.harness.models.tst import TstRf
from lmms_patch.tst.diagnosis import Diagnosis
from lmms_patch.tst.selection import hashed
from tests.harness import toys

KINDS = ("planted", "plain", "size")
OBJECTS = ("lamp", "chair", "table", "sofa")
FAST = (
    "--folds", "3", "--fold-seeds", "1", "--shuffles", "0", "--controls", "1", "--key", "name",
    "--no-near-chance-stop",
)  # fmt: skip


def docs():
    """40 docs of each kind, in turn. Planted: lamps and chairs are there, tables and sofas not.

    In the others each object is "yes" for every other doc.
    """
    out = []
    for i in range(120):
        kind, thing = KINDS[i % 3], OBJECTS[i // 3 % 4]
        there = thing in ("lamp", "chair") if kind == "planted" else i // 12 % 2 == 0
        question = {"planted": f"Is there a {thing}", "plain": f"Is the {thing} red", "size": f"Is the {thing} large"}[
            kind
        ]
        row = {
            "image": toys.coded_image(i),
            "question": f"{question} in picture {i}?",
            "answer": "yes" if there else "no",
            "kind": kind,
        }
        out.append({**row, "known": kind == "planted", "name": f"doc-{i:03}", "same": i // 2})
    return out


DOCS = docs()


def kind_of(key):
    return KINDS[int(key.removeprefix("doc-")) % 3]


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """The toy, and a second task of the first 30 of its docs."""
    out = tmp_path_factory.mktemp("tasks")
    inline = {"version": 0.0, "lmms_patch": {"category": "kind", "null": 0}}
    toys.write_task(out, "toy", docs(), metadata=inline)
    return toys.write_task(out, "other", docs()[:30], metadata=inline)


def command(tasks, out, *more, task="toy"):
    return main(["prune", task, "--include-path", str(tasks), "--output", str(out), *FAST, *map(str, more)])


def ids(out, which):
    return (out / f"{which}_ids.txt").read_text().splitlines()


def pruned(out):
    return json.loads((out / "pruned.json").read_text())


def refused(capsys, status=2):
    """The one line that a refused command prints."""
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("lmms-patch: ")]
    assert len(lines) == 1
    return lines[0]


def save(out, results):
    """Write a finished run as the harness writes it."""
    tracker = EvaluationTracker(output_path=str(out))
    tracker.general_config_tracker.model_name_sanitized = "model"
    logged = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=logged, datetime_str="2026-01-01T00-00-00")
    for name, lines in logged.items():
        tracker.save_results_samples(task_name=name, samples=lines)
    return out


def guess(prompt):
    """Blind: lamps and chairs are there, whatever is asked.

    Right for all planted docs and for every other one of the rest.
    """
    return "yes" if "lamp" in prompt or "chair" in prompt else "no"


def see(prompt, images):
    """With the image: right but for every tenth doc; without: a guess."""
    if not images:
        return guess(prompt)
    i = images[0].getpixel((0, 0))[2]
    return DOCS[i]["answer"] if i % 10 else "not sure"


@pytest.fixture(scope="module")
def runs(tasks, tmp_path_factory):
    """Finished runs: ``tst`` (text-only), ``rci``, ``other`` (of the other task),
    ``mixed`` (blind and rci)."""
    out = tmp_path_factory.mktemp("runs")
    save(out / "tst", toys.run(TstRf(trees=20, groupings="headline", workers=1), "toy_tst3", tasks))
    for name, asked in (
        ("rci", "toy_rci2"),
        ("other", "other_rci2,other_blind"),
        ("mixed", "toy_blind,toy_rci2"),
    ):
        save(out / name, toys.run(toys.Model(see), asked, tasks))
    return out


def table_of(run, task="toy_tst3"):
    (path,) = run.rglob(f"*_samples_{task}.parquet")
    return path


def scores_of(run, by="s_minus_chance"):
    """By doc id, the bias scores of the cross-validation."""
    return dict(pl.read_parquet(table_of(run)).select("doc_id", pl.col("tst").struct.field(by)).iter_rows())


class Asked:
    def __init__(self):
        self.docs, self.dies = [], None


@pytest.fixture
def knows(monkeypatch):
    """A diagnostic at no cost, in place of the trees: it knows the planted docs and guesses at the others.

    Returns the numbers of docs it was asked of.

    A number in ``dies`` is the call at which it is interrupted.
    """
    asked = Asked()

    def diagnose(self, items, rewards, model, deals=0):
        def found(places, seeds):
            asked.docs.append(len(places))
            if len(asked.docs) == asked.dies:
                raise KeyboardInterrupt
            known = np.array([items[i].category == "planted" for i in places])
            luck = np.array([hashed(seeds[0], items[i].key) for i in places])
            right = np.where(known, 1.0, luck < 0.5)
            dealt = np.where(known, 0.1, 0.4) + luck[::-1] / 100, np.ones(len(places))
            s, half = np.where(known, 0.9, 0.4) + luck / 100, np.full(len(places), 0.5)
            return Diagnosis(
                s, half, right[None], half[None], dealt=tuple(one[None] for one in dealt) if deals else None
            )

        return found

    monkeypatch.setattr(wiring._Work, "diagnose", diagnose)
    return asked
