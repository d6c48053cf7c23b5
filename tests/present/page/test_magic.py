"""MAGIC tasks in a report: numbers by hand, contrasts, examples by rule, images by digest, the page, and what is refused."""

import json

import pytest
from PIL import Image

from lmms_patch.errors import CannotWrapError, UnknownNameError
from lmms_patch.harness import images
from lmms_patch.harness.magic import docs as magic_docs
from lmms_patch.magic.score.results import Record
from lmms_patch.present.page import magic_examples
from lmms_patch.present.page.report import build
from lmms_patch.runs.run import find
from tests.making.runs import magic_doc, mc_run, write_magic, write_run

HOSTILE = "<script>alert(1)</script> \u202e **R1** & ]]>"


def docs(good, n=12, **more):
    """F1 and answers: ``good`` of n docs use exactly box 1 and are right, the others use box 2 and are wrong."""
    return [
        magic_doc(f"d{k:02}", (1,) if k < good else (2,), right=k < good, kind="verify" if k % 2 else "query", **more)
        for k in range(n)
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two models; "a" is distracted by the adversarial boxes on 6 of 12 items: 6 right with all boxes, 12 with the relevant ones, 9 without."""
    folder = tmp_path_factory.mktemp("report")
    relevant = [magic_doc(f"d{k:02}", (1,), (1,), 1) for k in range(12)]
    none = [magic_doc(f"d{k:02}", (), (), 0, right=k < 9) for k in range(12)]
    heal = [magic_doc(f"d{k:02}/3-3", right=True, healed=k < 3) for k in range(12)]
    first = docs(6, text=HOSTILE)
    write_magic(folder / "runs" / "a", {"all": first, "relevant": relevant, "none": none, "selfheal": heal}, model="a")
    write_magic(folder / "runs" / "b", {"all": docs(12)}, model="b")
    return build([folder / "runs"], folder / "report", count=1), folder


undrawn = pytest.mark.usefixtures("without_figures")


def rows(report, name):
    return next(sheet for sheet in report.sheets["magic"] if sheet.name == name).rows


def test_the_numbers_are_by_hand(made):
    """a: TP 6, FP 6, FN 6: P = R = F1 = 1/2, micro and macro; 6 of 12 right. b: all 1; of twelve docs the intervals touch."""
    found = {line["model"]: line for line in rows(made[0], "results_magic") if line["task"] == "toy_magic"}
    for name in (
        "acc_exact",
        "acc_synonym",
        *(f"magiscore_{what}_{mean}" for what in ("precision", "recall", "f1") for mean in ("micro", "macro")),
    ):
        assert (found["a"][name].value, found["b"][name].value) == (0.5, 1.0), name
    assert (found["a"]["docs"], found["a"]["rank"], found["b"]["rank"]) == (12, "1–2", "1–2")
    assert found["a"]["acc_exact"].low < 0.5 < found["a"]["acc_exact"].high
    assert "acc_short" not in found["a"]


def test_types(made):
    """d00, d02, ... are queries: 3 of the first 6 docs of either type are right."""
    types = next(sheet for sheet in made[0].sheets["results"] if sheet.name == "categories").rows
    found = {line["category"]: line for line in types if line["model"] == "a" and line["benchmark"] == "toy_magic"}
    assert [found[kind]["acc_exact"].value for kind in ("query", "verify")] == [0.5, 0.5]
    assert found["query"]["docs"] == 6


def test_contrasts_by_hand(made):
    """Right with all boxes 6, relevant 12, none 9: distraction +6/12, boxes −3/12, hints +3/12. Recall 1/2 and 1."""
    found = {row["contrast"]: row for row in rows(made[0], "magic_contrasts")}
    assert found["cost of distraction"]["acc_exact"].value == 0.5
    assert found["gain from boxes"]["acc_exact"].value == -0.25
    assert found["gain from hints"]["acc_exact"].value == 0.25
    assert found["cost of distraction"]["magiscore_recall_macro"].value == 0.5
    assert found["gain from boxes"].get("magiscore_recall_macro") is None
    assert {row["model"] for row in found.values()} == {"a"}


def test_the_files_hold_it(made):
    report, folder = made
    data = json.loads((folder / "report" / "report.json").read_text())
    assert {one["kind"] for one in data["results"]} == {"magic"}
    assert data["results"][0]["measures"]["magiscore_f1_macro"]["value"] == 0.5
    assert [figure.name for figure in report.figures] == ["magic"]
    assert (folder / "report" / "tables" / "results_magic.tex").is_file()
    assert "benchmarks" not in report.sheets  # no table of indices where there are none


def test_the_page_escapes_what_a_model_wrote(made):
    text = (made[1] / "report" / "index.html").read_text()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; \ufffd **R1** &amp; ]]&gt;" in text
    assert "What other boxes cost or give" in text
    assert "R1: relevant, used" in text


RULES = [
    (magic_doc("d", (1,), (1,), 3), "focused"), (magic_doc("d", (1,), (1,), 3, right=False), "focused, wrong"),
    (magic_doc("d", (1,), (1,), 3, right=False, short=True), "focused"),  # the judge's word is the last
    (magic_doc("d", (1, 2), (1,), 3), "distracted, right"), (magic_doc("d", (2,), (1,), 3, right=False), "distracted"),
    (magic_doc("d", (1,), (1, 2), 3), "looked at a part"), (magic_doc("d", (1, 2, 3), (1,), 3), "every box used"),
    (magic_doc("d", (1, 2), (1, 2), 2), "focused"),  # all of them, and all needed
    (magic_doc("d", (), (1,), 3), "no box used"), (magic_doc("d", (), (), 3), None),
    (magic_doc("d", (1,), (1,), 3, invented=(9,)), "invented"),
    (magic_doc("d", (), (), 0, right=False), "wrong without boxes"),
]  # fmt: skip


@pytest.mark.parametrize(("record", "rule"), RULES)
def test_rules(record, rule):
    assert magic_examples.rule_of(record_of(record)) == rule
    assert rule is None or rule in magic_examples.RULES


def record_of(made, **more):
    return Record(**{key: value for key, value in made.items() if key != "text"}, variant="all", **more)


def test_examples_do_not_depend_on_the_order(tmp_path):
    found = []
    for name, some in (("one", docs(12)), ("two", docs(12)[::-1])):
        write_magic(tmp_path / name, {"all": some})
        (result,) = find([tmp_path / name])[0].results
        found.append([example.doc for example in magic_examples.picked("e", result, 3)["focused"]])
        assert magic_examples.picked("e", result, 0) == {}
    assert found[0] == found[1]
    assert len(set(found[0])) == 3


@undrawn
def test_images_come_by_digest_and_failures_are_told(tmp_path):
    write_magic(tmp_path / "run", {"all": docs(12)})
    asked = []

    def some(base, digests):
        asked.append((base, digests))
        return {digests[0]: Image.new("RGB", (90, 60), "red")}

    report = build([tmp_path / "run"], tmp_path / "report", count=1, images=some)
    (one,) = (one for one in report.examples if one.image)
    assert one.image.startswith("data:image/jpeg;base64,")
    assert asked[0][0] == "toy_magic"
    assert all(digest.startswith("d d") for digest in asked[0][1])

    def none(base, digests):
        raise UnknownNameError("no such task")

    report = build([tmp_path / "run"], tmp_path / "report", count=1, images=none)
    assert "examples of toy_magic have no images: no such task" in report.warnings


def test_a_docs_image_is_the_one_with_its_boxes_or_none(monkeypatch):
    """Of the embedded dataset; another seed numbers the boxes otherwise, so its docs are others, and give no image."""
    some = magic_docs.docs("all", magic_docs.MOSAIC).select([3, 4])
    digest = magic_docs.asked(some[0])["doc"]
    found = images.first_images("magic_mosaic", [digest, "unknown"])
    assert list(found) == [digest]
    assert found[digest].tobytes() == magic_docs.visuals(some[0])[-1].convert(found[digest].mode).tobytes()
    monkeypatch.setenv("MAGIC_SEED", "5")
    with pytest.raises(CannotWrapError, match="MAGIC_SEED as they were in the run"):
        images.first_images("magic_mosaic", [digest])


@undrawn
def test_variants_of_other_data_are_not_contrasted_and_that_is_said(tmp_path):
    other = [magic_doc(f"d{k:02}", (1,), (1,), 1, group="elsewhere") for k in range(12)]
    write_magic(tmp_path / "run", {"all": docs(12), "relevant": other})
    report = build([tmp_path / "run"], tmp_path / "report")
    assert "magic_contrasts" not in [sheet.name for sheet in report.sheets["magic"]]
    assert any("is not compared with" in line for line in report.warnings)


@undrawn
def test_beside_other_tasks_nothing_of_theirs_changes(tmp_path):
    write_run(tmp_path / "run", {"toy_rci2": mc_run(n=60, seed=5)}, date="2026-01-01T00-00-00.000000")
    alone = build([tmp_path / "run"], tmp_path / "one")
    write_magic(tmp_path / "run" / "magic", {"all": docs(12)})
    both = build([tmp_path / "run"], tmp_path / "two")
    assert both.sheets["results"][0] == alone.sheets["results"][0]
    assert [one for one in both.examples if not one.lines] == list(alone.examples)
