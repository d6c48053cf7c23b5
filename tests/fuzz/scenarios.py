"""What is typed: every command with files of a true run, which a case then breaks, and options, some of which are odd."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

PRUNING = ("--controls", "1", "--shuffles", "0", "--budget", "4", "--folds", "2", "--quiet")
GATES = ("model-regression", "benchmark-release", "model-compliance", "magic", "every")
INDEXED = ("mc", "beside", "many", "again", "old", "new", "other", "regions", "turned", "filters")
RUNS = (*INDEXED, "plain", "magic_beside", "magic_old", "magic_new", "magic_judged")


@dataclass
class Call:
    """What one case types.

    Attributes:
        folder: of the case; everything that the command reads and writes lies in it.
        words: after ``lmms-patch``.
        inputs: what may be broken.
        outputs: files and folders that the command may write.
        keeps: folders among the outputs that go on where an earlier call ended: a refused call may have written to
        them.
        env: environment variables.
        odd: whether an option may have changed what is written where, or asks for the help alone.
    """

    folder: Path
    words: list[str]
    inputs: list[Path]
    outputs: list[Path] = field(default_factory=list)
    keeps: list[Path] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    odd: bool = False


@dataclass(frozen=True)
class Scenario:
    """A command and how often it is drawn.

    Attributes:
        name: the command's words.
        weight: how often.
        statuses: what its help and docs/ say that it may end with.
        make: copies its files into the case's folder, and says what is typed.
        harness: whether it needs lmms-eval, which is slow to import.
    """

    name: str
    weight: float
    statuses: tuple[int, ...]
    make: Callable[[Random, Path, Path], Call]
    harness: bool = False


def _copied(stock: Path, folder: Path, name: str, as_: str = "") -> Path:
    target = folder / (as_ or name)
    if (stock / name).is_dir():
        shutil.copytree(stock / name, target)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(stock / name, target)
    return target


def _run(stream: Random, stock: Path, folder: Path, names: tuple[str, ...], as_: str) -> tuple[Path, list[Path]]:
    """A run, and the files of it; of any run, also two in one folder."""
    place = _copied(stock, folder, f"runs/{stream.choice(names)}", as_)
    if names is RUNS and stream.random() < 0.2:
        shutil.copytree(stock / "runs" / stream.choice(RUNS), place, dirs_exist_ok=True)
    return place, sorted(place.iterdir())


def _maybe(stream: Random, words: list[str], chance: float = 0.25) -> list[str]:
    return words if stream.random() < chance else []


def _files(stream: Random, folder: Path, **forms: str) -> tuple[list[str], list[Path]]:
    """``--json FILE`` and the like, each at a third of the calls."""
    words, outputs = [], []
    for option, ending in forms.items():
        if stream.random() < 0.35:
            outputs.append(folder / f"out{ending}")
            words += [f"--{option}", str(outputs[-1])]
    return words, outputs


def show(stream: Random, stock: Path, folder: Path) -> Call:
    place, files = _run(stream, stock, folder, RUNS, "run")
    words = [*_maybe(stream, ["--cells"]), *_maybe(stream, ["--chance"]), *_maybe(stream, ["--causes"])]
    return Call(folder, ["show", str(place), *words], files)


def doctor(stream: Random, stock: Path, folder: Path) -> Call:
    place, files = _run(stream, stock, folder, RUNS, "run")
    return Call(folder, ["doctor", str(place), *_maybe(stream, ["--format", "json"])], files)


def init_gate(stream: Random, stock: Path, folder: Path) -> Call:
    place, files = _run(stream, stock, folder, RUNS, "run")
    out = folder / "out"
    return Call(folder, ["init", "gate", str(place), "--output", str(out), "--action", "o/p@v1"], files, [out])


def analyze(stream: Random, stock: Path, folder: Path) -> Call:
    place, files = _run(stream, stock, folder, INDEXED, "run")
    words = ["analyze", str(place)]
    if stream.random() < 0.2:
        second, more = _run(stream, stock, folder, INDEXED, "second")
        words, files = [*words, str(second)], files + more
    words += [
        *_maybe(stream, ["--draws", "200"], 0.7),
        *_maybe(stream, ["--by-category"]),
        *_maybe(stream, ["--cells"]),
        *_maybe(stream, ["--metric", "acc"], 0.1),
    ]
    words += [
        *_maybe(stream, ["--cluster", stream.choice(("cluster", "none", "image", "category"))], 0.15),
        *_maybe(stream, ["--category", "a"], 0.1),
    ]
    words += [
        *_maybe(stream, ["--chance", stream.choice(("0.25", "majority"))], 0.1),
        *_maybe(stream, ["--level", "0.9"], 0.1),
    ]
    more_words, outputs = _files(stream, folder, json=".json")
    return Call(folder, [*words, *more_words, "--quiet"], files, outputs)


def compare(stream: Random, stock: Path, folder: Path) -> Call:
    one, other = stream.choice(
        (
            ("old", "new"),
            ("mc", "again"),
            ("beside", "again"),
            ("new", "other"),
            ("magic_old", "magic_new"),
            ("magic_beside", "magic_new"),
            ("regions", "regions"),
            ("filters", "filters"),
            ("many", "many"),
        )
    )
    (first, a), (second, b) = (
        _run(stream, stock, folder, (one,), "first"),
        _run(stream, stock, folder, (other,), "second"),
    )
    more, outputs = _files(stream, folder, json=".json", sheet=stream.choice((".csv", ".md", ".tex", "2.json")))
    return Call(
        folder,
        ["compare", str(first), str(second), *_maybe(stream, ["--draws", "200"], 0.8), *more, "--quiet"],
        a + b,
        outputs,
    )


def gap(stream: Random, stock: Path, folder: Path) -> Call:
    place, files = _run(stream, stock, folder, ("old", "new", "plain"), "run")
    words = [
        "gap",
        str(place),
        str(place),
        *_maybe(stream, ["--task", stream.choice(("toy_blind", "toy_blind", "toy_tst5"))], 0.95),
        *_maybe(stream, ["--metric", "acc"]),
        *_maybe(stream, ["--match", stream.choice(("none", "format"))]),
    ]
    if stream.random() < 0.6:
        kept = stream.choice(("pruned", "pruned", "ids.txt"))
        subset = _copied(stock, folder, kept)
        files = [*files, *(sorted(subset.iterdir()) if subset.is_dir() else [subset])]
        words += ["--subset", str(subset)]
        if stream.random() < 0.5:
            files = files[-2:]
    return Call(folder, words, files)


def gate(stream: Random, stock: Path, folder: Path) -> Call:
    rules = stream.choice(GATES)
    pairs = {"magic": [("magic_new", "magic_old")], "benchmark-release": [("new", "old")], "every": [("new", "old")]}
    pairs["model-regression"] = [("new", "old"), ("again", "mc")]
    one, other = stream.choice(pairs.get(rules, [*pairs["model-regression"], ("many", "mc"), ("filters", "mc")]))
    config = _copied(stock, folder, f"gates/{rules}.yaml", "rules.yaml")
    place, files = _run(stream, stock, folder, (one,), "run")
    words = ["gate", str(place), "--config", str(config)]
    if rules in ("model-regression", "magic", "every") or stream.random() < 0.1:
        before, more = _run(stream, stock, folder, (other,), "before")
        words, files = [*words, "--baseline", str(before)], files + more
    more_words, outputs = _files(stream, folder, json=".json", junit=".xml", summary=".md")
    inputs = [config] if stream.random() < 0.4 else [config, *files]
    return Call(folder, [*words, *more_words, *_maybe(stream, ["--annotations"], 0.2)], inputs, outputs)


def leaderboard(stream: Random, stock: Path, folder: Path) -> Call:
    board, runs = _copied(stock, folder, "board"), _copied(stock, folder, "board_runs")
    files = sorted(runs.rglob("*.json"))
    words = ["leaderboard", *_maybe(stream, [str(runs)], 0.8), "--output", str(board), "--quiet"]
    words += [
        *_maybe(stream, ["--by", stream.choice(("rci", "gap", "fip", "mpp", "adj"))]),
        *_maybe(stream, ["--fresh"], 0.1),
        *_maybe(stream, ["--ignore", "docs"], 0.1),
    ]
    if stream.random() < 0.3:
        place, more = _run(stream, stock, folder, RUNS, "run")
        words, files = (
            [*words[:1], str(place), *words[1:]],
            [one for one in more if one.name.endswith("_results.json")] + files,
        )
    return Call(folder, words, [board / "leaderboard.json"] if stream.random() < 0.4 else files, [board])


def report(stream: Random, stock: Path, folder: Path) -> Call:
    place, files = _run(stream, stock, folder, RUNS, "run")
    out = folder / "report"
    return Call(
        folder,
        ["report", str(place), "--output", str(out), "--quiet", *_maybe(stream, ["--examples", "1"])],
        files,
        [out],
    )


def explore(stream: Random, stock: Path, folder: Path) -> Call:
    place, files = _run(stream, stock, folder, RUNS, "run")
    words, out = ["explore", str(place)], folder / "docs"
    if stream.random() < 0.2:
        second, more = _run(stream, stock, folder, RUNS, "second")
        words, files = [*words, str(second)], files + more
    return Call(folder, [*words, "--export", str(out), "--no-images", "--quiet"], files, [out])


def published(stream: Random, stock: Path, folder: Path) -> Call:
    table = _copied(stock, folder, f"tables/{stream.choice(('long', 'wide', 'own'))}.csv", "table.csv")
    return Call(
        folder,
        ["report", "--from-csv", str(table), "--output", str(folder / "report"), "--quiet"],
        [table],
        [folder / "report"],
    )


def check(stream: Random, stock: Path, folder: Path) -> Call:
    kind = stream.choice(("data", "data", "parquet"))
    place = _copied(stock, folder, kind)
    (data,) = (path for path in place.iterdir() if path.suffix in (".jsonl", ".parquet"))
    images = sorted((place / "images").iterdir()) if kind == "data" and stream.random() < 0.15 else []
    more, outputs = _files(stream, folder, json=".json")
    named = stream.choice((str(data), str(place)))
    return Call(
        folder, ["magic", "check", named, *_maybe(stream, ["--all"]), *more, "--quiet"], images or [data], outputs
    )


def build(stream: Random, stock: Path, folder: Path) -> Call:
    place = _copied(stock, folder, "build")
    if stream.random() < 0.5:
        shutil.rmtree(place / "begun")
    out = place / stream.choice(("begun", "new", "new"))
    maps = stream.random() < 0.5
    inputs = [place / "questions.json", place / "scenes.json"] * 3 + sorted((place / "images").iterdir())
    inputs += sorted((place / "maps").iterdir())[:2] if maps else []
    inputs += [path for path in sorted(out.rglob("*")) if path.is_file()] * 2 if out.exists() else []
    words = [
        "magic",
        "build",
        str(place / "questions.json"),
        str(place / "scenes.json"),
        str(place / "images"),
        "--output",
        str(out),
        "--quiet",
    ]
    words += ["--saliency", str(place / "maps")] if maps else ["--weak"]
    words += ["--contact", stream.choice(("0", "2")), *_maybe(stream, ["--limit", "2"])]
    return Call(folder, words, inputs, [out], [out])


def magic_show(stream: Random, stock: Path, folder: Path) -> Call:
    place, files = _run(stream, stock, folder, ("magic_old", "magic_new", "magic_beside", "magic_judged"), "run")
    words = ["magic", "show", str(place), "--draws", "200"]
    if stream.random() < 0.2:
        second, more = _run(stream, stock, folder, ("magic_old", "magic_new"), "second")
        words, files = [*words, str(second)], files + more
    more_words, outputs = _files(stream, folder, json=".json", sheet=stream.choice((".csv", ".md", ".tex")))
    return Call(folder, [*words, *more_words], files, outputs)


def steps(stream: Random, stock: Path, folder: Path) -> Call:
    place, files = _run(stream, stock, folder, ("magic_old", "magic_new", "magic_judged"), "run")
    output = folder / f"steps{stream.choice(('.csv', '.jsonl'))}"
    task = "magic" if stream.random() < 0.9 else "magic_selfheal"
    words = [
        "magic",
        "steps",
        str(place),
        "--output",
        str(output),
        "--task",
        task,
        "--quiet",
        *_maybe(stream, ["--items", "3"]),
        *_maybe(stream, ["--overwrite"], 0.5),
    ]
    return Call(folder, words, files, [output])


def stepsense(stream: Random, stock: Path, folder: Path) -> Call:
    place = _copied(stock, folder, "labels")
    files = [place / name for name in stream.sample(("ann.csv", "bob.csv", "cat.jsonl"), stream.randint(1, 3))]
    more, outputs = _files(stream, folder, json=".json", sheet=stream.choice((".csv", ".md")))
    return Call(folder, ["magic", "stepsense", *map(str, files), "--draws", "200", *more], files, outputs)


def schema(stream: Random, stock: Path, folder: Path) -> Call:
    names = ("schemas", "schemas/patch", "schemas/gate", "schemas/nothing", "schemas/", "")
    return Call(folder, ["config", *_maybe(stream, [stream.choice(names)], 0.7)], [])


def tst(stream: Random, stock: Path, folder: Path) -> Call:
    """Refused before lmms-eval is started: a run of it takes longer than a case may."""
    odd = stream.choice(
        (
            ["--folds", "1"],
            ["--folds", "99999"],
            ["--grouping", "x"],
            ["--fold-seeds", "0"],
            ["--fold-seed", "-1"],
            ["--diagnostic", "lora", "--check"],
            ["--folds", "x"],
        )
    )
    return Call(
        folder, ["tst", stream.choice(("mosaic", "x", "")), *odd, "--output", str(folder / "out"), "--quiet"], []
    )


def tasks(stream: Random, stock: Path, folder: Path) -> Call:
    given, profiles = _copied(stock, folder, "tasks"), _copied(stock, folder, "profiles")
    inputs = sorted(profiles.iterdir()) if stream.random() < 0.4 else sorted(given.glob("*.yaml"))
    words = [
        "tasks",
        *_maybe(stream, [stream.choice(("toy", "toy_rci3", "gqa*", "*", "toys", "mine_rci2", "toy_blind"))], 0.8),
        "--include-path",
        str(given),
    ]
    words += _maybe(stream, ["--as", stream.choice(("rci", "blind", "tst5", "rci12", ""))])
    return Call(folder, words, inputs, env={"LMMS_PATCH_PROFILES": str(profiles)})


def prune(stream: Random, stock: Path, folder: Path) -> Call:
    given, out = _copied(stock, folder, "tasks"), folder / "pruned"
    place, files = _run(stream, stock, folder, ("stressed",), "run")
    if stream.random() < 0.3:
        _copied(stock, folder, "begun", "pruned")
        files = sorted(path for path in out.rglob("*") if path.is_file())
    words = [
        "prune",
        "toy",
        "--include-path",
        str(given),
        "--output",
        str(out),
        "--from",
        str(place),
        *PRUNING,
    ]
    return Call(folder, words, files, [out], [out])


def kit(stream: Random, stock: Path, folder: Path) -> Call:
    given, out = _copied(stock, folder, f"kit/{stream.choice(('tsv', 'json', 'xlsx', 'pkl'))}", "kit"), folder / "out"
    words = ["import", "vlmevalkit", str(given), "--output", str(out), *_maybe(stream, ["--trust-pickle"], 0.9)]
    words += _maybe(stream, ["--cluster", stream.choice(("cluster", "answer", "x", ""))], 0.1)
    words += _maybe(
        stream, ["--crop", stream.choice(("{dataset}_patch_{n}_{row}_{col}", "{dataset}_{cell}", "{x}", ""))], 0.1
    )
    words += _maybe(stream, ["--score", stream.choice(("hit", "index", "x", ""))], 0.1)
    words += _maybe(stream, ["--scale", stream.choice(("1", "100", "0", "nan", "-1", "1e300"))], 0.1)
    words += _maybe(stream, ["--chance", stream.choice(("0.25", "2", "nan"))], 0.1)
    return Call(folder, words, sorted(path for path in given.rglob("*") if path.is_file()), [out])


SCENARIOS = (
    Scenario("show", 8, (0, 2), show),
    Scenario("doctor", 2, (0, 1, 2), doctor),
    Scenario("init gate", 2, (0, 2), init_gate),
    Scenario("analyze", 10, (0, 2), analyze),
    Scenario("compare", 9, (0, 2), compare),
    Scenario("gap", 7, (0, 2), gap),
    Scenario("gate", 13, (0, 1, 2, 3), gate),
    Scenario("leaderboard", 4, (0, 2), leaderboard),
    Scenario("report", 0.5, (0, 2), report),
    Scenario("explore", 3, (0, 2), explore),
    Scenario("report --from-csv", 0.6, (0, 2), published),
    Scenario("magic check", 9, (0, 1, 2), check),
    Scenario("magic build", 3, (0, 1, 2), build),
    Scenario("magic show", 6, (0, 2), magic_show),
    Scenario("magic steps", 6, (0, 1, 2), steps),
    Scenario("magic stepsense", 7, (0, 2), stepsense),
    Scenario("import vlmevalkit", 4, (0, 2), kit),
    Scenario("schema", 0.5, (0, 2), schema),
    Scenario("tst", 0.5, (2,), tst),
    Scenario("tasks", 6, (0, 2), tasks, harness=True),
    Scenario("prune", 1, (0, 2), prune, harness=True),
)
