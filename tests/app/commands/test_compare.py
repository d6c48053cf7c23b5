"""``lmms-patch compare``: what it prints and writes, and one line and status 2 for whatever is wrong with its input."""

import json
import os
import re

import pytest

from lmms_patch.app import cli
from tests.making.runs import mc_run, write_run
from tests.sizes import each, size


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the command; gives its exit status, what it printed, and what it said on stderr."""
    monkeypatch.setattr(cli, "COMMANDS", {"compare": cli.Listed("Compare."), **cli.COMMANDS})

    def of(*words):
        capsys.readouterr()
        status = cli.main(["compare", *map(str, words), "--draws", "400"])
        return status, *capsys.readouterr()

    return of


def pair(folder, docs):
    """Two runs of the same docs."""
    write_run(folder / "a", {"toy_rci2": mc_run(n=docs, know_full=0.7)})
    write_run(folder / "b", {"toy_rci2": mc_run(n=docs, know_full=0.9)})
    return folder / "a", folder / "b"


@pytest.fixture
def two(tmp_path):
    return pair(tmp_path, 120)


@pytest.fixture
def small(tmp_path):
    """Runs of few docs, for tests in which no number counts."""
    return pair(tmp_path, 24)


def refused(found, *words):
    """One line on stderr, nothing on stdout, status 2."""
    status, out, err = found
    assert (status, out) == (2, "")
    assert err.startswith("lmms-patch: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    for word in words:
        assert word in err


def test_it_prints_and_writes(run, two, tmp_path):
    status, out, err = run(*two, "--json", tmp_path / "o" / "c.json", "--sheet", tmp_path / "o" / "c.md")
    assert (status, err) == (0, "")
    assert out.startswith("B (b) is better on toy (acc 0.")
    assert max(map(len, out.partition("written: ")[0].splitlines())) <= 80
    assert re.search(r"\n\nA by itself:\n- \w.* toy .*\n\nB by itself:\n- \w.* toy ", out, re.S), (
        "what lmms-patch show says of each"
    )
    assert "would be found" not in out
    assert "would be found" in run(*two, "--wide")[1]
    assert json.loads((tmp_path / "o" / "c.json").read_text())["tasks"][0]["docs"] == 120
    assert (tmp_path / "o" / "c.md").read_text().startswith("| task | metric |")
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == ["c.json", "c.md"]


@pytest.mark.parametrize("ending", ["csv", "tex", "json", "MD"])
def test_every_form_of_table(run, two, tmp_path, ending):
    assert run(*two, "--sheet", tmp_path / f"c.{ending}")[0] == 0
    assert "fip" in (tmp_path / f"c.{ending}").read_text()


def test_the_same_seed_gives_the_same_text(run, two):
    assert run(*two, "--seed", 3) == run(*two, "--seed", 3)


def test_unicode_paths(run, two, tmp_path):
    folder = tmp_path / "läufe 模型"
    two[0].rename(folder)
    status, out, _ = run(folder, two[1], "--json", tmp_path / "größe.json")
    assert status == 0
    assert "läufe 模型" in out
    assert json.loads((tmp_path / "größe.json").read_text())["first"]["path"] == str(folder)


@pytest.mark.skipif(os.name == "nt", reason="names are bytes only elsewhere")
def test_a_path_that_is_no_unicode(run, two, tmp_path):
    folder = tmp_path / os.fsdecode(b"a\xff")
    try:
        two[0].rename(folder)
    except OSError:
        pytest.skip("this file system takes only unicode")
    assert run(folder, two[1], "--json", tmp_path / "c.json")[0] == 0


def test_options_that_are_wrong(run, two, tmp_path):
    refused(run(*two, "--level", "2"), "level")
    refused(run(*two, "--sheet", tmp_path / "c.xlsx"), "allowed: .csv, .json, .md, .tex")
    refused(run(*two, "--json", tmp_path / "c.json", "--sheet", tmp_path / "c.json"), "each its own")
    refused(run(*two, "--task", "gqa"), "toy_rci2")
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}


def files(folder):
    return next(folder.glob("*_results.json")), next(folder.glob("*.jsonl"))


def line(path, number):
    return path.read_text().splitlines(keepends=True)[number]


DAMAGE = {
    "no such folder": lambda results, log: [path.unlink() for path in (results, log)] and results.parent.rmdir(),
    "an empty folder": lambda results, log: [path.unlink() for path in (results, log)],
    "a cut results file": lambda results, log: results.write_text(results.read_text()[:500]),
    "an empty results file": lambda results, log: results.write_text(""),
    "a binary results file": lambda results, log: results.write_bytes(bytes(range(256))),
    "a results file that is a list": lambda results, log: results.write_text("[]"),
    "an unknown schema": lambda results, log: results.write_text(
        results.read_text().replace('"schema": 2', '"schema": 99')
    ),
    "no wrapped task": lambda results, log: results.write_text('{"results": {}, "configs": {}}'),
    "no log": lambda results, log: log.unlink(),
    "a cut log": lambda results, log: log.write_text(log.read_text()[:-30]),
    "an empty log": lambda results, log: log.write_text(""),
    "a binary log": lambda results, log: log.write_bytes(bytes(range(256)) * 4),
    "a log of plain samples": lambda results, log: log.write_text('{"doc_id": 0}\n'),
    "an unknown schema in the log": lambda results, log: log.write_text(
        log.read_text().replace('"schema": 2', '"schema": 99')
    ),
    "a doc twice": lambda results, log: log.write_text(log.read_text() + line(log, 0)),
    "a doc twice for another": lambda results, log: log.write_text(log.read_text().replace(line(log, 5), line(log, 0))),
    "a doc without its best cells": lambda results, log: log.write_text(
        log.read_text().replace('"best": {"2"', '"worst": {"2"', 1)
    ),
    "a view without its items": lambda results, log: log.write_text(
        log.read_text().replace('"items": {', '"things": {', 1)
    ),
    "a doc without a number": lambda results, log: log.write_text(
        log.read_text()
        .replace('"patch": {"schema": 2, ', '"patch": {"schema": 2, "id": 0, ')
        .replace('"doc_id": 0, "image', '"doc_id": null, "image')
    ),
    "a score that is a text": lambda results, log: log.write_text(
        log.read_text().replace('{"acc": 1.0}', '{"acc": "1.0"}', 1)
    ),
}


@pytest.mark.parametrize(("damage", "which"), each(list(DAMAGE), [0, 1]))
def test_damaged_input(run, small, tmp_path, damage, which):
    DAMAGE[damage](*files(small[which]))
    refused(run(*small, "--json", tmp_path / "c.json"), str(small[which]))
    assert not (tmp_path / "c.json").exists()


def test_output_that_cannot_be_written(run, two, tmp_path):
    (tmp_path / "file").write_text("kept")
    refused(run(*two, "--json", tmp_path / "file" / "c.json", "--sheet", tmp_path / "c.csv"), "cannot be written")
    refused(run(*two, "--json", tmp_path / "a"), "cannot be written: it is a folder")
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "file"}
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_output_in_a_read_only_folder(run, two, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    refused(run(*two, "--json", closed / "c.json"), "cannot be written")


ODD = [[], {}, "x", 7, 1.5, True, None, [1], {"toy_rci2": []}, {"toy_rci2": {"a": [1]}}]


def odd(key):
    """Every other value, of which keys of even and of odd length get different ones.

    In ``make test-deep`` every value.
    """
    return size(ODD[len(key) % 2 :: 2], ODD)


@pytest.mark.parametrize(
    "key", ["n-shot", "versions", "config", "system_instruction_sha", "date", "model_name", "group_subtasks"]
)
def test_odd_values_at_the_top_of_a_results_file(run, small, key):
    """What is not as the harness writes it is taken as not said, or refused in one line: never a traceback."""
    path, _ = files(small[0])
    data = json.loads(path.read_text())
    for value in odd(key):
        path.write_text(json.dumps({**data, key: value}))
        status, out, err = run(*small)
        assert status in (0, 2), (key, value)
        assert "Traceback" not in out + err
        assert (err.count("\n"), bool(out)) == ((0, True) if status == 0 else (1, False)), (key, value, err)


@pytest.mark.parametrize("key", ["configs", "results"])
def test_results_that_are_of_another_type_are_refused(run, small, key):
    path, _ = files(small[0])
    data = json.loads(path.read_text())
    for value in ODD:
        path.write_text(json.dumps({**data, key: value}))
        refused(run(*small))


@pytest.mark.parametrize("key", ["limit", "offset", "gen_kwargs", "model", "model_args"])
def test_odd_values_in_the_config_of_a_run(run, small, key):
    path, _ = files(small[0])
    data = json.loads(path.read_text())
    for value in odd(key):
        path.write_text(json.dumps({**data, "config": {"model": "m", key: value}}))
        status, out, err = run(*small)
        assert status in (0, 2), (key, value)
        assert "Traceback" not in out + err
