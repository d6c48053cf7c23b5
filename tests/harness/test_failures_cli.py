"""A server that fails 5 % of its calls: the real command line, the host's own adapter, its cache, and every reader of the two runs."""

from __future__ import annotations

import base64
import io
import os
import re
from dataclasses import dataclass, field

import pytest
from PIL import Image

from lmms_patch.rci.recompute import load, recompute
from lmms_patch.runs.numbers import to_json
from lmms_patch.runs.run import places, read
from tests.harness import warm
from tests.harness.command import numbers
from tests.harness.failing import OPTIONS, answer_of, by_hand, cells, gold, view_of
from tests.harness.magic.judge_server import JudgeServer, Reply
from tests.harness.toys import rows, write_task
from tests.sizes import size

pytestmark = pytest.mark.cli
DOCS, TASK = size(40, 100), "toy_rci2"
VIEWS = ["full", *cells(2)]


def fails(doc, view):
    """One view of every fourth doc, each view in turn: whatever the order in which threads ask."""
    return doc % 4 == 0 and VIEWS.index(view) == doc // 4 % len(VIEWS)


@dataclass
class Asked:
    """What the server was asked, and which of it failed: (doc, view) each."""

    calls: list = field(default_factory=list)
    failed: list = field(default_factory=list)
    healthy: bool = False

    def __call__(self, content, number):
        image = next(part["image_url"]["url"] for part in content if part["type"] == "image_url")
        call = view_of(Image.open(io.BytesIO(base64.b64decode(image.partition(",")[2]))))
        self.calls.append(call)
        if fails(*call) and not self.healthy:
            self.failed.append(call)
            return Reply(status=500, message="overloaded", headers={"x-should-retry": "false"})
        return Reply(answer_of(*call))


def lmms_eval(folder, url):
    arguments = f"model_version=scripted,base_url={url},api_key=k,max_retries=1,retry_backoff_s=0,num_concurrent=4"
    command = [
        "lmms-eval", "--model", "openai", "--model_args", arguments, "--tasks", TASK, "--include_path", folder,
        "--log_samples",
    ]  # fmt: skip
    environment = {**os.environ, "NO_PROXY": "127.0.0.1", "PYTHONUNBUFFERED": "1"}
    status, *printed = warm.run(
        [*map(str, command), "--output_path", str(folder / "out"), "--use_cache", str(folder / "cache")], environment
    )
    assert status == 0, "".join(printed)[-4000:]
    return "".join(printed)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three runs of one command, of which the server fails in the first: (what was asked, what was printed) each, and the folder."""
    folder = tmp_path_factory.mktemp("failing")
    profile = {"lmms_patch": {"format": "mc", "choices": "choices", "null": 0}}
    write_task(
        folder,
        "toy",
        rows(DOCS, answer=gold, choices=lambda i: list(OPTIONS)),
        metadata=profile,
        generation_kwargs={"max_new_tokens": 4, "temperature": 0},
    )
    out = []
    server = JudgeServer(Asked())
    warm.run(["lmms-patch", "config"], os.environ)  # its process is forked before this one has threads
    with server:
        for healthy in (False, True, True):
            server.says = Asked(healthy=healthy)
            printed = lmms_eval(folder, server.url)
            out.append((server.says, printed))
    return out, folder


def details(folder, which):
    return next(r for r in read(places(folder / "out")[which]).results if r.task == TASK)


def test_the_failed_calls_are_counted_and_the_index_is_within_noise(runs):
    ((asked, printed), *_), folder = runs
    result = details(folder, 0)
    assert len(asked.calls) == DOCS * len(VIEWS)
    assert len(asked.failed) == DOCS * len(VIEWS) // 20
    failed_docs, lost = {doc for doc, _ in asked.failed}, {doc for doc, view in asked.failed if view == "full"}
    assert (result.failed, result.scored) == (len(failed_docs), DOCS - len(lost))
    fip, mpp = by_hand(sorted(set(range(DOCS)) - failed_docs), 2)
    assert result.grid(2).index.value == pytest.approx(1 - mpp / fip)
    undisturbed = details(folder, 1).grid(2).index
    assert undisturbed.low < result.grid(2).index.value < undisturbed.high
    assert re.search(
        rf"{len(failed_docs)} of {DOCS} docs have a failed call .*\[LMMS_EVAL_REQUEST_FAILED after 1 retries\]", printed
    )
    if lost:
        assert f"exact_match, the harness's own, counts {len(lost)} failed calls as wrong answers" in printed


def test_the_second_run_asks_exactly_the_failed_calls_again(runs):
    ((first, _), (second, _), (third, _)), folder = runs
    assert sorted(second.calls) == sorted(first.failed)
    assert third.calls == []
    fip, mpp = by_hand(range(DOCS), 2)
    for which in (1, 2):
        result = details(folder, which)
        found = numbers(result)
        assert (result.failed, result.scored) == (0, DOCS)
        assert (found["exact_match"], found["exact_match_mpp2"], found["rci2"]) == pytest.approx(
            (fip, mpp, 1 - mpp / fip)
        )


def test_the_files_alone_give_the_same_numbers(runs):
    _, folder = runs
    for file in places(folder / "out"):
        (run,) = load(read(file))
        assert to_json(recompute(run).analysis) == to_json(run.result.analysis)


def test_every_reader_takes_a_run_with_failed_calls(runs, tmp_path, capsys):
    ((asked, _), *_), folder = runs
    first, second = (str(file) for file in places(folder / "out")[:2])
    failed = len({doc for doc, _ in asked.failed})
    for command in (["show", first], ["analyze", first]):
        status, printed, said = warm.run(["lmms-patch", *command], os.environ)
        assert status == 0, said
        assert f"{failed} failed)" in printed
        assert f"{failed} of {DOCS} docs have a failed call" in printed + said
    status, printed, said = warm.run(["lmms-patch", "compare", first, second], os.environ)
    assert status == 0, said
    status, _, said = warm.run(["lmms-patch", "report", first, "--output", str(tmp_path / "report")], os.environ)
    assert status == 0, said
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert f"{failed} of {DOCS} docs have a failed call" in page
