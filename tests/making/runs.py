"""Writes the two files of a finished run, without a harness: for tests of what reads them."""

import dataclasses
import itertools

import numpy as np

from lmms_patch.ask.answers import Asked
from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.references import Doc, plan
from lmms_patch.ask.spec import Options, WrapSpec
from lmms_patch.ask.views import View, again, swapped, views_of
from lmms_patch.harness.wrap import aggregate
from lmms_patch.magic.score import results as magic
from lmms_patch.rci.draws import ByForm
from lmms_patch.runs.frames import frame_of, items_of, merged_of
from lmms_patch.runs.numbers import to_json
from lmms_patch.runs.tables import Table
from lmms_patch.stats.forms import MEAN
from tests.making.docs import as_docs, baseline, doc, view
from tests.making.files import DATE, described, lines_of, write_files

LETTERS = "ABCD"


class Native:
    """A native aggregation, as ``rci.draws.Native`` wants it.

    Args:
        whole: M on full images.
        over_cells: gives FIP and MPP of a set of views, and why they are missing.
        aggregate: gives M of other items.
    """

    form, no_calls = None, ""

    def __init__(self, whole, over_cells, aggregate):
        self.whole, self.over_cells, self.aggregate = whole, over_cells, aggregate


def details(spec, records, native, made=None, about_tst=None, *, higher=True):
    """What a run writes of records in plain JSON types, by ``acc``."""
    docs = as_docs(records)
    samples, about = frame_of(docs, ["acc"]), {"merged": merged_of(docs), "items": items_of(docs, "acc")}
    table = Table(samples, "acc", kind=spec.kind, grids=spec.grids, higher=higher, **about)
    native = ByForm(table, MEAN) if table.sampling.used else native
    return aggregate.details(spec, samples, table, native, higher={"acc": higher}, plan=made, about_tst=about_tst or {})


STARTS = itertools.count()
"""What makes each run that is written another run, as the harness's clock does."""
DATA = {"dataset_path": "org/toy", "test_split": "test"}


def mc_run(n=300, know_full=0.8, know_cell=0.85, grid=2, seed=0, per_cluster=1, categories=("a", "b"), answers=0):
    """Records of a 4-option task: the full image knows some answers, cell 1 knows some, everything else guesses.

    ``answers`` draws them anew.
    """

    def say(stream, gold):
        said = [
            gold if stream.random() < chance else guess(stream)
            for chance in (know_full, know_cell, *[0] * (grid * grid - 1))
        ]
        return said, None

    return world_run(say, n=n, grid=grid, seed=seed, per_cluster=per_cluster, categories=categories, answers=answers)


def world_run(say, n=300, grid=2, seed=0, per_cluster=1, categories=("a", "b"), base="toy", kind="rci", answers=0):
    """Records of a 4-option task whose model is ``say``: from a random stream and the gold to its answers on the full image and each cell,
    and to those on a wrong image (None: the doc is not asked so). ``grid`` is one grid or several. ``answers`` draws them anew."""
    grids = (grid,) if isinstance(grid, int) else tuple(grid)
    spec = WrapSpec(base, KINDS[kind], grids, Options(cluster="image", category="kind"))
    stream = np.random.default_rng(seed)
    golds = [LETTERS[i] for i in stream.integers(0, 4, n)]
    docs = [
        Doc(i, Asked("Which?\nA. u\nB. v\nC. w\nD. x", golds[i]), "Which?", cluster=i // per_cluster) for i in range(n)
    ]
    made = plan(docs)
    stream = np.random.default_rng([seed, answers]) if answers else stream
    views = sum(map(KINDS[kind].cells, grids)) + 1
    given = [[None if some is None else some[:views] for some in say(stream, gold)] for gold in golds]
    return spec, [_record(spec, i, golds, given, made, categories, per_cluster) for i in range(n)], made


def views_run(kind, know, n=300, grids=(), base="toy", seed=0, short=(), views=None):
    """Records of a 4-option task of a kind without an index: a view is answered rightly in as many docs as ``know`` says of it, else with no letter.

    Args:
        kind: such as ``frames``.
        know: for each view in request order, the share of docs that are right on it; the same docs are right on all
        views that know as many.
        n: docs.
        grids: the numbers of the name.
        base: the benchmark.
        seed: decides which docs are right.
        short: docs whose clip has too few frames for the largest number: they have no such view.
        views: gives the views of a doc by its number; None: those that every doc of the kind has.
    """
    spec = WrapSpec(base, KINDS[kind], tuple(grids))
    order = np.random.default_rng(seed).permutation(n)
    docs = [Doc(i, Asked("Which?\nA. u\nB. v\nC. w\nD. x", LETTERS[i % 4]), "Which?") for i in range(n)]
    made, records = plan(docs), []
    for i in range(n):
        own = views(i) if views else [one for one in views_of(spec) if not (i in short and one.n == max(spec.grids))]
        said = [LETTERS[i % 4] if order[i] < share * n else "none" for share in know]
        scored = _scored(own, said[: len(own)], LETTERS[i % 4])
        base_of, about = _answered(made, i, LETTERS[i % 4])
        excluded = {max(spec.grids): "7 frames are too few"} if i in short else {}
        clips = [{"frames": 7 if i in short else 32, "seconds": 8.0}]
        one = doc(spec, i, ((9, 9),), scored, {}, excluded, {}, about, made.strata[i], base_of, clips=clips)
        records.append(one)
    return spec, records, made


def again_run(
    needs, n=240, grid=2, kind="rci", base="toy", seed=0, *, guesses=True, answers=0, wrong=True, out=(), **fields
):
    """Records of a 4-option task whose docs are all asked four times, by a model of which it is known what it needs.

    Doc i needs ``needs[i % len(needs)]``: its ``text`` alone, its first ``cell``, its first ``window`` between the cells,
    the ``whole`` image, or is ``unsolved``. A view that shows what is needed is right every time.

    Args:
        needs: of the docs in turn.
        n: docs.
        grid: the number of the name.
        kind: ``rci``, ``pcri``, ``trci`` or ``shift``.
        base: the benchmark.
        seed: of golds and guesses.
        guesses: whether a view that does not show it guesses, anew each time; else it names no option.
        answers: draws guesses anew, of the same docs.
        wrong: whether docs are asked on wrong images too.
        out: docs that the grid does not use.
        fields: cluster or category, by the number of a doc.
    """
    spec, stream = WrapSpec(base, KINDS[kind], (grid,)), np.random.default_rng(seed)
    golds = [LETTERS[i] for i in stream.integers(0, 4, n)]
    stream = np.random.default_rng([seed, answers]) if answers else stream
    made = plan([Doc(i, Asked("Which?\nA. u\nB. v\nC. w\nD. x", golds[i]), "Which?") for i in range(n)])
    once = views_of(spec)
    own = [one for one in again(once, 4) if not one.swapped and one.kind != "blank"]
    others = [*swapped(once), *(one for one in again(once, 4) if one.swapped or one.kind == "blank")] if wrong else []
    shown = {
        "whole": {View("full")},
        "cell": {View("full"), next(one for one in once if one.cell)},
        "window": {View("full"), *[one for one in once if one.kind == "window"][:1]},
        "unsolved": set(),
    }

    def said(i, of):
        need = needs[i % len(needs)]
        known = need == "text" or (not of.swapped and of.place in {one.place for one in shown[need]})
        return golds[i] if known else guess(stream) if guesses else "none"

    def asked(i, of):
        (one,) = _scored([of], [answer := said(i, of)], golds[i])
        one |= {"names": LETTERS.index(answer) + 1} if answer in LETTERS else {}
        return one | ({"wrong_from": (i + 1 + of.donor) % n} if of.swapped else {})

    records = []
    for i in range(n):
        views = [asked(i, of) for of in (*once, *own)]
        cells = [place for place, of in enumerate(once) if of.cell]
        best = {} if i in out else {grid: max(cells, key=lambda place: views[place]["scores"]["acc"])}
        excluded = {grid: "too small"} if i in out else {}
        base_of, about = _answered(made, i, golds[i])
        about |= {"gold_at": LETTERS.index(golds[i]) + 1}
        lost = ((i + 1) % n, ((9, 9),), [asked(i, of) for of in others]) if wrong else None
        told = {name: of(i) for name, of in fields.items()}
        records.append(doc(spec, i, ((9, 9),), views, best, excluded, told, about, made.strata[i], base_of, lost))
    return spec, records, made


def turned_run(choose, n=240, options=4, base="toy", seed=0, left_out=(), unscored=(), cluster=1):
    """Records of a task that asks every order of a doc's options, by the definition of the orders.

    Args:
        choose: the model: takes a doc, the numbers of the options in the order shown, the number of the gold, and a
        generator; returns a place from 0.
        n: docs.
        options: how many options docs have: a number, or a function of the doc.
        base: the benchmark.
        seed: of the generator.
        left_out: docs whose options cannot be moved.
        unscored: docs of which the call for the last order failed.
        cluster: docs in a cluster.
    """
    spec, stream, records = WrapSpec(base, KINDS["rotate"]), np.random.default_rng(seed), []
    for i in range(n):
        k = options(i) if callable(options) else options
        gold, scored = i % k, []
        for turn in range(1 if i in left_out else k):
            order = [(place + turn) % k for place in range(k)]
            at = order.index(gold)
            item = {"acc": float(choose(i, order, gold, stream) == at)}
            of = View("full", turn=turn, gold=0 if i in left_out else at + 1)
            failed = "no answer" if i in unscored and turn == k - 1 else ""
            scored.append(view(of, {} if failed else item, failed=failed))
        roles = ("gold", "option", "constant")
        own = [_baseline(letter, roles[j != gold :], j == gold) for j, letter in enumerate("ABCDEFGH"[:k])]
        about = {"format": "mc", "label": f"mc{k}", "options": k, "gold": "ABCDEFGH"[gold]}
        excluded = {"turns": "two of its options are the same"} if i in left_out else {}
        fields = {"cluster": i // cluster} if cluster > 1 else {}
        records.append(doc(spec, i, ((9, 9),), scored, {}, excluded, fields, about, "mc", own))
    return spec, records, None


def quick(records, whole, drawn, p=0.25):
    """Records as a quick run leaves them: docs ``whole`` asked whole to plan the rest, ``drawn`` taken with probability p, the others not asked.

    Nothing is predicted, so a doc that was drawn stands for 1/p docs, and each number is a sum over the docs asked,
    divided by all docs.
    """
    out = []
    for one in records:
        none = dict.fromkeys(map(str, one["grids"]), 0.0)
        kept = {key: one[key] for key in one if key != "wrong_image"}
        how = {"metric": "acc", "block": 1, "p": [p, p], "full": 0.0, "before": none, "after": none}
        if one["doc_id"] in whole:
            out.append({**kept, "asked": {"metric": "acc", "block": 0, "steps": 2}})
        elif one["doc_id"] in drawn:
            out.append({**kept, "asked": {**how, "steps": 2}})
        else:
            views = [{**one["views"][0], "scores": {}, "items": {}}]
            out.append({**kept, "views": views, "best": {}, "asked": {**how, "steps": 0, "unasked": len(one["views"])}})
    return out


def failing(records, ids):
    """Records of which some docs' full image got no answer."""
    lost = {"best": {}, "excluded": {"2": "a call failed"}}
    first = {"scores": {}, "items": {}, "failed": "no answer"}
    return [
        {**one, **lost, "views": [{**one["views"][0], **first}, *one["views"][1:]]} if one["doc_id"] in ids else one
        for one in records
    ]


def guess(stream):
    """One of the four letters."""
    return LETTERS[stream.integers(0, 4)]


def never_looks(stream, gold):
    """Answers from the text, right in 60 %, and the same whatever is shown."""
    said = gold if stream.random() < 0.6 else LETTERS[(LETTERS.index(gold) + 1 + stream.integers(0, 3)) % 4]
    return [said] * 10, [said] * 10


def guesses_on_cells(stream, gold):
    """Knows 80 % of the full images.

    Every cell, and every view of a wrong image, is a guess among four: 1 - (3/4)^9 is 0.925 by luck alone.
    """
    full = gold if stream.random() < 0.8 else guess(stream)
    return [full, *(guess(stream) for _ in range(9))], [guess(stream) for _ in range(10)]


def one_cell_knows(stream, gold):
    """As good on one cell as on the full image.

    The others, and wrong images, are one guess: the index is 0, and no luck is in it.
    """
    known, lucky, lost = stream.random() < 0.8, guess(stream), guess(stream)
    return [gold if known else lucky] * 2 + [lucky] * 8, [lost] * 10


def misled_by_cells(stream, gold):
    """Knows the full image; each cell says the same wrong letter, but a wrong image is right in a quarter."""
    wrong, lost = LETTERS[(LETTERS.index(gold) + 1) % 4], guess(stream)
    return [gold if stream.random() < 0.9 else wrong, *[wrong] * 9], [lost] * 10


BENCHMARKS = (
    "gqa", "mmstar", "ai2d_lite", "realworldqa", "vstar_bench", "blink", "scienceqa_img", "mmmu_val", "mathvista",
    "pope", "hallusion", "muirbench",
)  # fmt: skip


def suite(folder, models=1, tasks=7, docs=100):
    """Runs of some models on some benchmarks, at 3x3, one results file a model: local, global, refused and undecided benchmarks in turn."""
    sayers = knows(0.8, 0.9), knows(0.9, 0.0), never_looks, knows(0.7, 0.5, lucky=True), one_cell_knows
    sayers += knows(0.28, 0.1), misled_by_cells
    for model in range(models):
        alike = {"n": docs, "grid": 3, "categories": ("counting", "reading"), "answers": model}
        made = {
            f"{name}_rci3": world_run(sayers[i % len(sayers)], seed=i, base=name, **alike)
            for i, name in enumerate(BENCHMARKS[:tasks])
        }
        write_run(folder / f"model{model}", made, model_name=f"org/model-{model}-7b-instruct")
    return folder


def knows(full, cell, lucky=False):
    """Return a model that knows so many of the full images and, of its first cell, so many.

    The other cells are guesses, or never right.
    """

    def say(stream, gold):
        whole, one = (gold if stream.random() < share else guess(stream) if lucky else "none" for share in (full, cell))
        return [whole, one, *(guess(stream) if lucky else "none" for _ in range(8))], [
            guess(stream) if lucky else "none" for _ in range(10)
        ]

    return say


def _record(spec, i, golds, answers, made, categories, per_cluster):
    said, wrong = answers[i][0], answers[i][1]
    views, every = _scored(views_of(spec), said, golds[i]), views_of(spec)
    places = {n: [place for place, one in enumerate(every) if one.set == n] for n in spec.grids}
    best = {n: own[int(np.argmax([views[place]["scores"]["acc"] for place in own]))] for n, own in places.items()}
    base, about = _answered(made, i, golds[i])
    fields = {"cluster": i // per_cluster, "category": categories[i % len(categories)]}
    lost = None
    if wrong is not None:
        shown = _scored(swapped(every), wrong, golds[i])
        lost = (i + per_cluster) % len(golds), ((9, 9),), shown
    more = {"images": f"{i:016x}", "clips": [{"frames": 32, "seconds": 8.0}] if spec.kind.needs_video else []}
    return doc(spec, i, ((9, 9),), views, best, {}, fields, about, made.strata[i], base, lost, **more)


def _baseline(answer, roles, right):
    return baseline(answer, roles, {"acc": float(right)})


def _answered(made, i, gold):
    """The baselines of a doc of a plan, and what is known of its answer."""
    answer = made.answers[i]
    about = {"format": answer.format, "label": answer.label, "options": len(answer.options), "gold": answer.gold}
    return [_baseline(one, roles, one == gold) for one, roles in made.baselines[i].items()], about


def _scored(views, said, gold):
    return [view(of, {"acc": float(one == gold)}) for of, one in zip(views, said, strict=True)]


def write_run(folder, runs, groups=None, aggregate=None, date=DATE, part_of_plan=False, **about):
    """The results file and sample logs of some tasks: ``{name: (spec, records, plan)}``; the aggregation is the mean.

    The benchmark has as many docs as there are records; with ``part_of_plan`` as many as the plan has.
    """
    aggregate = aggregate or (lambda items: float(np.mean(items)))
    tasks = {}
    for name, (spec, records, made) in runs.items():
        records = [{**record, "task": name} for record in records]
        if made is not None:
            made = dataclasses.replace(made, all_docs=len(made.answers if part_of_plan else records))
        part = any("asked" in r for r in records)  # then what would have been scored is estimated
        scored = [r for r in records if r["views"][0]["items"]]
        full = [r["views"][0]["items"]["acc"] for r in scored]
        grids = spec.grids if spec.kind.index else ()
        best = {
            n: [r["views"][r["best"][str(n)]]["items"]["acc"] for r in scored if str(n) in r["best"]] for n in grids
        }
        native = Native(
            lambda full=full: aggregate(full),
            lambda n, full=full, best=best: (aggregate(full), aggregate(best[n]), ""),
            aggregate,
        )
        tests = [one["tst"] for one in records if one.get("tst")]
        about_tst = {name: tests[0][name] for name in ("diagnostic", "grouping")} if tests else {}
        found = details(spec, records, native, made, about_tst)
        named = ("rci", "pcri", "trci", "gap", "chance", "gate", "frames", "rotate")
        flat = {key: found[key] for key in found if key.startswith(named)}
        mpp = {f"acc_mpp{n}": found.computed.analysis.grids[n].mpp.value if part else aggregate(best[n]) for n in grids}
        score = found.computed.analysis.fip.value if part else aggregate(full)
        values = {"acc": score, **mpp, **flat, "patch": found}
        lines = lines_of(records)
        tasks[name] = values, {**DATA, **described(spec)}, lines
    said = {"n-shot": dict.fromkeys(tasks, 0), "versions": dict.fromkeys(tasks, 1.0), "start_time": next(STARTS)}
    said |= {"system_instruction_sha": None, **about}
    return write_files(folder, tasks, date=date, group_subtasks=groups or {}, **said)


def magic_doc(name, used=(), relevant=(1,), boxes=3, *, right=True, invented=(), group="", kind="query",
              found=True, text="", doc="", **verdicts):  # fmt: skip
    """The record of one doc, with what the model wrote under ``text``; ``verdicts``: short, full, healed."""
    return {
        "schema": 1, "id": name, "item": name.partition("/")[0], "group": group or f"image of {name}", "type": kind,
        "asked": {"doc": doc or f"d {name}", "prompt": "p"}, "boxes": boxes, "relevant": sorted(map(int, relevant)), "used": sorted(map(int, used)), "invented": sorted(invented), "dismissed": [],
        "steps": 2, "answer": "dog" if right else "cat", "answer_found": found, "exact": bool(right), "synonym": bool(right), "text": text or f"I look. Answer: {name}",
        **verdicts,
    }  # fmt: skip


# --- MAGIC tasks ----------------------------------------------------------------------------------

DRAWS = 200
MAGIC_TASKS = {
    "all": "toy_magic",
    "relevant": "toy_magic_relevant",
    "none": "toy_magic_nobox",
    "selfheal": "toy_magic_selfheal",
}


def write_magic(folder, variants, *, model="m", judge=None, seed=0, date="20260101_000000", docs="d",
                log=True, change=None, tasks=MAGIC_TASKS, **config):  # fmt: skip
    """A run of MAGIC tasks, ``{variant: records}``.

    ``change`` may alter the results file's content before it is written.
    """
    made = {}
    for variant, given in variants.items():
        name, judged = tasks[variant], judge is not None
        texts = [(one.get("text", ""), one.get("gold", "dog")) for one in given]
        records = [
            {key: value for key, value in one.items() if key not in ("text", "gold")} | {"variant": variant}
            for one in given
        ]
        records = [{"judge": {"model": judge}, **one} if judged else one for one in records]
        typed = [magic.Record(**one) for one in records]
        numbers, counts = magic.numbers(typed, variant, judged, DRAWS), magic.counts(typed, variant, judged)
        bounds = magic.bounds(typed, variant, DRAWS) if judged else {}
        about = {
            "schema": 1, "variant": variant, "dataset": "toy", "metric": magic.primary(variant, judged), "seed": seed, "examples": [], "pixels": 1, "prompts": 1, "judge": judge,
            "numbers": {key: dataclasses.asdict(one) for key, one in numbers.items()}, "by_type": to_json(magic.by_type(typed, variant, judged, DRAWS)),
            "counts": counts, "left_out": {"items": 0, "at_start": 0, "near_end": 0, "uncorrected": 0}, "warnings": magic.warnings(counts, judged, bounds),
            "bounds": {key: dataclasses.asdict(one) for key, one in bounds.items()},
        }  # fmt: skip
        flat = {key: one.value for key, one in numbers.items()}
        details_of = {
            "records": len(records), **flat, "made": {"lmms_patch": "0", "lmms_eval": "0.7.3", "docs": docs, "prompts": "p"},
            "settings": {"draws": DRAWS, "level": 0.95, "seed": 0}, "higher_is_better": {key: magic.higher_is_better(key, variant) for key in numbers}, "magic": about,
        }  # fmt: skip
        told = {"schema": 1, "base": name, "kind": "magic", "variant": variant, "grids": [], "options": {}}
        told |= {"pixels": 1, "prompts": 1, "seed": seed}
        lines = [
            {"doc_id": n, "target": gold, "filtered_resps": [text], "input": f"Asked of {one['id']}", "magic": one}
            for n, (one, (text, gold)) in enumerate(zip(records, texts, strict=True))
        ]
        described_as = {**DATA, "metadata": {"magic": {**told, "metric": magic.primary(variant, False)}}}
        made[name] = {"magic": details_of, **flat}, described_as, lines if log else None
    about = {"model_name": model, "versions": dict.fromkeys(made, 1.0), "n-shot": dict.fromkeys(made, 0)}
    about |= {"system_instruction_sha": None, "start_time": next(STARTS)}
    about["config"] = {"model": "hf", "model_args": "", "limit": None, **config}
    return write_files(folder, made, date=date, change=change, **about)
