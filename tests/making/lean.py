"""Finished runs with planted scores, written fast: for tests of the gate that need hundreds of them."""

import itertools

import numpy as np

from lmms_patch.ask.spec import parse
from lmms_patch.runs.numbers import to_json
from lmms_patch.stats import intervals
from tests.making.files import DATE, lines_of, write_files

LOOKS = {
    "against": "wrong images",
    "full": None,
    "other": None,
    "docs": 0,
    "wanted": None,
    "reason": "",
    "difference": to_json(intervals.mean([0.0, 1.0], None, draws=0)),
}
STARTS = itertools.count()
"""What makes each run that is written another run, as the harness's clock does."""


def mean(values, clusters=None, draws=400):
    return intervals.mean(values, clusters, draws=draws)


def both(rows, statistic, clusters):
    """A number that two scores of a doc make, as ``draws.Draws`` gives it."""
    corners = [[full, best, 1.0] for full in (0.0, 1.0) for best in (0.0, 1.0)]
    return intervals.estimate(rows, statistic, clusters, extremes=corners, unseen=intervals.UNSEEN_OF_PAIRS, draws=400)


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


def task(
    full,
    best=None,
    *,
    name="toy_rci2",
    chance=0.25,
    gate=None,
    looks=None,
    clusters=None,
    docs=None,
    prompts="p",
    higher=True,
    out=(),
    unscored=(),
):
    """One task of a run: its entry of results, of configs, and its records. Without ``best`` it has no index (blind).

    ``looks`` says whether its answers depend on the image, None: nobody asked. ``out`` are docs that the grid does not
    use, ``unscored`` docs whose call failed: the run's numbers are of the others.
    """
    spec = parse(name)
    every, n = np.asarray(full, float), len(full)
    best_of_all, clusters_of_all = best, clusters
    scored_docs = np.isin(np.arange(n), unscored, invert=True)
    used = scored_docs & np.isin(np.arange(n), out, invert=True)
    full, clusters = every[scored_docs], None if clusters is None else np.asarray(clusters)[scored_docs]
    index = spec.kind.name if best is not None else None
    fip, se = mean(full, clusters), None
    se = fip.se or 0.0
    valid = (fip.value is not None and fip.value >= chance + max(0.01, 2 * se)) if gate is None else gate
    number = None if valid is None else int(valid)
    numbers = {
        "records": n,
        "chance": chance,
        "ceiling": 1.0,
        "n_docs": len(full),
        "n_failed": len(unscored),
        **({"gate": number} if index else {}),
    }
    grids = {}
    if index:
        rows = np.column_stack([every, np.asarray(best, float), np.ones(n)])[used]
        clusters = None if clusters is None else np.asarray(clusters_of_all)[used]
        found = {
            "mpp": mean(rows[:, 1], clusters),
            "index": both(rows, lambda s: 1 - s[..., 1] / s[..., 0], clusters),
            "gap": both(rows, lambda s: (s[..., 0] - s[..., 1]) / s[..., 2], clusters),
        }
        plain = {key: to_json(one) for key, one in found.items()}
        if valid is not True:
            nothing = dict.fromkeys(("value", "se", "low", "high"))
            plain |= {key: {**plain[key], **nothing, "reason": "near chance"} for key in ("index", "gap")}
        grids["2"] = {
            "n": 2,
            "excluded": int((scored_docs & ~used).sum()),
            "fip": float(every[used].mean()),
            "adj": None,
            "shares": None,
            "luck_ceiling": None,
            "band": None,
            "span": None,
            "reason": "",
            "warnings": [],
            **plain,
        }
        numbers |= {
            "n_excluded2": grids["2"]["excluded"],
            f"{index}2": plain["index"]["value"],
            "gap2": plain["gap"]["value"],
        }
    reason = "" if valid else "near chance: FIP is below the floor and its margin"
    analysis = {
        "metric": "acc",
        "n_docs": len(full),
        "clusters": None,
        "form": "mean",
        "fip": to_json(fip),
        "chance": {
            "value": chance,
            "se": None,
            "floor": "",
            "floors": {},
            "published": None,
            "constants": {},
            "reason": "",
        },
        "ceiling": 1.0,
        "gold_below": 0,
        "gate": {
            **dict.fromkeys(("delta", "se_fip", "se_chance", "threshold")),
            "fip": fip.value,
            "chance": chance,
            "valid": valid,
            "reason": reason,
            "looks": [] if looks is None else [LOOKS | {"value": looks}],
        },
        "grids": grids,
        "warnings": [],
    }
    if len(unscored):
        calls = {"calls": len(unscored), "asked": n * (5 if index else 1), "first": len(unscored), "text": "no answer"}
        analysis["failed"] = {"docs": len(unscored), "of": n, **calls}
    about = {
        "settings": {"draws": 400, "level": 0.95, "seed": 0},
        "higher_is_better": {"acc": higher},
        "analysis": analysis,
    }
    about["made"] = {
        "lmms_patch": "0",
        "lmms_eval": "0.7.3",
        "docs": docs or f"d{n}",
        "prompts": prompts,
        "image_sizes": f"s {docs or n}",
        "images": f"i {docs or n}",
    }
    results = {"acc,none": fip.value, "patch,none": {**numbers, **about}}
    if index:
        results["acc_mpp2,none"] = plain["mpp"]["value"]
    described = {"schema": 1, "pixels": 1, **spec.described(), "metric": "acc"}
    described["options"] = {**described["options"], **({"cluster": "image"} if clusters is not None else {})}
    records = _records(spec, every, best_of_all, clusters_of_all)
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
                {
                    "kind": "cell",
                    "n": 2,
                    "cell": k + 1,
                    "row": k // 2,
                    "col": k % 2,
                    "scores": {"acc": c},
                    "items": {"acc": c},
                }
                for k, c in enumerate(cells)
            ]
        record = {
            "schema": 1,
            "task": spec.name,
            "base": spec.base,
            "kind": spec.kind.name,
            "grids": list(spec.grids),
            "doc_id": i,
            "image_sizes": [],
        }
        record |= {
            "views": views,
            "best": {"2": 1} if best is not None else {},
            "excluded": {},
            "answer": {"gold": "A"},
        }
        record |= {"fields": {"cluster": int(clusters[i])}} if clusters is not None else {}
        out.append(record)
    return out


def stressed(n=400, accuracy=0.3, chance=0.25, seed=0, name="toy_tst5"):
    """A text-only cross-validation."""
    scores, _ = scored(n, accuracy, 0, seed)
    results, config, records = task(scores, name=name, chance=chance)
    estimate = to_json(mean(scores))
    details = {
        "headline": "none",
        "chance": chance,
        "by_grouping": {
            "none": {"accuracy": estimate, "majority": chance, "above": estimate, "sd": None, "seeds": 1, "p": None}
        },
    }
    details |= {"leakage": None, "zero_shot": None, "delta": None, "s": None}
    results["patch,none"] |= {"tst": float(scores.mean()), "tst_details": details}
    for record, score in zip(records, scores.tolist(), strict=True):
        record["tst"] = {
            "grouping": "none",
            "scores": {"none": [score]},
            "baseline": {"none": [chance]},
            "source": None,
        }
    return results, config, records


def write(folder, tasks, *, model="m", date=DATE, logs=True, change=None, **config):
    """Write a run; ``change`` may alter the results file's content before it is written."""
    first = config.get("offset", 0)
    tasks = [
        (results, told, [{**record, "doc_id": record["doc_id"] + first} for record in records])
        for results, told, records in tasks
    ]
    made = {
        records[0]["task"]: (results, told, lines_of(records) if logs else None) for results, told, records in tasks
    }
    about = {
        "model_name": model,
        "config": {"model": "hf", "model_args": "", "limit": None, **config},
        "start_time": next(STARTS),
    }
    about |= {"n-shot": dict.fromkeys(made, 0), "versions": dict.fromkeys(made, 1.0), "system_instruction_sha": None}
    return write_files(folder, made, date=date, change=change, **about)
