"""Which wrapped task a name means, whether it can be wrapped as far as its config says (``facts``), and the options of its base."""

from __future__ import annotations

import difflib
import functools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch, fnmatchcase
from typing import Any

import yaml

from lmms_patch import resources
from lmms_patch.ask import profiles
from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.spec import SUFFIXES, Options, WrapSpec, from_file, parse
from lmms_patch.ask.views import asked_per_doc
from lmms_patch.errors import CannotWrapError, OptionError, UnknownNameError, nearest
from lmms_patch.harness.names.facts import UNKNOWN, UNREAD, Facts, dataset_kwargs, leaves, read

OUTPUT_TYPES = ("generate_until", "multiple_choice")
MARKER = "lmms_patch.Wrap"
TEXT_ONLY_MODELS = ("tst_rf", "tst_lora")
"""The harness models that answer ``_tst`` tasks."""


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


# What in ``dataset_kwargs`` makes the host download or unpack videos.
_OF_VIDEOS = ("video", "From_YouTube", "create_link", "cache_dir", "force_download", "force_unzip")


def without_videos(manager: Any, name: str) -> dict[str, Any]:
    """Return the changes to a task's config by which its videos are not downloaded.

    Empty for a group or a task without videos.

    A view without any image needs only the rows, and the videos of a benchmark can be hundreds of gigabytes.
    """
    if manager.task_index.get(name, {}).get("type") != "task":
        return {}
    kwargs = dataset_kwargs(read(manager, name))
    if not (kwargs.get("video") or kwargs.get("From_YouTube")) or "builder_script" in kwargs:
        return {}
    return {"dataset_kwargs": {key: value for key, value in kwargs.items() if key not in _OF_VIDEOS}}


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


# --- settings for one run -------------------------------------------------------------------------

PREFIX = "LMMS_PATCH_"
NAMES = ("precision", "budget", "target", "pilot")
"""The options that an environment variable sets, such as ``LMMS_PATCH_BUDGET``. It wins over task files and profiles."""


def with_environment(options: Options, env: Mapping[str, str] | None = None) -> Options:
    """Return the options of a task with views left out, with the values set by environment variables.

    Others as they are.

    Raises:
        OptionError: a variable has a value that the option does not allow.
    """
    if not (options.quick or options.exit):
        return options
    env = os.environ if env is None else env
    given = {name: text for name in NAMES if (text := env.get(PREFIX + name.upper(), "").strip())}
    if not given:
        return options
    where = "environment variables " + ", ".join(PREFIX + name.upper() for name in given)
    return Options.from_mapping({name: _read(text) for name, text in given.items()}, where).over(options)


def _read(text: str) -> int | float | str:
    """Return a text as a number, if possible.

    >>> _read("0.05"), _read("2000"), _read("population")
    (0.05, 2000, 'population')
    """
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


# --- names ----------------------------------------------------------------------------------------

_WILD = "*?["
_BETWEEN = "_-. "


def resolve(manager: Any, name: str) -> WrapSpec | None:
    """Return the spec meant by a name; None for a name of the harness, and for a name not wrapped.

    A name that the harness knows is native, whatever it ends in, unless its file is an explicit task file of ours.

    Raises:
        PatchError: the name is ours, and its base is unknown or its grid is not possible; or it looks like a misspelled
            wrapped name.
    """
    if name in manager.all_tasks:
        # to the harness, a task file of ours is a Python class
        if manager.task_index[name]["type"] != "python_task":
            return None
        spec = explicit_spec(read(manager, name))
    else:
        spec = parse(name)
        if spec is None:
            refuse_misspelled(manager, name)
    if spec is not None:
        require_base(manager, spec)
    return spec


def refuse_misspelled(manager: Any, name: str) -> None:
    """Refuse names like misspelled wrapped names, such as ``gqa_rcii3`` or ``gqa-rci3``.

    Why: the harness would only log that it knows no such task, and end with status 0. What may be a file, and what
    looks more like a native name, is left to the harness.

    Raises:
        UnknownNameError: the name looks like a wrapped one; the message gives the nearest names.
    """
    if os.sep in name or name.endswith((".yaml", ".yml")) or os.path.exists(name):
        return
    close = meant(manager.all_tasks, name)
    if close:
        raise UnknownNameError(f"{name}: no such task; did you mean {' or '.join(close)}?")


def meant(known: Sequence[str], name: str) -> list[str]:
    """Return up to three wrapped names perhaps meant by a misspelled name, nearest first.

    Where a name of the harness is nearer than all of them, return none.

    Args:
        known: the names of the harness.
        name: a name that the harness does not know; its base may be a wildcard.
    """
    low, every, found = name.lower(), {one.lower(): one for one in known}, list[str]()

    def likeness(full: str) -> float:
        return difflib.SequenceMatcher(None, full.lower(), low).ratio()

    for end in range(1, len(name)):
        head, tail = low[:end], low[end:].lstrip(_BETWEEN)
        whole = head in every or (any(sign in head for sign in _WILD) and any(fnmatchcase(one, head) for one in every))
        if tail and (whole or low[end] in _BETWEEN) and (suffixes := _suffixes_like(tail)):
            bases = [every.get(head, name[:end])] if whole else nearest(head, known, count=1)
            found += [f"{base}_{suffix}" for base in bases for suffix in suffixes]
    # where a native name is at least as near, that was meant more likely
    native = max(map(likeness, nearest(name, known, count=1)), default=0.0)
    nearer = [full for full in dict.fromkeys(found) if likeness(full) > native]
    return sorted(nearer, key=likeness, reverse=True)[:3]


def _suffixes_like(tail: str) -> list[str]:
    """Return the suffixes perhaps meant by the end of a misspelled name, at most one of each kind.

    A suffix keeps the number of the name where its kind takes one. The kinds of time, such as ``trci``,
    are meant only where their first letter is there.

    >>> _suffixes_like("rcii3"), _suffixes_like("pcr"), _suffixes_like("shufle"), _suffixes_like("lite")
    (['rci3'], ['pcri'], ['shuffle3'], [])
    """
    letters, number = re.sub(r"[^a-z]", "", tail), next(iter(re.findall(r"\d+", tail)), "")
    special = {kind.name for kind in KINDS.values() if kind.needs_video}
    known = [kind for kind in SUFFIXES if kind not in special or letters.startswith(kind[0])]
    return [
        f"{kind}{next(n for n in (number, '', '3') if _is_suffix(f'{kind}{n}'))}" for kind in nearest(letters, known)
    ]


def _is_suffix(text: str) -> bool:
    try:
        return parse(f"x_{text}") is not None
    except UnknownNameError:
        return False


def require_base(manager: Any, spec: WrapSpec) -> None:
    """Refuse a spec unless its base is a native name of the harness.

    Raises:
        UnknownNameError: the base is unknown, or a wrapped task itself; the message says what to type instead.
    """
    if spec.base in manager.all_tasks:
        if manager.task_index[spec.base]["type"] == "python_task" and explicit_spec(read(manager, spec.base)):
            raise UnknownNameError(
                f"{spec.name}: {spec.base!r} is a wrapped task itself; name the native task that it wraps"
            )
        return
    close = [f"{base}_{spec.suffix}" for base in nearest(spec.base, manager.all_tasks)]
    hint = f"did you mean {' or '.join(close)}?" if close else "type 'lmms-patch tasks' for what can be wrapped"
    raise UnknownNameError(f"{spec.name}: lmms-eval knows no task, group or tag {spec.base!r}; {hint}")


def expand(manager: Any, patterns: Iterable[str]) -> list[WrapSpec]:
    """Return the wrapped tasks for a list of names and wildcards, in order, each once.

    A wildcard before the suffix expands over base tasks: ``mosaic_*_rci3``. Native names, and wildcards that match
    some, are left to the harness.

    Raises:
        PatchError: a wrapped name is wrong, or a wildcard matches no base.
    """
    specs: dict[str, WrapSpec] = {}
    for pattern in patterns:
        wild = any(sign in pattern for sign in _WILD)
        # a wildcard may match task files of ours among the native names
        names = [name for name in manager.all_tasks if fnmatchcase(name, pattern)] if wild else [pattern]
        if names:
            found = (resolve(manager, name) for name in names)
            specs |= {spec.name: spec for spec in found if spec is not None}
            continue
        spec = parse(pattern)
        if spec is not None:
            bases = [
                name for name in manager.all_tasks if fnmatchcase(name, spec.base) and resolve(manager, name) is None
            ]
            if not bases:
                raise UnknownNameError(
                    f"{pattern}: no task, group or tag matches {spec.base!r}; type 'lmms-patch tasks' for what can be wrapped"
                )
            specs |= {wrapped.name: wrapped for wrapped in map(spec.of, bases)}
        else:
            refuse_misspelled(manager, pattern)
    return list(specs.values())
