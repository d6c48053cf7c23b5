"""What the *config* of a task says, before any data, module or model is loaded: can the task be wrapped?

A ``!function`` in a config stays a YAML node, and nothing is imported.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

from lmms_patch import resources
from lmms_patch.ask import profiles
from lmms_patch.ask.spec import Options, WrapSpec, from_file
from lmms_patch.ask.views import asked_per_doc
from lmms_patch.errors import CannotWrapError, OptionError
from lmms_patch.harness import task_files
from lmms_patch.harness.asking.settings import with_environment
from lmms_patch.harness.names import sizes
from lmms_patch.harness.names.effects import file_of, judge_in, magic_judge
from lmms_patch.harness.names.shows import UNKNOWN, UNREAD, Media, shown_by

OUTPUT_TYPES = ("generate_until", "multiple_choice")
MARKER = "lmms_patch.Wrap"
TEXT_ONLY_MODELS = ("tst_rf", "tst_lora")
"""The harness models that answer ``_tst`` tasks."""


@dataclass(frozen=True)
class Facts:
    """What the config of a task shows.

    Attributes:
        name: the task's name.
        output_type: the host's type of its requests, such as ``generate_until``.
        shows: whether the config names a function that shows docs to a model.
        judge: the client library (of a judge or the network) that its scorer can reach, if any.
        shown: what the code of ``doc_to_visual`` hands to a model, where a table knows it.
        python: whether the task is a Python class, whose config is known only when it is loaded.
        docs: the number of docs, where it is known without the network and without loading data.
        metadata: the task's metadata, which may carry an inline profile.
        problem: why the config cannot be read, if it cannot.
    """

    name: str
    output_type: str = "generate_until"
    shows: bool = False
    judge: str | None = None
    shown: Media = UNREAD
    python: bool = False
    docs: int | None = None
    metadata: Any = None
    problem: str | None = None


def facts_of(name: str, config: Mapping[str, Any]) -> Facts:
    """Return what a task's config shows; the config is read in simple mode."""
    if "class" in config:
        return Facts(name, python=True)
    visual = config.get("doc_to_visual")
    # a text names a field of the doc that is shown as it is
    shown = UNKNOWN if isinstance(visual, str) else shown_by(*place) if (place := _place(visual)) else UNREAD
    if config.get("doc_to_messages") is not None:
        # a chat model is shown these
        shown = UNREAD if "nothing" in shown.media else dataclasses.replace(shown, certain=False)
    judge = next(
        (client for node in _scorers(config) if (where := _place(node)) and (client := judge_in(*where))), None
    )
    return Facts(
        name,
        output_type=config.get("output_type") or "generate_until",
        shows=visual is not None or config.get("doc_to_messages") is not None,
        judge=judge or magic_judge(config.get("metadata")),
        shown=shown,
        docs=sizes.docs_of(config),
        metadata=config.get("metadata"),
    )


def _scorers(config: Mapping[str, Any]) -> Iterator[Any]:
    """Yield a config's scoring functions: ``process_results`` and the aggregations."""
    yield config.get("process_results")
    metrics = config.get("metric_list")
    for metric in metrics if isinstance(metrics, list) else ():
        if isinstance(metric, Mapping):
            yield metric.get("aggregation")


def _place(node: Any) -> tuple[str, str] | None:
    """Return the file and the name of the function behind an unread ``!function`` node; None where no file is found."""
    if not isinstance(node, yaml.ScalarNode):
        return None
    module, _, function = node.value.rpartition(".")
    origin = Path(node.start_mark.name).parent
    # a task file names a module beside itself, or an installed module of the host
    beside = origin / f"{module}.py"
    file = str(beside) if beside.is_file() else file_of(module)
    return (file, function) if file else None


@functools.cache
def _coordinate_patterns() -> tuple[str, ...]:
    """Return the name patterns of tasks whose answers are places in the image."""
    return tuple(yaml.safe_load((resources.folder("configs") / "coordinates.yaml").read_text(encoding="utf-8")))


_UNFIT = {
    "missing": "its config names a doc_to_visual that its Python file does not have, so lmms-eval itself cannot load it",
    "sound": "it plays sound; only images and videos have parts to show",
    "stretch": "it shows a stretch of a video, and views are made of whole videos",
    "frames": "it shows arrays or a video reader in place of images or the path of a video",
    "image": "it shows still images (a video's frames too count as such where they come one by one); only whole videos can be cut in time",
    "clip": "it shows videos; boxes lie on still images",
}
"""Why a medium cannot be cut. The first of a task's media that stands here is told."""
_SPOKEN = {
    "clip": "videos",
    "image": "still images",
    "sound": "sound",
    "stretch": "stretches of videos",
    "frames": "arrays",
    "unknown": "what its code does not tell",
}


def verdict(facts: Facts, spec: WrapSpec) -> tuple[str, str]:
    """Say whether a task can be wrapped in this way, as far as its config shows, and why not or what it needs.

    Returns:
        ``no``; ``unfit``: most likely not, and the first doc decides; ``judge``: with ``allow_judge``; ``data``: the first
        doc decides; ``wraps``. And the reason, "" where it simply wraps.

    Raises:
        OptionError: a profile of the task has an unknown option or a wrong value.
    """
    kind, media = spec.kind, facts.shown.media
    fitting = frozenset({"clip"} if kind.needs_video else {"image"} if kind.own_boxes else {"clip", "image"})
    unfit = kind.needs_image and not media & (fitting | {"unknown"})
    why_unfit = next((reason for medium, reason in _UNFIT.items() if medium in media), "")
    in_cells = kind.view in ("cell", "shuffle", "region")
    reason = ""
    if facts.problem:
        reason = f"its config cannot be read: {facts.problem}"
    elif facts.python:
        pass
    elif facts.output_type not in OUTPUT_TYPES:
        reason = f"its output type is {facts.output_type}; allowed: {', '.join(OUTPUT_TYPES)}"
    elif not facts.shows and not kind.folds:
        reason = "it is text-only: its config has neither doc_to_visual nor doc_to_messages"
    elif "nothing" in media and not kind.folds:
        reason = "it shows no image: its doc_to_visual always returns nothing"
    elif unfit and facts.shown.certain:
        reason = why_unfit
    elif in_cells and any(fnmatch(facts.name, pattern) for pattern in _coordinate_patterns()):
        reason = "its answer is a box or a point in the image, and a cell has other coordinates"
    if reason:
        return "no", reason
    allowed = options_over(facts.metadata, spec, facts.name).allow_judge
    if unfit:
        return "unfit", why_unfit
    if facts.judge and not allowed:
        return "judge", f"its scorer calls a judge or the network ({facts.judge}); needs allow_judge: true"
    if facts.python:
        return "data" if kind.needs_video else "wraps", "a Python class: checked when it is loaded"
    # where the code was read and speaks of no video, images are likely
    if not kind.needs_image or media <= fitting or (media == UNKNOWN.media and not kind.needs_video):
        return "wraps", ""
    shown = " or ".join(words for medium, words in _SPOKEN.items() if medium in media)
    told = "what it shows is not known before its docs" if media <= UNREAD.media else f"its docs may show {shown}"
    return "data", f"{told}; the first doc decides"


def options_over(metadata: Any, spec: WrapSpec, name: str) -> Options:
    """Merge the options of a spec with those of its base.

    The spec's options override the base's inline profile (``metadata: {lmms_patch: {...}}``), which overrides the
    shipped profile of the base. ``given`` names the options of the first two: those that somebody wrote for this task.

    Raises:
        OptionError: a profile has an unknown option or a wrong value.
    """
    options = spec.options
    inline = metadata.get("lmms_patch") if isinstance(metadata, Mapping) else None
    if inline is not None:
        where = f"metadata.lmms_patch of {name}"
        if not isinstance(inline, Mapping):
            raise OptionError(f"{where}: must be a mapping of options, not {inline!r}")
        options = options.over(Options.from_mapping(inline, where))
    profile = profiles.of(name) or Options()
    if spec.kind.exits and not options.quick and "exit" not in profile.given:
        profile = profile.model_copy(update={"exit": True})
    return with_environment(options.filled_by(profile))


def judge_refusal(spec: WrapSpec, judge: str) -> str:
    """Say why a judged task is not wrapped, and what to write in order to wrap the task all the same."""
    often = asked_per_doc(spec)
    times = "for each view, box and order" if often is None else f"{often} times per doc"
    return (
        f"{spec.name}: the scorer of {spec.base} calls a judge or the network ({judge}), {times} when wrapped; "
        f"to allow it, put this in a YAML file of an --include_path folder: "
        f"{{task: my_{spec.suffix}, class: !function lmms_patch.Wrap, base: {spec.base}, kind: {spec.kind.name}, "
        f"grids: {list(spec.grids)}, allow_judge: true}}"
    )


def read(manager: Any, name: str) -> dict[str, Any]:
    """Return the config of an indexed name, in simple mode; empty where the name has no file."""
    path = manager.task_index[name]["yaml_path"]
    # -1 stands for a name without a file, such as a tag
    return {} if path == -1 else task_files.read(path)


# What in ``dataset_kwargs`` makes the host download or unpack videos.
_OF_VIDEOS = ("video", "From_YouTube", "create_link", "cache_dir", "force_download", "force_unzip")


def without_videos(manager: Any, name: str) -> dict[str, Any]:
    """Return the changes to a task's config by which its videos are not downloaded.

    Empty for a group or a task without videos.

    A view without any image needs only the rows, and the videos of a benchmark can be hundreds of gigabytes.
    """
    if manager.task_index.get(name, {}).get("type") != "task":
        return {}
    kwargs = sizes.dataset_kwargs(read(manager, name))
    if not (kwargs.get("video") or kwargs.get("From_YouTube")) or "builder_script" in kwargs:
        return {}
    return {"dataset_kwargs": {key: value for key, value in kwargs.items() if key not in _OF_VIDEOS}}


def leaves(manager: Any, name: str, _seen: frozenset[str] = frozenset()) -> Iterator[Facts]:
    """Yield the facts of every task under a task, group or tag. Where a config cannot be read, its facts say so."""
    # groups may hold each other; without this check the walk would not end
    if name in _seen:
        return
    entry = manager.task_index[name]
    try:
        config = read(manager, name)
    except Exception as error:
        # a broken file must not hide the tasks beside it
        yield Facts(name, problem=f"{type(error).__name__}: {error}".splitlines()[0])
        return
    members = entry.get("task", -1) if entry["type"] == "tag" or entry.get("task", -1) != -1 else config.get("task")
    if entry["type"] in ("task", "python_task"):
        yield facts_of(name, config)
        return
    for member in members or []:
        yield from _member(manager, member, _seen | {name})


def _member(manager: Any, member: Any, seen: frozenset[str]) -> Iterator[Facts]:
    """Yield the facts of a member of a group: a name, a list of names, or an inline config."""
    if isinstance(member, str):
        if member in manager.task_index:
            yield from leaves(manager, member, seen)
    elif not isinstance(member, Mapping):
        yield Facts(str(member), problem="it stands among the tasks of a group, and is neither a name nor a config")
    elif isinstance(named := member.get("task"), list):
        for inner in named:
            yield from _member(manager, inner, seen)
    elif str(named) in manager.task_index:
        yield from leaves(manager, str(named), seen)
    else:
        yield facts_of(str(named), member)


def explicit_spec(config: Mapping[str, Any]) -> WrapSpec | None:
    """Return the spec of an explicit task file (``class: !function lmms_patch.Wrap``); None for a config of another kind.

    Raises:
        PatchError: something in such a file is wrong.
    """
    marker = config.get("class")
    # the config may be read in simple or in full mode
    simple, full = (
        getattr(marker, "value", ""),
        f"{getattr(marker, '__module__', '')}.{getattr(marker, '__name__', '')}",
    )
    return from_file(config) if MARKER in (simple, full) else None


def check(manager: Any, spec: WrapSpec) -> None:
    """Refuse a base whose config rules out wrapping. No data or module is loaded for this.

    Raises:
        CannotWrapError: one line that names the task and the reason.
        OptionError: the disk for clips is not said as a number.
    """
    if spec.kind.needs_video:
        # takes NumPy to import
        from lmms_patch.harness.video.cache import limit

        limit()
    for facts in leaves(manager, spec.base):
        found, reason = verdict(facts, spec)
        if found == "judge" and facts.judge:
            raise CannotWrapError(judge_refusal(spec.of(facts.name), facts.judge))
        if found == "no":
            who = f"{facts.name}, a member of {spec.base}," if facts.name != spec.base else spec.base
            raise CannotWrapError(
                f"{spec.name}: {who} cannot be wrapped: {reason}; type 'lmms-patch tasks' for what can be wrapped"
            )


def check_model(spec: WrapSpec, model: str | None) -> None:
    """Refuse a model unable to answer a kind of wrapped task, before the model is loaded.

    Raises:
        CannotWrapError: a vision model on a text-only cross-validation, or a text-only diagnostic on anything else.
    """
    if model is None or spec.kind.folds == (model in TEXT_ONLY_MODELS):
        return
    if model in TEXT_ONLY_MODELS:
        raise CannotWrapError(
            f"{spec.name}: {model} answers text-only cross-validations; type --tasks {spec.base}_tst5"
        )
    raise vision_refusal(spec, model)


def vision_refusal(spec: WrapSpec, model: str) -> CannotWrapError:
    """Return the refusal of a vision model, which cannot be cross-validated."""
    return CannotWrapError(
        f"{spec.name}: {model} is not trained on the folds of a test set; allowed models: {' and '.join(TEXT_ONLY_MODELS)}; "
        f"to ask {model} without images, type --tasks {spec.base}_blind"
    )
