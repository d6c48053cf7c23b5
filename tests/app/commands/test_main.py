"""The command line as a whole: what it prints where something is wrong, its help, its versions, and what it imports."""

import importlib
import os
import pty
import re
import shlex
import subprocess
import sys
from importlib import metadata
from itertools import dropwhile

import pytest

from lmms_patch import __version__
from lmms_patch.app import cli
from lmms_patch.app.cli import COMMANDS, built, listed_at, main, paths
from lmms_patch.errors import RecordError
from tests.making.runs import mc_run, write_run
from tests.sizes import size

HEAVY = ("torch", "lmms_eval", "sklearn", "matplotlib", "scipy", "transformers", "datasets", "numpy", "jinja2")


def refused(capsys, *words):
    """The one line on stderr of a call that is a user's mistake."""
    assert main([*map(str, words)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith("lmms-patch: ")
    assert not re.search("[\x1b\u2500-\u257f]", line)
    return line.removeprefix("lmms-patch: ")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("run"), {"toy_rci2": mc_run(n=60)})


def test_alone_it_says_what_to_type_first(capsys):
    assert main([]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    named = re.findall(r"^ +lmms-patch (\w+)", printed.out, re.M)
    assert set(named) <= set(COMMANDS)
    assert len(named) == 3
    assert max(map(len, printed.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("lmms-patch sh", "show"),
        ("lmms-patch show --wi", "--wide"),
        ("lmms-patch magic ste", "steps\nstepsense"),
        ("lmms-patch zz", ""),
    ],
)
def test_a_shell_is_told_what_may_come_next(typed, offered):
    """As bash asks: the words so far, and which of them is being typed."""
    env = {
        **os.environ,
        "_LMMS_PATCH_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-m", "lmms_patch.app.cli"], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == offered


# --- mistakes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["shw"], "no command 'shw'; did you mean show? type 'lmms-patch --help'"),
        (["zzzz"], "no command 'zzzz'; allowed: demo, doctor, tasks, "),
        (["--folds"], "no option --folds; type 'lmms-patch --help'"),
        (["--verson"], "no option --verson; did you mean --version?"),
        (["show"], "OUT is missing; type 'lmms-patch show OUT', or 'lmms-patch show --help' for examples"),
        (["show", "--cell", "x"], "no option --cell; did you mean --cells"),
        (["show", "a", "b"], "got unexpected extra argument(s) (b); type 'lmms-patch show --help'"),
        (["analyze"], "OUT... is missing; type 'lmms-patch analyze OUT...'"),
        (
            ["analyze", "x", "--draws", "many"],
            "--draws must be a whole number, not 'many'; type 'lmms-patch analyze --help'",
        ),
        (["analyze", "x", "--level", "high"], "--level must be a number, not 'high'"),
        (["analyze", "x", "--draws"], "option '--draws' requires an argument; type 'lmms-patch analyze --help'"),
        (["analyze", "x", "--level", "nan"], "level must be a fraction from 0.5 to below 1, such as 0.95, not nan"),
        (["analyze", "x", "--delta", "inf"], "delta must be a number"),
        (
            ["analyze", "x", "--chance", "nan"],
            "chance must be a number on the metric's own scale, at most ±1e+15, or 'majority', not nan",
        ),
        (["gap", "a"], "BLIND is missing; type 'lmms-patch gap FULL BLIND'"),
        (["gap", "a", "b", "--match", "colour"], "--match must be category, format or none, not 'colour'"),
        (
            ["gate", "out"],
            "--config is missing; type 'lmms-patch gate OUT --config FILE', or 'lmms-patch gate --help' for examples",
        ),
        (["prune"], "TASK is missing; type 'lmms-patch prune TASK'"),
        (["prune", "x", "--by", "luck"], "--by must be s_minus_chance, s, delta or locality, not 'luck'"),
        (["prune", "x", "--budget", "many"], "--budget must be a number, not 'many'"),
        (["tst"], "TASK is missing; type 'lmms-patch tst TASK'"),
        (["config", "schemas/pach"], "no schema 'pach'; did you mean patch?"),
        (["tasks", "--kind", "x"], "no option --kind"),
        (["tasks", "--all", "x"], "--all takes no PATTERN: it counts the tasks of lmms-eval itself"),
        (["tasks", "--write", "x.md"], "--write is of the whole list; type 'lmms-patch tasks --all --write x.md'"),
        (
            ["magic"],
            "no magic command given; allowed: check, build, show, steps, stepsense; type 'lmms-patch magic --help'",
        ),
        (["magic", "chek"], "no magic command 'chek'; did you mean check? type 'lmms-patch magic --help'"),
        (["magic", "zzzz"], "no magic command 'zzzz'; allowed: check, "),
        (["magic", "--seed"], "no option --seed; type 'lmms-patch magic --help'"),
        (
            ["magic", "check"],
            "DATA is missing; type 'lmms-patch magic check DATA', or 'lmms-patch magic check --help' for examples",
        ),
        (["magic", "build", "a", "b"], "IMAGES is missing; type 'lmms-patch magic build QUESTIONS SCENES IMAGES'"),
        (
            ["magic", "build", "a", "b", "c", "--weak", "--keep", "both"],
            "--keep must be larger or earlier, not 'both'; type 'lmms-patch magic build",
        ),
        (["magic", "steps", "x", "--itmes", "3"], "no option --itmes; did you mean --items or"),
    ],
)
def test_each_mistake_is_one_line(capsys, words, says):
    assert refused(capsys, *words).startswith(says)


@pytest.mark.parametrize("gone", cli.GONE, ids=" ".join)
def test_what_is_gone_says_in_one_line_what_to_do_instead(capsys, gone):
    """Of an option the line names the option, with the value where only that is gone; else the command."""
    assert main([*gone, *(["1"] if gone[-1].startswith("--") else [])]) == 2
    printed = capsys.readouterr()
    named = (
        gone
        if not any(word.startswith("--") for word in gone)
        else list(dropwhile(lambda word: not word.startswith("--"), gone))
    )
    assert printed.err == f"lmms-patch: {' '.join(named)} is gone: {cli.GONE[gone]}\n"
    assert not printed.out


def test_a_message_of_several_lines_is_one(monkeypatch, capsys):
    def show(folder):
        raise RecordError("one\ntwo")

    monkeypatch.setattr("lmms_patch.app.api.show", show)
    assert refused(capsys, "show", "x") == "one two"


def test_a_run_that_is_not_there(capsys, tmp_path):
    assert refused(capsys, "show", tmp_path).endswith(
        "no *_results.json here; give the folder that was --output_path of a run"
    )


def test_an_error_of_ours_is_one_line_that_says_where_to_report_it(monkeypatch, capsys):
    """Its traceback is a variable away."""

    def show(folder):
        raise ZeroDivisionError("by\nnothing")

    monkeypatch.setattr("lmms_patch.app.api.show", show)
    assert main(["show", "x"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("lmms-patch: unexpected error (ZeroDivisionError at test_main.py:")
    assert "by nothing); please open an issue in the repository of lmms-patch" in line
    monkeypatch.setenv("LMMS_PATCH_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        main(["show", "x"])


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_output_that_cannot_be_written_is_one_line():
    code = "import sys; from lmms_patch.app.cli import main; sys.exit(main(['config', 'schemas/patch']))"
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, "lmms-patch: output: No space left on device\n")


# --- how it ends --------------------------------------------------------------------------------


@pytest.mark.parametrize(("returned", "status"), [(None, 0), (0, 0), (1, 1), (3, 3)])
def test_a_command_may_have_a_status_of_its_own(monkeypatch, returned, status):
    def command() -> int | None:
        return returned

    monkeypatch.setattr("lmms_patch.app.commands.config.command", command)
    assert main(["config"]) == status


def test_interrupted_is_one_line(monkeypatch, capsys):
    def show(folder):
        raise KeyboardInterrupt

    monkeypatch.setattr("lmms_patch.app.api.show", show)
    assert main(["show", "x"]) == 130
    assert capsys.readouterr().err == "lmms-patch: interrupted\n"


def test_a_reader_that_is_gone_is_no_error():
    """Its stdout is closed before it prints: neither a traceback nor Python's own complaint at the end."""
    code = "import sys, time; from lmms_patch.app.cli import main; time.sleep(1); sys.exit(main(['config', 'schemas/patch']))"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
        done.stdout.close()
        assert done.stderr.read() == b""
        assert done.wait() == 0


# --- help ---------------------------------------------------------------------------------------


def helped(capsys, *words):
    assert main([*words, "--help"]) == 0
    return capsys.readouterr().out


def test_the_help_lists_every_command_with_its_whole_line(capsys):
    """Ten commands that most people need, the others below them."""
    first, more = helped(capsys).partition("\nMore:\n")[::2]
    for name, listed in COMMANDS.items():
        assert f"{name} {listed.help}" in " ".join((more if listed.more else first).split())
    assert sum(not listed.more for listed in COMMANDS.values()) == 10


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["schema"], "config schemas"),
        (["schema", "patch"], "config schemas/patch"),
        (["coverage", "--help"], "tasks --all"),
    ],
)
def test_old_spellings_work_and_say_the_new_one(capsys, old, new):
    assert main(new.split() + old[1:] * (old[0] == "coverage")) == 0
    wanted = capsys.readouterr().out
    assert main(old) == 0
    printed = capsys.readouterr()
    assert printed.out == wanted
    assert printed.err == f"lmms-patch: '{old[0]}' is now '{new}'; the old spelling goes with the next version\n"


@pytest.mark.parametrize(
    "words", [*paths(), *((name,) for name, listed in COMMANDS.items() if listed.commands)], ids=" ".join
)
def test_help_that_is_piped_is_plain(capsys, monkeypatch, words):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")  # there typer would have it that stdout is a terminal
    printed, name = helped(capsys, *words), " ".join(words)
    assert printed.startswith(f"Usage: lmms-patch {name} ")
    assert printed.isascii()
    assert "\x1b" not in printed
    assert "\nExamples:\n" in printed
    assert f"\n  lmms-patch {name}" in printed


def test_the_help_of_a_group_lists_its_commands_with_their_whole_lines(capsys):
    for name, group in COMMANDS.items():
        if group.commands:
            printed = " ".join(helped(capsys, name).split())
            assert all(f"{one} {listed.help}" in printed for one, listed in group.commands.items())


def typed(words):
    """The example commands of a command's help."""
    return [line for line in built(*words).epilog.splitlines() if line.startswith("lmms-patch")]


@pytest.mark.parametrize("words", paths(), ids=" ".join)
def test_every_example_can_be_typed(words):
    """Each is read by the command that it names, up to where it would begin to work."""
    assert len(typed(words)) >= 2
    for line in typed(words):
        program, *rest = shlex.split(line.partition(" > ")[0])
        assert (program, *rest[: len(words)]) == ("lmms-patch", *words)
        built(*words).make_context(words[-1], rest[len(words) :])


def on_a_terminal(*words, **environment):
    """What a person sees: stdout is a pseudo-terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "lmms_patch.app.cli", *words]
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "GITHUB_ACTIONS")} | {
        "TERM": "xterm",
        "COLUMNS": "100",
        **environment,
    }
    with subprocess.Popen(command, stdout=theirs, env=env) as done:
        os.close(theirs)
        parts = []
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            parts.append(part)
        assert done.wait() == 0
    os.close(ours)
    return b"".join(parts).decode()


def test_help_on_a_terminal_is_decorated_unless_that_is_not_wanted():
    decorated = on_a_terminal("gap", "--help")
    assert "\x1b[" in decorated
    assert "\u2500" in decorated
    assert "lmms-patch gap out out --subset out/pruned/gqa" in re.sub("\x1b\\[[0-9;]*m", "", decorated)
    assert on_a_terminal("gap", "--help", NO_COLOR="1").isascii()
    assert on_a_terminal("gap", "--help", TERM="dumb").isascii()


# --- versions, imports --------------------------------------------------------------------------


def test_versions(capsys, monkeypatch):
    known = metadata.version

    def version(name):
        if name == "transformers":
            raise metadata.PackageNotFoundError(name)
        return known(name)

    monkeypatch.setattr(cli.metadata, "version", version)
    assert main(["--version"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"lmms-patch {__version__}"
    assert [line.split()[0] for line in lines[1:]] == [
        "lmms-eval",
        "torch",
        "transformers",
        "datasets",
        "numpy",
        "scikit-learn",
        "Python",
    ]
    assert f"torch {known('torch')}" in lines
    assert "transformers not installed" in lines
    assert lines[-1] == f"Python {sys.version.split()[0]}"


SAY_LITTLE = [
    ["--help"],
    ["--version"],
    *([*words, "--help"] for words in paths()),
    ["magic", "--help"],
    ["magic", "nosuch"],
    ["nosuch"],
]


@pytest.mark.parametrize(
    "typed", size([SAY_LITTLE], [[words] for words in SAY_LITTLE]), ids=lambda typed: " ".join(typed[-1])
)
def test_nothing_heavy_is_imported_to_say_little(typed):
    """All of them in one process, or each in its own."""
    code = (
        "import sys, contextlib, io\nfrom lmms_patch.app.cli import main\n"
        f"with contextlib.redirect_stdout(io.StringIO()):\n    for words in {typed!r}: main(words)\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_show_needs_neither_torch_nor_the_harness(run):
    code = f"import sys; from lmms_patch.app.cli import main; main(['show', {str(run)!r}]); print(sorted({{'torch', 'lmms_eval', 'sklearn'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("words", paths(), ids=" ".join)
def test_the_table_of_commands_is_true(words):
    listed = listed_at(*words)
    module = importlib.import_module(f"lmms_patch.app.commands.{listed.module or '_'.join(words)}")
    function = getattr(module, listed.function)
    assert function.__doc__.strip().endswith(("?", "."))
    assert built(*words).name == words[-1]
