"""The supported versions of lmms-eval, and every name of it that we touch.

Read this page first when a new version of the host comes out: it says what is patched, what a
wrapped task answers itself and what it hands to its base, and how each is checked.
"""

from __future__ import annotations

import inspect
import re
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from lmms_patch import __version__
from lmms_patch.errors import HostError

OLDEST, TOO_NEW = (0, 7, 3), (0, 8)
"""The supported versions of lmms-eval: from ``OLDEST`` on (the version in tests), before ``TOO_NEW``.

Before 0.7.3 the key of the response cache left out the settings of tasks inside groups: a run with other options got the answers to the old ones.
"""

PATCHED = {
    "match_tasks": ("self", "task_list"),
    "_load_individual_task_or_group": ("self", "name_or_config", "task_type", "parent_name", "update_config"),
    "initialize_tasks": ("self", "include_path", "include_defaults"),
}
"""The methods of ``TaskManager`` that are replaced, with the parameters they must have."""

OVERRIDDEN = {
    # what the model is shown
    "dataset", "doc_to_visual", "doc_to_messages", "build_all_requests", "instances",
    # what is scored
    "apply_filters", "process_results", "aggregation", "higher_is_better", "override_metric",
    # the docs that are scored: the base's own, each knowing its number
    "eval_docs", "eval_docs_no_media", "doc_iterator", "test_docs", "validation_docs",
    # the settings
    "config", "set_config", "dump_config", "task_name", "VERSION", "OUTPUT_TYPE", "args",
    # methods that ``Task`` defines (they would hide the base's), handed on as they are
    "download", "training_docs", "fewshot_docs", "has_training_docs", "has_validation_docs", "has_test_docs",
    "fewshot_examples", "fewshot_context", "doc_to_text", "doc_to_target", "doc_to_decontamination_query",
    "construct_requests", "count_bytes", "set_fewshot_seed", "DATASET_PATH", "DATASET_NAME",
}  # fmt: skip
"""Public attributes of a task that the wrapper defines itself."""

DELEGATED = {
    "CONFIG", "dataset_no_image", "doc_to_choice", "features", "get_config", "model_name", "multiple_input",
    "multiple_target", "sampler", "should_decontaminate", "task_docs", "test_docs_no_media", "validation_docs_no_media",
    "lmms_eval_specific_kwargs", "model_specific_generation_kwargs", "model_specific_target_kwargs", "fewshot_rnd", "all_dataset",
}  # fmt: skip
"""Public attributes of a task that reach the base through ``__getattr__``."""


_PAIR = re.compile(r"[(\[]\s*(?:(?:np\.float\d+|tensor)\()?'?([-+.\w]+)'?\)?\s*,\s*(?:(?:np\.|tensor\()?(True|False)_?\)?)\s*[)\]]")


def host_version() -> str:
    """The installed lmms-eval's version, or ``"unknown"``."""
    try:
        return version("lmms-eval")
    except PackageNotFoundError:
        return "unknown"


def versions() -> dict[str, str]:
    """What made a run's numbers, by package."""
    return {"lmms_patch": __version__, "lmms_eval": host_version()}


def check_host(manager: type) -> None:
    """Check that the host is a version we know and has what we patch.

    Args:
        manager: the host's ``TaskManager`` class.

    Raises:
        HostError: one line naming both versions, and what is not as expected.
    """
    found = host_version()
    wrong = []
    release = tuple(int(number) for number in re.findall(r"^[\d.]*", found)[0].split(".") if number)  # () of "unknown"
    if release and release < OLDEST:
        wrong.append("its response cache (--use_cache) ignores changed options of tasks inside groups")
    elif not OLDEST <= release < TOO_NEW:
        wrong.append("its version is not supported")
    for name, parameters in PATCHED.items():
        method = getattr(manager, name, None)
        if method is None:
            wrong.append(f"TaskManager.{name} is missing")
        elif tuple(inspect.signature(inspect.unwrap(method)).parameters)[: len(parameters)] != parameters:
            wrong.append(f"TaskManager.{name} has other parameters")
    if wrong:
        oldest, too_new = (".".join(map(str, numbers)) for numbers in (OLDEST, TOO_NEW))
        raise HostError(
            f"lmms-patch {__version__} works with lmms-eval from {oldest} on, before {too_new}, not with the installed {found}: "
            f"{'; '.join(wrong)}; type: pip install 'lmms-eval>={oldest},<{too_new}'"
        )


def has_stderr(aggregation: Any) -> bool:
    """Whether the host has a standard error for this very function (it looks it up by identity)."""
    from lmms_eval.api.metrics import stderr_for_metric

    return stderr_for_metric(aggregation, 1) is not None


def without_retries(method: Any) -> Any:
    """The function under the host's ``@retry`` (5 tries, 2 s apart, the error hidden), or the method itself."""
    return method.__wrapped__ if hasattr(method, "retry") and hasattr(method, "__wrapped__") else method


def as_log_likelihood(response: Any) -> Any:
    """A log-likelihood answer as the pair (loss, greedy) that the adapter gave.

    lmms-eval 0.7 turns every answer that is not text into its ``str`` before scoring
    (``unwrap_generation_output``), and its own ``multiple_choice`` scorer then fails on the string.
    """
    found = _PAIR.fullmatch(response) if isinstance(response, str) else None
    return (float(found[1]), found[2] == "True") if found else response
