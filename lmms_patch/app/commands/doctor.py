"""``lmms-patch doctor``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module, metadata
from typing import Annotated, Any, Literal

import typer

from lmms_patch.app.commands.common import examples, say
from lmms_patch.errors import EXTRAS, PatchError, nearest, require
from lmms_patch.text import line, log

OURS, MODELS = "lmms-patch", "lmms_eval.models"
PROBE = "mosaic_vlm"
"""A model that the plugin registers: lmms-eval knows it where it has loaded the plugin."""


@dataclass(frozen=True)
class Line:
    """What was looked at.

    Attributes:
        about: in a word.
        state: ``ok``; ``warning``: runs work, but less is possible; ``wrong``: runs fail.
        said: what was found.
        type: what to type; empty where it is ok.
    """

    about: str
    state: Literal["ok", "warning", "wrong"]
    said: str
    type: str = ""


@examples(
    "# is everything set up?",
    "lmms-patch doctor",
    "# can this adapter of lmms-eval be loaded? No weights are",
    "lmms-patch doctor --model qwen2_5_vl",
)
def doctor(
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="Also import this adapter of lmms-eval.")
    ] = None,
) -> list[Line]:
    """Check versions, optional parts, and whether lmms-eval loads the plugin; the exit status is 1 where something is wrong."""
    return [*_versions(), *_extras(), *_plugin(model)]


def display(found: list[Line]) -> int:
    """Print the lines, each with what to type below it, and return 1 where something is wrong."""
    for one in found:
        say(f"{one.state:<7}  {one.about}: {one.said}" + (f"\n{'':<7}  type: {one.type}" if one.type else ""))
    return int(any(one.state == "wrong" for one in found))


def _versions() -> Iterator[Line]:
    """Hold what is installed against the requirements of the package."""
    from packaging.requirements import Requirement

    try:
        required = [Requirement(one) for one in metadata.requires(OURS) or ()]
    except metadata.PackageNotFoundError:
        yield Line("versions", "wrong", f"{OURS} is not installed: lmms-eval cannot find it", f"pip install {OURS}")
        return
    needed = [one for one in required if one.marker is None or one.marker.evaluate({"extra": ""})]
    unmet = [one for one in needed if not one.specifier.contains(_version(one.name), prereleases=True)]
    if unmet:
        wrong = ", ".join(f"{one} ({_version(one.name) or 'not'} installed)" for one in unmet)
        typed = " ".join(repr(str(one)) for one in unmet)
        yield Line("versions", "wrong", f"{OURS} {_version(OURS)} needs {wrong}", f"pip install {typed}")
    else:
        told = (OURS, "lmms-eval", "torch", "transformers", "datasets")
        shown = [f"{name} {_version(name)}" for name in told]
        yield Line("versions", "ok", ", ".join([*shown, f"Python {sys.version.split()[0]}"]))


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _extras() -> Iterator[Line]:
    """Say which optional parts are not installed."""
    for extra in EXTRAS:
        try:
            require(extra)
        except PatchError as error:
            said, _, typed = str(error).partition("; type: ")
            yield Line(f"optional part {extra}", "warning", said, typed)


def _plugin(model: str | None) -> Iterator[Line]:
    """Check whether lmms-eval has loaded the plugin, and can load an adapter."""
    # what a module prints or logs is no part of the answer
    with contextlib.redirect_stdout(sys.stderr), contextlib.ExitStack() as quiet:
        log().disable("lmms_eval")
        quiet.callback(log().enable, "lmms_eval")
        try:
            registry = import_module(MODELS).MODEL_REGISTRY_V2
        # a broken torch, a missing package: with any error here no run starts
        except (Exception, SystemExit) as error:
            yield Line(
                "plugin", "wrong", f"lmms-eval cannot be imported ({_brief(error)})", f"python -c 'import {MODELS}'"
            )
            return
        if PROBE in registry.list_canonical_model_ids():
            yield Line("plugin", "ok", "lmms-eval loads it")
        else:
            said = "lmms-eval did not load it: the entry point of another package may fail before it"
            yield Line("plugin", "wrong", said, "lmms-eval models, and read its warnings")
        if model is not None:
            yield _adapter(registry, model)


def _adapter(registry: Any, name: str) -> Line:
    """Import an adapter; no weights are loaded."""
    known = registry.list_model_names()
    if name not in known:
        close = nearest(name, known)
        hint = f"did you mean {' or '.join(close)}?" if close else "lmms-eval models"
        return Line("adapter", "wrong", f"lmms-eval has no model {name}", hint)
    module, _, owner = registry.resolve(name).class_path.rpartition(".")
    try:
        getattr(import_module(module), owner)
    # a stranger's code, which may also call sys.exit
    except (Exception, SystemExit) as error:
        return Line("adapter", "wrong", f"{name} cannot be imported ({_brief(error)})", f"python -c 'import {module}'")
    return Line("adapter", "ok", f"{name} ({module}.{owner}) can be imported")


def _brief(error: BaseException) -> str:
    return line(f"{type(error).__name__}: {error}", 200)
