"""The lowest versions: each dependency has one, those that a row of CI installs are those of pyproject.toml, and every import is declared."""

import ast
import re
import sys

import pytest

from tests.places import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {name: lines for name, lines in PROJECT["optional-dependencies"].items() if name not in ("all", "dev")}
DECLARED = [*PROJECT["dependencies"], *(line for lines in EXTRAS.values() for line in lines)]
BRING_TORCH = {"accelerate", "datasets", "evaluate", "lmms-eval", "peft"}
"""Not in the row: installing them takes minutes."""
OF_THE_HOST = {"av", "openai", "torch", "torchvision", "transformers", "tokenizers"}
"""What lmms-eval itself requires, in the versions that its adapters need."""
NAMES = {
    "pydantic_core": "pydantic",
    "vl_convert": "vl-convert-python",
    "cv2": "opencv-python-headless",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "markupsafe": "jinja2",
}


def floors():
    """By name, the version after ``>=``, of what is always installed and of all extras."""
    found = {}
    for line in DECLARED:
        matched = re.fullmatch(r"([\w-]+)>=([\d.]+)(?:,<[\d.]+)?", line)
        assert matched, f"{line}: no floor"
        found[matched[1]] = matched[2]
    return found


def whole(version):
    """A version as numbers, without zeros at its end."""
    numbers = [int(part) for part in version.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return numbers


def test_the_row_installs_just_the_floors():
    pinned = dict(
        line.split("==")
        for line in (ROOT / "constraints-lowest.txt").read_text().splitlines()
        if not line.startswith("#")
    )
    wanted = {name: floor for name, floor in floors().items() if name not in BRING_TORCH}
    assert set(pinned) == set(wanted)
    for name, floor in wanted.items():
        assert whole(pinned[name])[: len(whole(floor))] == whole(floor), (
            name
        )  # a floor of 4.7 is the first wheel of 4.7


def test_all_is_all_extras_and_whoever_works_here_installs_it():
    assert PROJECT["optional-dependencies"]["all"] == [f"lmms-patch[{','.join(sorted(EXTRAS))}]"]
    assert "--editable '.[all,dev]'" in (ROOT / "Makefile").read_text()
    assert len(DECLARED) == len(set(DECLARED)), "an extra is also always installed"


def test_the_row_types_files_that_are_there():
    listed = (ROOT / "Makefile").read_text().split("FLOORS := ")[1].split("\n\n")[0]
    files = [word for word in listed.split() if word != "\\"]
    assert len(files) > 15
    assert not [file for file in files if not (ROOT / file).is_file()]
    assert "make test-floors" in (ROOT / ".ci" / "run").read_text()


def imports(path):
    """The top-level names of what a file imports, wherever it does."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split(".")[0]


def test_every_import_is_of_something_declared():
    """The plugin's code, and that of the tasks that travel with it."""
    beside = {path.stem for path in (ROOT / "tasks").rglob("*.py")}
    found = {}
    for path in [*(ROOT / "lmms_patch").rglob("*.py"), *(ROOT / "tasks").rglob("*.py")]:
        for name in imports(path):
            if name not in sys.stdlib_module_names and name != "lmms_patch" and name not in beside:
                found.setdefault(NAMES.get(name, name.replace("_", "-")), path.name)
    assert set(found) - set(floors()) - OF_THE_HOST == set(), {
        name: found[name] for name in set(found) - set(floors()) - OF_THE_HOST
    }
