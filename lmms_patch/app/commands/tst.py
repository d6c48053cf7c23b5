"""``lmms-patch tst``."""

from __future__ import annotations

from typing import Any

from lmms_patch.app import api
from lmms_patch.app.commands.common import Quiet, Verbose, Wide, examples, say, watching, width
from lmms_patch.app.commands.show import text
from lmms_patch.app.options import StressArguments, options_of


@examples(
    "# the embedded benchmark, one family of which can be answered without looking",
    "lmms-patch tst mosaic",
    "# ten folds, five fold seeds, and first a check that nothing leaks",
    "lmms-patch tst mosaic_text --folds 10 --fold-seeds 5 --check",
    "# a small language model in place of features and trees",
    "lmms-patch tst mosaic_text --diagnostic lora --model-args model=Qwen/Qwen2.5-0.5B-Instruct",
)
@options_of(StressArguments)
def command(quiet: Quiet = False, verbose: Verbose = False, wide: Wide = False, **options: Any) -> None:
    """Test-set Stress-Test: can a text-only model, cross-validated on the test set, answer without looking?"""
    with watching(quiet or verbose) as watch:
        run = api.tst(quiet=not verbose, watch=watch, **options)
    say(text(run, most=width(wide)))
