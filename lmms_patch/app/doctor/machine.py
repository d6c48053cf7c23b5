"""The machine: folders that must be writable, room on the disk, environment variables, and the hub."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from lmms_patch.app.doctor.lines import Line, check
from lmms_patch.errors import PatchError, nearest
from lmms_patch.text import line, size

FULL, LITTLE = 100e6, 1e9
"""Free bytes below which logs cannot be written, and may not be: a log takes about 3 kB per doc of ``_rci3``."""
PREFIX = "LMMS_PATCH_"
_YES = ("1", "ON", "YES", "TRUE")
_OTHERS = (
    "LMMS_PATCH_TRACEBACK",
    "LMMS_PATCH_JOURNAL",
    "LMMS_PATCH_BROWSER",
    "LMMS_PATCH_CHROMIUM",
    "LMMS_PATCH_RANDOM",
)
"""Variables that are read elsewhere, the last four by our own tests."""


def folders(env: Mapping[str, str]) -> dict[str, Path]:
    """Return the folders written by a run beside the output, by the variable behind each."""
    cache = Path(env.get("XDG_CACHE_HOME") or "~/.cache")
    home = Path(env.get("HF_HOME") or cache / "huggingface")
    found = {
        "HF_HOME": home,
        "HF_HUB_CACHE": Path(env.get("HF_HUB_CACHE") or home / "hub"),
        "HF_DATASETS_CACHE": Path(env.get("HF_DATASETS_CACHE") or home / "datasets"),
        "LMMS_EVAL_HOME": Path(env.get("LMMS_EVAL_HOME") or cache / "lmms-eval"),
        "XDG_CACHE_HOME": cache / "lmms-patch",
        "TMPDIR": Path(tempfile.gettempdir()),
    }
    return {name: path.expanduser() for name, path in found.items()}


@check("caches")
def caches(env: Mapping[str, str]) -> Iterator[Line]:
    """Check whether each cache folder can be written or made."""
    found = folders(env)
    faults = {name: said for name, path in found.items() if (said := _unwritable(path))}
    for name, said in faults.items():
        yield Line(
            "caches",
            "wrong",
            f"{found[name]} ({name}) cannot be written: {said}",
            f"{name}=FOLDER, a folder that you may write to",
        )
    if not faults:
        yield Line("caches", "ok", f"can be written: {', '.join(map(str, dict.fromkeys(found.values())))}")


def _unwritable(path: Path) -> str:
    """Return the reason why a folder, or its nearest existing parent, cannot be written; "" where writable."""
    try:
        # tried, since permissions do not tell of a full or read-only disk
        with tempfile.TemporaryFile(dir=_there(path)):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def _there(path: Path) -> Path:
    """Return the folder, or its nearest existing parent."""
    return next(one for one in (path, *path.absolute().parents) if one.exists())


@check("disk")
def disk(output: Path, env: Mapping[str, str]) -> Iterator[Line]:
    """Check the free space for logs, and for the clips of a run on videos."""
    from lmms_patch.harness.video import cache

    free = shutil.disk_usage(_there(output)).free
    where = _there(output).absolute()
    if free < LITTLE:
        state, what = ("wrong", "no room for logs") if free < FULL else ("warning", "little room for logs")
        yield Line(
            "disk",
            "wrong" if state == "wrong" else "warning",
            f"{size(free)} free in {where}: {what}",
            "--output_path on another disk, or make room",
        )
    temporary = Path(tempfile.gettempdir())
    room = shutil.disk_usage(temporary).free
    try:
        wanted = cache.limit(env)
    # ``variables`` says so
    except PatchError:
        wanted = cache.limit({})
    if room < wanted:
        said = f"clips may take {size(wanted)}, and {temporary} has {size(room)} free: runs on videos may fail"
        yield Line(
            "disk", "warning", said, f"{cache.LIMIT}={max(0.1, room / 2e9):.1f}, or TMPDIR=FOLDER on another disk"
        )
    if free >= LITTLE and room >= wanted:
        yield Line("disk", "ok", f"{size(free)} free for logs in {where}, {size(room)} for clips in {temporary}")


@check("variables")
def variables(env: Mapping[str, str]) -> Iterator[Line]:
    """Check the values of lmms-patch's environment variables, and look for misspelt names."""
    faults = [(said, "") for read in _readers(env).values() if (said := _refused(read))]
    known = known_variables()
    for name in env:
        if name.startswith(PREFIX) and name not in known:
            close = nearest(name.removeprefix(PREFIX), [one.removeprefix(PREFIX) for one in known], 1)
            hint = f"did you mean {PREFIX}{close[0]}?" if close else f"allowed: {', '.join(known)}"
            faults.append((f"the environment variable {name} is not known; {hint}", f"unset {name}"))
    for said, what in faults:
        yield Line("variables", "wrong", said, what or "set it to what is allowed, or unset it")
    if not faults:
        ours = [name for name in env if name.startswith(("LMMS_PATCH_", "MAGIC_"))]
        yield Line(
            "variables",
            "ok",
            f"valid: {', '.join(sorted(ours))}" if ours else "no environment variable of lmms-patch is set",
        )


def _readers(env: Mapping[str, str]) -> dict[str, Callable[[], object]]:
    """Return the functions for reading environment variables, by subject.

    Each refuses what is not allowed.
    """
    from lmms_patch.ask import profiles
    from lmms_patch.ask.spec import Options
    from lmms_patch.harness.asking import settings
    from lmms_patch.harness.video import cache
    from lmms_patch.magic.score.judge_settings import JudgeSettings
    from lmms_patch.magic.settings import MagicSettings

    return {
        "clips": lambda: cache.limit(env),
        "quick runs": lambda: settings.with_environment(Options(quick=True), env),
        "profiles": lambda: profiles.of("any"),
        "earlier runs": lambda: _earlier(env.get(settings.REFERENCES, "")),
        "journal": lambda: _journal(env.get("LMMS_PATCH_JOURNAL", "")),
        "MAGIC": lambda: MagicSettings.from_env(env),
        "MAGIC's judge": lambda: JudgeSettings.from_env(env),
    }


def _earlier(folders: str) -> None:
    """Check the existence of the folders with earlier runs."""
    for name in filter(str.strip, folders.split(os.pathsep)):
        if not Path(name).expanduser().exists():
            raise PatchError(f"environment variable LMMS_PATCH_REFERENCES names {name}, which is not there")


def _journal(wish: str) -> None:
    if wish not in ("", "keep", "off", "moved"):
        raise PatchError(f"environment variable LMMS_PATCH_JOURNAL must be keep, off or moved, not {wish!r}")


def _refused(read: Callable[[], object]) -> str:
    try:
        read()
    except PatchError as error:
        return line(error)
    return ""


def known_variables() -> list[str]:
    """Return the names of all environment variables with the prefix ``LMMS_PATCH_``."""
    from lmms_patch.ask import profiles
    from lmms_patch.harness.asking import settings
    from lmms_patch.harness.video import cache

    return [
        cache.LIMIT,
        *(settings.PREFIX + name.upper() for name in settings.NAMES),
        settings.REFERENCES,
        profiles.FOLDER,
        *_OTHERS,
    ]


@check("hub")
def hub(env: Mapping[str, str]) -> Iterator[Line]:
    """Check whether datasets and models can be fetched: hub not switched off, and a token for gated repositories."""
    home = folders(env)["HF_HOME"]
    file = Path(env.get("HF_TOKEN_PATH") or home / "token").expanduser()
    offline = next(
        (name for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE") if env.get(name, "").upper() in _YES), ""
    )
    if offline:
        yield Line(
            "hub",
            "warning",
            f"{offline} is set: only what lies in {home} can be loaded",
            f"unset {offline}, unless you mean it",
        )
    elif env.get("HF_TOKEN") or env.get("HUGGING_FACE_HUB_TOKEN") or file.is_file():
        yield Line("hub", "ok", "reachable as far as settings go, with a token")
    else:
        yield Line(
            "hub",
            "warning",
            "no token: gated datasets, and tasks that ask for one (token: true), cannot be loaded",
            "hf auth login",
        )
