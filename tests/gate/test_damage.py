"""Damaged input: one line, exit status 2."""

import json
import os
import random
import shutil

import pytest

from tests.gate.running import DROP, VALID, copied, refused
from tests.making import lean

# --- damaged input ----------------------------------------------------------------------------------


def cut(data):
    return data[: len(data) // 2]


def without_last_line(data):
    return b"".join(data.splitlines(keepends=True)[:-1])


@pytest.mark.parametrize("side", ["run", "baseline"])
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut, "cut or not JSON"),
        (without_last_line, "399 docs, but the run scored 400"),
        (lambda data: b"", "0 docs, but the run scored 400"),
        (lambda data: random.Random(0).randbytes(5000).replace(b"\n", b"") + b"\n" * 400, "cut or not JSON"),
        (lambda data: data + data, "doc 0 is there 2 times, not 1"),
        (lambda data: without_last_line(data) + data.splitlines(keepends=True)[0], "doc 0 is there 2 times"),
        (lambda data: data.replace(b'"schema": 1', b'"schema": 9'), "schema 9"),
        (lambda data: data.replace(b'"base": "toy"', b'"base": "other"'), "other"),
        (lambda data: data.replace(b'"acc": 1.0', b'"acc": NaN'), "must be a finite number"),
        (lambda data: data.replace(b'"patch"', b'"pitch"'), "no 'patch' object"),
    ],
)
def test_a_damaged_log_is_refused(asked, run, tmp_path, side, damage, said):
    copied(run, tmp_path / "old")
    (log,) = (run if side == "run" else tmp_path / "old").glob("*.jsonl")
    log.write_bytes(damage(log.read_bytes()))
    ended = asked(run, DROP, baseline=tmp_path / "old")
    assert ended.status == 2
    assert said in ended.err
    if side == "run":
        assert asked(run, {"metric": "fip", "min": 0.1}).status == 2  # also where no rule needs the log


@pytest.mark.parametrize("side", ["run", "baseline"])
@pytest.mark.parametrize(
    "damage",
    [
        cut,
        lambda data: b"",
        lambda data: random.Random(0).randbytes(3000),
        lambda data: b"[]",
        lambda data: b"[" * 100_000,
        lambda data: data.replace(b'"schema": 1', b'"schema": 3'),
        lambda data: data.replace(b'"kind": "rci"', b'"kind": ["rci"]'),
        lambda data: data.replace(b'"fip": {', b'"fop": {'),
        lambda data: data.replace(b'"floors"', b'"floor_"'),
        lambda data: data.replace(b'"n_docs": 400', b'"n_docs": "x"').replace(
            b'"grids": {"2"', b'"grids": {"2": 3, "4"'
        ),
        lambda data: data.replace(b'"records": 400', b'"records": 0'),
        lambda data: data.replace(b'"options": {', b'"options": [], "was": {'),
    ],
)
def test_a_damaged_results_file_is_refused(asked, run, tmp_path, side, damage):
    copied(run, tmp_path / "old")
    (path,) = (run if side == "run" else tmp_path / "old").glob("*_results.json")
    path.write_bytes(damage(path.read_bytes()))
    refused(asked(run, DROP, {"metric": "rci2", "min": -9, "interval": False}, baseline=tmp_path / "old"))


def test_an_empty_run_or_none(asked, tmp_path):
    (tmp_path / "empty").mkdir()
    refused(asked(tmp_path / "empty", VALID), "no *_results.json here")
    (tmp_path / "empty" / "2026_results.json").write_text(
        json.dumps({"results": {"gqa": {"acc,none": 1}}, "configs": {"gqa": {}}})
    )
    refused(asked(tmp_path / "empty", VALID), "has no wrapped task to judge")
    lean.write(
        tmp_path / "run",
        [lean.task(*lean.scored(50, 0.5, 0.5, 0))],
        change=lambda data: data["results"]["toy_rci2"].pop("patch,none"),
    )
    refused(asked(tmp_path / "run", {"metric": "fip", "min": 0}), "nothing was scored in toy_rci2")


def test_a_number_that_is_no_number_is_refused(asked, run):
    (path,) = run.glob("*_results.json")
    data = json.loads(path.read_text())
    data["results"]["toy_rci2"]["patch,none"]["analysis"]["fip"]["value"] = float("nan")
    path.write_text(json.dumps(data))
    refused(asked(run, {"metric": "fip", "min": 0, "inconclusive": "warn"}))


@pytest.mark.parametrize("name", ["ünï ☃ 'quoted' $(x)", "a b", os.fsdecode(b"not-utf8-\xff")])
def test_paths_of_any_kind(asked, run, tmp_path, name):
    try:
        shutil.copytree(run, tmp_path / name)
    except OSError:
        pytest.skip("this file system takes no such name")
    assert asked(tmp_path / name, VALID).status == 0
    assert asked(tmp_path / name, DROP, baseline=copied(tmp_path / name)).status == 0
