"""``lmms-patch compare``: what it prints and writes, and one line and status 2 for whatever is wrong with its input."""

import json
import os
import re

import pytest

from lmms_patch.app import cli
from tests.making.runs import mc_run, write_run


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
    status, out, err = run(*two, "--json", tmp_path / "o" / "c.json")
    assert (status, err) == (0, "")
    assert out.startswith("B (b) is better on toy (acc 0.")
    assert max(map(len, out.partition("written: ")[0].splitlines())) <= 80
    assert re.search(r"\n\nA by itself:\n- \w.* toy .*\n\nB by itself:\n- \w.* toy ", out, re.S), (
        "what lmms-patch show says of each"
    )
    assert "would be found" not in out
    assert "would be found" in run(*two, "--wide")[1]
    assert json.loads((tmp_path / "o" / "c.json").read_text())["tasks"][0]["docs"] == 120


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
    refused(run(*two, "--task", "gqa"), "toy_rci2")
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}


def test_output_that_cannot_be_written(run, two, tmp_path):
    (tmp_path / "file").write_text("kept")
    refused(run(*two, "--json", tmp_path / "file" / "c.json"), "cannot be written")
    refused(run(*two, "--json", tmp_path / "a"), "cannot be written: it is a folder")
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "file"}
    assert (tmp_path / "file").read_text() == "kept"
