"""Every command over runs whose every free text is hostile: what comes out, on whichever way, is text and holds no secret."""

import json
import re

import polars as pl
import pytest
from msgspec import structs

from lmms_patch.app import cli
from lmms_patch.runs import samples
from lmms_patch.runs.details import Model, Of, Probe
from lmms_patch.text import arguments, masked
from tests.making.edited import edit
from tests.making.runs import mc_run, write_run

SECRET = "Tr0ub4dor3"
HOSTILE = (
    "x\x1b]8;;http://evil\x07\x9b31m\x7f\u202eabc\u2066\u200b\U000e0041\n::error::owned\r##[group]a\x85::warning::b\u2028##[error]c\x0b::debug::d"
    " <script>alert(1)</script> [a](http://evil) `b` |c| @me =1+1 {{7*7}} \\end{tabular} $x$ %d"
)
LOGIN = f" https://me:{SECRET}@h/?key={SECRET}"
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u061c\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)


def hostile_run(folder, name, answers):
    """A run whose table has hostile texts in its rows and in its footer."""
    spec, records, made = mc_run(n=60, answers=answers)
    write_run(folder, {spec.name: (spec, records, made)})
    texts = ("answer", "question", "gold", "label", "category", "stratum", "cluster")

    def rows(frame):
        lost = (pl.col("view") == 1) & (pl.col("doc_id") < 3)
        frame = frame.with_columns(
            **{one: pl.concat_str(pl.lit(HOSTILE), pl.col(one).fill_null("")) for one in texts if one != "label"},
            failed=pl.when(lost).then(pl.lit(HOSTILE)),
            score=pl.when(~lost).then("score"),
        )
        best = pl.when(~pl.col("doc_id").is_in(range(3))).then("best")
        excluded = pl.when((pl.col("view") == 0) & (pl.col("doc_id") < 3)).then(
            pl.lit([{"set": "2", "why": HOSTILE}], frame.schema["excluded"])
        )
        return frame.with_columns(best=best, excluded=excluded)

    [path] = folder.glob("*_samples_*.parquet")
    about = samples.about_of(path)
    # as the writer of a run makes them
    args = arguments(f"pretrained=a,openai_key={SECRET},bearer={SECRET}, {HOSTILE}{LOGIN}")
    model = Model(masked(name + HOSTILE + LOGIN), "adapter" + HOSTILE, args, about.model.date)
    host = structs.replace(about.host, **dict.fromkeys(("benchmark_version", "dataset", "revision", "split"), HOSTILE))
    filters = {"filters": [HOSTILE], "native": {HOSTILE: Of("mean")}}
    made = structs.replace(about.made, docs=HOSTILE, prompts=HOSTILE, lmms_eval=HOSTILE, lmms_patch=HOSTILE)
    more = {"asked": {**about.asked, "base": "toy" + HOSTILE}, "host": host, "made": made, "probe": Probe(why=HOSTILE)}
    return edit(folder, rows=rows, model=model, **filters, **more)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("doors")
    return [hostile_run(root / folder, folder[0], at) for folder, at in (("a", 1), ("b", 2), ("a again", 1))]


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
def test_no_door_lets_anything_out(runs, tmp_path, capfd, monkeypatch, command):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    rules = tmp_path / "rules.yaml"
    rules.write_text(json.dumps(RULES))
    first, second = runs[:2]
    names = {"A": str(first), "A2": str(runs[2]), "B": str(second), "RULES": str(rules), "NOWHERE": "no" + HOSTILE}
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
    words = ["gate", runs[0], "-c", rules, "-b", runs[1], "--json", tmp_path / "x.json"]
    status = cli.main([*map(str, words)])
    out, _ = capfd.readouterr()
    blocked = [one for one in json.loads((tmp_path / "x.json").read_text())["verdicts"] if one["verdict"] != "pass"]
    acted = [line for line in out.split("\n") if line.strip().startswith("::")]
    assert status in (1, 3)
    assert len(blocked) > len(acted) == 1
    assert all(line.startswith("::error title=lmms-patch gate::") for line in acted)
    assert "##[" not in out
    assert SECRET not in out
