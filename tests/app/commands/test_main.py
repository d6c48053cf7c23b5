"""The command line as a whole: what it prints where something is wrong, its help, its versions, and what it imports."""

import os
import re
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from lmms_patch import __version__
from lmms_patch.app import cli
from lmms_patch.app.cli import COMMANDS, built, main, paths
from lmms_patch.errors import RecordError
from tests.making.runs import mc_run, write_run
from tests.places import ROOT
from tests.sizes import size

HEAVY = (
    "torch",
    "lmms_eval",
    "sklearn",
    "altair",
    "vl_convert",
    "scipy",
    "transformers",
    "datasets",
    "numpy",
    "jinja2",
)


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


# --- mistakes -----------------------------------------------------------------------------------


MISTAKES = [
    (["shw"], "no command 'shw'; did you mean show? type 'lmms-patch --help'"),
    (["zzzz"], "no command 'zzzz'; allowed: demo, doctor, tasks, "),
    (["--folds"], "no option --folds; type 'lmms-patch --help'"),
    (["--verson"], "no option --verson; did you mean --version?"),
    (["show"], "OUT is missing; type 'lmms-patch show OUT', or 'lmms-patch show --help' for examples"),
    (["show", "--cell", "x"], "no option --cell; did you mean --cells"),
    (["show", "a", "b"], "got unexpected extra argument(s) (b); type 'lmms-patch show --help'"),
    (
        ["analyze", "x", "--draws", "many"],
        "--draws must be a whole number, not 'many'; type 'lmms-patch analyze --help'",
    ),
    (["analyze", "x", "--draws"], "option '--draws' requires an argument; type 'lmms-patch analyze --help'"),
    (["prune", "x", "--by", "luck"], "--by must be s_minus_chance, s or delta, not 'luck'"),
    (["config", "schemas/magic-itm"], "no schema 'magic-itm'; did you mean magic-item"),
    (
        ["magic"],
        "no magic command given; allowed: check, build, show, steps, stepsense; type 'lmms-patch magic --help'",
    ),
    (["magic", "chek"], "no magic command 'chek'; did you mean check? type 'lmms-patch magic --help'"),
    (["magic", "steps", "x", "--itmes", "3"], "no option --itmes; did you mean --items or"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "says"), MISTAKES)
def test_each_mistake_is_one_line(capsys, words, says):
    assert refused(capsys, *words).startswith(says)


def test_a_message_of_several_lines_is_one(monkeypatch, capsys):
    def show(folder):
        raise RecordError("one\ntwo")

    monkeypatch.setattr("lmms_patch.app.commands.show.show", show)
    assert refused(capsys, "show", "x") == "one two"


def test_a_run_that_is_not_there(capsys, tmp_path):
    assert refused(capsys, "show", tmp_path).endswith(
        "no samples tables (*_samples_*.parquet) here; give the folder that was --output_path of a run"
    )


def test_an_error_of_ours_is_one_line_that_says_where_to_report_it(monkeypatch, capsys):
    """Its traceback is a variable away."""

    def show(folder):
        raise ZeroDivisionError("by\nnothing")

    monkeypatch.setattr("lmms_patch.app.commands.show.show", show)
    assert main(["show", "x"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("lmms-patch: unexpected error (ZeroDivisionError at test_main.py:")
    assert "by nothing); please open an issue in the repository of lmms-patch" in line
    monkeypatch.setenv("LMMS_PATCH_TRACEBACK", "1")
    assert main(["show", "x"]) == 2
    *traceback, last = capsys.readouterr().err.splitlines()
    assert (traceback[0], last) == ("Traceback (most recent call last):", line)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_output_that_cannot_be_written_is_one_line():
    code = "import sys; from lmms_patch.app.cli import main; sys.exit(main(['config', 'schemas/magic-item']))"
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, "lmms-patch: output: No space left on device\n")


METHOD = "import sys\nsys.exit(0)\n"
"""A module that ends the process, and says that all is well."""


def installed_method(folder):
    """Install a package with a method whose module ends the process, and return its folder."""
    info = folder / "strange-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strange\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[lmms_patch.methods]\nstrange = strange_method:method\n")
    (folder / "strange_method.py").write_text(METHOD)
    return folder


def real(*words, **environment):
    """The real command in a process of its own."""
    line = [sys.executable, "-m", "lmms_patch.app.cli", *map(str, words)]
    return subprocess.run(
        line, env={**os.environ, **environment}, capture_output=True, text=True, cwd=ROOT, check=False
    )


def test_a_method_that_ends_the_process_is_left_out_and_the_gate_has_its_verdict(run, tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text("schema: 1\nrules:\n  - {name: impossible, metric: fip, min: 0.999}\n")
    path = os.pathsep.join([str(installed_method(tmp_path)), str(ROOT)])
    done = real("gate", run, "--config", rules, PYTHONPATH=path)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("FAIL toy")
    assert "the method strange (strange_method:method) is left out: SystemExit" in done.stderr


@pytest.mark.parametrize("traceback", ["", "1"])
def test_no_command_ends_well_before_it_has_printed_its_verdict(run, tmp_path, traceback):
    """A module that ends the process, loaded in the middle of a command: one line that names its place, and status 2."""
    (tmp_path / "strange.py").write_text(METHOD)
    (tmp_path / "sitecustomize.py").write_text(
        "import lmms_patch.gate.judge\ndef judge(*_):\n    import strange\nlmms_patch.gate.judge.judge = judge\n"
    )
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = real("gate", run, "--config", "model-regression", PYTHONPATH=path, LMMS_PATCH_TRACEBACK=traceback)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith("lmms-patch: unexpected error (SystemExit at strange.py:2: 0)")
    assert ("Traceback" in done.stderr) is bool(traceback)


# --- how it ends --------------------------------------------------------------------------------


@pytest.mark.parametrize(("returned", "status"), [(None, 0), (0, 0), (1, 1), (3, 3)])
def test_a_command_may_have_a_status_of_its_own(monkeypatch, returned, status):
    monkeypatch.setattr("lmms_patch.app.commands.config.display", lambda text: returned)
    assert main(["config"]) == status


def test_interrupted_is_one_line(monkeypatch, capsys):
    def show(folder):
        raise KeyboardInterrupt

    monkeypatch.setattr("lmms_patch.app.commands.show.show", show)
    assert main(["show", "x"]) == 130
    assert capsys.readouterr().err == "lmms-patch: interrupted\n"


def test_a_broken_pipe_within_a_command_is_an_error(monkeypatch, capsys):
    def show(folder: Path):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("lmms_patch.app.commands.show.show", show)
    assert "Broken pipe" in refused(capsys, "show", "x")


def test_a_reader_that_is_gone_is_no_error():
    """Its stdout is closed before it prints: neither a traceback nor Python's own complaint at the end."""
    code = "import sys, time; from lmms_patch.app.cli import main; time.sleep(1); sys.exit(main(['config', 'schemas/magic-item']))"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
        done.stdout.close()
        assert done.stderr.read() == b""
        assert done.wait() == 0


# --- help ---------------------------------------------------------------------------------------


def helped(capsys, *words):
    assert main([*words, "--help"]) == 0
    return capsys.readouterr().out


def test_the_help_lists_every_command_on_one_screen(capsys):
    lines = helped(capsys).splitlines()
    assert (len(lines) <= 24, max(map(len, lines)) <= 80) == (True, True)
    shown = [" ".join(line.split()) for line in lines]
    assert [f"{name} {listed.help}" for name, listed in COMMANDS.items() if f"{name} {listed.help}" not in shown] == []


@pytest.mark.parametrize(
    "words", [*paths(), *((name,) for name, listed in COMMANDS.items() if listed.commands)], ids=" ".join
)
def test_help_that_is_piped_is_plain(capsys, monkeypatch, words):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")  # there typer would have it that stdout is a terminal
    printed, name = helped(capsys, *words), " ".join(words)
    assert printed.startswith(f"Usage: lmms-patch {name} ")
    assert printed.isascii()
    assert "\x1b" not in printed
    assert ("\nExamples:\n" in printed) is (tuple(words) in paths())
    assert f"lmms-patch {name} " in printed.partition("\n")[2]


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
    told = "lmms-eval torch transformers datasets numpy scikit-learn Python"
    assert [line.split()[0] for line in lines[1:]] == told.split()
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


@pytest.mark.parametrize("words", [("show",), ("leaderboard", "--output", "board")], ids=" ".join)
def test_what_reads_runs_needs_neither_torch_nor_the_harness(run, tmp_path, words):
    code = "import sys; from lmms_patch.app.cli import main; main(sys.argv[1:]); print(sorted({'torch', 'lmms_eval', 'sklearn', 'datasets'} & set(sys.modules)))"
    command = [sys.executable, "-c", code, words[0], str(run), *words[1:]]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("words", paths(), ids=" ".join)
def test_the_table_of_commands_is_true(words):
    listed = COMMANDS[words[0]]
    for word in words[1:]:
        listed = listed.commands[word]
    assert built(*words).name == words[-1]
    assert built(*words).help.strip().endswith(("?", "."))
    assert listed.help.endswith(("?", "."))
