"""``lmms-patch tst``: the command line that it makes, the task file that it writes, and how a failed run ends."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from lmms_patch.app import api, stress
from lmms_patch.app.cli import main
from lmms_patch.app.stress import command_of
from lmms_patch.app.watched import RunError
from lmms_patch.ask.spec import Options, from_file
from lmms_patch.errors import EXTRAS, OptionError
from lmms_patch.harness.names import catalog
from tests.harness import toys
from tests.making.tst import write_tst


def command(folder, *words):
    """The harness command line that these words make."""
    seen = []

    def run(arguments, quiet, watch):
        seen.append(arguments)
        raise RunError("far enough")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stress, "run", run)
        assert main(["tst", *words]) == 2
    return command_of(seen[0], folder)


def options_of(made):
    """The options of a harness command line, ``--name value``; a flag has None."""
    out, names = {}, [i for i, word in enumerate(made) if word.startswith("--")]
    for i, after in zip(names, [*names[1:], len(made)], strict=True):
        assert after - i <= 2, made
        out[made[i]] = made[i + 1] if after - i == 2 else None
    return out


@pytest.fixture
def harness(monkeypatch):
    """Stands in for the harness: notes the options that it is given.

    ``status`` is what it ends with, ``does`` what it does before.
    """
    said = SimpleNamespace(status=0, does=lambda: None, commands=[], files=[], quiet=None)

    def run(options, output, *, quiet, watch):
        said.quiet = quiet
        said.commands.append(options)
        if "--include_path" in options:
            said.files.append(options[options.index("--include_path") + 1])
        said.does()
        if said.status:
            raise RunError(f"ended with status {said.status}")

    monkeypatch.setattr(stress, "lmms_eval", run)
    return said


def test_what_is_not_installed_is_said_before_lmms_eval_is_started(harness, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(EXTRAS, "tst", ("lightgbm_that_is_not_there",))
    assert main(["tst", "toy", "--output", str(tmp_path)]) == 2
    assert "is not installed; type: pip install 'lmms-patch[tst]'" in capsys.readouterr().err
    assert not harness.commands


# --- the command line ---------------------------------------------------------------------------


def test_the_plain_command(tmp_path):
    made = command(tmp_path, "gqa")
    assert options_of(made) == {
        "--model": "tst_rf",
        "--tasks": "gqa_tst5",
        "--log_samples": None,
        "--output_path": "out/tst",
    }
    assert list(tmp_path.iterdir()) == []


def test_every_option_reaches_the_harness(tmp_path):
    more = [
        "--diagnostic",
        "lora",
        "--folds",
        "10",
        "--model-args",
        "model=x,lora_rank=8",
        "--limit",
        "0",
        "--include-path",
        "my tasks",
    ]
    made = options_of(command(tmp_path, "gqa", *more, "--output", "some/where"))
    assert made == {
        "--model": "tst_lora",
        "--tasks": "gqa_tst10",
        "--log_samples": None,
        "--output_path": "some/where",
    } | {
        "--model_args": "model=x,lora_rank=8",
        "--limit": "0",
        "--include_path": "my tasks",
    }


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        (["--fold-seed", "7"], {"fold_seed": 7}),
        (["--fold-seed", "0"], {"fold_seed": 0}),
        (["--fold-seeds", "1"], {"fold_seeds": 1}),
        (["--grouping", "none"], {"grouping": "none"}),
        (
            ["--grouping", "text", "--fold-seeds", "5", "--fold-seed", "3"],
            {"fold_seed": 3, "fold_seeds": 5, "grouping": "text"},
        ),
    ],
)
def test_options_of_the_task_are_written_into_a_task_file(tmp_path, arguments, given):
    """Read as the harness reads it, and by the reader of task files: exactly these options are given."""
    made = options_of(command(tmp_path, "gqa", "--folds", "4", *arguments))
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


def test_the_leak_checks_are_an_argument_of_the_model(tmp_path):
    assert options_of(command(tmp_path, "gqa", "--check"))["--model_args"] == "check=True"
    assert (
        options_of(command(tmp_path, "gqa", "--check", "--model-args", "trees=10"))["--model_args"]
        == "trees=10,check=True"
    )
    with pytest.raises(OptionError, match="--check: a language model has no features to check"):
        command(tmp_path, "gqa", "--check", "--diagnostic", "lora")


@pytest.mark.parametrize("folds", ["1", "0", "-2", "51"])
def test_impossible_folds_are_one_line(harness, capsys, folds):
    assert main(["tst", "gqa", "--folds", folds]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"lmms-patch: --folds: {folds} folds are not possible; allowed: 2 to 50; type '..._tst5'"
    assert harness.commands == []


@pytest.mark.parametrize(("folds", "name"), [("2", "gqa_tst2"), ("50", "gqa_tst50")])
def test_the_ends_of_what_is_possible(tmp_path, folds, name):
    assert options_of(command(tmp_path, "gqa", "--folds", folds))["--tasks"] == name


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--fold-seed", "-1"], "fold_seed must be a whole number of at least 0, not -1"),
        (["--fold-seeds", "0"], "fold_seeds must be a whole number of at least 1, and at most 1000, not 0"),
    ],
)
def test_impossible_seeds_are_one_line(harness, capsys, arguments, says):
    assert main(["tst", "gqa", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line
    assert harness.commands == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--folds", "three"], "--folds must be a whole number, not 'three'"),
        (["--diagnostic", "bert"], "--diagnostic must be rf or lora, not 'bert'"),
        (["--grouping", "image"], "--grouping must be auto, source, text, joined or none, not 'image'"),
        (["--fold-seed", "1.5"], "--fold-seed must be a whole number, not '1.5'"),
        (["--limit", "x"], "--limit must be a whole number, not 'x'"),
    ],
)
def test_words_that_are_no_values_are_one_line(harness, capsys, arguments, says):
    assert main(["tst", "gqa", *arguments]) == 2
    assert capsys.readouterr().err == f"lmms-patch: {says}; type 'lmms-patch tst --help'\n"
    assert harness.commands == []


@pytest.mark.usefixtures("indexed")
def test_options_of_the_task_beside_an_include_path(tmp_path):
    """One's own benchmark: both folders are named in one text, and the task file wraps the task of the other folder."""
    own, made = tmp_path / "own", tmp_path / "made"
    own.mkdir(), made.mkdir()
    toys.write_task(own, "toy", toys.rows(4))
    asked = {"fold_seed": 7, "fold_seeds": 1, "grouping": "none"}
    words = [word for name, value in asked.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    include = options_of(command(made, "toy", "--include-path", str(own), *words))["--include_path"]
    assert include.split(os.pathsep) == [str(own), str(made)]
    manager = catalog.task_manager(include)
    options = manager.load_task_or_group(["toy_tst5"])["toy_tst5"].session.text_only.spec.options
    assert {name: getattr(options, name) for name in asked} == asked


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
    assert main(["tst", "toy", "--fold-seed", "3", "--output", str(tmp_path)]) == 0
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
    assert "no *_results.json here" in line


def test_a_harness_that_wrote_nothing_does_not_show_an_earlier_run(harness, tmp_path, capsys):
    write_tst(tmp_path)
    assert main(["tst", "toy", "--output", str(tmp_path)]) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("words", "kept"), [([], True), (["--quiet"], True), (["--verbose"], False)])
def test_what_the_harness_prints_is_kept_back_unless_asked_for(harness, tmp_path, capsys, words, kept):
    harness.does = lambda: write_tst(tmp_path)
    assert main(["tst", "toy", "--output", str(tmp_path), *words]) == 0
    assert harness.quiet is kept
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "toy_tst5" in printed.out


def test_a_diagnostic_that_is_none_is_refused_in_python_too(tmp_path):
    with pytest.raises(OptionError, match="diagnostic must be 'rf' or 'lora', not 'bert'"):
        api.tst("gqa", diagnostic="bert", output=tmp_path)
