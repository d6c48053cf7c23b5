"""Finished runs with planted scores, written fast: for tests of the gate that need hundreds of them."""

import itertools

import numpy as np

from lmms_patch.ask.spec import parse
from tests.making.files import DATE, lines_of, write_files

STARTS = itertools.count()
"""What makes each run that is written another run, as the harness's clock does."""


def scored(n, full, best, seed, hard=None):
    """Scores of n docs on the full image and on the best cell, each right with its own chance.

    ``hard`` is shared between runs.
    """
    stream = np.random.default_rng(seed)
    u = stream.random((2, n)) if hard is None else hard
    return (u[0] < full).astype(float), (u[1] < best).astype(float)


def planted(n, full, best):
    """Scores of n docs of which exactly these shares are right; the two in no relation to each other."""
    return (np.arange(n) < round(full * n)).astype(float), (np.arange(n) % 10 < round(best * 10)).astype(float)


def task(full, best=None, *, name="toy_rci2", chance=0.25, gate=None, looks=None, clusters=None,
         docs=None, prompts="p", higher=True, out=(), unscored=()):  # fmt: skip
    """One task of a run: what the host has of it, its config, and its records. Without ``best`` it has no index (blind).

    Its numbers are those that its records give, with full marks of 1. ``gate`` True: no floor is in the way of the
    index. ``looks`` says whether its answers depend on the image, None: nobody asked. ``out`` are docs that the grid
    does not use, ``unscored`` docs whose call failed.
    """
    spec, full, n = parse(name), np.asarray(full, float), len(full)
    settings = {"draws": 400, "level": 0.95, "seed": 0, "scale": 1.0, "chance": -1.0 if gate else chance}
    made = {"lmms_patch": "0", "lmms_eval": "0.7.3", "docs": docs or f"d{n}", "prompts": prompts}
    made |= {"image_sizes": f"s {docs or n}", "images": f"i {docs or n}"}
    about = {"records": n, "settings": settings, "higher_is_better": {"acc": higher}, "made": made, "form": "mean"}
    results = {"acc,none": float(np.delete(full, unscored).mean()) if len(unscored) < n else None, "patch,none": about}
    described = {"schema": 1, "pixels": 1, **spec.described(), "metric": "acc"}
    described["options"] = {**described["options"], **({"cluster": "image"} if clusters is not None else {})}
    records = _records(spec, full, best, clusters)
    for i, record in enumerate(records):
        if looks is not None:
            score = 0.0 if looks else float(full[i])
            view = {"kind": "full", "swapped": True, "scores": {"acc": score}, "items": {"acc": score}, "said": "x"}
            record["wrong_image"] = {"from": (i + 1) % n, "image_sizes": [], "views": [view]}
    for i in out:
        records[i] |= {"best": {}, "excluded": {"2": "too small"}}
    for i in unscored:
        records[i]["views"][0] |= {"scores": {}, "items": {}, "failed": "no answer"}
        records[i] |= {"best": {}, "excluded": {"2": "a call failed"}}
    return results, {"dataset_path": "org/toy", "test_split": "test", "lmms_patch": described}, records


def _records(spec, full, best, clusters):
    out = []
    for i, score in enumerate(full.tolist()):
        views = [{"kind": "full" if best is not None else "blind", "scores": {"acc": score}, "items": {"acc": score}}]
        if best is not None:
            cells = [float(best[i]), 0.0, 0.0, 0.0]
            views += [
                {"kind": "cell", "n": 2, "cell": k, "scores": {"acc": c}, "items": {"acc": c}}
                for k, c in enumerate(cells, 1)
            ]
        record = {"task": spec.name, "base": spec.base, "kind": spec.kind.name, "grids": list(spec.grids), "doc_id": i}
        record |= {"image_sizes": [], "views": views, "best": {"2": 1} if best is not None else {}, "excluded": {}}
        record |= {"answer": {"gold": "A"}, "baselines": [{"answer": "A", "roles": ["gold"], "scores": {"acc": 1.0}}]}
        record |= {"fields": {"cluster": int(clusters[i])}} if clusters is not None else {}
        out.append(record)
    return out


def stressed(n=400, accuracy=0.3, chance=0.25, seed=0, name="toy_tst5"):
    """A text-only cross-validation."""
    scores, _ = scored(n, accuracy, 0, seed)
    results, config, records = task(scores, name=name, chance=chance)
    results["patch,none"] |= {"about_tst": {"grouping": "none", "diagnostic": "rf"}}
    for record, score in zip(records, scores.tolist(), strict=True):
        tst = {"grouping": "none", "scores": {"none": [score]}, "baseline": {"none": [chance]}}
        record["tst"] = {**tst, "source": None, "chance": chance}
    return results, config, records


def write(folder, tasks, *, model="m", date=DATE, change=None, **config):
    """Write a run; ``change`` may alter the results file's content before it is written."""
    first = config.get("offset", 0)
    tasks = [
        (results, told, [{**record, "doc_id": record["doc_id"] + first} for record in records])
        for results, told, records in tasks
    ]
    made = {records[0]["task"]: (results, told, lines_of(records)) for results, told, records in tasks}
    about = {
        "model_name": model,
        "config": {"model": "hf", "model_args": "", "limit": None, **config},
        "start_time": next(STARTS),
    }
    about |= {"n-shot": dict.fromkeys(made, 0), "versions": dict.fromkeys(made, 1.0), "system_instruction_sha": None}
    path = write_files(folder, made, date=date, change=change, **about)
    # what is kept beside is of the run itself; here nothing was computed
    path.with_name(f"{date}_numbers.parquet").unlink(missing_ok=True)
    return path
