"""``lmms-patch config``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from lmms_patch.app import api
from lmms_patch.app.commands.common import examples
from lmms_patch.errors import OptionError

SCHEMAS = "schemas"


@examples(
    "# which there are",
    "lmms-patch config",
    "# the papers' benchmarks on lmms-eval's lite sets, as a file for lmms-eval --config",
    "lmms-patch config rci_suite_lite --output rci_suite_lite.yaml",
    "# the rules of a gate, to start your own from",
    "lmms-patch config model-regression",
    "# the JSON schema of the object in each line of a sample log; 'config schemas' lists the others",
    "lmms-patch config schemas/patch > patch.schema.json",
)
def command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Of one file, such as rci_suite_lite, gates/magic or schemas/patch; their list if left out.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Copy it to this new file instead of printing it.")
    ] = None,
) -> None:
    """Print the shipped files: run configs for lmms-eval --config, rules for gate --config, profiles of benchmarks, JSON schemas."""
    if output is None:
        # not by ``say``: the text often goes into a file, and must stay as it is
        print(listing() if name is None else schemas() if name == SCHEMAS else api.config(name), end="")
    elif name is None:
        raise OptionError(
            "--output: name the file to copy, such as 'lmms-patch config rci_suite_lite --output rci_suite_lite.yaml'"
        )
    else:
        copy(name, output)
        print(f"written: {output}")


def listing() -> str:
    """Return a line per file with name and first line, and a line for the schemas."""
    first = {name: text.splitlines()[0].removeprefix("#").strip() for name, text in api.config().items()}
    return _lines(
        {**first, SCHEMAS: f"JSON schemas of the files that lmms-patch reads and writes; 'config {SCHEMAS}' lists them"}
    )


def schemas() -> str:
    """Return a line per schema with name and description."""
    return _lines({f"{SCHEMAS}/{name}": one["description"] for name, one in api.schema().items()})


def _lines(told: Mapping[str, str]) -> str:
    width = max(map(len, told))
    return "".join(f"{name:<{width}}  {text}\n" for name, text in told.items())


def copy(name: str, output: Path) -> None:
    """Write a shipped file to a new file.

    Raises:
        OptionError: the file is there already, or cannot be written.
        UnknownNameError: there is none of this name.
    """
    text = api.config(name)
    try:
        with open(output, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise OptionError(f"--output {output}: there already, and may have been changed; give another name") from None
    except OSError as error:
        raise OptionError(
            f"--output {output}: cannot be written: {error.strerror}; give a file in a folder that exists"
        ) from None
