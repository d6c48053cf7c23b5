"""Three machines that share a benchmark give the numbers of one that asks all of it."""

import json
from argparse import Namespace

import pytest

from lmms_patch.app.cli import main
from lmms_patch.errors import RecordError
from lmms_patch.runs.run import read
from lmms_patch.runs.shards import join
from tests.harness import toys
from tests.harness.askers import clue, written
from tests.harness.toys import Model, rows, write_task

DOCS = 50
PARTS = {"a": (0, 20), "b": (20, 20), "c": (40, 20)}


def asked(folder, offset=0, limit=None, temperature=0):
    tasks = folder.parent / f"tasks {temperature}"
    settings = {"max_new_tokens": 4, "temperature": temperature}
    write_task(tasks, "toy", rows(DOCS), generation_kwargs=settings)
    cli = Namespace(process_with_media=False, reasoning_tags=None, model="m", model_args="", output_path="")
    found = toys.run(Model(clue), "toy_rci2", tasks, cli_args=cli, limit=limit, offset=offset)
    found["config"] = {"model": "m", "model_args": "", "limit": limit, "offset": offset}
    return written(found, folder, "toy_rci2", keep=found["config"])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("shards")
    return root, {name: asked(root / name, *part) for name, part in {"whole": (0, None), **PARTS}.items()}


def numbers(folder):
    [result] = read(next(folder.glob("*_results.json"), None) or next(folder.glob("*_samples_*"))).results
    parts = {"value": "", "low": "_low", "high": "_high"}
    return {
        name + end: getattr(one, part)
        for name, one in result.measures.items()
        for part, end in parts.items()
        if name != "chance"
    }


def test_three_shards_give_the_numbers_of_the_whole_run(runs, capsys):
    root, folders = runs
    parts = [str(folders[name]) for name in ("c", "a", "b")]
    assert main(["analyze", *parts, "--join", str(root / "joined")]) == 0
    capsys.readouterr()
    joined, whole = numbers(root / "joined"), numbers(folders["whole"])
    points = {name for name in whole if not name.endswith(("_low", "_high"))}
    assert {name: joined[name] for name in points} == pytest.approx({name: whole[name] for name in points}, abs=1e-9)
    # each part finds strata among its own docs
    assert joined == pytest.approx(whole, abs=0.03)
    for command in ("show", "gate"):
        more = ["--config", str(rules(root))] if command == "gate" else []
        assert main([command, str(root / "joined"), *more]) == 0, capsys.readouterr()


def rules(root):
    path = root / "rules.json"
    path.write_text(json.dumps({"schema": 1, "rules": [{"name": "a", "task": "*", "metric": "fip", "min": 0.1}]}))
    return path


def test_a_part_of_the_shards_passes_for_no_whole(runs):
    root, folders = runs
    found = join([read(next(folders[name].glob("*_results.json"))) for name in ("a", "c")], root / "part")
    assert (found.about.host.limit, found.about.docs) == (30, 30)


def test_what_is_no_shard_is_refused(runs, tmp_path):
    root, folders = runs
    first = read(next(folders["a"].glob("*_results.json")))
    whole = read(next(folders["whole"].glob("*_results.json")))
    with pytest.raises(RecordError, match="a doc is in two shards; give each --offset and --limit docs of its own"):
        join([first, whole], tmp_path)
    other = read(next(asked(root / "other", 20, 20, temperature=1).glob("*_results.json")))
    with pytest.raises(RecordError, match=r"toy_rci2 was asked otherwise than in .* \(generation"):
        join([first, other], tmp_path)
