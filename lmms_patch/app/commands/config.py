"""``lmms-patch config``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from lmms_patch.app.commands.common import Place, examples
from lmms_patch.errors import OptionError, UnknownNameError, nearest

SCHEMAS = "schemas"


@examples(
    "# which there are",
    "lmms-patch config",
    "# the papers' benchmarks on lmms-eval's lite sets, as a file for lmms-eval --config",
    "lmms-patch config rci_suite_lite --output rci_suite_lite.yaml",
    "# a task file with every option, to be changed",
    "lmms-patch config tasks/my_rci3",
    "# the JSON schema of a gate's rules, for an editor; 'config schemas' lists the others",
    "lmms-patch config schemas/gate-config > gate.schema.json",
)
def config(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Of one file, such as rci_suite_lite, gates/magic or schemas/gate-config; their list if left out.",
        ),
    ] = None,
    output: Annotated[
        Place | None, typer.Option("--output", metavar="FILE", help="Copy it to this new file instead of printing it.")
    ] = None,
) -> str:
    """Print the shipped files: run configs for lmms-eval --config, rules for gate --config, task files, profiles of benchmarks, JSON schemas."""
    if output is None:
        return _listing() if name is None else _schemas() if name == SCHEMAS else _text(name)
    if name is None:
        raise OptionError(
            "--output: name the file to copy, such as 'lmms-patch config rci_suite_lite --output rci_suite_lite.yaml'"
        )
    text = _text(name)
    try:
        with open(output, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise OptionError(f"--output {output}: there already, and may have been changed; give another name") from None
    except OSError as error:
        raise OptionError(
            f"--output {output}: cannot be written: {error.strerror}; give a file in a folder that exists"
        ) from None
    return text


def display(text: str, output: Path | None) -> None:
    """Print the text as it is, since it often goes into a file; or where it was copied to."""
    print(text if output is None else f"written: {output}\n", end="")


def _files() -> dict[str, Path]:
    """Return the shipped files by name, such as ``runs/rci_suite_lite``."""
    from lmms_patch import resources

    root = resources.folder("configs")
    return {path.relative_to(root).with_suffix("").as_posix(): path for path in sorted(root.glob("*/*.yaml"))}


def _text(name: str) -> str:
    """Return the text of a shipped file or schema.

    Raises:
        UnknownNameError: there is none of this name, or several.
    """
    if name.startswith(f"{SCHEMAS}/"):
        from lmms_patch.app import schemas

        return json.dumps(schemas.load(name.partition("/")[2]), indent=2, ensure_ascii=False) + "\n"
    files, asked = _files(), name.removesuffix(".yaml").removeprefix("configs/")
    matching = [one for one in files if asked in (one, one.partition("/")[2])]
    if len(matching) > 1:
        raise UnknownNameError(
            f"{name!r} is the name of {len(matching)} shipped files; write one of {', '.join(matching)}"
        )
    if not matching:
        close = nearest(asked, [*files, *(one.partition("/")[2] for one in files)])
        hint = f"did you mean {' or '.join(close)}?" if close else "type 'lmms-patch config' for what there is"
        raise UnknownNameError(f"no shipped file {name!r}; {hint}")
    return files[matching[0]].read_text(encoding="utf-8")


def _listing() -> str:
    """Return a line per file with name and first line, and a line for the schemas."""
    first = {
        name: path.read_text(encoding="utf-8").splitlines()[0].removeprefix("#").strip()
        for name, path in _files().items()
    }
    return _lines({**first, SCHEMAS: f"JSON schemas of the files that people write; 'config {SCHEMAS}' lists them"})


def _schemas() -> str:
    """Return a line per schema with name and description."""
    from lmms_patch.app import schemas

    return _lines({f"{SCHEMAS}/{name}": schemas.load(name)["title"] for name in schemas.names()})


def _lines(told: dict[str, str]) -> str:
    width = max(map(len, told))
    return "".join(f"{name:<{width}}  {text}\n" for name, text in told.items())
