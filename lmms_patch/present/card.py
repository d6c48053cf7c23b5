"""The dataset card and the ``eval.yaml`` of a published pruned benchmark: what was removed, by what rule, and what that shows. Pure.

Form of ``eval.yaml``: https://huggingface.co/docs/hub/eval-results. Form of the card's head:
https://huggingface.co/docs/hub/datasets-cards.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from huggingface_hub import DatasetCardData

from lmms_patch import __version__
from lmms_patch.present.sheets import Sheet, table
from lmms_patch.runs.numbers import ALPHA
from lmms_patch.stats.bounds import Number
from lmms_patch.text import block, markdown
from lmms_patch.tst.controls import Judged
from lmms_patch.tst.formats import Blind, PublishedJson

PAPER = """@article{brown2025testset,
  title = {Benchmark Designers Should ``Train on the Test Set'' to Expose Exploitable Non-Visual Shortcuts},
  author = {Brown, Ellis and others},
  journal = {arXiv preprint arXiv:2511.04655},
  year = {2025},
  url = {https://arxiv.org/abs/2511.04655}
}"""

_SHOWN = {
    "reduction": "A second text-only model, of another class and on other features, answers the kept docs less often than docs that stay after "
    "random removal, by more than the same pruning gives where golds mean nothing. "
    "So text-only shortcuts of the kind that these models find were reduced.",
    "selection noise": "**No reduction of shortcuts is shown.** The second model answers the kept docs less often, "
    "but by no more than the same pruning gives where golds mean nothing.",
    "controls disagree": "**No reduction of shortcuts is shown.** "
    "The fall is beyond noise against one kind of random removal, and not against the other.",
    "over-pruned": "**Too much was removed.** The kept docs are answered significantly worse than by guessing; a model can exploit that in reverse.",
    "unknown": "**No reduction of shortcuts is shown.** No golds were shuffled, so nothing says how large a fall is by chance.",
}


@dataclass(frozen=True)
class Facts:
    """What the card says.

    Attributes:
        published: what the folder holds.
        splits: the Parquet file of each split; the evaluated split first.
        whole: whether rows of the original's split are the docs.
        license: of this dataset; "" where none is given.
        citation: of the original, BibTeX; "" where it is not known.
        settings: how docs were chosen (``formats.PrunedSettings``).
        stopped: why the pruning ended.
        judged: what the judge says; None where nothing was judged.
        blind: what blind answers of several models say; None where docs did not go by them.
        categories: category, docs, removed, percent removed, kept; the last row is the total.
    """

    published: PublishedJson
    splits: Mapping[str, str]
    whole: bool
    license: str
    citation: str
    settings: Mapping[str, Any]
    stopped: str
    judged: Judged | None
    blind: Blind | None
    categories: Sequence[tuple[str, int, int, float, int]]


def eval_yaml(about: PublishedJson) -> str:
    """Return the ``eval.yaml`` by which the hub knows a dataset as a benchmark."""
    told = f"{about.kept} of the {about.docs} docs of {about.base}: those that stayed after pruning."
    if about.form == "filter":
        told += " This repository lists their ids; the docs are in the original dataset."
    data = {
        "name": about.task,
        "description": told,
        "evaluation_framework": "lmms-eval",
        "tasks": [{"id": about.task, "config": "default", "split": about.original.split}],
    }
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120)


def card(facts: Facts) -> str:
    """Return the README.md of the dataset."""
    about, original = facts.published, facts.published.original
    head = DatasetCardData(
        pretty_name=about.task,
        license=facts.license or None,
        source_datasets=[original.repository] if original.repository else None,
        size_categories=_size(about.kept),
        tags=["lmms-eval", "lmms-patch", "pruned-benchmark"],
        configs=[
            {
                "config_name": "default",
                "data_files": [{"split": split, "path": path} for split, path in facts.splits.items()],
            }
        ],
    )
    parts = [
        f"# {markdown(about.task)}",
        f"{about.kept:,} of the {about.docs:,} docs of {_named(about)}: those that stayed after `lmms-patch prune` ({__version__}).",
        _FORMS[about.form],
        "## How to load it",
        *_loading(facts),
        "## What was removed",
        _rule(facts),
        table(
            ["question category", "docs", "removed", "percent removed", "kept"],
            [
                [name, str(docs), str(removed), f"{share:.1f} %", str(kept)]
                for name, docs, removed, share, kept in facts.categories
            ],
        ).to_markdown(),
        "`pruning/` has the ids of all kept and removed docs, and round and score of each removed one.",
        "## What this shows",
        *_verdict(facts),
        "## What this does not show",
        _LIMITS,
        "## How to cite",
        *_cite(facts),
    ]
    return f"---\n{head.to_yaml()}\n---\n\n" + "\n\n".join(part.strip() for part in parts) + "\n"


_FORMS = {
    "filter": "This repository is a **filter**: it lists the ids of the kept docs. Questions, answers and images are in the original alone.",
    "copy": "This repository is a **copy**: it holds the kept docs themselves, with their images.",
}

_LIMITS = """- That the kept docs need the image. *These* text-only models do not give them away; a model with more knowledge may still answer some.
- How a model compares here with a model on the original. Other docs are easier or harder: compare models on the same docs.
- That a removed doc is unsound. It went since docs like it give its answer away."""


def _named(about: PublishedJson) -> str:
    """Return base, repository, configuration, split and commit of the original."""
    original = about.original
    where = f"`{about.base}` of lmms-eval"
    if original.repository:
        where += f", dataset [{original.repository}](https://huggingface.co/datasets/{original.repository})"
        where += f", configuration `{original.config}`" if original.config else ""
    where += f", split `{original.split}`"
    return where + (f", commit `{original.revision}`" if original.revision else "")


def _loading(facts: Facts) -> list[str]:
    about, original = facts.published, facts.published.original
    run = f"```bash\nlmms-eval --include_path FOLDER --tasks {about.task} --model ...\n```"
    parts = [
        "In lmms-eval, from a folder with all files of this repository (`hf download REPOSITORY --repo-type dataset --local-dir FOLDER`):",
        run,
    ]
    load = f'load_dataset("REPOSITORY", split={original.split!r})'
    if about.form == "copy":
        return [*parts, "In Python:", f"```python\nfrom datasets import load_dataset\n\ndocs = {load}\n```"]
    if facts.whole and original.repository:
        config = f", {original.config!r}" if original.config else ""
        revision = f", revision={original.revision!r}" if original.revision else ""
        code = f"original = load_dataset({original.repository!r}{config}, split={original.split!r}{revision})"
        end = 'docs = original.select(kept["row"])'
        parts += ["In Python:", f"```python\nfrom datasets import load_dataset\n\nkept = {load}\n{code}\n{end}\n```"]
    else:
        parts.append(
            "`row` counts the docs after the task's own `process_docs`, from 0, so only lmms-eval can select by it."
        )
    if not original.revision:
        parts.append(
            "The commit of the original is not recorded. The task counts its docs and looks for every kept id, and refuses other docs."
        )
    return parts


def _rule(facts: Facts) -> str:
    s, about = facts.settings, facts.published
    removed = about.docs - about.kept
    if facts.blind is not None:
        return (
            f"{removed:,} docs were removed that are more likely known to models without the image than not, by answers of "
            f"{len(facts.blind.models)} models to other images or none. "
            "The idea is B-Clean's ([arXiv 2603.21687](https://arxiv.org/abs/2603.21687)), which removes what any model "
            "answers blind; here an answer counts by how far it is beyond a guess."
        )
    if s["by"] == "locality":
        return f"{removed:,} docs were removed that a single cell of the image solves, by the scores of a finished run, the highest first."
    score = {
        "s_minus_chance": "how much it gives away of the right answer, less chance",
        "s": "how much it gives away of the right answer",
        "delta": "how much training on the test set adds to the right answer",
    }[s["by"]]
    amount = f"{100 * s['budget']:g} %" if s["budget"] < 1 else f"{s['budget']:g} docs"
    embedded = f", with text embeddings of {markdown(s['embeddings']['name'])}" if s.get("embeddings") else ""
    return (
        f"{removed:,} docs were removed by Iterative Bias Pruning ([Brown et al.](https://arxiv.org/abs/2511.04655), Algorithm 1). "
        f"A text-only model ({s['model']}{embedded}) is cross-validated on the questions and options themselves, in {s['folds']} folds "
        f"(grouping: {s['grouping']}). Each doc is scored by {score}; the highest scores go, round by round, up to {amount} "
        f"(strategy: {s['strategy']}). "
        f"It ended because: {markdown(facts.stopped)}."
    )


def _verdict(facts: Facts) -> list[str]:
    judged, blind = facts.judged, facts.blind
    if blind is not None:
        parts = [blind_models(blind).to_markdown(), markdown(of_dependence(blind))]
        return [*parts, *([blind_ranks(blind).to_markdown(), markdown(of_swaps(blind))] if blind.ranks else [NO_RANKS])]
    if judged is None:
        return ["**Nothing is shown.** The docs went by locality: no model was trained, so no judge was asked."]
    rows = [
        [
            "nothing" if one.match == "none" else f"counts by {one.match}",
            f"{judged.original:.3f}",
            f"{judged.kept:.3f}",
            f"{sum(one.controls) / len(one.controls):.3f}",
            f"{one.fall:+.3f}",
            f"{min(one.shuffled):+.3f} to {max(one.shuffled):+.3f}" if one.shuffled else "N/A",
            "N/A" if one.p is None else f"{one.p:.3f}",
        ]
        for one in judged.compared
    ]
    heads = [
        "random removal keeps",
        "all docs",
        "kept docs",
        "after random removal",
        "fall",
        "fall with shuffled golds",
        "p",
    ]
    return [
        _SHOWN[judged.verdict],
        f"Text-only score of the judge (`{facts.settings['judge']}`), a fraction of full marks; verdict: **{judged.verdict}**.",
        table(heads, rows).to_markdown(),
        markdown(judged.sentence),
    ]


NO_RANKS = "These runs have no two models on the full image, so no ranks are compared."


def blind_models(blind: Blind) -> Sheet:
    """Return who was asked without the right image, and whose answers count."""
    rows = [
        [m.model, m.task, f"{m.right:.3f}", f"{m.guess:.3f}", f"{m.p:.4f}", "yes" if m.counts else "no"]
        for m in blind.models
    ]
    return table(["model", "asked as", "right", "by guessing", "p", "counts"], rows)


def of_dependence(blind: Blind) -> str:
    """Say how many docs are known, and warn where models err together."""
    counting = sum(model.counts for model in blind.models)
    if not counting:
        return (
            "no model is right more often than by guessing with its own answers, so no doc is known without the image"
        )
    says = f"of all docs {100 * blind.share:.1f} % are estimated to be known without the image"
    if blind.p_dependent is None or blind.p_dependent >= ALPHA:
        return says
    return (
        f"{says}; WARNING: models err together (p = {blind.p_dependent:.3f}), and the estimate assumes that they do not: the {counting} that "
        f"count are taken for {blind.as_many_as:.1f} independent ones; leave out copies and close relatives of a model"
    )


def blind_ranks(blind: Blind) -> Sheet:
    """Return the models on the full image, before and after."""

    def shown(mean: Number | None, low: Number | None, high: Number | None) -> str:
        return (
            "N/A"
            if mean is None
            else f"{mean:.3f}"
            if low is None or high is None
            else f"{mean:.3f} [{low:.3f}, {high:.3f}]"
        )

    rows = [
        [
            m.model,
            m.task,
            str(m.rank_before),
            shown(*m.before),
            str(m.rank_after),
            shown(*m.after),
            "{:.3f} ({:.3f} to {:.3f})".format(*m.random),
        ]
        for m in blind.ranks
    ]
    return table(["model", "full image", "rank", "all docs", "rank after", "kept docs", "after random removals"], rows)


def of_swaps(blind: Blind) -> str:
    """Say how many pairs of models change places."""
    pairs = len(blind.ranks) * (len(blind.ranks) - 1) // 2
    return f"of {pairs} pairs of models {blind.swapped} change places; after random removals of as many docs {blind.swapped_random:.1f} on average"


def _cite(facts: Facts) -> list[str]:
    original = facts.published.original
    where = f": see [its card](https://huggingface.co/datasets/{original.repository})" if original.repository else ""
    if facts.blind is not None:
        return [f"Cite the original{where}, and the idea: [arXiv 2603.21687](https://arxiv.org/abs/2603.21687)."]
    parts = [f"Cite the original{where}, and the method:", f"```bibtex\n{PAPER}\n```"]
    if facts.citation:
        parts.insert(1, f"```bibtex\n{block(facts.citation).replace('```', '').strip()}\n```")
    return parts


def _size(count: int) -> str:
    """Return the hub's name of a number of docs."""
    ends = [(10**3, "1K"), (10**4, "10K"), (10**5, "100K"), (10**6, "1M"), (10**7, "10M")]
    start = ""
    for most, name in ends:
        if count < most:
            return f"{start}<n<{name}" if start else f"n<{name}"
        start = name
    return "n>10M"


def to_json(about: PublishedJson) -> str:
    """Return ``published.json``."""
    import msgspec

    return json.dumps(msgspec.to_builtins(about), indent=1) + "\n"
