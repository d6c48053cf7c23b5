"""``lmms-patch <command>``: finds the command, and ends as every command ends. The commands are in ``commands``."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from typing import Annotated, Any

import typer
from typer.core import MarkupMode, TyperCommand, TyperGroup
from typer.main import get_command

from lmms_patch import __version__
from lmms_patch.errors import OptionError, PatchError, UnknownNameError, nearest

DONE, MISTAKE, INTERRUPTED = 0, 2, 130
VERSIONS = ("lmms-eval", "torch", "transformers", "datasets", "numpy", "scikit-learn")


@dataclass(frozen=True)
class Listed:
    """One command.

    Attributes:
        help: its line in ``lmms-patch --help``.
        module: the file in ``commands``; its own name where empty.
        function: what is run: options in, None or an exit status out.
    """

    help: str
    module: str = ""
    function: str = "command"


COMMANDS = {
    "tasks": Listed("What can be wrapped, what cannot and why, and what it costs."),
    "coverage": Listed("Which tasks of the installed lmms-eval wrap.", "tasks", "coverage_command"),
    "show": Listed("The table of a finished run."),
    "analyze": Listed("Recompute a finished run's numbers with other settings; average several runs."),
    "tst": Listed("Test-set Stress-Test: can a text-only model answer without looking?"),
    "prune": Listed("Remove what can be answered without looking, and say whether that was more than noise."),
    "gap": Listed("Vision-blind gap of two finished runs, on all docs, a pruned set and random ones."),
    "report": Listed("A page to read, figures and tables, of any mix of finished runs."),
    "leaderboard": Listed("A board of many runs, ranked where they are comparable; incremental."),
    "compare": Listed("Two models, or two versions, on the same docs: paired differences, and whether they are more than noise."),
    "gate": Listed("Rules over the numbers of a run, for CI: pass, fail or inconclusive."),
    "schema": Listed("The JSON schemas of the files that lmms-patch reads and writes."),
}
"""The commands by name, in the order of the help. A module is imported when its command is run, or its own help is asked for."""

EXAMPLES = """Examples:

# from nothing to numbers, with the embedded benchmark and the embedded model
lmms-eval --model mosaic_vlm --tasks mosaic_rci --output_path out --log_samples
lmms-patch show out
# of one command
lmms-patch show --help"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: what follows ``lmms-patch``; None: of the process.

    Returns:
        The exit status. 0: done, 2: a user's mistake, told in one line, 130: interrupted; a command may have others.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    try:
        status = _run(given)
        sys.stdout.flush()  # here, so that a reader that is gone is noticed here
    except PatchError as error:
        return _refused(str(error))
    except typer.TyperException as error:
        return _refused(_said(error, given))
    except BrokenPipeError:
        _hush()
        return DONE
    except (KeyboardInterrupt, typer.Abort):
        print("lmms-patch: interrupted", file=sys.stderr)
        return INTERRUPTED
    return status


def _run(argv: list[str]) -> int:
    # Why not the command's own ``main``: it prints boxes, and turns a broken pipe and Ctrl-C into exits of its own.
    group = get_command(app)
    try:
        with group.make_context("lmms-patch", argv) as context:
            return group.invoke(context) or DONE
    except typer.Exit as ended:
        return ended.exit_code


def _refused(message: str) -> int:
    print("lmms-patch:", " ".join(message.split("\n")), file=sys.stderr)
    return MISTAKE


def _hush() -> None:
    """Nothing more goes to a stdout whose reader is gone, also not what Python still writes at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# --- what was wrong, what is allowed, what to type ------------------------------------------------


def _said(error: Any, argv: Sequence[str]) -> str:
    """One line for an error of the command line itself."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else " ".join(["lmms-patch", *(name for name in argv[:1] if name in COMMANDS)])
    kind, param = type(error).__name__, getattr(error, "param", None)
    more = f"type '{path} --help'"
    if kind == "NoSuchOption":
        close = nearest(error.option_name, [name for one in context.command.get_params(context) for name in one.opts] if context else [])
        return f"no option {error.option_name}; " + (f"did you mean {' or '.join(close)}? {more}" if close else f"{more} for those that there are")
    if kind == "MissingParameter" and param is not None and context is not None:
        needed = [_name(one) for one in context.command.params if one.required]
        return f"{_name(param)} is missing; type '{' '.join([path, *needed])}', or '{path} --help' for examples"
    if kind == "BadParameter" and param is not None:
        return f"{_name(param)} {_wrong_value(error)}; {more}"
    text = error.format_message().strip().rstrip(".")
    return f"{text[:1].lower()}{text[1:]}; {more}"


def _name(param: Any) -> str:
    """How a parameter is typed."""
    return str(max(param.opts, key=len) if param.param_type_name == "option" else param.metavar or param.name.upper())


_WANTED = {"Input should be a valid integer": "must be a whole number", "Input should be a valid number": "must be a number"}


def _wrong_value(error: Any) -> str:
    """What a value must be, and what it is."""
    found: list[Any] = getattr(error.__cause__, "errors", list)()
    given = f", not {found[0]['input']!r}" if found else ""
    if allowed := error.param.type_descriptor.choices:
        return f"must be {', '.join(allowed[:-1])} or {allowed[-1]}{given}"
    for start, words in _WANTED.items():
        if error.message.startswith(start):
            return words + given
    return str(error.message).replace("Input should be", "must be").rstrip(".") + given


# --- help -----------------------------------------------------------------------------------------


def _decorated() -> bool:
    """Whether help may have boxes and colours: only where a person reads it."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")


class _Plain:
    """Help in plain text where stdout is no terminal."""

    rich_markup_mode: MarkupMode

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """See the base class."""
        self.rich_markup_mode = "rich" if _decorated() else None
        super().format_help(ctx, formatter)  # type: ignore[misc]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The examples as they are: commands that are wrapped cannot be pasted."""
        if epilog := getattr(self, "epilog", None):
            formatter.write("\n" + "".join(f"  {line}\n" if line and not line.endswith(":") else f"{line}\n" for line in epilog.splitlines()))


class Command(_Plain, TyperCommand):
    """One command."""


class _Lazy(Command):
    """A command whose module is imported when it is called; until then it has a name and one line of help."""

    def get_short_help_str(self, limit: int = 45) -> str:
        """The line, whole."""
        return self.help or ""

    def make_context(self, info_name: Any, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of the command itself."""
        assert self.name is not None
        return built(self.name).make_context(info_name, args, parent, **extra)


class Group(_Plain, TyperGroup):
    """All commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, or None."""
        return _Lazy(cmd_name, help=COMMANDS[cmd_name].help) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is asked for.

        Raises:
            UnknownNameError: there is none of this name.
        """
        if args[0] not in COMMANDS:
            close = nearest(args[0], COMMANDS)
            hint = f"did you mean {' or '.join(close)}?" if close else f"allowed: {', '.join(COMMANDS)};"
            raise UnknownNameError(f"no command {args[0]!r}; {hint} type 'lmms-patch --help'")
        return super().resolve_command(ctx, args)


def built(name: str) -> Any:
    """A command with its options, from its module."""
    listed = COMMANDS[name]
    function = getattr(import_module(f"lmms_patch.commands.{listed.module or name}"), listed.function)
    single = typer.Typer(add_completion=False)
    single.command(name, cls=Command, epilog=getattr(function, "epilog", None))(function)
    return get_command(single)


def versions() -> list[str]:
    """One line per package that decides what a run gives; nothing is imported for it."""
    out = [f"lmms-patch {__version__}"]
    for name in VERSIONS:
        try:
            out.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            out.append(f"{name} not installed")
    return [*out, f"Python {sys.version.split()[0]}"]


def _print_versions(asked: bool) -> None:
    if asked:
        print("\n".join(versions()))
        raise typer.Exit


app = typer.Typer(
    cls=Group, add_completion=False, invoke_without_command=True, epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]}
)


@app.callback()
def _start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", is_eager=True, callback=_print_versions, help="Versions of what matters, and exit.")] = False,
) -> None:
    """Which part of the image does a multimodal benchmark, or a model, really use?"""
    if context.invoked_subcommand is None:
        raise OptionError(f"no command given; allowed: {', '.join(COMMANDS)}; type 'lmms-patch --help'")


if __name__ == "__main__":
    sys.exit(main())
