"""``lmms-patch config``, from this checkout and from the files that a wheel has."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lmms_patch import commands
from lmms_patch.app.cli import main
from lmms_patch.ask.spec import from_file
from tests.places import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

FILES = {
    path.relative_to(ROOT / "configs").with_suffix("").as_posix(): path for path in (ROOT / "configs").glob("*/*.yaml")
}


def test_the_list_has_one_line_each_that_says_what_it_is(capsys):
    assert main(["config"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert last.split()[0] == "schemas"
    assert [line.split()[0] for line in lines] == sorted(FILES)
    for line in lines:
        name, _, said = line.partition(" ")
        assert f"# {said.strip()}" == FILES[name].read_text().splitlines()[0]
        assert len(said.split()) > 1
        assert "lmms-eval --" not in said, "a command is no description"


@pytest.mark.parametrize("name", sorted(FILES))
def test_one_is_printed_as_it_is_under_each_of_its_names(capsys, name):
    for asked in (name, name.partition("/")[2], f"{name}.yaml", f"configs/{name}.yaml"):
        assert main(["config", asked]) == 0
        assert capsys.readouterr().out == FILES[name].read_text()
    assert isinstance(yaml.safe_load(commands.config(name).replace("!function ", "")), dict)


def test_one_is_copied_and_never_over_another_file(tmp_path, capsys):
    mine = tmp_path / "mine.yaml"
    assert main(["config", "rci_suite_lite", "--output", str(mine)]) == 0
    assert capsys.readouterr().out == f"written: {mine}\n"
    assert mine.read_bytes() == FILES["runs/rci_suite_lite"].read_bytes()
    mine.write_text("mine")
    assert main(["config", "rci_suite", "--output", str(mine)]) == 2
    assert (
        capsys.readouterr().err
        == f"lmms-patch: --output {mine}: there already, and may have been changed; give another name\n"
    )
    assert mine.read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rci_suit"], "no shipped file 'rci_suit'; did you mean rci_suite"),
        (["zzz"], "no shipped file 'zzz'; type 'lmms-patch config' for what there is"),
        (["../pyproject"], "no shipped file '../pyproject'"),
        (["--output", "x.yaml"], "--output: name the file to copy"),
        (
            ["gqa", "--output", "nowhere/x.yaml"],
            "--output nowhere/x.yaml: cannot be written: No such file or directory",
        ),
        (["zzz", "--output", "new.yaml"], "no shipped file 'zzz'"),
    ],
)
def test_mistakes_are_one_line(tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    assert main(["config", *words]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(f"lmms-patch: {said}")
    assert printed.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_name_in_two_folders_is_not_guessed(tmp_path, monkeypatch, capsys):
    for folder in ("gates", "runs"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.yaml").write_text(f"# {folder}\n")
    monkeypatch.setattr("lmms_patch.resources.folder", lambda name: tmp_path)
    assert main(["config", "same"]) == 2
    assert "'same' is the name of 2 shipped files; write one of gates/same, runs/same" in capsys.readouterr().err
    assert main(["config", "runs/same"]) == 0
    assert capsys.readouterr().out == "# runs\n"


# --- from a wheel -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The files of a wheel, where pip would put them: the package, and what pyproject.toml has put into it."""
    target = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    site = tmp_path_factory.mktemp("site-packages")
    for source, place in {**{name: name for name in target["packages"]}, **target["force-include"]}.items():
        shutil.copytree(ROOT / source, site / place, ignore=shutil.ignore_patterns("__pycache__", "*.safetensors"))
    return site


def typed(installed, tmp_path, *words):
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from lmms_patch.app.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(installed), *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_from_a_wheel_every_shipped_file_is_found(installed, tmp_path):
    """Also each path that README and docs speak of: none of them needs a checkout."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); import lmms_patch, json; from lmms_patch import commands, resources; "
    code += "print(json.dumps([lmms_patch.__file__, str(resources.folder('tasks')), {name: commands.config(name) for name in sys.argv[2:]}]))"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(installed), *FILES],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    package, tasks, found = yaml.safe_load(done.stdout)
    assert Path(package).parent == installed / "lmms_patch"
    assert Path(tasks) == installed / "lmms_patch" / "_data" / "tasks"
    assert found == {name: path.read_text() for name, path in FILES.items()}


def test_a_copied_run_config_is_what_the_docs_type(installed, tmp_path):
    assert (
        typed(installed, tmp_path, "config", "rci_suite_lite", "--output", "rci_suite_lite.yaml")
        == "written: rci_suite_lite.yaml\n"
    )
    assert yaml.safe_load((tmp_path / "rci_suite_lite.yaml").read_text())["tasks"] == "rci_suite_lite_rci"


def test_no_page_types_a_path_that_only_a_checkout_has():
    """In commands, and in text beside architecture.md, which is about the checkout."""
    pages = [ROOT / "README.md", *(page for page in (ROOT / "docs").glob("*.md") if page.name != "architecture.md")]
    for page in pages:
        assert not re.findall(r"(?<!\()(?<!\.)\bconfigs/[\w/.-]+", page.read_text(encoding="utf-8")), page.name
    for path in FILES.values():
        assert "configs/" not in path.read_text(), path


def test_the_task_file_to_start_from_is_read_with_each_of_its_options():
    """As it is shipped, and with every '#' taken away: no option in it is unknown or has a value that is refused."""
    text = FILES["tasks/wrap"].read_text().replace("!function ", "")
    whole = re.sub('^#(?=[a-z"])', "", text, flags=re.M)
    plain, full = from_file(yaml.safe_load(text)), from_file(yaml.safe_load(whole))
    assert (plain.base, plain.kind.name, plain.grids, plain.options.given) == ("gqa", "rci", (3,), frozenset())
    assert {"cluster", "category", "choices", "metric", "null", "min_cell"} == full.options.given
