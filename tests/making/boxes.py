"""Docs with boxes of their own, and numbers known beforehand."""

from lmms_patch.ask.kinds import REGIONS
from lmms_patch.ask.spec import parse
from lmms_patch.ask.views import Region, View
from lmms_patch.rci.analysis import analyse
from lmms_patch.runs import numbers as outcome
from lmms_patch.runs.details import Settings
from tests.making.docs import baseline, doc, view
from tests.making.recordings import METRIC, FakeNative, mean, table


def record(doc_id, full, relevant, adversarial, *, items=None, answer=None, baselines=(), excluded=None, cluster=None):
    """One doc's ``patch`` object, with scores of its full image and of its boxes; None: no score, no error."""
    spec = parse("toy_regions")
    boxes = [
        Region(number=i, area=(0, 0, 9, 9), relevant=i <= len(relevant))
        for i in range(1, 1 + len(relevant) + len(adversarial))
    ]
    scores = [full, *relevant, *adversarial]
    items = items or (lambda score: score)
    views = [
        view(one, {METRIC: score}, {METRIC: items(score)})
        for one, score in zip([View("full"), *boxes], scores, strict=True)
    ]
    best, start = {}, 1
    reasons = dict(excluded or {})
    for key, own in zip(REGIONS, (relevant, adversarial), strict=True):
        known = [s for s in own if s is not None]
        if not own:
            reasons.setdefault(key, f"no {key} box")
        if known and key not in reasons:
            best[key] = start + own.index(max(known))
        start += len(own)
    form, options, gold = answer or ("", 0, None)
    about = (
        {"format": form, "label": f"mc{options}" if form == "mc" else form, "options": options, "gold": gold}
        if answer
        else {}
    )
    fields = {} if cluster is None else {"cluster": cluster}
    base = [baseline(answer, roles, {METRIC: score}) for answer, roles, score in baselines]
    return doc(spec, doc_id, ((9, 9),), views, best, reasons, fields, about, "all", base)


class Native(FakeNative):
    """As ``FakeNative``, where a set has no docs too."""

    def over_cells(self, key):
        if not any(str(key) in one["best"] for one in self.records):
            return None, None, outcome.none_used(key)
        used = [one for one in self.records if str(key) in one["best"]]
        full = self.m([one["views"][0]["items"][METRIC] for one in used])
        return full, self.m([one["views"][one["best"][str(key)]]["items"][METRIC] for one in used]), ""


def numbers(records, aggregate=mean, higher=True, **chosen):
    found = analyse(table(records, higher=higher), Native(records, aggregate), Settings(**chosen), REGIONS)
    assert found.grids == {}
    return found


PLANTED = [
    (1.0, [1.0, 0.0], [0.0]),
    (1.0, [0.0], [0.0, 1.0, 0.0]),
    (0.0, [1.0], []),
    (1.0, [], [1.0]),
    (1.0, [0.0, 0.0, 1.0], [1.0, 0.0]),
]
"""Five kinds of docs: full image, relevant boxes, adversarial boxes."""


def planted(n=200):
    return [record(i, *PLANTED[i % 5], cluster=i // 5 if n > 50 else None) for i in range(n)]
