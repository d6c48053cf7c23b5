"""Whether a task can be wrapped, as far as its config says (``facts``); the options of its base, and refusals."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from fnmatch import fnmatch
from typing import Any

import yaml

from lmms_patch import resources
from lmms_patch.ask import profiles
from lmms_patch.ask.spec import Options, WrapSpec, from_file
from lmms_patch.ask.views import asked_per_doc
from lmms_patch.errors import CannotWrapError, OptionError
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
