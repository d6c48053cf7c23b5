"""The site: what its commands print, its pictures and its reference are those of today.

It builds without a warning, and asks no other host.

Commands are typed for real on the runs that ``scripts/docs/runs.tar.xz`` keeps. ``python scripts/docs/outputs.py
--write`` mends the pages, and ``python scripts/docs/pictures.py`` draws the pictures anew.
"""

import base64
import re
import shlex
import subprocess
import sys
from importlib import import_module

import pytest
import yaml

import lmms_patch
from lmms_patch.app import cli
from lmms_patch.ask import spec
from tests.places import ROOT
from tests.sizes import each, size

DOCS = ROOT / "docs"
BASH = re.compile(r"^```bash\n(.*?)^```$", re.M | re.S)


@pytest.fixture(scope="module", autouse=True)
def scripts():
    """The folder of the scripts, from which they import each other."""
    sys.path.insert(0, str(ROOT / "scripts" / "docs"))
    yield
    sys.path.remove(str(ROOT / "scripts" / "docs"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory, scripts):
    """A reader's folder with the runs."""
    path = tmp_path_factory.mktemp("reader")
    import_module("outputs").unpacked(path)
    return path


def with_commands():
    """Every page with a ``console`` block: those of the start, the concepts, and the guides."""
    return sorted(
        str(path.relative_to(DOCS))
        for path in DOCS.rglob("*.md")
        if "\n```console\n" in path.read_text(encoding="utf-8")
    )


@pytest.mark.usefixtures("indexed")
@pytest.mark.parametrize("page", with_commands())
def test_commands_print_what_the_page_shows(page, folder):
    outputs = import_module("outputs")
    text = (DOCS / page).read_text(encoding="utf-8")
    outputs.written(text, folder)
    found = list(outputs.typed(text))
    assert len(found) >= 1
    for command, shown in found:
        output = outputs.printed(command, folder)
        assert outputs.agrees(shown, output), f"{command}\n{output}"


def test_a_page_that_shows_something_else_is_found():
    agrees = import_module("outputs").agrees
    assert agrees("a\n...\nd", "a\nb\nc\nd")
    assert agrees("...\nd", "a\nd")
    assert agrees("a\n...", "a\nb")
    assert not agrees("a\n...\nd", "a\nb\nc")
    assert agrees("a ...\nc", "a b\nc")
    assert not agrees("a ...\nc", "a b\nb\nc")
    assert not agrees("a.c", "abc")
    assert not agrees("a", "a\nb")


def test_the_notebook_shows_what_its_cells_give(tmp_path):
    """Its cells are run; ``python scripts/docs/notebook.py --write`` mends what it shows."""
    notebook = import_module("notebook")
    cells = notebook.cells()
    outputs, names = notebook.executed(cells, notebook.place(tmp_path))
    before, after = notebook.stored(cells), notebook.words(outputs)
    assert notebook.words(before) == after
    assert after.count("a picture") == 1
    pictures = [
        base64.b64decode(one["data"]["image/png"])
        for cell in (*before, *outputs)
        for one in cell
        if "image/png" in one.get("data", {})
    ]
    assert pictures[0][:24] == pictures[1][:24], "of the same size"
    numbers = lmms_patch.results(tmp_path / "examples" / "out" / "demo").filter(measure="rci3").drop_nulls("value")
    truth = dict(numbers.select("task", "value").iter_rows())
    assert len(truth) == 5
    (drawn,) = names["points"].to_dict()["datasets"].values()
    assert {row["task"]: row["value"] for row in drawn} == truth


def test_an_output_that_is_not_todays_is_found():
    notebook = import_module("notebook")
    [[shown], [told]] = notebook.executed(
        [{"cell_type": "code", "source": ["x = 2\n", "x"]}, {"cell_type": "code", "source": ["print(x)"]}], ROOT
    )[0]
    assert (shown["data"], told["text"]) == ({"text/plain": ["2"]}, ["2\n"])
    assert notebook.words([[shown]]) != notebook.words([[{**shown, "data": {"text/plain": ["3"]}}]])


def lines_of(program):
    """The lines of ``bash`` blocks of our pages that call a program, with their page."""
    pages = [path for path in DOCS.rglob("*.md") if BASH.search(path.read_text(encoding="utf-8"))]
    for path in pages:
        for block in BASH.findall(path.read_text(encoding="utf-8")):
            yield from ((path.name, line) for line in block.splitlines() if line.startswith(program))


def test_names_that_pages_ask_for_are_wrapped_names():
    kinds = []
    for page, line in lines_of("lmms-eval "):
        words = shlex.split(line)
        for name in words[words.index("--tasks") + 1].split(","):
            parsed = spec.parse(name)
            assert parsed is not None, (page, name)
            kinds.append(parsed.kind.name)
    assert {"rci", "blind"} <= set(kinds)


def test_options_that_pages_type_exist():
    """Of lines that are not run here: each option is in the help of its command."""
    count = 0
    for page, line in lines_of("lmms-patch "):
        words = shlex.split(line, comments=True)[1:]
        path = next(path for path in cli.paths() if tuple(words[: len(path)]) == path)
        known = {option for one in cli.built(*path).params for option in one.opts}
        assert {word for word in words if word.startswith("-")} <= known, (page, line)
        count += 1
    assert count >= 8


def nav(entries):
    for entry in entries:
        found = next(iter(entry.values())) if isinstance(entry, dict) else entry
        yield from nav(found) if isinstance(found, list) else [found]


def test_the_navigation_names_every_page_once():
    text = re.sub(r"!!python/\S+", "", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    named = list(nav(yaml.safe_load(text)["nav"]))
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    assert sorted(named) == sorted(pages | set(import_module("hooks").ELSEWHERE.values()))


def test_the_reference_has_every_command_and_option():
    reference = import_module("commands").reference()
    sections = dict(re.findall(r"^## lmms-patch (.+?)\n(.*?)(?=^## |\Z)", reference, re.M | re.S))
    assert set(sections) == {" ".join(path) for path in cli.paths()}
    for path in cli.paths():
        for one in cli.built(*path).params:
            if one.param_type_name == "option" and one.name != "help":
                assert max(one.opts, key=len) in sections[" ".join(path)], (path, one.opts)


@pytest.mark.parametrize(
    ("link", "place", "becomes"),
    [
        ("[a](../README.md#use)", "glossary.md", "[a](project/readme.md#use)"),
        ("[a](../metrics.md)", "concepts/rci.md", "[a](../metrics.md)"),
        ("[a](docs/gate.md#rules)", "project/readme.md", "[a](../gate.md#rules)"),
        ("[a](../../benchmarks/README.md)", "design/x.md", "[a](../project/benchmarks.md)"),
        ("[a](../LICENSE)", "gate.md", "a"),
        ("[design/](design/)", "architecture.md", "design/"),
        ("[a](https://x.y)", "gate.md", "[a](https://x.y)"),
        ("`[a](../LICENSE)`", "gate.md", "`[a](../LICENSE)`"),
        ("```\n[a](../LICENSE)\n```", "gate.md", "```\n[a](../LICENSE)\n```"),
    ],
)
def test_links_between_pages_and_the_repository(link, place, becomes):
    assert import_module("hooks").relinked(link, place) == becomes


def test_pictures_are_those_of_the_run(folder):
    pictures = import_module("pictures")
    there = {path.stem: path.read_text(encoding="utf-8") for path in (DOCS / "pictures").glob("*.svg")}
    assert {name: draw(folder / "out" / "demo") for name, draw in pictures.DRAWN.items()} == there
    assert max(map(len, there.values())) < 10_000


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; a warning ends the build."""
    path = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return path


@pytest.mark.parametrize(
    ("page", "scheme"),
    each(
        ["index", "concepts/cells", "guides/notebook", *size([], ["reference/commands", "reference/python"])],
        ["light", "dark"],
    ),
)
def test_pages_read_well_and_fetch_nothing(page, scheme, site, browser, axe):
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme, offline=True)
    try:
        opened, asked = context.new_page(), []
        opened.on("request", lambda request: asked.append(request.url))
        opened.goto((site / f"{page}.html").as_uri())
        opened.wait_for_load_state("load")
        assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
        assert opened.evaluate("document.documentElement.scrollWidth") <= 390
        assert opened.evaluate("[...document.images].filter(one => !one.naturalWidth).map(one => one.src)") == []
        faults = axe.run(opened).response["violations"]
        assert [
            (one["id"], [node["target"] for node in one["nodes"]][:3])
            for one in faults
            if one["impact"] in ("serious", "critical")
        ] == []
    finally:
        context.close()
