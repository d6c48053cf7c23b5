"""The reference of commands as Markdown, from the command line's own help."""

from __future__ import annotations

import inspect
import re

import typer

from lmms_patch.app import cli

MARK = "<!-- commands -->"
"""Where the reference stands in ``docs/reference/commands.md``."""


def reference() -> str:
    """Return a section for each command: what it does, how it is typed, its options, examples."""
    return "\n\n".join(section(words) for words in cli.paths())


def section(words: tuple[str, ...]) -> str:
    """Return the section of one command."""
    command = cli.built(*words)
    name = " ".join(["lmms-patch", *words])
    context = typer.Context(command, info_name=name)
    pieces = " ".join(command.collect_usage_pieces(context)).replace("{", "").replace("}", "").replace("......", "...")
    parts = [f"## {name}", plain(inspect.cleandoc(command.help)), f"```text\n{name} {pieces}\n```"]
    records = [record for one in command.params if (record := one.get_help_record(context))]
    parts.append("\n".join(["| | |", "|---|---|", *(f"| `{typed}` | {cell(said)} |" for typed, said in records)]))
    lines = [line for line in command.epilog.splitlines() if line and line != "Examples:"]
    return "\n\n".join([*parts, "\n".join(["```bash", *lines, "```"])])


def cell(text: str) -> str:
    """Return the help of an option as a cell of a table."""
    return plain(" ".join(text.split())).replace("|", "\\|")


def plain(text: str) -> str:
    """Return a help text whose characters mean nothing to Markdown or HTML."""
    return re.sub(r"([<>*_\[\]])", r"\\\1", text)
