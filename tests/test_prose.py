"""Pages read well: no long line, no dead link, no page that nothing leads to.

And how docstrings of the package begin.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from lmms_patch import __version__
from tests.places import ROOT

NOT_OURS = {"build", "dist", "node_modules", "out"}
WIDTH = 160

VERBS = frozenset(
    re.findall(
        r"\S+",
        """
Add Aggregate Annotate Append Apply Ask Attach Average Begin Bound Break Bring Build Call Cancel Check Choose Clean Clear Clip Close Collect
Combine Compare Complete Compose Compute Convert Copy Correct Count Create Cross-validate Cut Decide Decode Delete Describe Detect Divide Do
Download Draw Drop Embed Encode End Escape Estimate Evaluate Expand Export Extend Extract Fetch Fill Filter Find Fit Flatten Follow Forget
Format Gather Generate Give Group Guess Handle Hash Hide Hold Ignore Import Install Invert Iterate Join Judge Keep Label Leave Let Limit
Link List Load Log Look Lower Make Map Mark Mask Match Measure Merge Move Name Normalise Normalize Note Open Order Pack Paint Pair Parse
Pass Patch Pick Place Plot Pool Predict Prepare Print Provide Prune Put Raise Rank Read Recompute Record Reduce Refuse Register Remember
Remove Rename Render Repeat Replace Report Require Resample Reset Resolve Restore Return Reverse Round Run Sample Save Say Scale Score
Search Select Send Separate Serialise Serve Set Share Shorten Show Shuffle Skip Sort Split Spread Start Stop Store Strip Substitute Sum Swap
Take Tell Test Tokenise Tokenize Train Translate Try Tune Turn Undo Update Use Validate Wait Warn Weigh Widen Wire Wrap Write Yield
""",
    )
)
"""First words of docstrings that give an order."""


def pages() -> dict[str, str]:
    """Return the text of every page of the repository by its path."""
    found = {path.relative_to(ROOT): path for path in ROOT.rglob("*.md")}
    return {
        str(short): path.read_text(encoding="utf-8")
        for short, path in sorted(found.items())
        if not NOT_OURS & set(short.parts) and not short.parts[0].startswith(".")
    }


PAGES = pages()


def prose(text: str) -> str:
    """Return a page without its blocks of code."""
    return re.sub(r"^```.*?^```|^    .*?$", "", text, flags=re.M | re.S)


def anchors(text: str) -> set[str]:
    """Return what GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", prose(text), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: str) -> Iterator[tuple[str, str]]:
    """Yield the file, as a path below the repository, and the anchor of every relative link of a page."""
    for target in re.findall(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)", re.sub(r"`[^`]+`", "", prose(PAGES[page]))):
        if not re.match(r"[a-z]+:", target):
            file, _, anchor = target.partition("#")
            path = (ROOT / page).parent / file if file else ROOT / page
            yield str(Path(path).resolve().relative_to(ROOT.resolve())), anchor


def imperative_share(folder: Path = ROOT / "lmms_patch") -> tuple[int, int]:
    """Return how many docstrings of functions begin with an order, and how many functions have a docstring.

    Properties are left out: a noun phrase describes them.
    """
    orders = total = 0
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not any(
                "property" in ast.unparse(one) for one in node.decorator_list
            ):
                words = (ast.get_docstring(node) or "").split()
                total += bool(words)
                orders += (
                    bool(words) and words[0].rstrip(".,:;") in VERBS and words[1:2] != ["of"]
                )  # "Sum of ..." names a thing
    return orders, total


def test_no_line_is_long():
    long = {
        page: [n for n, line in enumerate(text.splitlines(), 1) if len(line) > WIDTH] for page, text in PAGES.items()
    }
    assert {page: lines for page, lines in long.items() if lines} == {}


def test_links_lead_somewhere():
    dead = []
    for page in PAGES:
        for file, anchor in links(page):
            if not (ROOT / file).exists() or (anchor and anchor not in anchors(PAGES[file])):
                dead.append(f"{page}: {file}#{anchor}")
    assert dead == []


def test_headings_of_a_page_have_anchors_of_their_own():
    for page, text in PAGES.items():
        if page != "CHANGELOG.md":
            headings = re.findall(r"^#+ .*$", prose(text), re.M)
            assert len(anchors(text)) == len(headings), page


def test_readers_find_every_page():
    linked = {file for page in PAGES for file, _ in links(page) if file != page}
    assert set(PAGES) - linked - {"README.md"} == set()


def test_the_readme_says_what_the_demo_says():
    """The page Start is held against what the demo prints (``tests/app/test_docs.py``)."""
    (said,) = re.findall(r"^```text\n(.*?)^```", PAGES["README.md"], re.M | re.S)
    assert f"$ lmms-patch demo\n{said}" in PAGES["docs/index.md"]


def test_files_of_the_checkout_are_where_pages_say():
    gone = []
    for page in PAGES:
        for path in re.findall(r"`((?:lmms_patch|tests|benchmarks|tasks|scripts|docs)/[\w/.-]+)`", PAGES[page]):
            if not (ROOT / path).exists():
                gone.append(f"{page}: {path}")
    assert gone == []


def test_docstrings_of_functions_begin_with_an_order():
    orders, total = imperative_share()
    assert orders >= 0.85 * total
    assert total > 1500


def test_the_newcomers_walk_names_functions_that_exist():
    """``harness/wrap/task.WrappedTask.process_results``: the module's file, and in it the class and its method."""
    walk = PAGES["docs/architecture.md"].split("## A newcomer's walk")[1].split("## How to add")[0]
    stops = re.findall(r"`((?:[a-z_]+/)+[a-z_]+)((?:\.\w+)*)`", walk)
    assert len(stops) >= 16
    assert [len(re.findall(r"^\d\. ", part, re.M)) for part in walk.split("### ")[1:]] == [8, 8]
    for file, names in stops:
        (path,) = [path for path in (ROOT / "lmms_patch").rglob("*.py") if path.as_posix().endswith(f"/{file}.py")]
        text = path.read_text(encoding="utf-8")
        for name in names.split(".")[1:]:
            assert re.search(rf"^ *(def|class) {name}\b", text, re.M), (file, name)


def test_the_citation_is_of_this_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == __version__
    assert {one["url"] for one in cited["references"]} == set(
        re.findall(r"https://arxiv.org/abs/[\d.]+", PAGES["README.md"].split("## The papers")[1])
    )


def test_hooks_before_a_commit_are_those_of_make_check():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    check = (ROOT / "Makefile").read_text(encoding="utf-8").split("\ncheck:")[1].split("\n\n")[0]
    tools = re.findall(r"/([\w-]+)(?: (\w+))?", check.replace("$(BIN)", ""))
    assert len(hooks) == len(tools) == 4
    for hook, (tool, verb) in zip(hooks, tools, strict=True):
        assert re.search(rf"/{tool}\"?\s*{verb}", hook["entry"]), hook
