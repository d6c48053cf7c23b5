"""A made run of a Test-set Stress-Test."""

from dataclasses import asdict

import numpy as np

from lmms_patch.ask.spec import parse
from lmms_patch.ask.views import views_of
from lmms_patch.runs.numbers import to_json
from lmms_patch.tst.copies import Copies, unnamed_copies
from lmms_patch.tst.results import stress
from lmms_patch.tst.rewards import Rewards
from tests.making.docs import doc, frame_of, view
from tests.making.runs import mc_run, write_run


def stress_of(records, **options):
    """The numbers of docs in plain JSON types."""
    tests = [one["tst"] for one in records if one.get("tst")]
    return stress(frame_of(records), tests[0]["grouping"] if tests else "none", **options)


def record(i, source, random, majority, category):
    """A doc of a run with two fold seeds."""
    scores = {"source": list(source), "none": list(random)}
    tst = {"diagnostic": "rf", "grouping": "source", "source": f"scene {i}", "zero_shot": None}
    tst |= {"s": 0.5, "s_minus_chance": 0.25, "chance": 0.25}
    view = {"kind": "blind", "scores": {"acc": source[0]}, "items": {"acc": source[0]}}
    about = {"task": "toy_tst5", "base": "toy", "kind": "tst", "grids": [], "doc_id": i, "image_sizes": []}
    more = {"views": [view], "best": {}, "excluded": {}, "fields": {"category": category}}
    return {**about, **more, "tst": {**tst, "scores": scores, "baseline": {name: list(majority) for name in scores}}}


ABOUT = {
    "diagnostic": "rf",
    "folds": 5,
    "unusable": {"text": "no grouping: the text is different for every doc"},
    "texts": {"different": 39, "repeated": 2, "conflicting": 2},
    "importance": [{"kind": "mc", "feature": "word: lamp", "gain": 0.75, "permutation": 0.125}],
    "causes": [
        {"rank": 1, "category": "colour", "words": "lamp", "docs": 20, "s": 0.5, "s_minus_chance": 0.25}
        | {"gold": "größer", "gold_share": 0.9, "mean": None, "sd": None, "cv": None}
    ],
}


def write_tst(folder, with_rci=False):
    """40 docs: source-grouped folds answer docs 0..29 at both seeds and 30..31 at one.

    Random folds answer all but the last; majority: 0..9.
    """
    records = []
    for i in range(40):
        source = (1.0, 1.0) if i < 30 else (1.0, 0.0) if i < 32 else (0.0, 0.0)
        records.append(record(i, source, (float(i < 39),) * 2, (float(i < 10),) * 2, "colour" if i < 20 else "größe"))
    tasks = {"toy_rci2": mc_run(n=60)} if with_rci else {}

    def change(data):
        found = data["results"]["toy_tst5"]["patch,none"]
        found.about = {**found.about, "tst": {**found.about["tst"], "grouping": "source", **ABOUT}}

    path = write_run(folder, {**tasks, "toy_tst5": (parse("toy_tst5"), records, None)}, change=change)
    # they were computed before the change
    next(folder.glob("*_numbers.parquet")).unlink()
    return path


def details_of(items, found, headline, **about):
    """The object ``tst_details`` of cross-validations that were made without the harness.

    Args:
        items: all items.
        found: the cross-validations by grouping.
        headline: the name of one of them.
        about: what a run adds.
    """
    copies, rewards = Copies(items), Rewards(items, lambda place, answer: float(answer in items[place].golds))
    head, classes = found[headline], copies.classes(np.arange(len(items)), rewards)
    records, texts = [], unnamed_copies(items)
    for i, item in enumerate(items):
        tst = {"diagnostic": "rf", "grouping": headline, "source": item.source, "copies": classes[i], "text": texts[i]}
        tst |= {"s": float(head.s[i]), "chance": float(head.floor[i])}
        tst["scores"] = {name: one.scores[:, i].tolist() for name, one in found.items()}
        tst["baseline"] = {name: one.baseline[:, i].tolist() for name, one in found.items()}
        records.append({"doc_id": i, "fields": {"category": item.category}, "tst": tst})
    told = {"texts": asdict(copies.repeats())}
    return {**to_json(stress_of(records)), **told, **about}


def tst_record():
    spec = parse("toy_tst5")
    (of,) = views_of(spec)
    tst = {"diagnostic": "lora", "grouping": "none", "fold": 0, "source": None, "answers": ["yes", "no"]}
    tst |= {"s": 0.5, "s_minus_chance": 0.0, "chance": 0.5, "delta": 0.1, "copies": None, "text": None}
    tst |= {"zero_shot": {"s": 0.4, "score": None}, "scores": {"none": [1.0, None]}, "baseline": {"none": [0.0, 0.0]}}
    return doc(spec, 3, (), [view(of, error="no answer")], {}, fields={"category": "a"}, tst=tst)
