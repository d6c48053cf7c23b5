"""``lmms-patch <command>``: finds the command, and ends as every command ends. The commands are in ``commands``.

A command may be a group of commands: ``lmms-patch magic check``.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module, metadata
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from lmms_patch import __version__
from lmms_patch.app.commands.common import decorated, one_thread, say, telling
from lmms_patch.errors import OptionError, PatchError, UnknownNameError, nearest
from lmms_patch.text import said

# 130: 128 and the number of SIGINT, as shells tell an interruption
DONE, MISTAKE, INTERRUPTED = 0, 2, 130
TRACEBACK = "LMMS_PATCH_TRACEBACK"
"""Environment variable that shows the traceback of an unexpected error."""
REPORT = "please open an issue in the repository of lmms-patch"
VERSIONS = ("lmms-eval", "torch", "transformers", "datasets", "numpy", "scikit-learn")


@dataclass(frozen=True)
class Listed:
    """A command, or a group of commands.

    Attributes:
        help: its line in ``lmms-patch --help``.
        commands: of a group, its commands by name.
    """

    help: str
    commands: Mapping[str, Listed] = field(default_factory=dict)


COMMANDS = {
    "demo": Listed("The embedded benchmark with the embedded model, and its page."),
    "doctor": Listed("Is everything set up? What to type where it is not."),
    "tasks": Listed("What can be wrapped, what cannot and why, and what it costs."),
    "show": Listed("What a finished run found, and its table."),
    "report": Listed("A page, figures and tables, of any mix of finished runs."),
    "explore": Listed("Every doc of one or two runs in the browser."),
    "compare": Listed("Two models, or two versions, on the same docs."),
    "gate": Listed("Rules over the numbers of a run, for CI."),
    "leaderboard": Listed("A board of many runs, ranked where they are comparable."),
    "tst": Listed("Can a text-only model answer without looking?"),
    "analyze": Listed("A run's numbers with other settings; several runs averaged."),
    "prune": Listed("Remove what can be answered without looking."),
    "gap": Listed("The score with images less the score without."),
    "magic": Listed(
        "Which regions does a model name while it reasons?",
        {
            "check": Listed("Every fault of a dataset, with its line."),
            "build": Listed("Make a dataset from questions, scene graphs and saliency maps."),
            "show": Listed("The table of the MAGIC tasks of a run, and what other boxes cost."),
            "steps": Listed("The reasoning steps of a run, to be labelled by people or a judge."),
            "stepsense": Listed("The share of steps labelled correct, and how far annotators agree."),
        },
    ),
    "export": Listed("The docs of a run as Parquet, CSV or JSON lines."),
    "config": Listed("The shipped files: task file, gate rules, run configs, schemas."),
}
"""The commands by name, in the order of the help. A module is imported when its command is run, or its own help is asked for."""

OVERVIEW = """Which part of the image does a multimodal benchmark, or a model, really use:
the whole image, one corner of it, or no image at all?

  lmms-patch demo        see it on the embedded benchmark: 3 minutes, no network
  lmms-eval --model MODEL --tasks gqa_rci3 --output_path out
                         ask it of yours: any task of lmms-eval, _rci3 added
  lmms-patch show out    say what the run found, and show its table
  lmms-patch report out  write a page with figures, tables and examples

All commands: lmms-patch --help"""
"""What ``lmms-patch`` alone prints."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: what follows ``lmms-patch``; None: of the process.

    Returns:
        The exit status. 0: done, 2: a user's mistake or an unexpected error, told in one line, 130: interrupted; a
            command may have others.
    """
    given = _spelled(sys.argv[1:] if argv is None else argv)
    try:
        status = _run(given)
        if sys.stdout is not None:
            # here, so that a reader that is gone is noticed here
            sys.stdout.flush()
    except PatchError as error:
        return _refused(str(error))
    except typer.TyperException as error:
        return _refused(_said(error, given))
    except BrokenPipeError:
        _hush()
        return DONE
    except (KeyboardInterrupt, typer.Abort):
        _tell("interrupted")
        return INTERRUPTED
    # a stranger's module may call sys.exit(0): without a verdict that must not look like success
    except (Exception, SystemExit) as error:
        if os.environ.get(TRACEBACK):
            traceback.print_exc()
        return _refused(_unexpected(error))
    return status


def _spelled(argv: Sequence[str]) -> list[str]:
    """Return arguments with hyphens in options, as users of lmms-eval type underscores (``--include_path``).

    >>> _spelled(["tasks", "--include_path=my_tasks", "--", "--a_b"])
    ['tasks', '--include-path=my_tasks', '--', '--a_b']
    """
    # Words after ``--`` are values, and a path may have underscores.
    options = argv[: argv.index("--")] if "--" in argv else argv
    spelled = [re.sub("^--[^=]*", lambda name: name[0].replace("_", "-"), word) for word in options]
    return [*spelled, *argv[len(options) :]]


def _run(argv: list[str]) -> int:
    """Run the command that the arguments name, and return its exit status."""
    # Why not the command's own ``main``: it prints boxes, and turns a broken pipe and Ctrl-C into exits of its own.
    group: Any = get_command(app)
    try:
        with telling(), group.make_context("lmms-patch", argv) as context:
            return group.invoke(context) or DONE
    except typer.Exit as ended:
        return ended.exit_code


def _refused(message: str) -> int:
    _tell(said(message, sys.stderr.encoding if sys.stderr else "utf-8"))
    return MISTAKE


def _tell(message: str) -> None:
    """Say a line on stderr, where there is one."""
    # stderr may be closed, and then nobody is there to be told
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr is not None:
            print("lmms-patch:", message, file=sys.stderr, flush=True)


def _unexpected(error: BaseException) -> str:
    """Return one line for an unexpected error: type, place, and where to report the bug.

    Of files that cannot be read or written, what is wrong.
    """
    if isinstance(error, OSError) and error.strerror:
        # it may be stdout that cannot be written
        _hush()
        return f"{error.filename or 'output'}: {error.strerror}"
    told = " ".join(str(error).split())
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        # The innermost frame: where the error was raised, not where it was caught.
        where = where.tb_next
    place = "" if where is None else f" at {os.path.basename(where.tb_frame.f_code.co_filename)}:{where.tb_lineno}"
    what = f"unexpected error ({type(error).__name__}{place}{f': {told[:300]}' if told else ''})"
    return f"{what}; {REPORT}, with this line and the command; {TRACEBACK}=1 shows the whole traceback"


def _module(words: Sequence[str]) -> Any:
    return import_module(f"lmms_patch.app.commands.{'_'.join(words)}")


def _hush() -> None:
    """Send the rest of stdout to the null device once its reader is gone."""
    # Python flushes stdout once more at its end, which would fail again.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# --- what was wrong, what is allowed, what to type ------------------------------------------------


def _said(error: Any, argv: Sequence[str]) -> str:
    """Return one line for an error of the command line itself."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else " ".join(["lmms-patch", *_called(argv)])
    kind, param = type(error).__name__, getattr(error, "param", None)
    more = f"type '{path} --help'"
    if kind == "NoSuchOption":
        close = nearest(
            error.option_name,
            [name for one in context.command.get_params(context) for name in one.opts] if context else [],
        )
        return f"no option {error.option_name}; " + (
            f"did you mean {' or '.join(close)}? {more}" if close else f"{more} for those that there are"
        )
    if kind == "MissingParameter" and param is not None and context is not None:
        needed = [
            _name(one) + (f" {one.metavar}" if one.param_type_name == "option" else "")
            for one in context.command.params
            if one.required
        ]
        return f"{_name(param)} is missing; type '{' '.join([path, *needed])}', or '{path} --help' for examples"
    if kind == "BadParameter" and param is not None:
        return f"{_name(param)} {_wrong_value(error)}; {more}"
    text = error.format_message().strip().rstrip(".")
    return f"{text[:1].lower()}{text[1:]}; {more}"


def _called(argv: Sequence[str]) -> list[str]:
    """Return the words at the beginning of the arguments that name a command, such as ``["magic", "check"]``."""
    words: list[str] = []
    table: Mapping[str, Listed] = COMMANDS
    for word in argv:
        if word not in table:
            break
        words.append(word)
        table = table[word].commands
    return words


def _name(param: Any) -> str:
    """Return a parameter as people type its name: ``--output`` or ``RUN...``."""
    if param.param_type_name == "option":
        return str(max(param.opts, key=len))
    return f"{param.metavar or param.name.upper()}{'' if param.nargs == 1 else '...'}"


_WANTED = {
    "Input should be a valid integer": "must be a whole number",
    "Input should be a valid number": "must be a number",
}


def _wrong_value(error: Any) -> str:
    """Return the end of an error line: the allowed values and the given value ("must be csv or parquet, not 'xml'")."""
    errors: list[Any] = getattr(error.__cause__, "errors", list)()
    given = f", not {errors[0]['input']!r}" if errors else ""
    if allowed := error.param.type_descriptor.choices:
        return f"must be {', '.join(allowed[:-1])} or {allowed[-1]}{given}"
    for start, words in _WANTED.items():
        if error.message.startswith(start):
            return words + given
    return str(error.message).replace("Input should be", "must be").rstrip(".") + given


# --- help -----------------------------------------------------------------------------------------


class Command(TyperCommand):
    """One command, with help in plain text where stdout is no terminal."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write help as the base class does, but without boxes and colours where stdout is no terminal."""
        self.rich_markup_mode = "rich" if decorated() else None
        super().format_help(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples with their line breaks, so that each line can be pasted."""
        if epilog := getattr(self, "epilog", None):
            formatter.write(
                "\n"
                + "".join(
                    f"  {line}\n" if line and not line.endswith(":") else f"{line}\n" for line in epilog.splitlines()
                )
            )


class _Lazy(Command):
    """A command whose module is imported when it is called; until then it has a name and one line of help."""

    words: tuple[str, ...] = ()

    def make_context(self, info_name: Any, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Import the command's module, and return the context of the real command."""
        return built(*self.words).make_context(info_name, args, parent, **extra)


class Group(TyperGroup):
    """All commands, or those of a group."""

    words: tuple[str, ...] = ()
    table: Mapping[str, Listed] = COMMANDS

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of this name, or None."""
        if (listed := self.table.get(cmd_name)) is None:
            return None
        command = _SubGroup(name=cmd_name, help=listed.help) if listed.commands else _Lazy(cmd_name, help=listed.help)
        command.words = (*self.words, cmd_name)
        if isinstance(command, _SubGroup):
            command.table = listed.commands
        return command

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write a line for each command, on one screen: no boxes, and no list of the two options that there are."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        with formatter.section("Commands"):
            formatter.write_dl([(name, listed.help) for name, listed in self.table.items()])
        formatter.write(
            f"\nOptions of a command: {ctx.command_path} {next(iter(self.table))} --help; versions: lmms-patch --version\n"
        )

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name.

        Raises:
            UnknownNameError: there is no command of this name.
        """
        if args[0] not in self.table:
            close = nearest(args[0], self.table)
            hint = f"did you mean {' or '.join(close)}?" if close else f"allowed: {', '.join(self.table)};"
            raise UnknownNameError(
                f"no {' '.join([*self.words, 'command'])} {args[0]!r}; {hint} type '{ctx.command_path} --help'"
            )
        return super().resolve_command(ctx, args)


class _SubGroup(Group):
    """A group within the group of all."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that the arguments name.

        Raises:
            OptionError: they name none.
        """
        if not ctx._protected_args:
            raise OptionError(
                f"no {' '.join(self.words)} command given; allowed: {', '.join(self.table)}; type '{ctx.command_path} --help'"
            )
        return super().invoke(ctx)


def paths(table: Mapping[str, Listed] | None = None) -> list[tuple[str, ...]]:
    """List all commands that can be run, each as the words that people type: ``("show",)``, ``("magic", "check")``."""
    out: list[tuple[str, ...]] = []
    for name, listed in (COMMANDS if table is None else table).items():
        out += [(name, *rest) for rest in paths(listed.commands)] if listed.commands else [(name,)]
    return out


def built(*words: str) -> Any:
    """Return a command with its options, from its module: ``built("show")``, ``built("magic", "check")``."""
    module = _module(words)
    function: Any = _shown(getattr(module, "_".join(words)), module.display)
    single = typer.Typer(add_completion=False)
    single.command(words[-1], cls=Command, epilog=function.epilog)(function)
    return get_command(single)


def _options(function: Any, skipped: int = 0) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function by name but for the first few, as keywords with their types.

    The types are evaluated one by one: the type of what a command returns is not imported.
    """
    given = list(inspect.signature(function).parameters.values())[skipped:]
    types = [one.annotation for one in given]
    known = [eval(one, inspect.unwrap(function).__globals__) if isinstance(one, str) else one for one in types]
    return {
        one.name: one.replace(kind=one.KEYWORD_ONLY, annotation=kind) for one, kind in zip(given, known, strict=True)
    }


def _shown(work: Any, display: Callable[..., int | None]) -> Callable[..., int | None]:
    """Return a function that displays what a command returns; its options are those of both.

    Args:
        work: the command.
        display: prints what the command returns, its first argument, and returns the exit status; None: 0. An option
        of the command that it names too has the same value there.
    """
    of_work, of_display = _options(work), _options(display, 1)

    def function(**options: Any) -> int | None:
        with one_thread():
            try:
                result = work(**{name: options[name] for name in of_work})
            # not of stdout, since nothing is printed yet: this is no reader who has seen enough
            except BrokenPipeError as error:
                raise ConnectionError(str(error)) from error
            return display(result, **{name: options[name] for name in of_display})

    # what typer reads in place of the real signature
    function.__signature__ = inspect.Signature([*(of_work | of_display | of_work).values()])  # type: ignore[attr-defined]
    function.__doc__, function.epilog = work.__doc__, getattr(work, "epilog", "")  # type: ignore[attr-defined]
    return function


def versions() -> list[str]:
    """Return one line for each package whose version may change results, without importing the package."""
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
    cls=Group,
    invoke_without_command=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _start(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_print_versions, help="Versions of what matters, and exit."),
    ] = False,
) -> None:
    """Which part of the image does a multimodal benchmark, or a model, really use?"""
    if context.invoked_subcommand is None:
        say(OVERVIEW)


if __name__ == "__main__":
    sys.exit(main())
