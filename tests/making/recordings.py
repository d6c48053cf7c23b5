"""Hand-made records, and a native aggregation that is any Python function: for tests of what computes with them."""

from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.spec import WrapSpec
from lmms_patch.ask.views import swapped, views_of
from lmms_patch.runs.frames import frame_of, items_of, merged_of
from lmms_patch.runs.tables import Table
from tests.making.docs import as_docs, baseline, doc, view

METRIC = "acc"


def record(
    doc_id, full, cells, *, kind="rci", items=None, excluded=(), answer=None, baselines=(), wrong_image=None, **fields
):
    """One doc's ``patch`` object.

    Args:
        doc_id: its number.
        full: scalar of the full image; None: unscored, with an error.
        cells: for each grid the scalars of its n² cells, or of its n segments.
        kind: ``rci`` or ``trci``.
        items: from a scalar to the native item; the scalar itself where none is given.
        excluded: grids that the doc is not used for.
        answer: (format, options, gold).
        baselines: (answer, roles, scalar), or (answer, roles, scalar, item).
        wrong_image: as (full, cells), of another doc's image; None: not asked on one.
        fields: cluster, category.
    """
    spec = WrapSpec("toy", KINDS[kind], tuple(sorted(cells)))
    scalars = [full] + [score for n in spec.grids for score in cells[n]]
    views = [_view(one, score, items) for one, score in zip(views_of(spec), scalars, strict=True)]
    best, start = {}, 1
    for n in spec.grids:
        known = [score for score in cells[n] if score is not None]
        if n not in excluded and known:
            best[n] = start + cells[n].index(max(known))
        start += len(cells[n])
    form, options, gold = answer or ("", 0, None)
    about = (
        {"format": form, "label": f"mc{options}" if form == "mc" else form, "options": options, "gold": gold}
        if answer
        else {}
    )
    own = [baseline(*one[:2], {METRIC: one[2]}, {METRIC: one[3] if len(one) > 3 else one[2]}) for one in baselines]
    lost = None
    if wrong_image is not None:
        scalars = [wrong_image[0]] + [score for n in spec.grids for score in wrong_image[1][n]]
        shown = [_view(one, score, items) for one, score in zip(swapped(views_of(spec)), scalars, strict=True)]
        lost = (doc_id + 1) % 10**6, ((90, 90),), shown
    reasons = dict.fromkeys(excluded, "too small")
    return doc(spec, doc_id, ((90, 90),), views, best, reasons, fields, about, "all", own, lost)


def _view(of, score, items):
    if score is None:
        return view(of, error="the scorer failed")
    return view(of, {METRIC: score}, {METRIC: items(score) if items else score})


def guesses(gold, options, constants=None, stratum=None, score=None):
    """The baselines of a doc with options, under exact match: every option, every constant, the gold, the majority of the stratum."""
    roles = {}
    for role, answers in (
        ("gold", [gold]),
        ("option", options),
        ("constant", constants or options),
        ("stratum", [stratum or gold]),
    ):
        for one in answers:
            roles.setdefault(one, []).append(role)
    return [(one, found, (score or exact)(one, gold)) for one, found in roles.items()]


def exact(answer, gold):
    return float(answer == gold)


def mean(items):
    return sum(items) / len(items) if items else None


class FakeNative:
    """What the harness hands to the statistics (``draws.Native``), made of a function of the items.

    Args:
        records: those of ``record``.
        aggregate: M.
        form: the form that is known already.
        no_calls: why M may not be called again and again.
        silent: M may not be called for other items at all.
        why: why there is nothing over cells.
    """

    def __init__(self, records, aggregate=mean, *, form=None, no_calls="", silent=False, why=""):
        self.records, self.m, self.form, self.no_calls, self.silent, self.why = (
            records, aggregate, form, no_calls, silent, why,
        )  # fmt: skip
        self.calls, self.failed = 0, 0

    def whole(self):
        if any("error" in record["views"][0] for record in self.records):
            return None
        return self.m([record["views"][0]["items"][METRIC] for record in self.records])

    def over_cells(self, n):
        if self.why:
            return None, None, self.why
        used = [record for record in self.records if str(n) not in record["excluded"]]
        best = [record["views"][record["best"][str(n)]]["items"][METRIC] for record in used]
        return self.m([record["views"][0]["items"][METRIC] for record in used]), self.m(best), ""

    def aggregate(self, items):
        self.calls += 1
        if self.silent:
            return None
        try:
            return self.m(items)
        except Exception:  # as the harness does, which logs it
            self.failed += 1
            return None


def table(records, metric=METRIC, **options):
    """The records as the statistics take them, with the native items, as in the run; keywords as of ``Table``."""
    first, docs = records[0] if records else {}, as_docs(records, metric)
    others = {name for one in docs for items in one.items for name in items} - {metric}
    about = {"kind": KINDS[first.get("kind", "rci")], "grids": first.get("grids", ())}
    about |= {"merged": merged_of(docs), "items": items_of(docs, metric)}
    return Table(frame_of(docs, [metric, *sorted(others)]), metric, **about | options)
