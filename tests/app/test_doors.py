"""Every command over runs whose every free text is hostile: what comes out, on whichever way, is text and holds no secret."""

import json
import re

import pytest

from lmms_patch.app import cli
from tests.making.runs import mc_run, write_run

SECRET = "Tr0ub4dor3"
HOSTILE = (
    "x\x1b]8;;http://evil\x07\x9b31m\x7f\u202eabc\u2066\u200b\U000e0041\ud800\n::error::owned\r##[group]a\x85::warning::b\u2028##[error]c\x0b::debug::d"
    " <script>alert(1)</script> [a](http://evil) `b` |c| @me =1+1 {{7*7}} \\end{tabular} $x$ %d"
)
LOGIN = f" https://me:{SECRET}@h/?key={SECRET}"
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u061c\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)
FREE = re.compile(
    r"reason|warnings|label|stratum|answer|gold|category|floor|band|span|state|text|said|input|target|docs$|prompts$|lmms_eval$|lmms_patch$"
)


def spoil(value, key=""):
    """Every free text made hostile; what readers count on (kinds, names of metrics, forms) stays."""
    if isinstance(value, dict):
        return {name: spoil(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [spoil(inner, key) for inner in value]
    return HOSTILE + value + LOGIN * (key == "warnings") if isinstance(value, str) and FREE.search(key) else value


def hostile_run(folder, name, answers, analysis=True):
    """A run with hostile texts; those of its analysis too, which is refused where there is a log to compute it from."""
    spec, records, made = mc_run(n=60, answers=answers)
    for record in records:
        record["views"][1]["failed"] = ""
    write_run(folder, {spec.name: (spec, records, made)})
    results, log = next(folder.rglob("*_results.json")), next(folder.rglob("*.jsonl"))
    data = json.loads(results.read_text())
    task = next(iter(data["results"]))
    whole = {
        key.partition(",")[0]: value["analysis"]
        for key, value in data["results"][task].items()
        if isinstance(value, dict) and "made" in value
    }
    data["results"][task] = {**spoil(data["results"][task]), "alias": HOSTILE}
    renamed = {key.replace(",none", f",{HOSTILE}"): value for key, value in data["results"][task].items()}
    data["results"][task] = renamed
    for key, details in renamed.items():
        if isinstance(details, dict) and "made" in details:
            details["analysis"] = details["analysis"] if analysis else whole[key.partition(",")[0]]
    data["model_name"] = name + HOSTILE + LOGIN
    data["config"] = {
        "model": "adapter" + HOSTILE,
        "model_args": f"pretrained=a,openai_key={SECRET},bearer={SECRET}, {HOSTILE}{LOGIN}",
    }
    data["configs"][task]["lmms_patch"]["base"] = "toy" + HOSTILE
    data["versions"] = {task: HOSTILE}
    data["n-shot"] = {task: HOSTILE}
    results.write_text(json.dumps(data))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    lines = [{**spoil(line), "input": HOSTILE, "filtered_resps": [HOSTILE] * 5} for line in lines]
    for line, record in zip(lines, records, strict=True):
        line["patch"]["base"] = "toy" + HOSTILE
        line["patch"]["answer"] = {**line["patch"]["answer"], "format": record["answer"]["format"]}
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("doors")
    folders = (("a", 1), ("b", 2), ("a again", 1))
    return [hostile_run(root / folder, folder[0], answers, analysis=False) for folder, answers in folders]


@pytest.fixture(scope="module")
def unlogged(tmp_path_factory):
    """Runs without logs, whose analyses are shown as they stand."""
    root = tmp_path_factory.mktemp("unlogged")
    found = [hostile_run(root / name, name, answers) for answers, name in enumerate("ab", 1)]
    for log in root.rglob("*.jsonl"):
        log.unlink()
    return found


RULES = {
    "schema": 1,
    "rules": [
        {"name": f"r{metric}{HOSTILE}", "metric": metric, "max_drop": 0.0, "min": 0.99} for metric in ("fip", "rci2")
    ],
}


def check(text, lines=True):
    assert not FORBIDDEN.search(text), FORBIDDEN.search(text)
    assert SECRET not in text
    for line in text.split("\n") if lines else ():
        assert not line.strip().startswith("::")
        assert "##[" not in line


def written(folder):
    return [
        path
        for path in folder.rglob("*")
        if path.suffix in (".json", ".jsonl", ".csv", ".md", ".tex", ".html", ".xml", ".svg", ".txt")
    ]


COMMANDS = {
    "show": "show A --cells --chance",
    "analyze": "analyze A --by-category --cells --json OUT/x.json",
    "average": "analyze A A2 --json OUT/x.json",
    "compare": "compare A B --json OUT/x.json",
    "gate": "gate A -c RULES -b B --json OUT/x.json --junit OUT/x.xml",
    "leaderboard": "leaderboard A B --output OUT/board",
    "report": "report A B --output OUT/report",
    "show-unlogged": "show A --cells --chance",
    "leaderboard-unlogged": "leaderboard A B --output OUT/board",
    "report-unlogged": "report A B --output OUT/report",
    "doctor": "doctor",
    "export": "export A --output OUT/x.csv",
    "export-lines": "export A --output OUT/x.jsonl",
    "export-eee": "export A --to every-eval-ever --output OUT/x.json --organization ORG",
    "no-column": "export A --task NOWHERE",
    "no-task": "compare A B --task NOWHERE",
    "no-rules": "gate A -c NOWHERE",
    "no-board": "leaderboard A --output OUT/b --ignore NOWHERE",
    "no-command": "NOWHERE",
    "no-blind": "gap A B",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_door_lets_anything_out(runs, unlogged, tmp_path, capfd, monkeypatch, command):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    rules = tmp_path / "rules.yaml"
    rules.write_text(json.dumps(RULES))
    first, second = unlogged if command.endswith("unlogged") else runs[:2]
    names = {
        "A": str(first),
        "A2": str(runs[2]),
        "B": str(second),
        "RULES": str(rules),
        "NOWHERE": "no" + HOSTILE,
    }
    argv = [names.get(word, word.replace("OUT", str(tmp_path / "out"))) for word in COMMANDS[command].split()]
    (tmp_path / "out").mkdir()
    status = cli.main(argv)
    out, err = capfd.readouterr()
    check(out)
    check(err)
    if command.startswith("no-"):
        assert status == 2
        assert err.count("\n") == 1
        return
    assert status in {"gate": (1, 3), "doctor": (0, 1)}.get(command.partition("-")[0], (0,)), err
    assert out
    for path in written(tmp_path / "out"):
        check(path.read_text(encoding="utf-8"), lines=False)
        if path.suffix == ".json":
            check("".join(texts(json.loads(path.read_text()))), lines=False)


def texts(value):
    """Every text in JSON."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)
    elif isinstance(value, str):
        yield value


def test_annotations_are_ours_alone(runs, tmp_path, capfd, monkeypatch):
    """One line for all verdicts that block, and nothing else that a build server acts on."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(json.dumps(RULES))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    status = cli.main(
        [
            "gate",
            str(runs[0]),
            "-c",
            str(rules),
            "-b",
            str(runs[1]),
            "--json",
            str(tmp_path / "x.json"),
        ]
    )
    out, _ = capfd.readouterr()
    blocked = [one for one in json.loads((tmp_path / "x.json").read_text())["verdicts"] if one["verdict"] != "pass"]
    acted = [line for line in out.split("\n") if line.strip().startswith("::")]
    assert status in (1, 3)
    assert len(blocked) > len(acted) == 1
    assert all(line.startswith("::error title=lmms-patch gate::") for line in acted)
    assert "##[" not in out
    assert SECRET not in out


# --- files that are nested deeply, or hold long texts -------------------------------------------------


def deep(levels=600):
    """Lists within objects within lists."""
    out = 1
    for level in range(levels):
        out = [out] if level % 2 else {"a": out}
    return out


def long_schema(data):
    data["configs"]["toy_rci2"]["lmms_patch"]["schema"] = "x" * 2000


def long_kind(data):
    data["configs"]["toy_rci2"]["lmms_patch"]["kind"] = "x" * 2000


def deep_details(data):
    data["results"]["toy_rci2"]["patch,none"]["donors"] = deep()


def deep_key_that_nobody_knows(data):
    data["results"]["toy_rci2"]["patch,none"]["analysis"]["of a later version"] = deep()


def deep_config_of_another_task(data):
    data["configs"]["gqa"] = {"task": "gqa", "metadata": deep()}


@pytest.mark.parametrize(
    "change",
    [long_schema, long_kind, deep_details, deep_key_that_nobody_knows, deep_config_of_another_task],
    ids=lambda one: one.__name__,
)
def test_what_is_nested_deeply_or_long_is_one_short_line_at_every_door(tmp_path, capsys, change):
    path = write_run(tmp_path / "run", {"toy_rci2": mc_run(n=40)})
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    (tmp_path / "rules.yaml").write_text("{schema: 1, rules: [{name: a, metric: fip, min: 0}]}")
    run = str(tmp_path / "run")
    for words in (
        ["show", run],
        ["analyze", run],
        ["compare", run, run],
        ["gate", run, "--config", str(tmp_path / "rules.yaml")],
        ["report", run, "--output", str(tmp_path / "report")],
        ["leaderboard", run, "--output", str(tmp_path / "board")],
    ):
        capsys.readouterr()
        assert cli.main(words) == 2
        told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("lmms-patch:")]
        assert "unexpected" not in told[-1]
        assert len(told[-1].replace(str(tmp_path), "")) < 330, words
