"""Every command that README and docs type, page by page, in the order of the page, in a folder of its own.

What needs a model or a network is stood for: the arguments of an ``lmms-eval`` line are read by the host's own parser
and its task names looked up, and a small finished run is put where it would write one. Each ``lmms-patch`` line then
runs as typed. ``test_readme.py`` runs the README's "Three uses" for real.
"""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest
import tenacity
from lmms_eval import __main__ as host
from lmms_eval.api.task import ConfigurableTask
from lmms_eval.tasks import TaskManager
from PIL import Image

from lmms_patch.app import cli
from lmms_patch.ask.spec import parse
from lmms_patch.present.page import figures
from tests.making.magic import doc, write_magic_run
from tests.making.reports import undrawn
from tests.making.runs import one_cell_knows, world_run, write_run
from tests.making.tst import write_tst
from tests.places import ROOT
from tests.sizes import size

PAGES = [
    "README.md",
    *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md") if page.name != "architecture.md"),
]

NEEDS_THE_HUB = ("prune gqa", "prune vsi")
"""They end with one line and status 2 where there is no network; ``vsi`` is a reader's own task."""
ONLY_READ = (
    "tst gqa",  # starts lmms-eval, which then needs the hub
    "gap FULL",  # placeholders
    "gate out/theirs",  # a stranger's run, and a rule of the reader's own; tests/gate/test_edits.py
    "magic build",  # needs a dataset of images; tests/magic/build/test_builder.py
    "explore",  # serves until it is stopped; tests/present/explore/browser
    "export",  # of a demo; tests/app/test_tables.py
    "doctor",  # says what is wrong with the machine at hand; tests/app/commands/test_doctor.py
    "demo",  # runs the embedded model; make demo,
    "analyze one two three",
)
OWN_TASKS = ("mine_regions", "mine_hidden", "vsi_pruned", "gqa_pruned", "...")
"""Names of a reader's own tasks, and what stands for more."""


def blocks(page):
    """The indented commands of a page, in their order; comments at their end left out."""
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.M | re.S)
    lines = re.findall(
        r"^ {4,}((?:[A-Z_]+=\S+ |accelerate launch .*?-m )?(?:lmms-patch|lmms-eval|lmms_eval) .*)$", text, re.M
    )
    return [part.strip() for line in lines for part in re.sub(r"\s+#.*", "", line).split("&&")]


def inline(page):
    """The commands that stand in backticks within a page's text."""
    return re.findall(r"`(lmms-patch [^`]+)`", (ROOT / page).read_text(encoding="utf-8"))


def words_of(line):
    """The words of a command of ours, without its name, as a shell reads them."""
    return shlex.split(line)[1:]


# --- what stands for the harness ----------------------------------------------------------------------------


def host_reads(line, monkeypatch):
    """What the host's own parser makes of an ``lmms-eval`` line."""
    words = [word for word in shlex.split(line.replace("--model ...", "--model MODEL")) if word != "..."]
    start = next(i for i, word in enumerate(words) if word in ("lmms-eval", "lmms_eval"))
    monkeypatch.setattr(sys, "argv", ["lmms-eval", *words[start + 1 :]])
    monkeypatch.setattr(sys, "exit", lambda status=0: pytest.fail(f"{line}: the host's parser refuses it"))
    _, found = host.parse_eval_args()
    monkeypatch.undo()
    return found


def names_exist(tasks):
    asked = [name for name in (tasks or "").split(",") if name and name not in OWN_TASKS]
    assert set(TaskManager("ERROR").match_tasks(asked)) == set(asked)
    return asked


def finished(folder, tasks, day):
    """A small finished run of these tasks; its answers are the same whenever it is made."""
    date = f"2026-01-{day:02}T00-00-00.000000"
    if any(name.startswith("magic") for name in tasks):
        said = ["I see R1.\n\nIt is a dog.\n\nAnswer: dog", "R2 is a cat.\n\nSo it is a cat.\n\nAnswer: cat"] * 15
        docs = [doc(f"q{n}", text) for n, text in enumerate(said)]
        write_magic_run(folder, dict.fromkeys(("all", "relevant", "none", "selfheal"), docs), date=date)
    elif any("_tst" in name for name in tasks):
        write_tst(folder)
    else:
        made = {}
        for name in tasks or ["toy_rci3"]:
            spec = parse(name)
            kind = "trci" if spec.kind.needs_video else "rci"
            grids = tuple(n for n in spec.grids if kind == "trci" or n <= 3) or (
                3,
            )  # answers are made up for so many cells
            made[f"{spec.base}_{kind}{grids[-1]}"] = world_run(
                one_cell_knows, n=100, grid=grids[-1], base=spec.base, kind=kind
            )
        write_run(folder, made, date=date)


def stand_for(words, day):
    """A finished run where a command of ours reads one that no line of the page has made."""
    if words[0] in ("show", "report", "leaderboard", "compare", "gate", "analyze"):
        values = {words[i + 1] for i, word in enumerate(words[:-1]) if word.startswith("--")}
        read = [word for word in words[1:] if not word.startswith("-") and word not in values]
        read += [words[i + 1] for i, word in enumerate(words) if word == "--baseline"]
        for path in map(Path, read):
            if not path.exists():
                finished(path, [], day)


def labelled(sheets):
    """What people do between two commands of docs/magic.md: bob's sheet is asked for as ann's was, and both label every step."""
    rows = [json.loads(line) for line in Path(sheets[0]).read_text(encoding="utf-8").splitlines()]
    for path in map(Path, sheets):
        said = ({**row, "annotator": path.stem, "correct": n % 2} for n, row in enumerate(rows))
        path.write_text("".join(json.dumps(one) + "\n" for one in said), encoding="utf-8")


def magic_data(folder):
    """A dataset of MAGIC of one item, in a folder that docs/magic.md calls data."""
    folder.mkdir(exist_ok=True)
    Image.effect_noise((40, 40), 50).convert("RGB").save(folder / "a.png")
    (folder / "items.jsonl").write_text(
        '{"schema": 1, "id": "1", "image": "a.png", "question": "Where?", "answer": "left", "boxes": '
        '[{"box": [0, 0, 8, 8], "relevant": true}, {"box": [20, 20, 30, 30], "relevant": false}]}\n'
    )


def type_ours(line, capsys, day):
    """Run a command of ours as it is typed; its status, and what it printed."""
    words = words_of(line)
    text = " ".join(words)
    stand_for(words, day)
    if text.startswith("magic stepsense"):
        labelled(words[2:])
    if text.startswith("magic check data"):
        magic_data(Path("data"))
    capsys.readouterr()
    status = cli.main(words)
    return status, capsys.readouterr()


def is_read(words):
    """Check that a command and its options are there; what a text leaves out (a file, a folder) may be missing."""
    path = next((tuple(words[:n]) for n in (2, 1) if tuple(words[:n]) in cli.paths()), None)
    assert path is not None, f"no command {' '.join(words[:2])}"
    command = cli.built(*path)
    options = {name for param in command.params for name in param.opts if name.startswith("-")}
    rest = [word for word in words[len(path) :] if word.startswith("-")]
    assert set(rest) <= options, f"no options {set(rest) - options}"
    places = [param for param in command.params if not set(param.opts) & options]
    assert places or len(words) == len(path) or rest, f"{' '.join(path)} takes no argument"


# --- the tests ------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    """The host waits 2 s before each of five attempts to load a dataset.

    And drawing figures takes longest of all that is typed.
    """
    monkeypatch.setattr(ConfigurableTask.download.retry, "wait", tenacity.wait_none())
    monkeypatch.setattr(figures, "write", size(undrawn, figures.write))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)])
def test_every_block_as_typed(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = blocks(page) + (
        ["lmms-patch analyze out"] if "`lmms-patch analyze out`" in (ROOT / page).read_text(encoding="utf-8") else []
    )
    for day, line in enumerate(lines, start=1):
        if not line.startswith("lmms-patch"):
            with pytest.MonkeyPatch.context() as patched:
                found = host_reads(line, patched)
            names = names_exist(found.tasks)
            if found.output_path:
                finished(Path(found.output_path), names, day)
            continue
        text = " ".join(words_of(line))
        if text.startswith(ONLY_READ):
            is_read(words_of(line))
            continue
        status, printed = type_ours(line, capsys, day)
        if text.startswith(NEEDS_THE_HUB):
            assert status == 2, line
            assert printed.err.count("\n") == 1, printed.err
            missing = r"gqa: its dataset \S+/GQA could not be loaded: |vsi: lmms-eval knows no such task"
            assert re.match(rf"lmms-patch: (?:{missing})", printed.err)
        else:
            assert status == 0, f"{line}\n{printed.out[-2000:]}{printed.err[-2000:]}"
            assert printed.out.strip(), line


@pytest.mark.parametrize("page", [page for page in PAGES if inline(page)])
def test_every_command_in_the_text_is_there_with_its_options(page):
    for line in inline(page):
        is_read(words_of(line))


@pytest.mark.parametrize(
    "line", sorted({line for page in PAGES for line in inline(page) if re.match(r"lmms-patch (schema|config)\b", line)})
)
def test_what_is_printed_by_name_is_there(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(words_of(line)) == 0, line
    assert capsys.readouterr().out.strip()


def test_there_are_blocks_to_type():
    """What keeps the tests above from passing over a page whose form has changed."""
    found = {page: len(blocks(page)) for page in PAGES}
    assert found["README.md"] >= 9
    assert sum(found.values()) >= 40
    assert not [line for page in PAGES for line in blocks(page) if "`" in line]


@pytest.mark.parametrize(
    ("line", "said"),
    [("lmms-patch shew out", "no command shew out"), ("lmms-patch show out --celsl", "no options {'--celsl'}")],
)
def test_a_command_that_is_not_there_is_found_out(line, said):
    with pytest.raises(AssertionError, match=re.escape(said)):
        is_read(words_of(line))
