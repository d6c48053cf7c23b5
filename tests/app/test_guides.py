"""The commands of the start page and of the guides, typed as a reader types them: one page after the other, in a folder that was empty.

``make test`` reads each command with the parser of its program. ``make test-deep`` runs them all, with the embedded
model and its tasks in place of those that need a network.
"""

import ast
import os
import re
import shlex
import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest

from lmms_patch.app import cli
from tests.places import ROOT
from tests.sizes import DEEP

DOCS = ROOT / "docs"
PAGES = (
    "index",
    *(f"guides/{name}" for name in ("model-team", "benchmark-author", "leaderboard-owner", "ci", "unstuck")),
)
"""In the order in which a reader meets them; each goes on with the runs of those before."""
FILE = re.compile(r'```(?:yaml|python) title="([\w.-]+)"\n(.*?)```\n', re.S)
BLOCK = re.compile(rf"^(?:```(?:bash|console)\n.*?^```$|{FILE.pattern}|(?:    lmms-[^\n]*\n)+)", re.M | re.S)
EMBEDDED = {
    "qwen2_5_vl": "mosaic_vlm",
    "gqa_": "mosaic_local_",
    "mine_": "mosaic_local_",
    " mine ": " mosaic_local ",
    "out/llava out/internvl": "out/next",
    "runs/new": "out/next",
}
"""What a reader has, and what is run in its place."""
INSTALL = "pip install 'lmms-patch[all]'"
"""The one command that is not run: it asks a package index for what this process runs already."""


def blocks(page):
    """Yield what a page has its reader type, in order: (file, content), or (command, what is printed below it)."""
    for match in BLOCK.finditer((DOCS / f"{page}.md").read_text(encoding="utf-8")):
        if file := FILE.fullmatch(f"{match[0]}\n" if not match[0].endswith("\n") else match[0]):
            yield file[1], file[2]
        elif match[0].startswith("```console"):
            for part in re.split(r"^\$ ", match[0].removesuffix("```"), flags=re.M)[1:]:
                yield tuple(part.rstrip("\n").partition("\n")[::2])
        else:
            lines = match[0].splitlines()
            yield from ((line.strip(), "") for line in lines if not line.startswith("```"))


def host_options():
    """Return the options of ``lmms-eval``, from its source: importing it takes seconds."""
    source = Path(util.find_spec("lmms_eval").origin).with_name("__main__.py").read_text(encoding="utf-8")
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return {
        word.value
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"
        for word in call.args
        if isinstance(word, ast.Constant)
    }


@pytest.mark.parametrize("page", PAGES)
def test_each_command_can_be_read_by_its_program(page):
    known, read = host_options(), 0
    for command, _ in blocks(page):
        program, *words = shlex.split(command, comments=True)
        if program == "lmms-eval":
            assert {"--model", "--tasks"} < {word for word in words if word.startswith("-")} <= known, command
        elif program == "lmms-patch":
            path = next(path for path in cli.paths() if tuple(words[: len(path)]) == path)
            cli.built(*path).make_context("lmms-patch", words[len(path) :])
        read += program.startswith("lmms-")
    assert read >= 2


def test_a_command_that_cannot_be_read_is_found():
    with pytest.raises(Exception, match="No such option: --baselin"):
        cli.built("gate").make_context("lmms-patch", ["out", "--baselin", "out/demo"])
    assert "--output_path" in host_options()
    assert "--output" not in host_options()


def test_every_guide_is_read():
    assert {f"guides/{path.stem}" for path in (DOCS / "guides").glob("*.md")} == set(PAGES[1:])


def expected(printed):
    """Return the exit status of a command by what its page shows below it (docs/guides/ci.md has the table)."""
    return next(
        (status for word, status in (("FAIL", 1), ("lmms-patch:", 2), ("INCONCLUSIVE", 3)) if printed.startswith(word)),
        0,
    )


@pytest.mark.cli
@pytest.mark.skipif(not DEEP, reason="the runs of all guides take five minutes; make test-deep has this test")
@pytest.mark.timeout(1800)
def test_all_commands_run_in_order_from_an_empty_folder(tmp_path):
    """What a page shows has the exit status that its first line says, and files that commands name are there.

    Verdicts of rules over all that the reader made are not shown, so any verdict will do.
    """
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment |= {"HF_HUB_OFFLINE": "1", "COLUMNS": "80"}
    # a reader has no such variable
    del environment["LMMS_PATCH_DEEP"]
    ran = []
    for page in PAGES:
        for command, below in blocks(page):
            if (name := tmp_path / command).suffix in (".yaml", ".py") and " " not in command:
                name.write_text(below, encoding="utf-8")
                continue
            if command == INSTALL:
                continue
            for theirs, ours in EMBEDDED.items():
                command = command.replace(theirs, ours)
            done = subprocess.run(
                ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True
            )
            said = f"{page}: {command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            allowed = (0, 1, 3) if command.startswith("lmms-patch gate") and not below else (expected(below),)
            assert done.returncode in allowed, said
            written = re.findall(r"^(?:written|page): (\S+)$", done.stdout, re.M)
            assert all((tmp_path / file).exists() for file in written), said
            ran.append(command)
    assert len(ran) >= 30
    assert (tmp_path / "report" / "index.html").is_file()
    assert (tmp_path / "board" / "index.html").is_file()
