"""A server that dies in the middle of a quick run: the real command line, the host's own adapter with four threads, and the same command again."""

from __future__ import annotations

import base64
import io
import json
import os

import pytest
from PIL import Image

from tests.harness import warm
from tests.harness.failing import OPTIONS, answer_of, gold, view_of
from tests.harness.magic.judge_server import JudgeServer, Reply
from tests.harness.toys import rows, write_task

pytestmark = pytest.mark.cli
DOCS, TASK, ALIVE = 60, "toy_rci2_quick", 120


class Dying:
    """A scripted server that answers so many calls, and then none."""

    def __init__(self, lives):
        self.lives, self.answered = lives, []

    def __call__(self, content, number):
        image = next(part["image_url"]["url"] for part in content if part["type"] == "image_url")
        call = view_of(Image.open(io.BytesIO(base64.b64decode(image.partition(",")[2]))))
        if len(self.answered) >= self.lives:
            return Reply(status=500, message="shutting down", headers={"x-should-retry": "false"})
        self.answered.append(call)
        return Reply(answer_of(*call))


def lmms_eval(folder, url, out):
    arguments = f"model_version=scripted,base_url={url},api_key=k,max_retries=1,retry_backoff_s=0,num_concurrent=4"
    command = [
        "lmms-eval", "--model", "openai", "--model_args", arguments, "--tasks", TASK, "--include_path", folder,
        "--log_samples",
    ]  # fmt: skip
    environment = {**os.environ, "NO_PROXY": "127.0.0.1", "PYTHONUNBUFFERED": "1", "LMMS_PATCH_JOURNAL": ""}
    status, *printed = warm.run(
        [*map(str, command), "--output_path", str(folder / out), "--verbosity", "INFO"], environment
    )
    assert status == 0, "".join(printed)[-4000:]
    return "".join(printed)


def records(folder):
    log = max(folder.rglob("*_samples_*.jsonl"))
    return {line["patch"]["doc_id"]: line["patch"] for line in map(json.loads, log.read_text().splitlines())}


def test_the_same_command_goes_on_where_the_server_died(tmp_path):
    options = {"format": "mc", "choices": "choices", "null": 0, "pilot": 30, "precision": 0.1}
    data = rows(DOCS, answer=gold, choices=lambda i: list(OPTIONS))
    write_task(
        tmp_path,
        "toy",
        data,
        metadata={"lmms_patch": options},
        generation_kwargs={"max_new_tokens": 4, "temperature": 0},
    )
    warm.run(["lmms-patch", "config"], os.environ)  # its process is forked before this one has threads
    server = JudgeServer(Dying(10**9))
    with server:
        lmms_eval(tmp_path, server.url, "whole")
        server.says = dead = Dying(ALIVE)
        printed = lmms_eval(tmp_path, server.url, "died")
        assert "rci2 is null" in printed, "most calls failed"
        server.says = again = Dying(10**9)
        printed = lmms_eval(tmp_path, server.url, "died")
    assert f"{ALIVE} answers are kept from an earlier run of this command" in printed
    assert not set(dead.answered) & set(again.answered), "no answer is asked for twice"
    one, two = (records(tmp_path / name) for name in ("whole", "died"))
    assert one == two
    assert sum(patch["asked"].get("unasked", 0) for patch in one.values()) > 0
