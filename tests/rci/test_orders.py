"""The numbers of every order of the options: by definition, in worlds whose answer is known, and in worlds that break what they assume."""

import numpy as np
import pytest

from lmms_patch import commands
from lmms_patch.app.commands.show import text
from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.spec import parse
from lmms_patch.errors import UnknownNameError
from lmms_patch.rci.analysis import analyse
from lmms_patch.rci.kinds.orders import evenness
from lmms_patch.runs.catalogue import columns
from lmms_patch.runs.details import Settings
from lmms_patch.runs.numbers import to_mind
from lmms_patch.runs.run import read
from tests.making.recordings import FakeNative, table
from tests.making.runs import turned_run, write_run
from tests.sizes import size


def numbers(choose, draws=400, settings=None, **more):
    records = turned_run(choose, **more)[1]
    return analyse(table(records), FakeNative(records), settings or Settings(draws=draws)), records


def always_first(doc, order, gold, stream):
    return 0


def same_text(doc, order, gold, stream):
    """Answer each doc with one text, wherever it stands; in a quarter of the docs it is the right one."""
    return order.index((gold + doc // 4) % 4)


def knows(share):
    """Right wherever the gold stands on some docs; on the others a new guess in each order."""

    def choose(doc, order, gold, stream):
        return order.index(gold) if doc % 100 < 100 * share else int(stream.integers(len(order)))

    return choose


# --- known worlds ---------------------------------------------------------------------------------


def test_an_oracle_is_right_in_every_order():
    found = numbers(knows(1.0))[0].turned
    assert (found.once.value, found.mean.value, found.every.value, found.lost.value) == (1, 1, 1, 0)
    assert [one.value for one in found.places[4].scores] == [1, 1, 1, 1]
    assert found.every.low < 1  # 240 docs do not show that the 241st is right too


def test_who_always_takes_the_first_place_is_never_right_in_every_order():
    found = numbers(always_first)[0].turned
    assert (found.once.value, found.mean.value, found.every.value) == (0.25, 0.25, 0)
    assert [one.value for one in found.places[4].scores] == [1, 0, 0, 0]
    assert found.places[4].p == pytest.approx(0.001)


def test_who_always_takes_the_same_text_keeps_the_rate():
    """The circular score removes the luck of places, not that of texts."""
    found = numbers(same_text)[0].turned
    assert found.once.value == found.mean.value == found.every.value == pytest.approx(0.25)
    assert found.lost.value == 0
    assert [one.value for one in found.places[4].scores] == [0.25] * 4
    assert found.places[4].p == 1


@pytest.mark.parametrize("options", [2, 3])
def test_independent_guesses_are_right_in_every_order_with_the_stated_chance(options):
    """(1/k)^k: within 4 standard errors, of docs of which 40 % are known."""
    found = numbers(knows(0.4), n=(docs := size(1000, 3000)), options=options, draws=50)[0].turned
    luck = options**-options
    expected = 0.4 + 0.6 * luck
    assert found.every.value == pytest.approx(expected, abs=4 * np.sqrt(0.6 * luck / docs))
    assert found.mean.value == pytest.approx(0.4 + 0.6 / options, abs=size(0.05, 0.03))
    assert found.guess == pytest.approx(luck)


def test_guesses_of_docs_with_other_numbers_of_options():
    """By hand: of 300 docs, 200 with 2 options, 50 with 3 and 50 with 4."""
    found = numbers(knows(0.0), n=300, options=lambda doc: (2, 2, 2, 2, 3, 4)[doc % 6], draws=50)[0].turned
    assert found.guess == pytest.approx((200 / 4 + 50 / 27 + 50 / 256) / 300)
    assert {count: (one.docs, len(one.scores)) for count, one in found.places.items()} == {
        2: (200, 2),
        3: (50, 3),
        4: (50, 4),
    }


def test_a_taste_for_one_place_is_seen_in_the_score_by_place():
    """Knows 60 %; of the others it takes the first place in 8 of 10 cases."""

    def choose(doc, order, gold, stream):
        if doc % 10 < 6:
            return order.index(gold)
        return 0 if stream.random() < 0.8 else int(stream.integers(len(order)))

    found = numbers(choose, n=size(800, 2000), draws=50)[0].turned
    shown = [one.value for one in found.places[4].scores]
    assert shown == pytest.approx([0.6 + 0.4 * (0.8 + 0.05), *[0.6 + 0.4 * 0.05] * 3], abs=size(0.05, 0.03))
    assert found.places[4].p < 0.01


# --- by definition --------------------------------------------------------------------------------


def test_every_number_by_its_definition():
    found, records = numbers(knows(0.5), n=120, options=lambda doc: 2 + doc % 3)
    by_doc = [[view["scores"]["acc"] for view in one["views"]] for one in records]
    turned = found.turned
    assert turned.every.value == pytest.approx(np.mean([float(all(doc)) for doc in by_doc]))
    assert turned.once.value == pytest.approx(np.mean([doc[0] for doc in by_doc])) == found.fip.value
    assert turned.mean.value == pytest.approx(np.mean([np.mean(doc) for doc in by_doc]))
    assert turned.lost.value == pytest.approx(turned.once.value - turned.every.value)
    for count, placed in turned.places.items():
        for place, one in enumerate(placed.scores, 1):
            mine = [
                view["scores"]["acc"]
                for record in records
                if len(record["views"]) == count
                for view in record["views"]
                if view["gold_at"] == place
            ]
            assert one.value == pytest.approx(np.mean(mine))
            assert one.n == len(mine) == placed.docs


def test_the_interval_of_what_is_lost_is_that_of_a_share():
    """Nobody gains: a doc that is right in every order is right in its own.

    So what is lost is a share of docs, with its standard error.
    """
    found = numbers(knows(0.5), n=600, draws=2000)[0].turned
    assert found.lost.se == pytest.approx(np.sqrt(found.lost.value * (1 - found.lost.value) / 600), rel=0.1)
    assert found.lost.low < found.lost.value < found.lost.high


def test_docs_of_one_image_count_as_one():
    """Ten docs of an image, all right or all wrong: intervals are those of 24 images."""

    def choose(doc, order, gold, stream):
        return order.index(gold) if doc // 10 % 2 else order.index((gold + 1) % 4)

    one = numbers(choose, cluster=10)[0].turned.every
    other = numbers(choose)[0].turned.every
    assert (one.clusters, other.clusters) == (24, 240)
    assert one.se == pytest.approx(np.sqrt(10) * np.sqrt(0.25 / 240), rel=0.15)
    assert one.high - one.low > 2.5 * (other.high - other.low)


def test_graded_scores_keep_the_worst_order():
    records = turned_run(knows(1.0), n=40)[1]
    for doc, one in enumerate(records):
        for turn, view in enumerate(one["views"]):
            view["scores"]["acc"] = view["items"]["acc"] = [0.5, 1.0, 0.25, 0.75][(turn + doc) % 4]
    found = analyse(table(records), FakeNative(records), Settings(draws=50)).turned
    assert (found.every.value, found.mean.value) == (0.25, 0.625)


def test_an_aggregation_without_a_known_form():
    records = turned_run(knows(0.5), n=40)[1]
    found = analyse(
        table(records), FakeNative(records, lambda items: max(items) - 0.123 * len(items) ** 0.5), Settings(draws=50)
    ).turned
    assert found.every.value is None
    assert found.every.reason == "orders cannot be averaged: the aggregation of acc has no known form"


def test_docs_that_count_in_one_order_alone():
    found = numbers(knows(1.0), n=40, left_out=(3, 4, 5), unscored=(7,), draws=50)[0]
    turned = found.turned
    assert (turned.docs, found.n_docs, found.fip.n) == (36, 40, 40)
    assert turned.left_out == {"two of its options are the same": 3, "a call failed": 1}
    flat = columns(found, KINDS["rotate"])
    assert (flat["n_rotated"], flat["rotate_every"], flat["rotate_at4"]) == (36, 1, 1)
    assert (
        to_mind(found, KINDS["rotate"])[-1]
        == "asked in one order alone, and left out of these numbers: 3 (two of its options are the same); 1 (a call failed)"
    )


@pytest.mark.parametrize(("lost", "refused"), [(52, False), (53, True)])
def test_many_failed_calls_leave_no_number_of_the_orders(lost, refused):
    """By hand, of 4 · 200 = 800 calls: 5 % are 40, and two standard errors 2 · √(0.05 · 0.95 · 800) = 12.3 more.

    The model knows the odd docs, and calls fail on even ones: 100 of 200 docs are right in every order, and 100 of the
    147 that are left.
    """
    found = numbers(
        lambda doc, order, gold, stream: order.index(gold) if doc % 2 else 0,
        n=200,
        unscored=range(0, 2 * lost, 2),
        draws=50,
    )[0]
    flat = columns(found, KINDS["rotate"])
    names = [
        "rotate_every",
        "rotate_once",
        "rotate_mean",
        "rotate_lost",
        "rotate_guess",
        "rotate_p",
        *(f"rotate_at{k}" for k in (1, 2, 3, 4)),
    ]
    assert {flat[name] is None for name in names} == {refused}
    assert (found.turned.docs, found.fip.n) == (200 - lost, 200)
    if not refused:
        assert flat["rotate_every"] == pytest.approx(100 / 148)
        return
    why = "53 of 800 calls for the full image in all orders failed (more than 5.0%); type the same command again"
    assert found.turned.every.reason.startswith(why)
    assert any(line.startswith(f"no score in every order of the options: {why}") for line in found.warnings)


def test_no_doc_in_every_order():
    found = numbers(knows(1.0), n=20, left_out=range(20), draws=50)[0]
    assert (found.turned.docs, found.turned.every.value, found.turned.guess, found.turned.places) == (0, None, None, {})


# --- false alarms of the test of places -------------------------------------------------------------


RUNS = size(40, 120)


def alarms(choose, **more):
    return np.mean(
        [evenness(table(turned_run(choose, n=60, seed=seed, **more)[1]), 4, seed) < 0.05 for seed in range(RUNS)]
    )


def test_guesses_without_a_taste_for_a_place_seldom_alarm():
    """The test is exact: 5 % of the runs, within 3 standard errors."""
    assert alarms(knows(0.3)) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / RUNS)


def test_a_taste_of_each_image_is_none_of_the_model():
    """All docs of an image draw the model to one place, another for each image.

    Docs as independent would alarm; images do not.
    """

    tastes = {}

    def drawn(doc, order, gold, stream):
        if doc == 0 and order[0] == 0:
            tastes.clear()
        return tastes.setdefault(doc // 10, int(stream.integers(4)))

    assert alarms(drawn, cluster=10) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / RUNS)
    assert alarms(drawn) > 0.5


# --- names and records ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gqa_rotate3", "gqa_rotate1"])
def test_cells_are_not_asked_in_every_order(name):
    with pytest.raises(
        UnknownNameError,
        match=r"asks the full image alone, so it takes no grid size; type .*_rotate', or to ask cells again too, .*_rci[23]_steady'",
    ):
        parse(name)


# --- a finished run ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two models: the second knows more, and takes the first place where it knows nothing."""
    folder = tmp_path_factory.mktemp("orders")

    def biased(doc, order, gold, stream):
        return order.index(gold) if doc % 10 < 7 else 0

    for name, choose in (("a", knows(0.5)), ("b", biased)):
        write_run(
            folder / name,
            {"sheet_rotate": turned_run(choose, n=100, base="sheet", left_out=(99,))},
            model_name=f"org/{name}",
        )
    return folder


def test_people_see_the_orders_and_the_places(runs):
    """By hand: of 99 docs 70 are known.

    Of the others 5 (8, 28, 48, 68, 88) have their gold first in their own order.
    """
    shown = commands.show(runs / "b")
    (said,) = (one.text for one in shown.findings)
    assert said.startswith("Right in every order of the options: sheet (0.707 [")
    assert said.endswith(
        "of 0.758 asked once, by the place of the gold between 1.000 at A and 0.707 at B); 95 % intervals."
    )
    lines = text(shown).splitlines()
    *places, row = (line.split() for line in lines if line.startswith("sheet_rotate"))
    assert (row[1], *row[4:7]) == ("0.707", "99", "0.758", "0.780")
    assert [(one[3], one[6]) for one in places] == list(zip("ABCD", ["1.000", "0.707", "0.707", "0.707"], strict=True))
    assert any(line.endswith("1 (two of its options are the same)") for line in lines)


def test_the_orders_of_a_doc_are_rows_with_their_turn(runs):
    (result,) = read(next((runs / "a").glob("*_results.json"))).results
    found = result.frame(["doc_id", "view", "turn", "gold_at", "excluded"]).to_dict(as_series=False)
    of_doc = [
        (turn, place)
        for doc, turn, place in zip(found["doc_id"], found["turn"], found["gold_at"], strict=True)
        if doc == 1
    ]
    assert of_doc == [(None, 2), (1, 1), (2, 4), (3, 3)]
    assert [why for doc, why in zip(found["doc_id"], found["excluded"], strict=True) if doc == 99] == [
        [{"set": "turns", "why": "two of its options are the same"}]
    ]
