"""``lmms-patch tasks``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_patch.app.commands.common import IncludePath, examples, looking, say
from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.spec import parse
from lmms_patch.ask.views import asked_per_doc, views_of

if TYPE_CHECKING:
    from lmms_patch.harness.names.catalog import Entry

_VERDICTS = {"wraps": "wraps", "judge": "needs allow_judge", "data": "the data decides", "no": "does not wrap"}


@dataclass(frozen=True)
class Catalogue:
    """The names that can be wrapped, with their verdicts.

    Attributes:
        entries: the names that were asked for, each with its verdict.
        kind: the suffix that they are priced for, such as ``rci3``.
        asked: how often each doc is asked under it (once more per choice for log-likelihood tasks); None where its own
        boxes decide.
    """

    entries: list[Entry]
    kind: str
    asked: int | None


@examples(
    "# as which names GQA and its variants can be asked, at what cost",
    "lmms-patch tasks 'gqa*'",
    "# the embedded benchmark on both grids",
    "lmms-patch tasks mosaic_rci",
    "# no more than an interval of +- 0.03 needs",
    "lmms-patch tasks mosaic --as rci3_quick",
    "# the same without images",
    "lmms-patch tasks mosaic --as blind",
    "# a benchmark of videos, cut in time",
    "lmms-patch tasks videomme --as trci4",
)
def tasks(
    pattern: Annotated[
        str | None,
        typer.Argument(
            metavar="PATTERN",
            help="A base task, group, tag or wildcard (gqa*), or a wrapped name (gqa_rci3); all if left out.",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="SUFFIX",
            help="The way of wrapping to price: rci3, rci, pcri, trci4, blind, ...; rci3 if left out.",
        ),
    ] = None,
    include_path: IncludePath = None,
) -> Catalogue:
    """List what can be wrapped, what cannot and why, and what it costs."""
    from lmms_patch.harness import task_files
    from lmms_patch.harness.names import catalog

    with looking("reading the tasks of lmms-eval") as watch:
        manager = task_files.Index(include_path)
        # A task of the harness may itself end like a wrapped name: then it is the base, not a wrapped name.
        wrapped = None if pattern is None or pattern in manager.all_tasks or kind is not None else parse(pattern)
        if wrapped is not None:
            pattern, kind = wrapped.base, wrapped.suffix
        kind = kind or "rci3"
        asked = asked_per_doc(catalog.spec_of_suffix(kind))
        entries = catalog.entries(manager, pattern, kind, watch)
    return Catalogue(entries, kind, asked)


def display(catalogue: Catalogue) -> None:
    """Print a line per name, and the counts."""
    say("\n".join(lines(catalogue)))


def lines(catalogue: Catalogue) -> list[str]:
    """Return a line per name, and the counts."""
    out, spec = [], parse(f"x_{catalogue.kind}")
    for e in catalogue.entries:
        wrong, views = e.on_wrong_images or 0, catalogue.asked or 0
        # a doc that is asked once sees the whole of a wrong image alone
        parts = min(e.again or 0, wrong)
        on_wrong = parts * views + wrong - parts
        most = "at most " * (spec is not None and spec.options.quick)
        requests = "" if e.docs is None or not views else f", {most}{e.docs * views + on_wrong:,} requests"
        told = f"{wrong:,} docs also on another doc's image"
        if e.again and views:
            # most often half to one and a half times their requests before
            before = (e.again + parts) * views
            told += f"; {e.again:,} asked again, most often {before // 2:,} to {3 * before // 2:,} requests more"
        requests += f" ({told})" if wrong else ""
        docs = "" if e.docs is None else f", {e.docs:,} docs{requests}"
        name = e.name if e.verdict == "no" else f"{e.name}_{catalogue.kind}"
        out.append(f"{name}  [{e.type}] {_VERDICTS[e.verdict]}{docs}{': ' + e.reason if e.reason else ''}")
    out.append("")
    if unknown := [e.name for e in catalogue.entries if e.docs is None and e.verdict != "no"]:
        named = unknown[0] if len(unknown) == 1 else f"{len(unknown)} of these"
        out.append(
            f"No price for {named}: the data is not on this machine. A run with --limit 20 fetches it; then ask again."
        )
    out += _in_time(catalogue)
    if spec is not None and spec.options.quick:
        each = f"at most {catalogue.asked}x"
        told = f"As {catalogue.kind}, each doc is asked {each}, until the 95 % interval of the index is narrow enough (docs/quick.md)."
        return [*out, f"{tally(catalogue.entries)}. {told}"]
    kind = None if spec is None else spec.kind
    by_doc = "once, and once more per box of its own"
    if spec is not None and kind is not None and kind.turns:
        by_doc = f"{'once' if (views := len(views_of(spec))) == 1 else f'{views}x'} in each order of its options"
    at_most = kind is not None and (kind.exits or kind.hides)
    often = by_doc if catalogue.asked is None else f"{'at most ' * at_most}{catalogue.asked}x"
    asked = f"As {catalogue.kind}, each doc is asked {often} (times its choices, for multiple_choice)."
    return [*out, f"{tally(catalogue.entries)}. {asked}"]


def _in_time(catalogue: Catalogue) -> list[str]:
    """Return a line on the names with videos, which can be cut in time.

    None where they are priced so already.
    """
    from lmms_patch.harness.names.catalog import spec_of_suffix

    shown = [e.name for e in catalogue.entries if e.in_time[0] in ("wraps", "judge")]
    if not shown or spec_of_suffix(catalogue.kind).kind.needs_video:
        return []
    one = len(shown) == 1
    suffixes = [f"_{kind.written}" for kind in KINDS.values() if kind.needs_video]
    who = f"{shown[0]} shows videos, which" if one else f"{len(shown)} of these show videos, which"
    return [f"{who} can also be cut in time: {', '.join(suffixes)} (add --as {suffixes[0][1:]} for the price)."]


def tally(entries: Iterable[Entry]) -> str:
    """Count the entries of each verdict, in words: ``Wraps: 3; does not wrap: 1``."""
    counts = Counter(e.verdict for e in entries)
    told = "; ".join(f"{said}: {counts[verdict]}" for verdict, said in _VERDICTS.items() if counts[verdict])
    return told[:1].upper() + told[1:]
