"""What is installed: our own package, lmms-eval and what both need, and whether lmms-eval loads the plugin."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import lmms_patch
from lmms_patch.app.doctor.lines import Line, brief, check
from lmms_patch.errors import nearest
from lmms_patch.harness import compat
from lmms_patch.text import log

OURS, HOST, GROUP, ENTRY = "lmms-patch", "lmms-eval", "lmms_eval.models", "lmms_patch"
AGAIN = f"pip install --force-reinstall --no-deps {OURS}"
NEEDING = (OURS, HOST, "torchvision", "transformers")
"""Packages whose own requirements are held against what is installed; torchvision names the torch that it was built for."""
TOLD = ("torch", "torchvision", "transformers", "datasets")
PROBE = "mosaic_vlm"
"""A model that the plugin registers: lmms-eval knows it where the plugin was loaded."""


@check("package")
def package() -> Iterator[Line]:
    """Check for exactly a single installed copy of lmms-patch, imported from its installed place."""
    copies = {
        # by its place: a folder that is searched twice has each package twice
        (str(one.locate_file("")), one.version): one
        for one in metadata.distributions()
        if _same(one.metadata["Name"], OURS)
    }
    taken = Path(str(lmms_patch.__file__)).resolve().parent
    if not copies:
        yield Line(
            "package",
            "wrong",
            f"{OURS} is taken from {taken}, but is not installed: lmms-eval cannot find it",
            f"pip install {OURS}",
        )
        return
    if len(copies) > 1:
        told = " and ".join(f"{version} in {folder}" for folder, version in sorted(copies))
        yield Line(
            "package",
            "wrong",
            f"{OURS} is installed {len(copies)} times: {told}",
            f"pip uninstall {OURS}, until it says that there is none; then install",
        )
        return
    (one,) = copies.values()
    place = _place(one)
    if taken != place:
        said = f"Python takes {OURS} from {taken}, but {one.version} is installed in {place}"
        yield Line("package", "wrong", said, "unset PYTHONPATH, and start from a folder without lmms_patch in it")
    elif one.version != lmms_patch.__version__:
        said = f"the files in {place} are {lmms_patch.__version__}, but pip has noted {one.version}"
        yield Line("package", "wrong", said, AGAIN)
    else:
        yield Line("package", "ok", f"{OURS} {one.version} in {place}")


def _same(name: str | None, other: str) -> bool:
    return (name or "").lower().replace("_", "-") == other


def _place(one: metadata.Distribution) -> Path:
    """Return the folder of a distribution's package; for an editable install, the folder in the checkout."""
    about = json.loads(one.read_text("direct_url.json") or "{}")
    if about.get("dir_info", {}).get("editable"):
        return Path(unquote(urlsplit(about["url"]).path), "lmms_patch").resolve()
    return Path(str(one.locate_file("lmms_patch"))).resolve()


@check("Python")
def python() -> Iterator[Line]:
    """Check the version of Python against the package's metadata."""
    from packaging.specifiers import SpecifierSet

    running = ".".join(map(str, sys.version_info[:3]))
    wanted = metadata.metadata(OURS)["Requires-Python"] or ""
    if SpecifierSet(wanted).contains(running, prereleases=True):
        yield Line("Python", "ok", f"Python {running}")
    else:
        yield Line(
            "Python",
            "wrong",
            f"Python {running}, but {OURS} needs {wanted}",
            f"install {OURS} and {HOST} for Python {wanted}",
        )


@check("versions")
def versions() -> Iterator[Line]:
    """Check the installed versions against the requirements of lmms-patch, lmms-eval, torchvision and transformers."""
    unmet = {name: found for name in NEEDING if (found := list(_unmet(name)))}
    for name, found in unmet.items():
        # lmms-eval requires packages for single tasks, so a missing package is only a warning there.
        ours = name != HOST
        wrong = ", ".join(
            f"{needed} ({f'{version} is installed' if version else 'not installed'})" for needed, version in found
        )
        yield Line(
            "versions",
            "wrong" if ours else "warning",
            f"{name} needs {wrong}",
            f"pip install {' '.join(repr(needed) for needed, _ in found)}",
        )
    if not unmet:
        yield Line("versions", "ok", ", ".join(f"{name} {version}" for name in TOLD if (version := _version(name))))


def _unmet(name: str) -> Iterator[tuple[str, str]]:
    """Yield the unmet requirements of an installed package, with the installed version ("" where missing)."""
    from packaging.requirements import Requirement

    try:
        required = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return
    for one in map(Requirement, required):
        if _same(one.name, HOST) or (one.marker is not None and not one.marker.evaluate({"extra": ""})):
            # ``host`` looks at lmms-eval; what only extras need is not asked for
            continue
        version = _version(one.name)
        # a development version may serve as well as a release
        if not version or not one.specifier.contains(version, prereleases=True):
            yield f"{one.name}{one.specifier}", version


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


@check("lmms-eval")
def host() -> Iterator[Line]:
    """Check lmms-eval: installed, a known version, imported from the installed place, with the functions to replace."""
    from lmms_patch.harness.names import host as source

    try:
        distribution = metadata.distribution(HOST)
    except metadata.PackageNotFoundError:
        yield Line(
            "lmms-eval",
            "wrong",
            f"{HOST} is not installed: finished runs can be read, but none can be made",
            compat.INSTALL,
        )
        return
    known = not compat.version_at_odds(distribution.version)
    if shadow := _shadow("lmms_eval", distribution):
        yield Line(
            "lmms-eval",
            "wrong",
            f"Python takes lmms_eval from {shadow}, not the {HOST} {distribution.version} that is installed",
            "cd elsewhere",
        )
        return
    found = source.at_odds()
    if not known:
        said = (
            f"not with the installed {distribution.version}: {'; '.join(found)}"
            if found
            else f"{distribution.version} has every function it needs"
        )
        yield Line("lmms-eval", "wrong" if found else "warning", f"{compat.works_with()}; {said}", compat.INSTALL)
        return
    if found:
        said = f"{HOST} {distribution.version} is not as it was published: {'; '.join(found)}"
        yield Line(
            "lmms-eval", "wrong", said, f"pip install --force-reinstall --no-deps {HOST}=={distribution.version}"
        )
        return
    yield Line("lmms-eval", "ok", f"{HOST} {distribution.version}, with all functions that {OURS} replaces")


def _shadow(module: str, distribution: metadata.Distribution) -> str:
    """Return the folder imported in place of a distribution's folder.

    "" where it is its own, or an editable install, which may lie anywhere.
    """
    spec = find_spec(module)
    place = Path(next(iter(spec.submodule_search_locations or [""]))) if spec is not None else None
    own = Path(str(distribution.locate_file(module)))
    return str(place) if place is not None and own.is_dir() and place.resolve() != own.resolve() else ""


@check("plugin")
def plugin() -> Iterator[Line]:
    """Check whether lmms-eval finds, can load and has loaded the plugin's entry point, without which no run works."""
    points = list(metadata.entry_points(group=GROUP))
    ours = next((one for one in points if one.name == ENTRY), None)
    if ours is None:
        yield Line(
            "plugin",
            "wrong",
            f"{OURS} is installed without its entry point {ENTRY} of {GROUP}: lmms-eval does not load it",
            AGAIN,
        )
        return
    log().disable("lmms_eval")
    try:
        registry = import_module(GROUP).MODEL_REGISTRY_V2
    except Exception as error:
        # A broken torch, a missing package: with any error here no run starts.
        yield Line(
            "plugin",
            "wrong",
            f"lmms-eval cannot be imported ({brief(error)})",
            "python -c 'import lmms_eval.models' shows the whole error",
        )
        return
    finally:
        log().enable("lmms_eval")
    loaded = PROBE in registry.list_canonical_model_ids()
    broken = [(one, said) for one in points if (said := _fault(one, call=not loaded))]
    for one, said in broken:
        owner = one.dist.name if one.dist is not None else one.name
        what = f"the entry point {one.name} ({one.value}) of {owner} fails ({said}): lmms-eval skips all entry points after it"
        yield Line(
            "plugin",
            "warning" if loaded else "wrong",
            what,
            AGAIN if one is ours else f"pip uninstall {owner}, or update it",
        )
    if loaded:
        yield Line("plugin", "ok", f"lmms-eval loads it by the entry point {ours.name} = {ours.value}")
    elif not broken:
        yield Line(
            "plugin",
            "wrong",
            f"lmms-eval did not load the entry point {ours.name} = {ours.value}",
            "lmms-eval models, and read its warnings",
        )


def _fault(one: metadata.EntryPoint, *, call: bool) -> str:
    """Return the reason why an entry point cannot be loaded; "" for a loadable entry point.

    Args:
        one: the entry point.
        call: whether to call what it is, as lmms-eval does; another call is not wanted where everything was loaded
            already.
    """
    try:
        payload = one.load()
        if call and callable(payload):
            payload()
    # a stranger's code may raise anything
    except Exception as error:
        return brief(error)
    return ""


@check("adapter")
def adapter(name: str) -> Iterator[Line]:
    """Check an adapter by its source: can it be imported, and do views show as they are? No weights are loaded."""
    from lmms_patch.harness.names import adapters

    registry = import_module(GROUP).MODEL_REGISTRY_V2
    known = registry.list_model_names()
    if name not in known:
        close = nearest(name, known)
        hint = f"did you mean {' or '.join(close)}?" if close else "type 'lmms-eval models' for the list"
        yield Line("adapter", "wrong", f"lmms-eval has no model {name}", hint)
        return
    resolved = registry.resolve(name)
    what, (module, _, owner) = (
        f"{name} ({resolved.model_type}, {resolved.class_path})",
        resolved.class_path.rpartition("."),
    )
    log().disable("lmms_eval")
    try:
        # what a module prints must not stand in the doctor's JSON
        with contextlib.redirect_stdout(sys.stderr):
            way, at = adapters.read(getattr(import_module(module), owner))
    # a stranger's code, which may also call sys.exit
    except (Exception, SystemExit) as error:
        lacks = error.name if isinstance(error, ModuleNotFoundError) else None
        hint = (
            f"pip install {lacks}, or as its authors say"
            if lacks and "." not in lacks and lacks != "lmms_eval"
            else f"python -c 'import {module}' shows the whole error"
        )
        yield Line("adapter", "wrong", f"{what} cannot be imported ({brief(error)})", hint)
        return
    finally:
        log().enable("lmms_eval")
    at = f" at {at}" if at else ""
    if way == "past the view":
        said = f"{what} reads the image out of the doc itself{at}, so no view reaches it, and its indices would mean nothing"
        yield Line("adapter", "wrong", said, "use another model")
    elif way == "otherwise":
        said = f"{what} does not look docs up by their number alone{at}, so it can show another doc"
        yield Line("adapter", "warning", said, "--batch_size 1, and one task in a run")
    elif way == "unknown":
        said = f"{what}: no line was found by which it looks docs up, so nobody knows what it shows"
        yield Line(
            "adapter",
            "warning",
            said,
            f"lmms-eval --model {name} --tasks mosaic_local_rci3 --limit 20 ..., and look at the answers",
        )
    else:
        yield Line("adapter", "ok", f"{what} looks docs up by their number{at}, so each view reaches the model")
    if said := adapters.KNOWN.get(resolved.model_id, ""):
        yield Line("adapter", "warning", f"{name}: {said}", "docs/footguns.md says more")
