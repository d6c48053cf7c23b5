"""Runs that are killed (kill -9) at random moments, each until it ends: the table is that of a run that nobody disturbed."""

import math
import random
import signal
import time

import pytest
from polars.testing import assert_frame_equal

from tests.harness import warm
from tests.harness.command import environment, lmms_eval, results
from tests.sizes import size

pytestmark = pytest.mark.cli

KILLS = size(2, 10)
RUNS = {
    "mosaic_local_rci3": ("mosaic_vlm", 30),
    "mosaic_local_rci3_quick": ("mosaic_vlm", 120),
    "mosaic_count_rci2_steady": ("mosaic_vlm", 10),
    "mosaic_video_count_trci4": ("mosaic_reader", 8),
    "mosaic_local_caption": ("mosaic_vlm", 30),
    "mosaic_text_tst5": ("tst_rf", 60),
}
"""Model and number of docs, by task."""
TOKENS = ("tokens_in", "tokens_out")
"""Of answers from a journal they are not known."""


@pytest.mark.parametrize("task", size(["mosaic_local_rci3"], [*RUNS]))
def test_a_run_killed_at_random_moments_gives_the_table_of_one_undisturbed(task, tmp_path):
    model, docs = RUNS[task]
    plain = environment(LMMS_PATCH_JOURNAL="")
    command = ["--model", model, "--tasks", task, "--limit", docs, "--batch_size", 4, "--log_samples"]
    for name in ("first", "whole"):
        start = time.monotonic()
        lmms_eval(*command, "--output_path", tmp_path / name, LMMS_PATCH_JOURNAL="")
    # the first run started the server too
    seconds, moments = time.monotonic() - start, random.Random(task)
    whole, killed = results(tmp_path / "whole")[task].frame(), 0
    while killed < KILLS:
        out = tmp_path / f"killed{killed}"
        words = ["lmms-eval", *map(str, command), "--output_path", str(out)]
        status = -signal.SIGKILL
        while status == -signal.SIGKILL:
            after = moments.uniform(0.1, 0.9) * seconds if killed < KILLS else math.inf
            status, _, said = warm.run(words, plain, kill_after=after)
            killed += status == -signal.SIGKILL
        assert status == 0, said[-4000:]
        found = results(out)[task].frame()
        assert_frame_equal(found.drop(TOKENS, strict=False), whole.drop(TOKENS, strict=False), check_exact=False)
