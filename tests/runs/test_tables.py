"""The table of docs from rows made by hand: what a missing score means, which views count, and in which order docs stand."""

import numpy as np
import polars as pl
import pytest

from lmms_patch.ask.kinds import KINDS
from lmms_patch.runs import failures
from lmms_patch.runs.schema import TYPES
from lmms_patch.runs.tables import Table
from lmms_patch.stats.forms import F1, MEAN

NAN = np.nan


def frame(*docs, **columns):
    """Rows of docs, each a list of views of a 2 × 2 grid: (score, more columns); the first view is the full image."""
    rows = [
        {"doc_id": doc, "view": at, "kind": "cell" if at else "full", "n": 2 if at else None, "cell": at or None, "score": score, **more}
        for doc, views in enumerate(docs)
        for at, (score, more) in enumerate(views)
    ]  # fmt: skip
    return pl.DataFrame(rows, {name: TYPES.get(name, pl.Float64()) for name in dict.fromkeys(k for row in rows for k in row)}).with_columns(**columns)  # fmt: skip


def scored(*scores, **more):
    return [(score, more) for score in scores]


def table(*docs, metric="acc", kind="rci", **more):
    return Table(frame(*docs), metric, kind=KINDS[kind], **more)


def test_a_missing_score_is_one_of_four():
    lost, raised = [(None, {"failed": "x"}), *scored(1, 0, 0, 0)], [(None, {"error": "x"}), *scored(1, 0, 0, 0)]
    another, silent = scored(None, None, None, None, None, **{"score.b": 1.0}), scored(None, 1, 0, 0, 0)
    known = scored(1, 0, 0, 1, 0)
    found = table(known, lost, raised, another, silent)
    assert found.doc_id.tolist() == [0, 2], "the call failed; another metric's doc; the scorer gave none"
    assert (found.asked_docs, found.unscored, failures.count(found).docs) == (4, 1, 1)
    assert found.full.scores.tolist() == pytest.approx([1, NAN], nan_ok=True)
    other = table(known, lost, raised, another, silent, metric="b", primary="acc")
    assert other.doc_id.tolist() == [3], "the others have scores by the primary metric"


@pytest.mark.parametrize(("higher", "best"), [(True, [0.5, 1.0]), (False, [0.0, 0.2])])
def test_the_score_of_the_best_cell(higher, best):
    found = table(scored(1, 0, 0.5, 0.5, 0), scored(1, 1, 1, None, 0.2), higher=higher)
    assert found.best(2).scores.tolist() == best


def test_labels_stand_for_items_after_the_run():
    """Of five answers two are rightly called positive, one wrongly, and one positive is missed."""
    labels = [(True, True), (True, True), (True, False), (False, True), (False, False)]
    docs = [[(float(said == gold), {"said_yes": said, "gold_yes": gold})] for said, gold in labels]
    found = table(*docs)
    assert found.value(F1, found.full) == pytest.approx(2 * 2 / (2 * 2 + 1 + 1))
    assert found.value(MEAN, found.full) == pytest.approx(3 / 5)
    assert np.isnan(table(*docs, scored(1.0)).value(F1, table(*docs, scored(1.0)).full)), "one has no label"


def test_docs_of_half_a_cluster_go_too_where_clusters_are_whole():
    docs = scored(1, 0, 0, 0, 1, cluster="a"), [(None, {"failed": "x", "cluster": "a"})], scored(0, 0, 0, 0, 0)
    assert table(*docs, whole=True).doc_id.tolist() == [2]
    assert table(*docs).doc_id.tolist() == [0, 2]


def test_clusters_stand_in_the_order_of_their_texts_and_docs_without_one_behind():
    names = ["b", None, "10", "9", "b", None]
    found = table(*([(1.0, {"cluster": name})] for name in names))
    assert found.groups.clusters.tolist() == [2, 3, 0, 1, 2, 4]
