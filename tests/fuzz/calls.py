"""What is typed: every command over the files of true runs, which a case then breaks."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from lmms_patch import resources
from lmms_patch.app.cli import main
from tests.magic.worlds import World
from tests.stored import unpack

INDEXED = "f1|mme|corpus|filters|metrics|states|chat|losses|turned|items|boxes|grids|clips"
RUNS = f"{INDEXED}|guess|tst|lora|magic|magic_b"
ALL = f"{RUNS}|points|fast|demo|demo_b"
SHARED = [f"mosaic_{name}_rci3" for name in ("center", "count", "local")]
"""The tasks of the run ``demo_b``, which ``demo`` has too."""
ANNOTATORS = ("ann", "bob", "cat")
JSON = "[--json OUT:out.json]"
BUILD = "magic build IN:build/questions.json IN:build/scenes.json IN:build/images"

COMMANDS = {
    "show": f"show IN:runs/{ALL} [--cells] [--chance] [--causes] [--wide]",
    "analyze": f"analyze IN:runs/{INDEXED} --draws 200 [--by-category] [--cells] [--metric acc] [--chance 0.25|majority] [--level 0.9] {JSON}",
    "ensemble": f"analyze IN:runs/demo IN:runs/demo_b@second --ensemble --draws 200 {JSON}",
    "compare": f"compare IN:runs/demo IN:runs/demo_b@second --draws 200 {JSON}",
    "compare itself": f"compare IN:runs/boxes IN:runs/boxes@second --draws 200 {JSON}",
    "compare magic": f"compare IN:runs/magic IN:runs/magic_b@second --draws 200 {JSON}",
    "gap": "gap IN:runs/f1 IN:runs/f1 --task polar_blind [--subset IN:pruned]",
    "gap of losses": "gap IN:runs/losses IN:runs/losses --task letters_blind [--subset IN:pruned]",
    "gate": f"gate IN:runs/demo_b --config IN:gates/benchmark-release.yaml|model-compliance.yaml {JSON} [--junit OUT:out.xml]",
    "gate rules": f"gate FIX:runs/demo_b --baseline FIX:runs/demo@before --config IN:gates/model-regression.yaml|every.yaml {JSON} [--junit OUT:out.xml]",
    "gate baseline": f"gate IN:runs/demo_b --baseline IN:runs/demo@before --config IN:gates/model-regression.yaml|every.yaml {JSON}",
    "gate magic": f"gate IN:runs/magic --baseline IN:runs/magic_b@before --config IN:gates/magic.yaml {JSON}",
    "leaderboard": f"leaderboard IN:runs/{INDEXED} IN:runs/{ALL}@second [--by rci|gap|fip|mpp|steady] [--ignore docs] --output OUT:board",
    "report": f"report IN:runs/{RUNS} [--examples 1] --output OUT:report",
    "report of a table": "report --from-csv IN:tables/long.csv|wide.csv --output OUT:report",
    "export": f"export IN:runs/{RUNS} --output OUT:x.parquet|x.csv|x.jsonl",
    "export to a hub": f"export IN:runs/{RUNS} --to every-eval-ever --output OUT:x.json",
    "magic check": f"magic check IN:data/items.jsonl {JSON} WITH:data/images",
    "magic check folder": f"magic check IN:data|parquet {JSON}",
    "magic build": f"{BUILD} --saliency IN:build/maps [--limit 2] --output OUT:new",
    "magic build weak": f"{BUILD} --weak [--limit 2] --output OUT:new",
    "magic show": f"magic show IN:runs/magic|magic_b [IN:runs/magic|magic_b@second] {JSON}",
    "magic steps": "magic steps IN:runs/magic|magic_b --task magic_mosaic [--items 3] --output OUT:steps.jsonl",
    "magic stepsense": f"magic stepsense IN:labels/ann.jsonl [IN:labels/bob.jsonl] [IN:labels/cat.jsonl] {JSON}",
    "schema": "config schemas|schemas/gate-config|schemas/magic-label|gates/magic|schemas/",
    "tst": "tst mosaic|x [--folds 99999|x] [--grouping x] --folds 1 --output out",
}  # fmt: skip
"""Commands by name. ``[...]`` is typed in a third of the calls, and ``a|b`` is one of them. ``IN:`` is a true file or folder, which may be
broken, ``FIX:`` such a file that is not, both copied to the case's own folder (under another name: ``@``), ``WITH:`` the same, but not typed;
``OUT:`` what is written."""
WITH_HARNESS = {
    "explore": f"explore IN:runs/{RUNS} [IN:runs/{RUNS}@second] --export OUT:docs",
    "tasks": "tasks words|words_rci3|gqa*|*|toys|mine_rci2|words_blind --include-path IN:tasks [--as rci|blind|tst5]",
    "prune": "prune words --controls 1 --shuffles 0 --budget 4 --folds 2 --include-path FIX:tasks --from IN:runs/tst --output OUT:new",
}  # fmt: skip
"""Commands that import lmms-eval."""
STATUSES = {
    "gate": (0, 1, 2, 3),
    "magic check": (0, 1, 2),
    "magic build": (0, 1, 2),
    "magic steps": (0, 1, 2),
    "tst": (2,),
}
KEEPS = ("magic build", "prune")
"""Commands that may have written to their output when they are refused: the next call goes on from there."""
EVERY_KEY = """schema: 1
defaults: {level: 0.9, inconclusive: warn, margin: 0.01, ignore: [limit, prompts]}
rules:
  - {name: floor, task: ["mosaic_*", x], model: "*", metric: fip, min: 0.1, max: 1.5, margin: 0.02}
  - {name: drop, task: mosaic_local_rci3, kind: [rci, pcri], metric: rci3, max_drop: 0.5, max_rise: 0.5}
  - {name: size, base: mosaic_local, metric: rci3, absolute: true, max: 3, interval: false}
  - {name: gate, kind: rci, require: [valid gate], max_excluded: 0.5, min_docs: 2}
  - {name: score, metric: mpp3, min: 0.2, inconclusive: block}
"""
LONG = "dataset,model,n,rci,docs,type,rci_low,rci_high\nGQA,a,2,-0.1,100,vqa,-0.2,0.0\nGQA,b,2,0.2,100,vqa,0.1,0.3\n"
WIDE = 'dataset,"LLaVA-1.5, n=2","LLaVA-1.5, n=3","Qwen, n=2"\nGQA,-0.1,0.2,0.3\nMME,-0.4,,0.1\n'


@dataclass
class Call:
    """What a case types, drawn from the template of a command.

    Attributes:
        folder: of the case; everything that the command reads and writes lies in it.
        command: such as ``magic check``.
        words: after ``lmms-patch``.
        inputs: files that may be broken.
        outputs: files and folders that the command may write.
        odd: whether an option may have changed what is written where, or asks for the help alone.
    """

    folder: Path
    command: str
    words: list[str] = field(default_factory=list)
    inputs: list[Path] = field(default_factory=list)
    outputs: list[Path] = field(default_factory=list)
    odd: bool = False


def drawn(stream: Random, template: str, true: Path, folder: Path) -> Call:
    """Draw a call, and copy its files."""
    command = re.match(r"magic \w+|\w+", template)
    assert command is not None
    call = Call(folder, command[0])
    for optional, words in re.findall(r"\[(.*?)\]|(\S+)", template):
        for word in optional.split() if optional and stream.random() < 0.35 else words.split():
            start, colon, names = word.rpartition(":")
            names, _, other = names.partition("@")
            place, slash, names = names.rpartition("/") if colon else ("", "", names)
            chosen = place + slash + stream.choice(names.split("|"))
            target = folder / (other or chosen)
            if start == "OUT":
                call.outputs.append(target)
            elif colon:
                files = _copied(true / chosen, target)
                call.inputs += files if start == "IN" else []
            if start != "WITH":
                call.words.append(str(target) if colon else chosen)
    return call


def _copied(source: Path, target: Path) -> list[Path]:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, target, dirs_exist_ok=True) if source.is_dir() else shutil.copy(source, target)
    return sorted(path for path in ([target] if target.is_file() else target.rglob("*")) if path.is_file())


def write_files(folder: Path) -> None:
    """Write true files of every kind that a command reads."""
    runs = unpack(folder)
    for name in ("gates", "tables", "data", "parquet", "labels", "pruned"):
        (folder / name).mkdir()
    for path in (resources.folder("configs") / "gates").glob("*.yaml"):
        rules = yaml.safe_load(path.read_text())
        # the stored runs were made without a judge and without a text-only diagnostic
        tasks = {} if path.stem == "magic" else {"task": SHARED}
        there = [rule for rule in rules["rules"] if rule.get("metric") not in ("self_heal", "tst_over_chance")]
        rules["rules"] = [rule | tasks for rule in there]
        (folder / "gates" / path.name).write_text(yaml.safe_dump(rules, sort_keys=False))
    (folder / "gates" / "every.yaml").write_text(EVERY_KEY)
    (folder / "tables" / "long.csv").write_text(LONG)
    (folder / "tables" / "wide.csv").write_text(WIDE)
    mosaic = resources.folder("tasks") / "magic" / "mosaic"
    rows = [json.loads(line) for line in (mosaic / "items.jsonl").read_text().splitlines()[:5]]
    for name in {row["image"] for row in rows}:
        _copied(mosaic / name, folder / "data" / name)
    (folder / "data" / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    held = [{**row, "image": {"bytes": (mosaic / row["image"]).read_bytes(), "path": None}} for row in rows]
    pq.write_table(pa.Table.from_pylist(held), folder / "parquet" / "items.parquet")
    for turn, name in enumerate(ANNOTATORS, 2):
        path = folder / "labels" / f"{name}.jsonl"
        words = ["--task", "magic_mosaic", "--items", "8", "--annotator", name, "--output", str(path)]
        assert main(["magic", "steps", str(runs / "magic"), *words]) == 0
        steps = map(json.loads, path.read_text().splitlines())
        labelled = [{**step, "correct": int(i % turn > 0)} for i, step in enumerate(steps)]
        path.write_text("".join(json.dumps(step) + "\n" for step in labelled))
    World(folder / "build")
    kept, removed = ([{"key": f"k{i}", "doc_id": i} for i in ids] for ids in (range(20), range(20, 40)))
    about = {"schema": 1, "base": "polar", "settings": {}, "stopped": "budget", "over_pruned": False, "judged": None}
    (folder / "pruned" / "pruned.json").write_text(json.dumps({**about, "kept": kept, "removed": removed}))


def write_tasks(folder: Path) -> None:
    """Write a task whose run is among the stored runs, and a wrapped one and a group of it; needs lmms-eval."""
    from tests.harness.tst import toys

    place = toys.write(folder / "tasks", "words", toys.choices(48, 3))
    wrapped = {"task": "mine_rci2", "base": "words", "kind": "rci", "grids": [2], "min_side": 4}
    (place / "mine.yaml").write_text("class: !function lmms_patch.Wrap\n" + yaml.safe_dump(wrapped))
    (place / "group.yaml").write_text(yaml.safe_dump({"group": "toys", "task": ["words", "mine_rci2"]}))
    (place / "gqa.yaml").write_text((place / "words.yaml").read_text().replace("task: words", "task: gqa"))
    shutil.copytree(resources.folder("configs") / "profiles", place / "profiles")
