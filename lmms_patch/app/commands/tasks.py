"""``lmms-patch tasks``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmms_patch import files
from lmms_patch.app import api
from lmms_patch.app.commands.common import IncludePath, Quiet, Verbose, examples, looking, say
from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.spec import parse
from lmms_patch.ask.views import views_of
from lmms_patch.errors import OptionError

if TYPE_CHECKING:
    from lmms_patch.harness.names.catalog import Entry
    from lmms_patch.runs.costs import Cost

_VERDICTS = {"wraps": "wraps", "judge": "needs allow_judge", "data": "the data decides", "no": "does not wrap"}
_NOT_WITH_ALL = ("PATTERN", "--as", "--include-path", "--run")


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
    "# how long that takes, by what a finished run took",
    "lmms-patch tasks mosaic --run out/demo",
    "# every task of the installed lmms-eval, counted; the list with the reasons",
    "lmms-patch tasks --all --write coverage.md",
)
def command(
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
    run: Annotated[
        Path | None,
        typer.Option(
            "--run",
            metavar="OUT",
            help="A finished run, whose time and tokens are the price; the newest in out, if left out.",
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Count which of all tasks of the installed lmms-eval wrap, under _rci3.")
    ] = False,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="With --all: write the whole list as Markdown.")
    ] = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """List what can be wrapped, what cannot and why, and what it costs."""
    if every:
        if given := [name for name, one in zip(_NOT_WITH_ALL, (pattern, kind, include_path, run), strict=True) if one]:
            raise OptionError(f"--all takes no {given[0]}: it counts the tasks of lmms-eval itself")
        count(write, quiet, verbose)
        return
    if write is not None:
        raise OptionError(f"--write is of the whole list; type 'lmms-patch tasks --all --write {write}'")
    with looking("reading the tasks of lmms-eval", quiet or verbose) as watch:
        catalogue = api.tasks(pattern, kind, include_path=include_path, run=run, quiet=not verbose, watch=watch)
    say("\n".join(lines(catalogue)))


def lines(catalogue: api.Catalogue) -> list[str]:
    """Return a line per name, and the counts."""
    out = []
    for e in catalogue.entries:
        wrong = e.on_wrong_images or 0
        requests = (
            "" if e.docs is None or catalogue.asked is None else f", {(e.docs + wrong) * catalogue.asked:,} requests"
        )
        requests += f" ({wrong:,} docs also on another doc's image)" if wrong else ""
        if e.expected is not None and catalogue.asked is not None:
            low, high = (calls + wrong * catalogue.asked for calls in e.expected)
            requests = f", most often {low:,} to {high:,} of{requests.removeprefix(',')}"
        calls = _calls(e, catalogue.asked)
        price = (
            f", {_price(catalogue.cost, calls)}" if calls and catalogue.cost is not None and e.verdict != "no" else ""
        )
        cost = "" if e.docs is None else f", {e.docs:,} docs{requests}{price}"
        name = e.name if e.verdict == "no" else f"{e.name}_{catalogue.kind}"
        out.append(f"{name}  [{e.type}] {_VERDICTS[e.verdict]}{cost}{': ' + e.reason if e.reason else ''}")
    out.append("")
    if unknown := [e.name for e in catalogue.entries if e.docs is None and e.verdict != "no"]:
        named = unknown[0] if len(unknown) == 1 else f"{len(unknown)} of these"
        out.append(
            f"No price for {named}: the data is not on this machine. A run with --limit 20 fetches it; then ask again."
        )
    out += [*_in_time(catalogue), *(_measured(catalogue.cost) if any(e.docs for e in catalogue.entries) else [])]
    spec = parse(f"x_{catalogue.kind}")
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


def _calls(e: Entry, asked: int | None) -> tuple[int, ...]:
    """Return the number of calls for a name: a number, least and most of a quick run, or none where unknown."""
    wrong = e.on_wrong_images or 0
    if e.docs is None or asked is None:
        return ()
    return ((e.docs + wrong) * asked,) if e.expected is None else tuple(calls + wrong * asked for calls in e.expected)


def _price(cost: Cost, calls: tuple[int, ...]) -> str:
    """Say what some calls take, as those of a finished run did: time, and tokens."""
    parts = [] if cost.seconds is None else [_from_to(_time(count * cost.seconds / cost.calls) for count in calls)]
    tokens = [(each, word) for each, word in ((cost.input_tokens, "in"), (cost.output_tokens, "out")) if each]
    parts += [f"{_from_to(_many(count * each) for count in calls)} tokens {word}" for each, word in tokens]
    return "by that run " + ", ".join(parts) if parts else "nothing measured"


def _from_to(ends: Iterable[str]) -> str:
    """Return numbers joined by "to"; equal texts appear once."""
    return " to ".join(dict.fromkeys(ends))


def _time(seconds: float) -> str:
    """Return a time with two digits in a fitting unit.

    >>> _time(42.4), _time(150), _time(5400), _time(400_000)
    ('42 s', '2.5 min', '90 min', '110 h')
    """
    value, unit = (
        # from 99.5 on, two digits would read "100 s", or "100 min" (5,970 s are 99.5 min)
        (seconds, "s") if seconds < 99.5 else (seconds / 60, "min") if seconds < 5970 else (seconds / 3600, "h")
    )
    # from 9.95 on the first two digits leave none behind the point
    return f"{float(f'{value:.2g}'):,.{0 if value >= 9.95 else 1}f} {unit}"


def _many(count: float) -> str:
    """Return a count to two digits: 25,000."""
    return f"{float(f'{count:.2g}'):,.0f}"


def _measured(cost: Cost | None) -> list[str]:
    """Say from which run prices are, and what they contain."""
    if cost is None:
        return []
    few = ", ".join(cost.tasks[:3]) + (f" and {len(cost.tasks) - 3} more" if len(cost.tasks) > 3 else "")
    took = (
        f" in {_time(cost.seconds)}, loading included"
        if cost.seconds is not None
        else f"; no time is taken from it: {cost.why}"
    )
    unsaid = " and ".join(word for each, word in ((cost.input_tokens, "in"), (cost.output_tokens, "out")) if not each)
    tokens = (
        f"Tokens are those of {few}{f'; it counted none {unsaid}' if unsaid else ''}."
        if unsaid != "in and out"
        else "It counted no tokens."
    )
    return [
        f"That run: {cost.path} ({cost.model}), {cost.calls:,} calls{took}.",
        f"{tokens} The same machine and settings are taken for granted.",
    ]


def _in_time(catalogue: api.Catalogue) -> list[str]:
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
    from lmms_patch.harness.names.catalog import counts

    told = "; ".join(f"{_VERDICTS[verdict]}: {n}" for verdict, n in counts(entries).items() if n)
    return told[:1].upper() + told[1:]


def count(write: Path | None, quiet: bool, verbose: bool) -> None:
    """Count the wrappable tasks of the installed lmms-eval, and write their list where asked."""
    with looking("reading all tasks of lmms-eval", quiet or verbose) as watch:
        entries = api.coverage(quiet=not verbose, watch=watch)
    say(f"{len(entries)} tasks. {tally(entries)}.")
    if write:
        write_page(write, entries)
        say(f"written: {write}")


def write_page(path: Path, entries: list[Entry]) -> None:
    """Write the list as Markdown.

    Raises:
        RecordError: the file cannot be written.
    """
    from lmms_patch.harness.names.catalog import coverage_page

    files.write(path, coverage_page(entries))
