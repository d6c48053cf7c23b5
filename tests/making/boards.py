"""Results files with numbers that a test chose."""

from msgspec import to_builtins

from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.present.page import report
from lmms_patch.present.page.rows import check_ignored, labelled, ranked, rows_of
from lmms_patch.present.ranking import by_of
from lmms_patch.runs.run import find
from lmms_patch.stats.index import disagreement
from lmms_patch.stats.resample import Estimate
from tests.making.files import write_data
from tests.making.results import cross_validated


def est(value, low=None, high=None, n=100, reason=""):
    return to_builtins(Estimate(value, None, low, high, n, n, 1000, reason=reason))


def index_task(base="toy", kind="pcri", grids=None, fip=0.8, valid=True, docs=100, made=None, metric="acc", excluded=0, fip_all=None, steady=None,
               looks=None, why="", marginal=False, **options):  # fmt: skip
    """A task of an index; ``grids``: n -> (index, low, high), or None for a null one.

    ``fip_all`` with the excluded docs.

    ``steady``: (value, low, high) of the steady index, at every grid. ``looks``: whether the
    answers depend on the image.
    """
    grids = {3: (-0.1, -0.2, -0.05)} if grids is None else grids
    spec = WrapSpec(base, KINDS[kind], tuple(grids))
    named, analysed, flat = {}, {}, {}
    for n, numbers in grids.items():
        value, low, high = numbers or (None, None, None)
        reason = "" if numbers else ("near chance" if not valid else "FIP is 0")
        mpp = None if value is None else fip * (1 - value)
        ends = (None, None) if low is None else (fip * (1 - high), fip * (1 - low))
        analysed[str(n)] = {
            "n": n, "excluded": excluded, "fip": fip, "mpp": est(mpp, *ends, n=docs - excluded),
            "index": est(value, low, high, n=docs - excluded, reason=reason), "gap": est(None if value is None else fip - mpp, n=docs - excluded),
            "band": None if value is None else "balanced", "span": None, "mark": disagreement(value, steady[0]) if steady and steady[0] is not None and value is not None else "", "shares": None, "warnings": [], "reason": reason,
        }  # fmt: skip
        named |= {f"acc_mpp{n}": mpp}
        flat |= {f"{kind}{n}": value}
    fip = fip if fip_all is None else fip_all
    analysis = {
        "metric": metric, "n_docs": docs, "clusters": None, "form": "mean", "fip": est(fip, fip - 0.05, fip + 0.05, n=docs),
        "chance": {"value": 0.25, "se": 0.01, "floor": "uniform", "floors": {"uniform": est(0.25, 0.2, 0.3)}, "published": 0.25, "constants": {}, "reason": ""},
        "ceiling": max([1.0, fip, *(one["fip"] for one in analysed.values()), *(one["mpp"]["value"] or 0 for one in analysed.values())]), "gold_below": 0, "relative_change": None, "warnings": [], "grids": analysed, "necessity": [_asked_again(n, est(*steady, n=docs)) for n in grids] if steady else [],
        "gate": {"valid": valid, "fip": fip, "chance": 0.25, "delta": 0.01, "se_fip": 0.02, "se_chance": 0.01, "threshold": 0.3 if valid is not False else fip + 0.1,
                 "reason": "" if valid else why or f"near chance: FIP {fip} is below 0.3", "marginal": marginal,
                 "looks": [] if looks is None else [{"against": "wrong images", "value": looks, "reason": why,
                           "full": fip, "other": 0.1, "docs": 60, "wanted": None, "difference": est(fip - 0.1, fip - 0.2, fip, n=60)}]},
    }  # fmt: skip
    about = {"docs": "d", "prompts": "p", "image_sizes": "s", "images": "i", "lmms_eval": "0.7.3", **(made or {})}
    told = {"made": about, "settings": {"level": 0.95}, "higher_is_better": {metric: True}, "analysis": analysis}
    patch = {"records": docs, **flat, **told}
    described = {"schema": 1, "pixels": 1, **spec.described(), "metric": metric}
    described["options"] = {**described["options"], **options}
    return spec.name, {metric: fip, **named, **flat, "patch": patch}, described


def _asked_again(n, index):
    shares = dict.fromkeys(("text", "one cell", "whole image", "unsolved"), est(0.25, 0.2, 0.3))
    return {"n": n, "docs": index["n"], "again": index["n"], "shares": shares, "whole": index, "index": index}


def blind_task(base="toy", score=0.3):
    spec = WrapSpec(base, KINDS["blind"])
    _, values, described = index_task(base)
    analysis = {**values["patch"]["analysis"], "fip": est(score, score - 0.1, score + 0.1), "grids": {}}
    analysis["gate"] = {**analysis["gate"], "valid": None, "fip": score}
    patch = {**values["patch"], "analysis": analysis}
    return spec.name, {"acc": score, "patch": patch}, {**described, **spec.described(), "metric": "acc"}


def tst_task(base="toy", tst=0.5, above=0.1, chance=0.25):
    _, values, described = blind_task(base, tst)
    spec = WrapSpec(base, KINDS["tst"])
    ends = (est(value, value - 0.1, value + 0.1) for value in (tst, above))
    found = cross_validated(*ends, 0.4, chance)
    patch = {**values["patch"], "tst_details": found}
    return spec.name, {"acc": tst, "patch": patch}, {**described, **spec.described(), "metric": "acc"}


def document(model="m", tasks=None, date="20260101_000000", args="", config=None, **more):
    """A results file, as the object that it holds."""
    tasks = [index_task()] if tasks is None else tasks
    return {
        "results": {name: {f"{key},none": value for key, value in values.items()} for name, values, _ in tasks},
        "configs": {name: {"dataset_path": "org/toy", "test_split": "test", "lmms_patch": described} for name, _, described in tasks},
        "versions": {name: 1.0 for name, _, _ in tasks},
        "n-shot": {name: 0 for name, _, _ in tasks},
        "config": {"model": "adapter", "model_args": args, "limit": None, "offset": 0, "gen_kwargs": "", **(config or {})},
        "model_name": model, "date": date, "group_subtasks": {}, "system_instruction_sha": None, **more,
    }  # fmt: skip


def write(folder, *documents):
    """One results file for each document; the files."""
    out = []
    for i, found in enumerate(documents):
        place = folder / f"run{i}"
        place.mkdir(parents=True, exist_ok=True)
        path = place / f"{found['date']}_results.json"
        write_data(path, found, {})
        out.append(path)
    return out


def board_of(folder, *documents, by="fip", ignore=()):
    """The rows of some runs with their ranks, and what is said of their groups; nothing is drawn or written."""
    write(folder, *documents)
    found = report._once(find([folder]))
    check_ignored(ignore, found)
    entries = labelled(result for run in found for result in run.results)
    return ranked([row for entry in entries for row in rows_of(entry)], by_of(by), ignore)


def groups(rows):
    """The rows by kind, benchmark, grid and group."""
    out = {}
    for row in rows:
        out.setdefault((*row.where, row.group), []).append(row)
    return list(out.values())


def shown(rows):
    """Model -> range of places, of the ranked ones."""
    return {row.model: (row.place.first, row.place.last) for row in rows if row.place}
