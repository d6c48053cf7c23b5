"""Failed calls of a run: which docs they cost, and when they are so many that no index may be read. Pure.

A server that gives up on a request sends no answer, and lmms-eval writes a text in place of one. Such a view is
unscored. Scored as an answer it would be wrong, and more often so on the one full image than on the best of nine cells:
5 % of failed calls move an RCI of -0.31 to -0.36.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from lmms_patch.ask.kinds import BESIDE, TURNS, Key, Kind
from lmms_patch.runs.views import TURNED, set_of
from lmms_patch.stats.bounds import Count, Some
from lmms_patch.text import line

if TYPE_CHECKING:
    from lmms_patch.runs.tables import Table

REASON = "a call failed"
"""Why a doc is not used for a set of views of which a call failed; in the records under ``excluded``."""
UNSCORED = "a view has no score"
"""Likewise where the scorer gave no value of the metric for an answer."""
WORTH_UNREAD = 0.05
"""Share of answers to the first view that name no option from which on a warning is due."""
WORTH_A_WARNING = 0.01
"""Share of docs with a failed call from which on a warning is due."""
WORTH_TELLING = 0.1
"""Share of the answers of a task without options from which on an answer that comes again and again is told."""
TOO_MANY = 0.05
"""Share of failed calls above which there is no index."""
TOO_MANY_OF_A_PART = 0.002
"""The same in a run that left cells out. A doc that no cell answers is asked more often there, and fails more often, so unsolved docs go missing:
0.5 % of failed calls lower RCI by 0.01."""
ASK_AGAIN = "type the same command again: with --output_path or --use_cache only the failed calls are asked"
GARBLED = "batches garble answers"
"""How the reason begins where the adapter garbles answers in batches: then no answer of the run counts."""
_NO_IMAGE = ("its image cannot be loaded", "an image cannot be read", "the wrong image: ")
"""How the reason begins where the model was asked, but about a grey image: that of the doc could not be loaded."""


@dataclass(frozen=True)
class Failed:
    """The failed calls of a task.

    Attributes:
        docs: docs with a failed call.
        of: docs that were asked.
        calls: failed calls; a view of a doc is a call.
        asked: calls.
        first: docs whose first view failed (the full image, where it is asked): they are in none of our numbers.
        text: what most often came in place of an answer.
    """

    docs: Some
    of: Some
    calls: Some
    asked: Some
    first: Count
    text: str

    @property
    def sentence(self) -> str:
        """Which docs failed, and what to do."""
        if self.text.startswith(GARBLED):
            return self.text
        mend = "put the image right and " if self.text.startswith(_NO_IMAGE) else ""
        return (
            f"{self.docs} of {self.of} docs have a failed call and are left out of what needs it ({self.calls} of {self.asked} calls, "
            f"{self.first} of them of the first view; most often: {self.text}); {mend}{ASK_AGAIN}"
        )

    def native(self, metric: str) -> str:
        """Say what the harness's metric makes of the failed calls; "" where none of them count."""
        if not self.first:
            return ""
        return f"{metric} as the harness prints it counts {self.first} failed calls as wrong answers; FIP, gate and index leave these docs out"

    @property
    def many(self) -> bool:
        """Whether the failed docs are worth a warning."""
        return self.docs > WORTH_A_WARNING * self.of


def count(table: Table) -> Failed | None:
    """Count the failed calls of a task; None where no call failed."""
    rows = table.logged
    if not rows["failed"].count():
        return None
    failed = rows.filter(pl.col("failed").is_not_null())
    text, _ = Counter(failed["failed"]).most_common(1)[0]
    docs, of = failed["doc_id"].n_unique(), rows["doc_id"].n_unique()
    return Failed(docs, of, len(failed), len(rows), len(failed.filter(view=0)), text)


def cut_or_unread(table: Table) -> list[str]:
    """Say how many answers were cut by the token limit, and how many name none of their doc's options, a line each.

    The scorer takes them as they are, mostly as wrong. On cells a model may well abstain, so those without an option are
    told only where more than ``WORTH_UNREAD`` of the answers to the first view are such.
    """
    views = {
        "the first view": ~pl.col("other") & (pl.col("view") == 0),
        "other views": ~pl.col("other") & (pl.col("view") > 0),
        "a wrong image": pl.col("other"),
    }
    read = table.logged.filter(pl.col("choices") > 0, pl.col("names").is_not_null())
    out = []
    for rows, flag, least, told in (
        (
            table.logged,
            pl.col("unfinished").fill_null(False),
            0,
            "answers cut by the token limit (--gen_kwargs max_new_tokens=N allows more)",
        ),
        (read, pl.col("names") == 0, WORTH_UNREAD, "answers that name none of the options"),
    ):
        marked = {what: rows.filter(which).select(flag).to_series() for what, which in views.items()}
        first, further, _ = (int(some.sum()) for some in marked.values())
        if first > least * len(marked["the first view"]) or (further and not least):
            said = ", ".join(f"{some.sum()} of {len(some)} to {what}" for what, some in marked.items() if len(some))
            out.append(f"{told}: {said}; they are scored as they are, mostly as wrong")
    return out


def repeated(samples: pl.DataFrame) -> str:
    """Say which answer comes again and again in a task without options: more than a tenth of its answers, and no doc's gold.

    "" where none does.
    """
    asked = samples.filter(pl.col("choices").fill_null(0) == 0, pl.col("failed").is_null())
    texts = asked["answer"].drop_nulls()
    if not len(texts):
        return ""
    text, times = texts.value_counts(sort=True).row(0)
    if times <= max(len(texts) * WORTH_TELLING, 2) or text in set(samples["gold"].drop_nulls()):
        return ""
    return (
        f"an answer comes again and again, {line(repr(text), 60)}: {times:,} of {len(texts):,}; if no model would say so, it stands for "
        "failed calls, which are scored as wrong answers"
    )


def too_many(table: Table, key: Key) -> str:
    """Say so if too many calls failed for the numbers of a set of views; else return "".

    More than ``TOO_MANY`` of the calls for the full image, or of those for the set, by more than the two standard
    errors by which the share of a server that fails exactly so many would vary.

    Args:
        table: all docs.
        key: the set, a point of a curve, or ``TURNS``: the full image in every order of the options.
    """
    # a run that left cells out asks unsolved docs more often, and so loses them more often
    most = TOO_MANY_OF_A_PART if table.sampling.planned else TOO_MANY
    kind, rows = table.kind, (table.logged if key == TURNS else table.asked).filter(~pl.col("other"))
    garbled = rows.filter(pl.col("failed").str.starts_with(GARBLED))["failed"]
    if len(garbled):
        return str(garbled[0])
    what, of = _calls(kind, key)
    # docs whose options cannot be moved are asked in one order alone
    if key == TURNS:
        of &= ~pl.col("doc_id").is_in(table.excluded.filter(set=TURNS)["doc_id"].implode())
    first = f"the full {kind.words.medium}" if kind.full or not kind.curve else "the first view"
    for calls, which in ((first, pl.col("view") == 0), (what, of)):
        failed = rows.filter(which)["failed"]
        if failed.count() > most * len(failed) + 2 * math.sqrt(most * (1 - most) * len(failed)):
            return f"{failed.count()} of {len(failed)} calls for {calls} failed (more than {most:.1%}); {ASK_AGAIN}"
    return ""


def _calls(kind: Kind, key: Key) -> tuple[str, pl.Expr]:
    """Return in words which calls a set's numbers rest on, and the views among them."""
    words = kind.words
    if key == TURNS:
        return f"the full {words.medium} in all orders", TURNED
    if isinstance(key, str):
        return f"the {words.medium} {kind.beside}" if key == BESIDE else f"{key} boxes", set_of(key)
    if kind.curve:
        return f"the {words.medium} at {words.size(key)}" if words.sized else words.size(key), pl.col("n") == key
    return words.each(key), set_of(key)
