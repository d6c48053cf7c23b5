"""What a task's *config* says, before any data, module or model is loaded: can it be wrapped?

Configs are read in the host's "simple" mode, in which a ``!function`` stays an unread YAML node.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml
from lmms_eval.utils import load_yaml_config

from lmms_patch import resources
from lmms_patch.ask import profiles
from lmms_patch.ask.spec import KINDS, SUFFIXES, Options, WrapSpec, from_file
from lmms_patch.ask.views import views_of
from lmms_patch.errors import CannotWrapError, OptionError
from lmms_patch.harness.names import sizes
from lmms_patch.harness.names.effects import judge_in, magic_judge, parse, returns_nothing

OUTPUT_TYPES = ("generate_until", "multiple_choice")
MARKER = "lmms_patch.Wrap"


@dataclass(frozen=True)
class Facts:
    """What the config of one leaf task shows.

    Attributes:
        name: the task's name.
        output_type: how it is answered.
        shows: whether it hands anything visual to a model, as far as its config shows.
        empty: the function that shows its docs returns nothing, ever.
        video: ``dataset_kwargs`` announces video.
        judge: the client library that its scorer can reach, if any.
        hint: ``"video"`` or ``"audio"`` where the code of ``doc_to_visual`` mentions it: the data decides.
        python: the task is a Python class, known only when it is loaded.
        docs: number of docs, where it can be known without the network and without loading data.
        metadata: its metadata, which may carry an inline profile.
        problem: why the config cannot be read, if so.
    """

    name: str
    output_type: str = "generate_until"
    shows: bool = False
    empty: bool = False
    video: bool = False
    judge: str | None = None
    hint: str | None = None
    python: bool = False
    docs: int | None = None
    metadata: Any = None
    problem: str | None = None


def facts_of(name: str, config: Mapping[str, Any]) -> Facts:
    """The facts of one leaf config, as read in simple mode."""
    if "class" in config:
        return Facts(name, python=True)
    kwargs = config.get("dataset_kwargs") or {}
    judge = next((found for node in _scorers(config) if (place := _place(node)) and (found := judge_in(*place))), None)
    return Facts(
        name,
        output_type=config.get("output_type") or "generate_until",
        shows=config.get("doc_to_visual") is not None or config.get("doc_to_messages") is not None,
        empty=config.get("doc_to_messages") is None and (place := _place(config.get("doc_to_visual"))) is not None and returns_nothing(*place),
        video=bool(kwargs.get("video") or kwargs.get("From_YouTube")) if isinstance(kwargs, Mapping) else False,
        judge=judge or magic_judge(config.get("metadata")),
        hint=_hint(config.get("doc_to_visual")),
        docs=sizes.docs_of(config),
        metadata=config.get("metadata"),
    )


def _scorers(config: Mapping[str, Any]) -> Iterator[Any]:
    yield config.get("process_results")
    for metric in config.get("metric_list") or []:
        if isinstance(metric, Mapping):
            yield metric.get("aggregation")


def _place(node: Any) -> tuple[str, str] | None:
    """File and name of the function that an unread ``!function`` node points to."""
    if not isinstance(node, yaml.ScalarNode):
        return None
    module, _, function = node.value.rpartition(".")
    origin = Path(node.start_mark.name).parent
    for file in (origin / f"{module}.py", _installed(module)):
        if file and file.is_file():
            return str(file), function
    return None


def _installed(module: str) -> Path | None:
    """The file of ``lmms_eval.tasks.x.utils``, without importing it."""
    import lmms_eval

    parts = module.split(".")
    if parts[0] != "lmms_eval" or not lmms_eval.__file__:
        return None
    return Path(lmms_eval.__file__).parent / Path(*parts[1:]).with_suffix(".py")


def _hint(node: Any) -> str | None:
    """``video`` or ``audio``, where the source of ``doc_to_visual`` speaks of it."""
    place = _place(node)
    if place is None:
        return None
    source = _source(*place)
    return next((word for word, signs in (("video", ("video", ".mp4")), ("audio", ("audio", ".wav"))) if any(s in source for s in signs)), None)


@functools.lru_cache(maxsize=4096)
def _source(path: str, function: str) -> str:
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    nodes = [n for n in parse(path).body if isinstance(n, ast.FunctionDef) and n.name == function]
    return "\n".join(ast.get_source_segment(text, n) or "" for n in nodes).lower()


@functools.cache
def _coordinate_patterns() -> tuple[str, ...]:
    return tuple(yaml.safe_load((resources.folder("configs") / "coordinates.yaml").read_text(encoding="utf-8")))


def why_not(facts: Facts, spec: WrapSpec) -> str | None:
    """Why a base task cannot be wrapped so, as far as its config shows; None where it can."""
    if facts.problem:
        return f"its config cannot be read: {facts.problem}"
    if facts.python:
        return None
    if facts.output_type not in OUTPUT_TYPES:
        return f"its output type is {facts.output_type}; allowed: {', '.join(OUTPUT_TYPES)}"
    if not facts.shows and not KINDS[spec.kind].folds:
        return "it is text-only: its config has neither doc_to_visual nor doc_to_messages"
    if facts.empty and not KINDS[spec.kind].folds:
        return "it shows no image: its doc_to_visual always returns nothing"
    if facts.video and KINDS[spec.kind].needs_image:
        return "it is a video task; only still images have cells"
    if KINDS[spec.kind].view in ("cell", "shuffle", "region") and any(fnmatch(facts.name, pattern) for pattern in _coordinate_patterns()):
        return "its answer is a box or a point in the image, and a cell has other coordinates"
    return None


def options_over(metadata: Any, spec: WrapSpec, name: str) -> Options:
    """The spec's options over the inline profile of a base (``metadata: {lmms_patch: {...}}``), over its profile.

    ``given`` names those of the first two: what somebody wrote for this task.

    Raises:
        OptionError: one of the profiles is wrong.
    """
    options = spec.options
    inline = metadata.get("lmms_patch") if isinstance(metadata, Mapping) else None
    if inline is not None:
        where = f"metadata.lmms_patch of {name}"
        if not isinstance(inline, Mapping):
            raise OptionError(f"{where}: must be a mapping of options, not {inline!r}")
        options = options.over(Options.from_mapping(inline, where))
    profile = profiles.of(name)
    return options if profile is None else options.filled_by(profile)


def judge_refusal(spec: WrapSpec, judge: str) -> str:
    """The line that says why a judged task is not wrapped, and what to write to wrap it all the same."""
    times = f"{len(views_of(spec))} times per doc" if not KINDS[spec.kind].regions else "once per doc and box"
    return (
        f"{spec.name}: the scorer of {spec.base} calls a judge or the network ({judge}), {times} when wrapped; "
        f"to allow it, put this in a YAML file of an --include_path folder: "
        f"{{task: my_{spec.suffix}, class: !function lmms_patch.Wrap, base: {spec.base}, kind: {spec.kind}, "
        f"grids: {list(spec.grids)}, allow_judge: true}}"
    )


def read(manager: Any, name: str) -> dict[str, Any]:
    """The config of an indexed name, in simple mode; empty where it has no file."""
    path = manager.task_index[name]["yaml_path"]
    return {} if path == -1 else load_yaml_config(path, mode="simple")


_OF_VIDEOS = ("video", "From_YouTube", "create_link", "cache_dir", "force_download", "force_unzip")


def without_videos(manager: Any, name: str) -> dict[str, Any]:
    """What to change in a task's config so that its videos are not downloaded; empty for a task without, or a group.

    A view without any image needs the rows alone, and the videos of a benchmark can be hundreds of gigabytes.
    """
    if manager.task_index.get(name, {}).get("type") != "task":
        return {}
    kwargs = read(manager, name).get("dataset_kwargs")
    if not isinstance(kwargs, Mapping) or not (kwargs.get("video") or kwargs.get("From_YouTube")) or "builder_script" in kwargs:
        return {}
    return {"dataset_kwargs": {key: value for key, value in kwargs.items() if key not in _OF_VIDEOS}}


def leaves(manager: Any, name: str, _seen: frozenset[str] = frozenset()) -> Iterator[Facts]:
    """The facts of every leaf task under a task, group or tag; a config that cannot be read says so."""
    if name in _seen:
        return
    entry = manager.task_index[name]
    try:
        config = read(manager, name)
    except Exception as error:
        yield Facts(name, problem=f"{type(error).__name__}: {error}".splitlines()[0])
        return
    members = entry.get("task", -1) if entry["type"] == "tag" or entry.get("task", -1) != -1 else config.get("task")
    if entry["type"] in ("task", "python_task"):
        yield facts_of(name, config)
        return
    for member in members or []:
        yield from _member(manager, member, _seen | {name})


def _member(manager: Any, member: Any, seen: frozenset[str]) -> Iterator[Facts]:
    if isinstance(member, str):
        if member in manager.task_index:
            yield from leaves(manager, member, seen)
    elif isinstance(member.get("task"), list):
        for inner in member["task"]:
            yield from _member(manager, inner, seen)
    elif member.get("task") in manager.task_index:
        yield from leaves(manager, member["task"], seen)
    else:
        yield facts_of(str(member.get("task")), member)


def explicit_spec(config: Mapping[str, Any]) -> WrapSpec | None:
    """The spec of an explicit task file (read in simple or full mode); None for any other config.

    Raises:
        PatchError: it is one, and it is wrong.
    """
    return from_file(config) if marker_of(config) == MARKER else None


def marker_of(config: Mapping[str, Any]) -> str:
    """The dotted name of a config's class, read in simple or full mode; empty where it has none."""
    marker = config.get("class")
    return str(marker.value) if isinstance(marker, yaml.ScalarNode) else f"{getattr(marker, '__module__', '')}.{getattr(marker, '__name__', '')}"


def check(manager: Any, spec: WrapSpec) -> None:
    """Refuse, before anything is loaded, what the configs of the base's leaves already show.

    Raises:
        CannotWrapError: one line, naming the leaf and the reason.
    """
    found = list(leaves(manager, spec.base))
    for facts in found:
        reason = why_not(facts, spec)
        if reason:
            where = f"{spec.base} cannot be wrapped" if facts.name == spec.base else f"{facts.name}, a member of {spec.base}, cannot be wrapped"
            every = (k for k in SUFFIXES if not KINDS[k].regions)  # whether docs carry boxes, no config says
            ways = ", ".join(k for k in every if why_not(facts, WrapSpec("x", k, () if KINDS[k].folds else KINDS[k].default_grids or (3,))) is None)
            more = f"; possible for it: {ways}" if ways else ""
            raise CannotWrapError(f"{spec.name}: {where}: {reason}{more}")
        if facts.judge and not options_over(facts.metadata, spec, facts.name).allow_judge:
            raise CannotWrapError(judge_refusal(spec.of(facts.name), facts.judge))


def check_model(spec: WrapSpec, model: str | None) -> None:
    """Refuse a model that cannot answer this way of wrapping, before it is loaded.

    Raises:
        CannotWrapError: a vision model on a text-only cross-validation, or a text-only diagnostic on anything else.
    """
    from lmms_patch.harness.tst.text_only import MODELS, vision_refusal

    if model is None or KINDS[spec.kind].folds == (model in MODELS):
        return
    if model in MODELS:
        raise CannotWrapError(f"{spec.name}: {model} answers text-only cross-validations; type --tasks {spec.base}_tst5")
    raise vision_refusal(spec.name, spec.base, model)
