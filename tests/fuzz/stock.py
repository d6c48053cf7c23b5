"""Small true files of every kind that a command reads: what the cases damage copies of."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import yaml

from lmms_patch import resources
from lmms_patch.app.cli import main
from lmms_patch.runs.results import objects_file, objects_text
from tests.fuzz.scenarios import PRUNING
from tests.magic.worlds import World
from tests.making import boards as boards
from tests.making import kit, lean
from tests.making import reports as entries
from tests.making.boxes import write_boxes
from tests.making.runs import guesses_on_cells, magic_doc, mc_run, turned_run, world_run, write_magic, write_run

GATES = ("model-regression", "benchmark-release", "model-compliance", "magic")

EVERY_KEY = {
    "schema": 1,
    "defaults": {
        "level": 0.9,
        "inconclusive": "warn",
        "margin": 0.01,
        "ignore": ["limit", "prompts"],
        "primary": "rci2",
    },
    "rules": [
        {
            "name": "floor",
            "task": ["toy_*", "other"],
            "model": "*",
            "metric": "fip",
            "min": 0.1,
            "max": 1.5,
            "margin": 0.02,
        },
        {
            "name": "drop",
            "kind": ["rci", "pcri"],
            "metric": "rci2",
            "max_drop": 0.5,
            "max_rise": 0.5,
            "correction": "none",
            "level": 0.95,
        },
        {
            "name": "size",
            "base": "toy",
            "metric": "rci2",
            "absolute": True,
            "max": 3,
            "interval": False,
            "inconclusive": "block",
        },
        {"name": "gate", "kind": "rci", "require": ["valid gate"], "max_excluded": 0.5, "min_docs": 2},
        {"name": "text", "kind": "tst", "max_tst_over_chance": 0.9},
    ],
}
LONG = "dataset,model,n,rci,docs,type,rci_low,rci_high\nGQA,a,2,-0.1,100,vqa,-0.2,0.0\nGQA,b,2,0.2,100,vqa,0.1,0.3\nAI2D,a,3,0.3,90,mcq,0.2,0.4\n"
WIDE = 'dataset,"LLaVA-1.5, n=2","LLaVA-1.5, n=3","Qwen, n=2"\nGQA,-0.1,0.2,0.3\nMME,-0.4,,0.1\n'
MAGIC = {"all": "magic", "relevant": "magic_relevant", "none": "magic_nobox", "selfheal": "magic_selfheal"}
TOLD = {
    "diagnostic": "rf", "settings": {"fold_seeds": 3, "seed": 0, "trees": 50}, "folds": 5, "unusable": {"source": "no source is known"}, "leakage": None, "zero_shot": None,
    "delta": None, "s": 0.3, "unscored": 0, "texts": {"different": 20, "repeated": 0, "conflicting": 0}, "seconds": 1.0,
    "importance": [{"kind": "words", "feature": "which", "gain": 0.5, "permutation": 0.1}],
    "causes": [{"words": "which", "category": "a", "rank": 1, "docs": 20, "s_minus_chance": 0.1, "gold": "A", "gold_share": 0.5, "mean": None, "sd": None, "cv": None}],
}  # fmt: skip
PART = {"docs": 10, "accuracy": 0.3, "low": 0.1, "high": 0.5, "majority": 0.3, "chance": 0.25, "s": 0.2}
SAID = "I look at R1. There is a cat in R2. It is big.\n**Answer**: dog"


def make(folder: Path) -> None:
    """Write all of it into a folder."""
    for part in (
        _indices,
        _lean,
        _plain,
        _filters,
        _magic_runs,
        _beside,
        _boards,
        _settings,
        _data,
        _labels,
        _build,
        _pruned,
        _kit,
    ):
        part(folder)
    write_boxes(folder / "runs" / "regions", 15)


def _indices(folder: Path) -> None:
    write_run(folder / "runs" / "mc", {"toy_rci2": mc_run(n=16, answers=1)})
    many = {
        "toy_rci2": mc_run(n=12, per_cluster=2),
        "toy2_pcri3": world_run(guesses_on_cells, n=10, grid=3, base="toy2", kind="pcri"),
    }
    write_run(folder / "runs" / "many", many, groups={"toys_rci2": ["toy_rci2"]})
    write_run(
        folder / "runs" / "turned",
        {"toy_rotate": turned_run(lambda doc, order, gold, stream: doc % 3, n=12, options=3, left_out=(5,))},
    )
    write_run(folder / "runs" / "again", {"toy_rci2": mc_run(n=16, answers=2)}, date="2026-02-01T00-00-00.000000")


def _lean(folder: Path) -> None:
    for name, seed, model in (("old", 1, "m"), ("new", 2, "m"), ("other", 3, "another/model")):
        full, best = lean.scored(20, 0.8, 0.6, seed)
        blind, _ = lean.scored(20, 0.4, 0, seed)
        clusters = [i // 2 for i in range(20)] if name != "other" else None
        tasks = [
            lean.task(full, best, looks=True, clusters=clusters, docs="d", out=(3,) if name == "new" else ()),
            lean.task(blind, name="toy_blind", docs="d"),
            lean.stressed(20),
        ]
        tasks[2][0]["patch,none"]["tst_details"] |= {**TOLD, "categories": {name: dict(PART) for name in "ab"}}
        tasks[2][0]["patch,none"]["tst_details"]["by_grouping"]["none"] |= {"sd": 0.01, "seeds": 3, "p": 0.1}
        for record in tasks[0][2]:
            record["image_sizes"] = [[8, 8]]
            for view in record["views"][1:]:
                view["boxes"] = [[4 * view["col"], 4 * view["row"], 4 * view["col"] + 4, 4 * view["row"] + 4]]
        lean.write(
            folder / "runs" / name,
            tasks,
            model=model,
            date=f"2026-0{seed}-01T00-00-00.000000",
            gen_kwargs="",
            model_args="pretrained=x,api_key=s",
        )


def _plain(folder: Path) -> None:
    """A native task beside its blind run, as the harness writes them."""
    path = lean.write(folder / "runs" / "plain", [lean.task([0.0, 1.0, 0.0, 1.0] * 5, name="toy_blind", docs="d")])
    data = json.loads(path.read_text())
    data["results"]["toy"] = {"alias": "toy", "acc,none": 0.75, "acc_stderr,none": 0.1}
    data["configs"]["toy"] = {"task": "toy", "metric_list": [{"metric": "acc"}]}
    data |= {"higher_is_better": {"toy": {"acc": True}}, "n-samples": {"toy": {"original": 20, "effective": 20}}}
    path.write_text(json.dumps(data))
    lines = [
        json.dumps({"doc_id": i, "target": "x", "filtered_resps": ["y"], "acc": float(i % 4 != 0)}) for i in range(20)
    ]
    path.with_name(f"{lean.DATE}_samples_toy.jsonl").write_text("\n".join(lines) + "\n")


def _filters(folder: Path) -> None:
    """A task with two filter pipelines: a line per doc and filter."""
    path = write_run(folder / "runs" / "filters", {"toy_rci2": mc_run(n=8)})
    data = json.loads(path.read_text())
    values = data["results"]["toy_rci2"]
    data["results"]["toy_rci2"] = {
        key.replace(",none", f",{name}"): value for name in ("strict", "loose") for key, value in values.items()
    }
    path.write_text(json.dumps(data))
    (log,) = path.parent.glob("*.jsonl")
    log.write_text("".join(line + line for line in log.read_text().splitlines(keepends=True)))


def _magic_runs(folder: Path) -> None:
    def docs(shift: int, **more: Any) -> list[dict[str, Any]]:
        return [
            magic_doc(f"q{i}", used=[1 + (i + shift) % 3], right=i % 3 > shift, text=SAID, group=f"g{i // 2}", **more)
            for i in range(8)
        ]

    nobox = [magic_doc(f"q{i}", relevant=(), boxes=0, right=i % 2 > 0, text=SAID, group=f"g{i // 2}") for i in range(8)]
    healed = [magic_doc(f"q{i}/1", text=SAID, healed=bool(i % 2)) for i in range(6)]
    for name, shift in (("magic_old", 0), ("magic_new", 1)):
        given = {"all": docs(shift), "relevant": docs(shift), "none": nobox, "selfheal": healed}
        write_magic(folder / "runs" / name, given, date=f"2026010{shift + 1}_000000", tasks=MAGIC)
    judged = [one | {"short": bool(i % 2), "full": True} for i, one in enumerate(docs(0))]
    write_magic(folder / "runs" / "magic_judged", {"all": judged}, judge="judge-7b", tasks=MAGIC)


def _beside(folder: Path) -> None:
    """Two runs as they are written today: the long objects in a file beside the results file.

    The other runs are as earlier versions wrote them.
    """
    for name, of in (("beside", "mc"), ("magic_beside", "magic_old")):
        place = shutil.copytree(folder / "runs" / of, folder / "runs" / name)
        (path,) = place.glob("*_results.json")
        data = json.loads(path.read_text())
        objects = {
            task: {key: values.pop(key) for key in list(values) if isinstance(values[key], dict)}
            for task, values in data["results"].items()
        }
        content, digest = objects_text(objects)
        objects_file(path).write_bytes(content)
        path.write_text(json.dumps({**data, "lmms_patch": {"file": objects_file(path).name, "sha256": digest}}))


def _boards(folder: Path) -> None:
    tasks = [
        boards.index_task(looks=True, adj=(-0.1, -0.2, 0.0)),
        boards.index_task("gqa", "rci", {2: (0.2, 0.1, 0.3)}),
        boards.blind_task(),
        boards.tst_task(),
    ]
    documents = [
        boards.document(f"org/model{i}", tasks, date=f"2026010{i + 1}_000000", args=f"pretrained=a{i},token=hf_x")
        for i in range(3)
    ]
    written = boards.write(folder / "board_runs", *documents)
    assert main(["leaderboard", *map(str, written[:2]), "--output", str(folder / "board"), "--quiet"]) == 0


def _settings(folder: Path) -> None:
    (folder / "gates").mkdir(parents=True)
    for name in GATES:  # the runs here have a grid of 2, and the judge of one of them
        text = (resources.folder("configs") / "gates" / f"{name}.yaml").read_text(encoding="utf-8")
        (folder / "gates" / f"{name}.yaml").write_text(text.replace("rci3", "rci2"), encoding="utf-8")
    (folder / "gates" / "every.yaml").write_text(yaml.safe_dump(EVERY_KEY, sort_keys=False))
    (folder / "tables").mkdir()
    (folder / "tables" / "long.csv").write_text(LONG)
    (folder / "tables" / "wide.csv").write_text(WIDE)
    own = [entries.entry("=toy", "m, n", indices=(-0.1, 0.3)), entries.entry("d", "other", gate=0)]
    from lmms_patch.present.report import across, benchmarks

    (folder / "tables" / "own.csv").write_text(benchmarks.indices(across.points_of(own)).to_csv())
    (folder / "profiles").mkdir()
    for name in ("gqa", "chartqa", "hallusion_bench", "pope"):
        shutil.copy(resources.folder("configs") / "profiles" / f"{name}.yaml", folder / "profiles")


def _data(folder: Path) -> None:
    """The first items of the embedded MAGIC data, with their images, as JSONL and as parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source, place = resources.folder("tasks") / "magic" / "mosaic", folder / "data"
    rows = [json.loads(line) for line in (source / "items.jsonl").read_text(encoding="utf-8").splitlines()[:5]]
    for name in {row["image"] for row in rows}:
        (place / Path(name).parent).mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, place / name)
    (place / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "parquet").mkdir()
    held = [{**row, "image": {"bytes": (source / row["image"]).read_bytes(), "path": None}} for row in rows[:3]]
    pq.write_table(pa.Table.from_pylist(held), folder / "parquet" / "items.parquet")


def _labels(folder: Path) -> None:
    place = folder / "labels"
    place.mkdir()
    for name, form in (("ann", ".csv"), ("bob", ".csv"), ("cat", ".jsonl")):
        path = place / f"{name}{form}"
        run = str(folder / "runs" / "magic_old")
        assert (
            main(["magic", "steps", run, "--task", "magic", "--annotator", name, "--output", str(path), "--quiet"]) == 0
        )
        _fill(path, form, name)


def _fill(path: Path, form: str, name: str) -> None:
    """Label the steps, each annotator in a way of their own."""
    if form == ".jsonl":
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        path.write_text("".join(json.dumps({**row, "correct": int(i % 3 > 0)}) + "\n" for i, row in enumerate(rows)))
        return
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        rows, names = list(reader), list(reader.fieldnames or [])
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(
            {**row, "correct": str(int(i % (3 if name == "ann" else 2) > 0)), "source": "human"}
            for i, row in enumerate(rows)
        )


def _build(folder: Path) -> None:
    world = World(folder / "build")
    world.build("begun", contact=2)


def _pruned(folder: Path) -> None:
    place = folder / "pruned"
    place.mkdir()
    kept, removed = ([{"key": f"k{i}", "doc_id": i} for i in range(*ends)] for ends in ((0, 14), (14, 20)))
    about = {
        "schema": 1,
        "base": "toy",
        "settings": {"seed": 0},
        "stopped": "the budget is used up",
        "over_pruned": False,
        "judged": None,
        "overlap": None,
    }
    (place / "pruned.json").write_text(json.dumps({**about, "kept": kept, "removed": removed}))
    (place / "kept_ids.txt").write_text("".join(f"k{i}\n" for i in range(14)))
    (folder / "ids.txt").write_text("".join(f"{i}\n" for i in range(12)))


def _kit(folder: Path) -> None:
    _, records, _ = mc_run(n=8)
    for ending in (".tsv", ".json", ".xlsx", ".pkl"):
        kit.export(folder / "kit" / ending[1:], records, ending=ending)


def make_for_harness(folder: Path) -> None:
    """Write task files and their data, and runs and prunings of such a task; needs lmms-eval."""
    from tests.fuzz.pool import small_harness
    from tests.harness import toys

    small_harness()
    docs = toys.rows(
        20,
        question=lambda i: f"Is the {'lamp' if i % 2 else 'sofa'} {i} on?",
        answer=lambda i: "yes" if i % 2 else "no",
        kind=lambda i: "ab"[i % 2],
    )
    inline = {"version": 0.0, "lmms_patch": {"category": "kind", "null": 0, "cluster": "question"}}
    place = toys.write_task(folder / "tasks", "toy", docs, metadata=inline)
    (place / "mine.yaml").write_text(
        "class: !function lmms_patch.Wrap\ntask: mine_rci2\nbase: toy\nkind: rci\ngrids: [2]\nmin_side: 4\n"
    )
    (place / "group.yaml").write_text(
        yaml.safe_dump(
            {"group": "toys", "task": ["toy", "mine_rci2"], "aggregate_metric_list": [{"metric": "exact_match"}]}
        )
    )
    (place / "gqa.yaml").write_text((place / "toy.yaml").read_text().replace("task: toy", "task: gqa"))
    stressed = lean.stressed(20)
    stressed[0]["patch,none"]["tst_details"] |= {**TOLD, "categories": {name: dict(PART) for name in "ab"}}
    stressed[0]["patch,none"]["tst_details"]["by_grouping"]["none"] |= {"sd": 0.01, "seeds": 3, "p": 0.1}
    of_doc = {
        "diagnostic": "rf",
        "fold": 0,
        "answers": ["yes"],
        "s": 0.5,
        "s_minus_chance": 0.2,
        "chance": 0.5,
        "delta": None,
        "zero_shot": None,
    }
    for i, record in enumerate(stressed[2]):
        record["answer"]["gold"] = docs[i]["answer"]
        record["tst"] |= {**of_doc, "s": i / 20, "s_minus_chance": i / 20 - 0.5, "baseline": {"none": [0.5]}}
    lean.write(folder / "runs" / "stressed", [stressed])
    words = [
        "prune",
        "toy",
        "--include-path",
        str(place),
        "--output",
        str(folder / "begun"),
        "--from",
        str(folder / "runs" / "stressed"),
        *PRUNING,
    ]
    assert main(words) == 0
