"""Docs' own boxes hidden: the two drops and what the relevant boxes cost beyond the adversarial ones.

By hand, by formula, by brute force.
"""

import numpy as np
import pytest

from lmms_patch import commands
from lmms_patch.app.commands.show import text
from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.views import HiddenView, View
from lmms_patch.present.terminal import rci
from lmms_patch.rci.analysis import analyse
from lmms_patch.runs.catalogue import columns
from lmms_patch.runs.details import Settings
from lmms_patch.runs.run import read
from tests.making.recordings import FakeNative, table
from tests.making.runs import views_run, write_run

KNOWN = [0.9, 0.4, 0.85]
"""Planted shares of right answers: on the full image, with the relevant, and with the adversarial boxes hidden, nested."""
BOTH = {"relevant": 0.1, "adversarial": 0.1}


def views(shares):
    return [
        View("full"),
        *(HiddenView(relevant=name == "relevant", areas=((0, 0, 3, 3),), share=part) for name, part in shares.items()),
    ]


def docs(n=200, known=KNOWN, shares=lambda i: BOTH, **more):
    return views_run("hidden", known, n=n, views=lambda i: views(shares(i)), **more)[1]


def found(records, **chosen):
    return analyse(table(records), FakeNative(records), Settings(draws=2000, **chosen))


def test_the_drops_and_their_difference_by_hand():
    """The differences of nested right answers are shares of docs, p, so their standard errors are those of a share."""
    one = found(docs())
    assert (one.fip.value, one.grids) == (0.9, {})
    assert {key: score.value for key, score in one.curve.items()} == pytest.approx(
        {"relevant": 0.4, "adversarial": 0.85}
    )
    assert {key: drop.value for key, drop in one.drops.items()} == pytest.approx({"relevant": 0.5, "adversarial": 0.05})
    assert (one.hidden.extra.value, one.hidden.both) == (pytest.approx(0.45), 200)
    for number in (*one.drops.values(), one.hidden.extra):
        assert number.se == pytest.approx(np.sqrt(number.value * (1 - number.value) / 200), rel=0.1)
        assert number.low < number.value < number.high
    assert one.hidden.share == one.hidden.share_of_both == pytest.approx(BOTH)
    assert not one.warnings


def test_copies_in_one_cluster_say_nothing_new():
    """Each doc twice, both in one cluster: the interval is that of the docs once.

    Taken as independent it would be narrower by √2.
    """
    once = docs(100, shares=lambda i: BOTH if i % 3 else {"relevant": 0.2})
    twice = [
        {**one, "doc_id": one["doc_id"] + 1000 * k, "fields": {"cluster": one["doc_id"]}}
        for k in range(2)
        for one in once
    ]
    alone, paired = found(once).hidden.extra, found(twice).hidden.extra
    assert paired.value == pytest.approx(alone.value)
    assert paired.se == pytest.approx(alone.se, rel=0.1)
    assert found([{**one, "fields": {}} for one in twice]).hidden.extra.se == pytest.approx(
        alone.se / np.sqrt(2), rel=0.1
    )


def test_each_number_is_of_the_docs_that_have_its_boxes():
    """Brute force over docs with both sets, one set, or none; some calls failed."""
    sides = [BOTH, {"relevant": 0.3}, {"adversarial": 0.2}, {}]
    records = docs(203, shares=lambda i: sides[i % 4])
    for i in (0, 8):
        lost = records[i]["views"][1]
        lost |= {"scores": {}, "items": {}, "failed": "no answer"}
    scores = [{view.get("relevant"): view["scores"].get("acc") for view in one["views"]} for one in records]
    one = found(records)
    for key, flag in (("relevant", True), ("adversarial", False)):
        of = [doc for doc in scores if doc.get(flag) is not None]
        assert (one.curve[key].value, one.curve[key].n) == (pytest.approx(np.mean([doc[flag] for doc in of])), len(of))
        assert one.drops[key].value == pytest.approx(np.mean([doc[None] - doc[flag] for doc in of]))
    both = [doc for doc in scores if doc.get(True) is not None and doc.get(False) is not None]
    assert (one.hidden.both, one.hidden.extra.n) == (len(both), len(both))
    assert one.hidden.extra.value == pytest.approx(np.mean([doc[False] - doc[True] for doc in both]))
    assert one.hidden.share["relevant"] == pytest.approx((0.1 * len(both) + 0.3 * 51) / (len(both) + 51))
    assert sum(one.hidden.left_out["relevant"].values()) == 203 - one.curve["relevant"].n
    flat = columns(one, KINDS["hidden"])
    assert [flat[f"n_excluded_{key}"] for key in ("relevant", "adversarial")] == [
        203 - one.curve[key].n for key in ("relevant", "adversarial")
    ]
    assert (flat["n_both"], flat["drop_extra"], flat["drop_relevant"]) == (
        len(both),
        one.hidden.extra.value,
        one.drops["relevant"].value,
    )


def test_docs_with_one_set_alone_have_no_comparison():
    one = found(docs(40, shares=lambda i: {"relevant": 0.1}))
    assert (one.hidden.both, one.hidden.extra.value, one.hidden.extra.reason) == (
        0,
        None,
        "no doc has boxes of both sets",
    )
    assert (one.curve["adversarial"].value, one.curve["adversarial"].reason) == (
        None,
        "no doc has adversarial boxes that can be used",
    )
    assert one.drops["relevant"].value == pytest.approx(0.5)


def test_many_failed_calls_leave_no_drop():
    """A fifth of the calls with the relevant boxes hidden: which docs failed may not be chance."""
    records = docs(200)
    for one in records[::5]:
        one["views"][1] |= {"scores": {}, "items": {}, "failed": "no answer"}
    one = found(records)
    assert (one.curve["relevant"].value, one.drops["relevant"].value, one.hidden.extra.value) == (None, None, None)
    assert one.hidden.extra.reason.startswith("40 of 200 calls for relevant boxes failed (more than ")
    assert one.drops["adversarial"].value == pytest.approx(0.05)
    assert any(line.startswith("no drop: 40 of 200 calls") for line in one.warnings)


@pytest.mark.parametrize(
    ("shares", "known", "says"),
    [
        (
            {"relevant": 0.3, "adversarial": 0.1},
            KNOWN,
            "unequal areas: the relevant boxes 30.0% and the adversarial boxes 10.0% of the image",
        ),
        ({"relevant": 0.1, "adversarial": 0.16}, KNOWN, "unequal areas"),
        (
            {"relevant": 0.6, "adversarial": 0.45},
            KNOWN,
            "the relevant boxes hide 60% of the image on average: the drop then says",
        ),
        (BOTH, [0.25, 0.2, 0.25], "the drops say little: "),
    ],
    ids=["more is hidden of the evidence", "less", "most of the image", "near chance"],
)
def test_what_would_be_misread_is_said(shares, known, says):
    assert any(line.startswith(says) for line in found(docs(known=known, shares=lambda i: shares)).warnings)


# --- a finished run -------------------------------------------------------------------------------


def run_of(known, n=80):
    return views_run("hidden", known, n=n, base="sheet", views=lambda i: views(BOTH if i % 4 else {"relevant": 0.2}))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two models: the second does not use the evidence."""
    folder = tmp_path_factory.mktemp("hidden")
    for name, known in (("a", KNOWN), ("b", [0.9, 0.85, 0.85])):
        write_run(folder / name, {"sheet_hidden": run_of(known)}, model_name=f"org/{name}")
    return folder


def test_what_is_printed_first_and_in_the_tables(runs):
    said = text(commands.show(runs / "a"))
    assert "Hiding the relevant boxes costs more than hiding the adversarial ones in sheet (+0." in said
    rows = [line.split() for line in said.splitlines() if line.startswith("sheet_hidden ")]
    assert [row[1] for row in rows[:2]] == ["relevant", "adversarial"]
    assert rows[2][-1] == "60"  # docs with both
    assert "docs left out of the numbers of adversarial boxes: 20 with no score with them hidden" in said.replace(
        "\n  ", " "
    )
    assert "hiding the adversarial boxes costs" not in said.lower().replace("than hiding the adversarial", "")
    (second,) = commands.show(runs / "b").findings
    assert second.text.startswith(
        "Hiding the relevant boxes is not shown to cost more than hiding the adversarial ones in sheet ("
    )
    assert rci.table(rci.load(read(next((runs / "a").glob("*_results.json")))), 70)
