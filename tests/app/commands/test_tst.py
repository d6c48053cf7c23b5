"""``lmms-patch tst``: the command line that it makes, the task file that it writes, and how a failed run ends."""

import contextlib
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from lmms_patch.app import watched
from lmms_patch.app.cli import main
from lmms_patch.app.watched import RunError
from lmms_patch.ask.spec import Options, from_file
from lmms_patch.errors import EXTRAS
from lmms_patch.harness.names import catalog
from tests.harness import toys
from tests.making.tst import write_tst


@pytest.fixture
def command(monkeypatch, tmp_path):
    """A function that returns the harness command line that some words make; its task file lies in the test's folder."""
    monkeypatch.setattr("tempfile.TemporaryDirectory", lambda prefix: contextlib.nullcontext(str(tmp_path)))

    def typed(*words):
        seen = []

        def run(options, output, watch):
            seen.append(options)
            raise RunError("far enough")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(watched, "lmms_eval", run)
            assert main(["tst", *words]) == 2
        return seen[0] if seen else None

    return typed


def options_of(made):
    """The options of a harness command line, ``--name value``; a flag has None."""
    out, names = {}, [i for i, word in enumerate(made) if word.startswith("--")]
    for i, after in zip(names, [*names[1:], len(made)], strict=True):
        assert after - i <= 2, made
        out[made[i]] = made[i + 1] if after - i == 2 else None
    return out


@pytest.fixture
def harness(monkeypatch, tmp_path):
    """Stands in for the harness: notes the options that it is given.

    ``status`` is what it ends with, ``does`` what it does before.
    """
    log = tmp_path / "lmms-eval.log"
    log.touch()
    said = SimpleNamespace(status=0, does=lambda: None, commands=[], files=[])

    def run(options, output, watch):
        said.commands.append(options)
        if "--include_path" in options:
            said.files.append(options[options.index("--include_path") + 1])
        said.does()
        if said.status:
            raise RunError(f"ended with status {said.status}")
        return log

    monkeypatch.setattr(watched, "lmms_eval", run)
    return said


def test_what_is_not_installed_is_said_before_lmms_eval_is_started(harness, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(EXTRAS, "tst", ("lightgbm_that_is_not_there",))
    assert main(["tst", "toy", "--output", str(tmp_path)]) == 2
    assert "is not installed; type: pip install 'lmms-patch[tst]'" in capsys.readouterr().err
    assert not harness.commands


# --- the command line ---------------------------------------------------------------------------


def test_the_plain_command(command, tmp_path):
    made = command("gqa")
    assert options_of(made) == {"--model": "tst_rf", "--tasks": "gqa_tst5", "--output_path": "out/tst"}
    assert list(tmp_path.iterdir()) == []


def test_every_option_reaches_the_harness(command):
    more = [
        "--diagnostic", "lora", "--folds", "10", "--model-args", "model=x,lora_rank=8", "--limit", "0",
        "--include-path", "my tasks",
    ]  # fmt: skip
    made = options_of(command("gqa", *more, "--output", "some/where"))
    assert made == {"--model": "tst_lora", "--tasks": "gqa_tst10", "--output_path": "some/where"} | {
        "--model_args": "model=x,lora_rank=8",
        "--limit": "0",
        "--include_path": "my tasks",
    }


@pytest.mark.parametrize(
    ("arguments", "given"),
    [(["--grouping", "none"], {"grouping": "none"}), (["--grouping", "text"], {"grouping": "text"})],
)
def test_options_of_the_task_are_written_into_a_task_file(command, tmp_path, arguments, given):
    """Read as the harness reads it, and by the reader of task files: exactly these options are given."""
    made = options_of(command("gqa", "--folds", "4", *arguments))
    assert (made["--include_path"], made["--tasks"]) == (str(tmp_path), "gqa_tst4")
    (file,) = tmp_path.iterdir()
    assert file.name == "gqa_tst4.yaml"
    first, *rest = file.read_text().splitlines()
    assert first == "class: !function lmms_patch.Wrap"
    config = yaml.safe_load("\n".join(rest))
    spec = from_file(config)
    assert (spec.base, spec.kind.name, spec.folds, spec.name) == ("gqa", "tst", 4, "gqa_tst4")
    assert spec.of("member").name == "member_tst4"
    assert spec.options == Options(**given)
    assert spec.options.given == frozenset(given)


def test_the_leak_checks_are_an_argument_of_the_model(command, capsys):
    assert options_of(command("gqa", "--check"))["--model_args"] == "check=True"
    assert options_of(command("gqa", "--check", "--model-args", "trees=10"))["--model_args"] == "trees=10,check=True"
    capsys.readouterr()
    assert command("gqa", "--check", "--diagnostic", "lora") is None
    assert "--check: a language model has no features to check" in capsys.readouterr().err


@pytest.mark.parametrize("folds", ["1", "0", "-2", "51"])
def test_impossible_folds_are_one_line(harness, capsys, folds):
    assert main(["tst", "gqa", "--folds", folds]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"lmms-patch: --folds must be 2 to 50, not {folds}"
    assert harness.commands == []


@pytest.mark.usefixtures("indexed")
def test_options_of_the_task_beside_an_include_path(command, tmp_path):
    """One's own benchmark: both folders are named in one text, and the task file wraps the task of the other folder."""
    own = tmp_path / "own"
    own.mkdir()
    toys.write_task(own, "toy", toys.rows(4))
    include = options_of(command("toy", "--include-path", str(own), "--grouping", "none"))["--include_path"]
    assert include.split(os.pathsep) == [str(own), str(tmp_path)]
    manager = catalog.task_manager(include)
    options = manager.load_task_or_group(["toy_tst5"])["toy_tst5"].session.text_only.spec.options
    assert options.grouping == "none"


# --- running it ---------------------------------------------------------------------------------


def test_a_run_is_shown(harness, tmp_path, capsys):
    harness.does = lambda: write_tst(tmp_path)
    assert main(["tst", "toy", "--output", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert " ".join(printed.split()).startswith(
        "- A text-only model, trained on other questions of the test set, answers more than a question's category says in toy"
    )
    assert "toy_tst5: can in part be answered without looking" in printed
    assert "word: lamp" not in printed, "the finding first: show --causes has the rest"


def test_the_task_file_is_there_while_the_harness_runs_and_gone_after(harness, tmp_path):
    seen = []
    harness.does = lambda: (seen.extend(path.name for path in Path(harness.files[0]).iterdir()), write_tst(tmp_path))
    assert main(["tst", "toy", "--grouping", "none", "--output", str(tmp_path)]) == 0
    assert seen == ["toy_tst5.yaml"]
    assert not Path(harness.files[0]).exists()


def test_a_failed_harness_shows_no_earlier_run(harness, tmp_path, capsys):
    write_tst(tmp_path)
    harness.status = 1
    assert main(["tst", "toy", "--output", str(tmp_path)]) == 2
    printed = capsys.readouterr()
    assert printed.err == "lmms-patch: ended with status 1\n"
    assert printed.out == ""


def test_a_harness_that_wrote_nothing_is_a_failure(harness, tmp_path, capsys):
    """The harness prints what went wrong and ends with status 0."""
    assert main(["tst", "toy", "--output", str(tmp_path / "new")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "no samples tables here from this run" in line
