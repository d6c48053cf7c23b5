"""A finished run: are its files whole, do they agree, and does it have what its numbers need to be read?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from lmms_patch.app.doctor.lines import Line, check
from lmms_patch.compare import audit
from lmms_patch.errors import PatchError
from lmms_patch.runs import reading
from lmms_patch.runs import run as runs
from lmms_patch.runs.run import Result
from lmms_patch.text import clean, line

NAMED = 4
"""How many tasks a line names; the others are counted."""


@check("run")
def finished(path: Path) -> Iterator[Line]:
    """Check the newest results under a path.

    Args:
        path: the ``--output_path`` of runs, or one results file.
    """
    try:
        found = runs.find([path])
    except PatchError as error:
        yield Line(
            "run",
            "wrong",
            line(error),
            "lmms-eval ... --output_path OUT --log_samples, and then: lmms-patch doctor OUT",
        )
        return
    newest, _ = runs.newest(result for run in found for result in run.results)
    if not newest:
        yield Line(
            "run",
            "wrong",
            f"{path}: no wrapped task in it",
            "add one to your lmms-eval command, such as --tasks gqa_rci3",
        )
        return
    yield from _files(newest)
    yield from _null(newest)
    yield from _blind(newest)
    yield from _calls(newest)


def _files(newest: Sequence[Result]) -> Iterator[Line]:
    """Yield a line on each result: whether its sample log is there, and whether the log gives the same numbers."""
    whole: list[Result] = []
    unlogged: list[Result] = []
    for one in newest:
        if one.log is None and one.docs and one.run.logged:
            said = f"{one.run.path}: the run wrote a sample log of {clean(one.task)}, which is not there"
            yield Line("run", "wrong", said, "put it back beside the results file")
            continue
        try:
            unchecked = audit.check(one).unchecked
        except PatchError as error:
            yield Line("run", "wrong", line(error), _again([one]))
            continue
        if audit.NO_LOG in unchecked:
            unlogged.append(one)
        elif unchecked:
            said = f"{clean(one.label)}: {line('; '.join(unchecked))}"
            yield Line("run", "warning", said, f"lmms-patch analyze {one.run.path}" if one.docs else _again([one]))
        else:
            whole.append(one)
    if unlogged:
        yield Line(
            "run",
            "warning",
            f"no sample log of {_names(unlogged)}: its numbers stand unchecked, docs cannot be compared",
            _again(unlogged),
        )
    if whole:
        yield Line("run", "ok", f"{_names(whole)}: every number is one that the sample log gives")


def _null(newest: Sequence[Result]) -> Iterator[Line]:
    """Report the results without a check of whether the model looks."""
    unseen = [one for one in newest if one.kind.index and reading.unchecked(one.analysis)]
    for one in unseen:
        if one.analysis and one.analysis.gate.looks:
            yield Line("wrong images", "warning", f"{one.label}: {reading.why_unchecked(one.analysis, one.kind.words)}")
    if unseen := [one for one in unseen if not (one.analysis and one.analysis.gate.looks)]:
        said = (
            f"{_names(unseen)}: no doc was asked on a wrong image, so it is not known whether the answers depend on the "
            "image, and how much is luck"
        )
        yield Line(
            "wrong images", "warning", said, f"take 'null: 0' out of the options, if it is there, and: {_again(unseen)}"
        )


def _blind(newest: Sequence[Result]) -> Iterator[Line]:
    """Say which benchmarks lack a run without images, which the vision-blind gap needs."""
    blind = {(one.run.identity, one.base) for one in newest if one.described["kind"] == "blind"}
    lacking = [
        one
        for one in newest
        if one.kind.index and not one.kind.needs_video and (one.run.identity, one.base) not in blind
    ]
    if lacking:
        bases = list(dict.fromkeys(str(one.base) for one in lacking))
        said = f"no run without images of {_some(bases)}: the gap between seeing and not seeing is not known"
        yield Line("blind", "warning", said, _command(lacking[0], [f"{base}_blind" for base in bases]))


def _calls(newest: Sequence[Result]) -> Iterator[Line]:
    """Say where calls failed, and where only a part of the benchmark was asked."""
    if failed := [one for one in newest if one.metrics.get("n_failed")]:
        docs = sum(int(one.metrics["n_failed"] or 0) for one in failed)
        yield Line(
            "calls",
            "warning",
            f"{_names(failed)}: {docs} docs with a failed call are left out",
            f"the same command asks only them: {_again(failed)}",
        )
    if earlier := [one for one in newest if reading.kept(one.details)]:
        yield Line(
            "answers",
            "warning",
            f"{_names(earlier)}: {reading.kept(earlier[0].details)}",
            "nothing, if that process was yours",
        )
    # lmms-eval takes -1 for all docs
    if part := [one for one in newest if one.run.about.get("limit") not in (None, -1)]:
        limit = str(part[0].fingerprint["limit"])
        yield Line(
            "docs",
            "warning",
            f"{_names(part)}: only the docs of --limit ({limit}), which are not the benchmark",
            _command(part[0], _tasks(part), "all"),
        )


def _again(results: Sequence[Result]) -> str:
    """Return the command for making some results again."""
    return _command(results[0], _tasks(results))


def _command(one: Result, tasks: Sequence[str], limit: str = "") -> str:
    return runs.command(one.run.adapter, one.run.model_args, tasks, limit or str(one.fingerprint["limit"]))


def _tasks(results: Sequence[Result]) -> list[str]:
    return list(dict.fromkeys(one.task for one in results))


def _names(results: Sequence[Result]) -> str:
    return _some(list(dict.fromkeys(one.label for one in results)))


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return clean(", ".join(names[:NAMED])) + more
