"""Every number of a finished run has a row, a sentence and a place in the docs.

And what a row gives is what the run wrote.
"""

import re

import pytest

from lmms_patch.ask.kinds import KINDS
from lmms_patch.runs import catalogue
from lmms_patch.runs.run import read
from scripts.docs.catalogue import MADE, written
from tests import stored
from tests.places import ROOT

PAGES = {"tst": "docs/tst.md", "magic": "docs/magic.md"}
"""Where the numbers of a kind stand that are not made of an analysis."""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """All results of the stored runs: those of every kind."""
    folder = stored.unpack(tmp_path_factory.mktemp("stored"))
    found = [result for path in sorted(folder.rglob("*_results.json")) for result in read(path).results]
    assert {result.kind.name for result in found} >= {
        "rci",
        "pcri",
        "rotate",
        "lowres",
        "hidden",
        "regions",
        "trci",
        "frames",
        "tst",
        "magic",
    }
    return found


def test_the_page_has_every_row():
    for page in MADE:
        assert written(page) == page.read_text(encoding="utf-8"), "python scripts/docs/catalogue.py --write"
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    for number in catalogue.NUMBERS:
        assert f"| {number.help} |" in text
        assert number.help.strip(" .") == number.help


def test_every_number_of_a_run_has_a_row(results):
    """A column is the native metric's, one over cells, one of the catalogue, or one that the page of its kind names."""
    seen = set()
    for result in results:
        kind, native = result.kind, result.about.metrics if result.kind.suffix else {}
        rows = catalogue.keyed(kind, result.described["grids"])
        page = (ROOT / PAGES[kind.name]).read_text(encoding="utf-8") if kind.name in PAGES else ""
        for name in {*result.native.values, *result.measures}:
            seen.add(name)
            over_cells = (
                re.fullmatch(rf"(?:({'|'.join(map(re.escape, native))})_)?(mpp|drop)(\d+|_relevant|_adversarial)", name)
                if native
                else None
            )
            plain = re.sub(r"_(low|high)$", "", name)
            assert name in rows or plain in native or over_cells or (kind.name in PAGES and documented(plain, page)), (
                result.label,
                name,
            )
    assert len(seen) > 100


def documented(name, page):
    """Whether a page names a number, by itself or with the others of its kind (``magiscore_<kind>``)."""
    return (
        name in ("score", "chance", "n_failed", "n_docs")
        or re.search(rf"`[^`\n]*{re.escape(name.split('_')[0])}", page) is not None
    )


def test_numbers_that_tables_show_are_named_in_their_order(results):
    """Those of the finest grid together, the score first."""
    result = next(one for one in results if one.kind.name == "rci" and len(one.described["grids"]) > 1)
    first, second = result.described["grids"][:2]
    names = [name for name in result.measures if name in catalogue.keyed(result.kind, result.described["grids"])]
    expected = ["score", "fip", "chance", "ceiling"]
    expected += [f"{stem}{n}{end}" for n in (first, second) for stem, end in (("mpp", ""), ("rci", ""), ("gap", ""))]
    assert names == expected


def test_every_kind_has_names_of_its_own():
    """Two numbers of a task never share a name."""
    for kind in KINDS.values():
        keys = catalogue.Keys(kind.sets((2, 3)), kind.points((2, 3)), (1, 2))
        names = [number.named(kind, key) for number, key in catalogue.rows(kind, keys)]
        assert len(names) == len(set(names)), kind.name


def test_places_are_of_the_commonest_number_of_options(results):
    """The rule of docs/rotate.md, by hand from the stored object."""
    told = [result for result in results if result.analysis and result.analysis.turned]
    assert told
    for result in told:
        scores = [one.value for one in result.analysis.turned.placed.scores]
        counts = result.frame(["view", "choices", "gold_at"]).filter(view=0).drop_nulls()["choices"]
        most = counts.mode().min()
        numbers = catalogue.columns(result.analysis, result.kind)
        assert [numbers[f"rotate_at{place}"] for place in range(1, most + 1)] == scores
        assert f"rotate_at{most + 1}" not in numbers
