"""Every name of lmms-eval that we touch, and the versions that we know.

Start here when a new version of the host comes out: the tables below say what we replace and call. A host that has what
they name can be used, whatever its version: ``check_host`` compares them with what is imported. What a wrapped task
answers itself, and what it hands to its base, is listed in tests/harness/wrap/test_task.py.
``python scripts/host/shown.py --write`` adds a table of what the new version's tasks show.
"""

from __future__ import annotations

import copy
import functools
import inspect
import re
import weakref
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from lmms_patch import __version__
from lmms_patch.errors import HostError
from lmms_patch.text import log

OUTPUT_ONLY = "bypass"
"""The only metric that a task has under ``--predict_only``, where nothing is scored."""
OLDEST, TOO_NEW = (0, 7, 3), (0, 8)
"""We know lmms-eval from ``OLDEST`` on, before ``TOO_NEW``; the tests run with ``OLDEST``. Another version is used with a warning."""

PATCHED = {
    "TaskManager": {
        "match_tasks": "self task_list",
        "_load_individual_task_or_group": "self name_or_config task_type parent_name update_config",
        "initialize_tasks": "self include_path include_defaults",
    },
    "ResponseCache": {
        "_store": "self cache_key request_type task_name doc_id idx gen_kwargs response",
    },
    "EvaluationTracker": {"save_results_aggregated": "self results samples datetime_str"},
    "WandbLogger": {"post_init": "self results"},
    "SwanLabLogger": {"post_init": "self results"},
    "ChatMessages": {"encode_image": "self image cache image_format quality"},
    "lmms_eval.evaluator": {
        "unwrap_generation_output": "output",
        "evaluate": "lm task_dict limit offset cache_requests rewrite_requests_cache bootstrap_iters write_out log_samples "
        "system_instruction apply_chat_template fewshot_as_multiturn verbosity distributed_executor_backend "
        "eval_server_launcher cli_args response_cache",
    },
}
"""The functions of the host that we replace, by class or module, with the parameters that they must begin with.

What the host gives beyond these is handed on to the function that we replaced (``plugin._patch``).
"""
CALLED = {
    "lmms_eval.utils": {"create_iterator": "raw_iterator rank world_size limit offset"},
    "lmms_eval.api.metrics": {"stderr_for_metric": "metric bootstrap_iters"},
    # without the fingerprint, a run with changed options of a task inside a group gets old answers
    "lmms_eval.caching.response_cache": {
        "compute_cache_key": "request_type task_name doc_id gen_kwargs idx task_fingerprint"
    },
}
"""The functions of the host that we call by position or rely on, likewise."""

HOMES = {
    "TaskManager": "lmms_eval.tasks",
    "ResponseCache": "lmms_eval.caching.response_cache",
    "EvaluationTracker": "lmms_eval.loggers.evaluation_tracker",
    "WandbLogger": "lmms_eval.loggers.wandb_logger",
    "SwanLabLogger": "lmms_eval.loggers.swanlab_logger",
    "ChatMessages": "lmms_eval.protocol",
    **{module: module for module in ("lmms_eval.evaluator", *CALLED)},
}
"""The module of each owner in ``PATCHED`` and ``CALLED``."""

READS_TASK_FILES = ("yaml_path", "yaml_config", "yaml_dir", "mode")
"""The parameters of ``lmms_eval.utils.load_yaml_config``, which we replace by a faster one (``task_files``). One with others is left as it is."""

DATE = "%Y%m%d_%H%M%S"
"""How the host writes the date of a run, by which its files are named."""
SETTINGS_OF_TASKS = "_task_fingerprints"
"""The attribute of the host's response cache that holds, by task, the digest of its settings that goes into each key."""

HANDED_ON = {
    "download", "training_docs", "fewshot_docs", "has_training_docs", "has_validation_docs", "has_test_docs",
    "fewshot_examples", "fewshot_context", "doc_to_text", "doc_to_target", "doc_to_decontamination_query",
    "construct_requests", "count_bytes", "set_fewshot_seed", "DATASET_PATH", "DATASET_NAME", "VERSION", "OUTPUT_TYPE",
    # the filter pipelines; the host may put a step in front of each
    "_filters",
}  # fmt: skip
"""Attributes of a task that ``Task`` defines, so that they would hide the base's: handed on unchanged."""

_PAIR = re.compile(
    r"[(\[]\s*(?:(?:np\.float\d+|tensor)\()?'?([-+.\w]+)'?\)?\s*,\s*(?:(?:np\.|tensor\()?(True|False)_?\)?)\s*[)\]]"
)


@functools.cache
def host_version() -> str:
    """Return the version of the installed lmms-eval, or ``"unknown"``."""
    try:
        return version("lmms-eval")
    except PackageNotFoundError:
        return "unknown"


def versions() -> dict[str, str]:
    """Return the versions of the packages behind a run's numbers."""
    return {"lmms_patch": __version__, "lmms_eval": host_version()}


def check_host(*owners: str) -> list[Any]:
    """Return classes and modules of the host, checked for the functions we replace and call.

    Args:
        owners: keys of ``HOMES``.

    A version that we do not know is used where it has all of them: a snapshot calls itself by an older number than the
    release that it became.

    Raises:
        HostError: one line that names both versions, and what is wrong.
    """
    found, wrong = {name: owner_of(name) for name in owners}, list[str]()
    for name, owner in found.items():
        functions: dict[str, Any] = {one: getattr(owner, one, None) for one in wanted_of(name)}
        missing = [name] if owner is None else [f"{name}.{one}" for one, function in functions.items() if not function]
        wrong += [f"{one} is missing" for one in missing]
        for one, wanted in wanted_of(name).items() if not missing else ():
            # look under our replacement, or a second check would find the parameters of that; more at the end do no harm
            if tuple(inspect.signature(inspect.unwrap(functions[one])).parameters)[: len(wanted)] != wanted:
                wrong.append(f"{name}.{one} has other parameters")
    if wrong:
        raise at_odds(wrong)
    if version_at_odds(host_version()):
        _tell_version()
    return list(found.values())


def owner_of(name: str) -> Any:
    """Return a class or module of the host (``HOMES``); None where there is none of this name."""
    try:
        module = import_module(HOMES[name])
    except ImportError:
        return None
    return module if name == HOMES[name] else getattr(module, name, None)


def wanted_of(owner: str) -> dict[str, tuple[str, ...]]:
    """Return the functions wanted of a class or module of the host, with their first parameters."""
    wanted = {**PATCHED, **CALLED}.get(owner, {})
    return {name: tuple(parameters.split()) for name, parameters in wanted.items()}


def at_odds(wrong: list[str]) -> HostError:
    """Return the error for a host that lacks what we need: both versions, what is wrong, and what to type."""
    said = filter(None, [version_at_odds(host_version()), *wrong])
    return HostError(f"{works_with()}, not with the installed {host_version()}: {'; '.join(said)}; type: {INSTALL}")


@functools.cache
def _tell_version() -> None:
    log().warning(f"{works_with()}; the installed {host_version()} has every function that it needs, and is used")


def works_with() -> str:
    """Return which versions of lmms-eval this version of lmms-patch works with, in words."""
    return f"lmms-patch {__version__} works with lmms-eval from {_dotted(OLDEST)} on, before {_dotted(TOO_NEW)}"


def version_at_odds(installed: str) -> str:
    """Say why a version of lmms-eval is not supported; "" where supported."""
    # () where the version is unknown
    release = tuple(int(number) for number in re.findall(r"^[\d.]*", installed)[0].split(".") if number)
    return "" if OLDEST <= release < TOO_NEW else "its version is not known"


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


INSTALL = f"pip install 'lmms-eval>={_dotted(OLDEST)},<{_dotted(TOO_NEW)}'"
"""What to type for a supported version of lmms-eval."""


_with_stderr: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
"""What ``has_stderr`` found, by aggregation. The references are weak: this must not keep an aggregation, and with it a dataset, in memory."""


def has_stderr(aggregation: Any) -> bool:
    """Return whether the host computes a standard error for an aggregation. The host looks the function up by identity.

    Each function is asked for once: the host imports two of its tasks at each question, and tries again each time where
    that fails.
    """
    from lmms_eval.api.metrics import stderr_for_metric

    try:
        known = _with_stderr.get(aggregation)
    except TypeError:
        # an object that nothing can refer to weakly
        return stderr_for_metric(aggregation, 1) is not None
    if known is None:
        known = _with_stderr[aggregation] = stderr_for_metric(aggregation, 1) is not None
    return known


def own_config(task: Any) -> Any:
    """Return the config of a task, free to be changed: the config of a class is copied first."""
    if getattr(type(task), "CONFIG", None) is task.config:
        task._config = copy.copy(task.config)
    return task.config


def taken_requests(task: Any) -> list[Any]:
    """Take the requests from a task, and return them: requests hold the docs."""
    requests, task._instances = task._instances or [], None
    return requests


def without_retries(method: Any) -> Any:
    """Return the function under the host's ``@retry`` (5 tries, 2 s apart, the error hidden).

    Any other method as it is.
    """
    # the library behind ``@retry`` leaves this attribute on what it wraps
    return method.__wrapped__ if hasattr(method, "retry") and hasattr(method, "__wrapped__") else method


def as_log_likelihood(response: Any) -> Any:
    """Return a log-likelihood answer as the adapter's pair (loss, greedy).

    lmms-eval 0.7 turns every answer that is not text into a string before scoring (``unwrap_generation_output``), and
    then its own ``multiple_choice`` scorer fails on that string.
    """
    pair = _PAIR.fullmatch(response) if isinstance(response, str) else None
    return (float(pair[1]), pair[2] == "True") if pair else response


# --- failed calls ---------------------------------------------------------------------------------

BEGINNINGS = ("[LMMS_EVAL_REQUEST_FAILED", "[LMMS_EVAL_BUDGET_EXCEEDED]", "[SAFETY_BLOCKED:", "[GENERATION_FAILED]")
"""Beginnings of the texts that the host's adapters write where a call failed. No model writes such a text by itself."""
_BLANK = (
    "aero auroracap bagel_unig2u baichuan_omni claude gpt4o_audio gpt4v illume_plus kimi_audio minicpm_o mmada ola omnivinci ovis_u1 "
    "qwen2_5_omni qwen3_omni qwen_image_edit qwen_vl_api reka srt_api video_salmonn_2 xcomposer2d5"
)
_WRITES_FILES = "cosmos_wm generation_api ltx_video magi1_wm wan2_1_t2i wan2_1_t2v wan2_2 wan2_2_t2v"
WRITTEN_BY = {
    **dict.fromkeys(_BLANK.split(), re.compile("")),
    **dict.fromkeys(_WRITES_FILES.split(), re.compile(r"\[ERROR\] .*", re.DOTALL)),
    **dict.fromkeys(
        ("llava_vid", "oryx"), re.compile(r"Video .* (can not load|generate failed), check the source", re.DOTALL)
    ),
    # written where the server sent no text
    "async_openai": re.compile(r'Error: can only concatenate str \(not "NoneType"\) to str'),
    "llava_onevision_moviechat": re.compile(r"Can not infer the answer\."),
}
"""The whole text that an adapter writes where a call failed, by adapter. From another adapter the same text is an answer: a model may say nothing."""
DOUBTFUL = re.compile(r"error( code)?:\s.*", re.IGNORECASE | re.DOTALL)
"""What adapters of other packages write where a call failed; an answer where a doc has it as its gold or option, or in its prompt."""
REPEATS = ("aria", "cogvlm2", "minicpm_v", "minimonkey")
"""Adapters that, where a call fails, return their answer to the previous request a second time."""
LONGEST_FAILURE = 160
"""Characters of the line that describes a failed call."""


class NoText(str):
    """An answer None, as a text.

    The host turns None into the text "None", which may also be a real answer. This class equals that text, but can be
    told from it.
    """

    __slots__ = ()


class Lost(str):
    """An empty answer in place of a failed call.

    Attributes:
        why: what went wrong, in one line.
    """

    why: str

    def __new__(cls, why: str) -> Lost:
        """Return an empty text with the reason why it is empty."""
        made = super().__new__(cls, "")
        made.why = why
        return made


def text_of(answer: Any) -> Any:
    """Return the text of an answer: adapters return a text, or an object with counts of tokens.

    A log-likelihood is returned unchanged.
    """
    return getattr(answer, "text", answer)


def checked(answer: Any, kind: str) -> Any:
    """Return what an adapter gave for a request, as an answer of its kind; ``Lost`` in place of what is none.

    Args:
        answer: what the adapter gave.
        kind: of the request.
    """
    from lmms_eval.api.instance import GenerationResult, unwrap_generation_output

    pair = isinstance(answer, (tuple, list)) and len(answer) == 2
    if text_of(answer) is None:
        return Lost(failure(None))
    if kind == "loglikelihood":
        return answer if pair else Lost(failure(answer) or f"no log-likelihood but {answer!r:.80}")
    # a pair of text and counts is a form of the host
    if pair and isinstance(answer[0], str) and not isinstance(answer[1], str):
        return GenerationResult(*unwrap_generation_output(answer))
    return answer if isinstance(text_of(answer), str) else Lost(f"no text but {answer!r:.80}")


def adapter_of(model: Any) -> str:
    """Return the id of the host's adapter for a model; "" where there is none.

    Args:
        model: what ``--model`` names (a name or an alias), or a model object.
    """
    if not isinstance(model, str):
        return type(model).__module__.rpartition(".")[2] if model is not None else ""
    from lmms_eval.models import MODEL_REGISTRY_V2

    try:
        return str(MODEL_REGISTRY_V2.get_manifest(model).model_id)
    except ValueError:
        return model


def failure(response: Any, adapter: str = "") -> str:
    """Say in a line why a response is not an answer of the model; "" for an answer.

    Args:
        response: what the host kept of a call: a text, or None.
        adapter: ``adapter_of`` the model. An empty text means a failed call from some adapters, and a silent model from
            others.
    """
    if response is None or isinstance(response, NoText):
        return "no answer came (None)"
    if isinstance(response, Lost):
        return response.why
    if not isinstance(response, str):
        return ""
    text = response.strip()
    if not text.startswith(BEGINNINGS) and not (adapter in WRITTEN_BY and WRITTEN_BY[adapter].fullmatch(text)):
        return ""
    return " ".join(text.split())[:LONGEST_FAILURE] or f"an empty text, as {adapter} writes where a call fails"
