"""What a board remembers of the runs that it has read: ``leaderboard.json``, schema 1 (``lmms-patch config schemas/leaderboard``).

A run is known by the SHA-256 of its results file; where the file lies, its size and its time only save reading its log
again. The file has a digest of each run's numbers, and ``update`` compares the numbers with the run's files where they
are at hand: anybody may have edited a board.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from lmms_patch import files
from lmms_patch.ask.references import digest
from lmms_patch.compare import audit
from lmms_patch.errors import RecordError, shown
from lmms_patch.present.board.memory import (
    BoardDataset,
    BoardDetails,
    BoardFile,
    BoardNotes,
    BoardResult,
    BoardRun,
    Leaderboard,
)
from lmms_patch.runs import gone, reading
from lmms_patch.runs import run as runs
from lmms_patch.runs.numbers import Grid
from lmms_patch.runs.record import sizes_at_odds
from lmms_patch.runs.results import results_files
from lmms_patch.runs.typed import fault, read_as
from lmms_patch.stats.intervals import mended
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import arguments, clean

SCHEMA = 1
NAME = "leaderboard.json"
RECHECKED = 1000
"""Results of the newest runs that are compared with their files each time: a second. Of the others their digest is compared."""


@dataclass(frozen=True)
class Store:
    """What a board knows.

    Attributes:
        runs: all of its runs.
        written: the files in its folder that were made for models, each with a digest of what the file was made of.
        edited: hashes of the runs whose model, date or results are not those that their digest is of: somebody edited
        the board.
        remembered: hashes of the runs whose results were not compared with their files.
    """

    runs: tuple[BoardRun, ...] = ()
    written: Mapping[str, str] = field(default_factory=dict)
    edited: Set[str] = frozenset()
    remembered: Set[str] = frozenset()


@dataclass(frozen=True)
class Update:
    """A store brought up to date.

    Attributes:
        store: the store.
        read: how many results files were read.
        known: how many were known.
        gone: how many that it knows are no longer there.
        mended: of how many runs the board's numbers had been edited; they are those of their files again.
    """

    store: Store
    read: int
    known: int
    gone: int
    mended: int = 0


# --- what a run says ------------------------------------------------------------------------------


def remember(run: runs.Run) -> list[BoardResult]:
    """Return what a board keeps of a run's wrapped tasks.

    Raises:
        RecordError: they are not as lmms-patch writes them, or not what their sample logs give.
    """
    out = []
    for result in run.results:
        kept = _result(result)
        out.append(replace(kept, unchecked=audit.check(result, stored=True).whole))
    return out


def _result(result: runs.Result) -> BoardResult:
    """Return a result in the board's form: numbers without words, settings, and the gate's verdict.

    Raises:
        RecordError: it is not as lmms-patch writes it.
    """
    kind, analysis = result.kind, result.analysis
    gate = None if analysis is None or not kind.index else analysis.gate
    try:
        out = BoardResult(
            task=result.task,
            filter=result.filter,
            base=result.base,
            kind=kind.name,
            metric=result.metric,
            grids=list(result.grids),
            higher=result.higher_is_better,
            type=result.described["options"].get("type") or "",
            docs=result.docs,
            gate=None if gate is None else gate.number,
            gate_reason="" if gate is None else gate.reason,
            fingerprint=_fingerprint(result),
            numbers={name: _whole(number) for name, number in result.measures.items()},
            notes={n: _notes(grid) for n, grid in analysis.grids.items()} if analysis and gate else {},
            dataset=_dataset(result.run.configs.get(result.task, {})),
            details=_details(result),
            looks=None if gate is None else reading.looks(gate),
            marginal=gate is not None and gate.marginal,
            sampled=reading.is_sampled(analysis),
        )
        # Checked now: later the board is read without the run's files.
        said = fault(msgspec.to_builtins(out, str_keys=True), BoardResult) or next(_odd(out), "")
    except ValueError as error:
        said = str(error)
    if said:
        raise RecordError(
            f"{result.run.path}: {result.task} is not as lmms-patch writes it ({said}); was the file changed?"
        )
    return out


def _fingerprint(result: runs.Result) -> dict[str, Any]:
    """Return the fingerprint in plain JSON types.

    A version that the run does not say is None, as the other settings.
    """
    plain: dict[str, Any] = json.loads(json.dumps(result.fingerprint, allow_nan=False))
    return {key: None if key == "benchmark version" and value == "None" else value for key, value in plain.items()}


def _whole(number: Estimate) -> Estimate:
    """Return a number without words and with every field set, as msgspec does not write fields left at a default."""
    return dataclasses.replace(reading.plain(number))


def _notes(grid: Grid) -> BoardNotes:
    null = None if grid.adj is None else grid.adj.null
    return BoardNotes(
        band=grid.band, span=grid.span, reason=grid.reason, excluded=grid.excluded, fip=grid.fip, null=null
    )


def _details(result: runs.Result) -> BoardDetails:
    """Return the diagnostic and the folds of a text-only cross-validation, or the data of a MAGIC task."""
    if magic := result.details.get("magic"):
        return BoardDetails(dataset=str(magic.get("dataset") or ""))
    tst = result.tst
    return BoardDetails() if tst is None else BoardDetails(diagnostic=tst.diagnostic or "", grouping=tst.headline)


def _dataset(config: Mapping[str, Any]) -> BoardDataset:
    """Return the data's Hub id, configuration and split. What lies on somebody's disk is not named."""
    path, name, split = config.get("dataset_path"), config.get("dataset_name"), runs.split_of(config)
    return (
        BoardDataset(path, None if name is None else str(name), split)
        if runs.is_hub(path)
        else BoardDataset(split=split)
    )


def _odd(result: BoardResult) -> Iterator[str]:
    """Say what of a result cannot be, beyond the types of its parts."""
    if said := sizes_at_odds(result.kind, result.grids):
        yield f"grids {said}"
    indexed = result.notes if result.index else ()
    for name in ("score", *(f"{stem}{n}" for n in indexed for stem in ("mpp", result.index, "gap"))):
        if name not in result.numbers:
            yield f"numbers have no {name}"
    for name, number in result.numbers.items():
        if (number.low is None) != (number.high is None):
            yield f"{name}: an interval with one end"
        elif number.low is not None and number.high is not None and number.low > number.high:
            yield f"{name}: the interval's low end {number.low} is above its high end {number.high}"


# --- up to date -----------------------------------------------------------------------------------


def find(paths: Iterable[Path]) -> list[Path]:
    """Return the results files in some folders (at any depth), or given themselves; each once, without reading them.

    Raises:
        RecordError: a path without one.
    """
    by_place: dict[str, Path] = {}
    for path in paths:
        for file in [path] if path.is_file() else results_files(path):
            # By the real path: a file under two paths is one file.
            by_place.setdefault(os.path.realpath(file), file)
    return list(by_place.values())


def update(
    store: Store, files: Sequence[Path], folder: Path, tell: Callable[[str], None] = lambda line: None
) -> Update:
    """Return the store with what these results files say.

    Files that are as they were are not read, runs whose file has gone stay.

    Args:
        store: what is known.
        files: results files.
        folder: the board's, to which paths are relative.
        tell: told of progress.

    Raises:
        RecordError: a file that is damaged; nothing is written.
    """
    base = os.path.realpath(folder)
    by_hash = {run.sha256: run for run in store.runs}
    known = {file.path: (file, run.sha256) for run in store.runs for file in run.files}
    # Stored by a version that recorded fewer settings: read again where the file is still there.
    old = {
        run.sha256
        for run in store.runs
        if any(key not in result.fingerprint for result in run.results for key in runs.RECORDED)
    }
    given = {_place(path, base): path for path in files}
    there = {
        file.path: Path(_absolute(file.path, base)) for run in store.runs if run.sha256 in old for file in run.files
    }
    alike: dict[tuple[str, ...], list[BoardRun]] = {}
    for run in store.runs:
        alike.setdefault((run.date, *run.identity), []).append(run)
    read, known_before = 0, len(files)
    for place, path in {**{place: path for place, path in there.items() if path.is_file()}, **given}.items():
        before = _stat(path)
        now = BoardFile(path=place, size=before.st_size, mtime_ns=before.st_mtime_ns)
        # A file of equal size and time is taken as unchanged, and not read.
        if place in known and known[place][0] == now and known[place][1] not in old:
            continue
        sha = _hash(path)
        if sha in old or sha not in by_hash:
            if place not in given and sha not in old:
                # Another run has taken this path since, and the user did not name it.
                continue
            read, known_before = read + 1, known_before - (place in given)
            if read % 50 == 0:
                tell(f"{read} results files read")
            one = runs.read(path)
            new = _stored(sha, one, remember(one))
            if sha in old:
                old.discard(sha)
                by_hash[sha] = new
            else:
                same = alike.setdefault((new.date, *new.identity), [])
                # A copy of a results file counts as the same run.
                sha = next((other.sha256 for other in same if new.results and new.results == other.results), sha)
                # Of copies only the first is kept, under its own hash.
                if sha == new.sha256:
                    by_hash[sha] = new
                    same.append(new)
        known[place] = now, sha
    kept = _with_files(by_hash, known, set(given), base)
    remembered = {run.sha256 for run in store.runs if by_hash.get(run.sha256) is run}
    checked = dict(_rechecked(kept, remembered, store.edited, base))
    kept = [checked.get(run.sha256, run) for run in kept]
    gone = sum(not os.path.exists(_absolute(file.path, base)) for run in kept for file in run.files[:1])
    unchecked = frozenset(run.sha256 for run in kept if run.sha256 in remembered and run.sha256 not in checked)
    return Update(Store(tuple(kept), store.written, remembered=unchecked), read, known_before, gone, len(store.edited))


def _stored(sha: str, run: runs.Run, results: list[BoardResult], listed: Sequence[BoardFile] = ()) -> BoardRun:
    """Return a run in the board's form."""
    return BoardRun(
        sha256=sha,
        files=list(listed),
        model=run.model,
        adapter=run.adapter,
        model_args=run.model_args,
        date=run.date,
        results=results,
    )


def _rechecked(
    kept: Sequence[BoardRun], remembered: Container[str], edited: Container[str], base: str
) -> Iterator[tuple[str, BoardRun]]:
    """Yield runs re-read from their files: all edited runs, and the newest as far as a second allows.

    Args:
        kept: the runs.
        remembered: the hashes of those that were not read just now.
        edited: ``Store.edited``.
        base: the board's folder.

    Raises:
        RecordError: numbers were edited, and the run's files are not at hand; or a file that is no longer what it was.
    """
    left = RECHECKED
    for run in sorted(kept, key=lambda run: run.order, reverse=True):
        if run.sha256 not in remembered:
            continue
        # A run counts against the limit whether or not its files are at hand.
        left -= len(run.results)
        if (run.sha256 in edited or left >= 0) and (found := _of_its_files(run, base)):
            yield run.sha256, found
        elif run.sha256 in edited:
            told = f"the numbers of {clean(run.model)}, {clean(run.date)}, are not those that this board wrote, and the run's files are not at hand"
            raise RecordError(
                f"{NAME}: {told}; put them back where they were, or give --fresh to make the board anew from the runs that are given"
            )


def _of_its_files(run: BoardRun, base: str) -> BoardRun | None:
    """Return a run with the results of its files; None where they are not at hand."""
    for path in (Path(_absolute(file.path, base)) for file in run.files):
        if path.is_file() and _hash(path) == run.sha256:
            try:
                read = runs.read(path)
            except RecordError:  # the file of its objects may have gone
                continue
            now = _stored(run.sha256, read, [_result(result) for result in read.results], run.files)
            # Whether numbers were checked is not in the results file, so it is left out of the comparison.
            known = replace(run, results=[replace(one, unchecked=None) for one in run.results])
            return run if now == known else replace(now, results=remember(read))
    return None


def _with_files(
    by_hash: Mapping[str, BoardRun], known: Mapping[str, tuple[BoardFile, str]], here: set[str], base: str
) -> list[BoardRun]:
    """Return the runs with files, each with its present files, else with the last known place."""
    places: dict[str, list[BoardFile]] = {}
    for file, sha in known.values():
        places.setdefault(sha, []).append(file)
    out = []
    for sha, run in by_hash.items():
        listed = sorted(places.get(sha, ()), key=lambda file: file.path)
        there = [file for file in listed if file.path in here or os.path.exists(_absolute(file.path, base))]
        if listed:
            out.append(replace(run, files=there or listed[:1]))
    return sorted(out, key=lambda run: (run.order, run.files[0].path))


def _place(path: Path, base: str) -> str:
    """Return a path for the store: relative to the board's folder, with forward slashes.

    Absolute where it is on another drive.
    """
    whole = os.path.realpath(path)
    try:
        return Path(os.path.relpath(whole, base)).as_posix()
    except ValueError:  # another drive
        return Path(whole).as_posix()


def _absolute(place: str, base: str) -> str:
    # The path is not looked up: the folder may not be there yet.
    return os.path.normpath(os.path.join(base, place))


def _stat(path: Path) -> os.stat_result:
    """Return size and times of a file; ``RecordError`` for an unreadable file."""
    try:
        return os.stat(path)
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror or error})") from None


def _hash(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror or error})") from None
    return digest.hexdigest()


# --- the file -------------------------------------------------------------------------------------


def to_text(store: Store) -> str:
    """Return the store as JSON with a run on each line, so that diffs of the file show new runs."""
    lines = [json.dumps(_plain(run), separators=(",", ":")) for run in store.runs]
    written = json.dumps(dict(store.written))
    return f'{{"schema":{SCHEMA},"written":{written},"runs":[\n' + ",\n".join(lines) + "\n]}\n"


def _plain(run: BoardRun) -> dict[str, Any]:
    """Return a run in plain JSON types, with its digest."""
    out: dict[str, Any] = msgspec.to_builtins(run, str_keys=True)
    return {**out, "digest": _digest(out)}


def _digest(run: Mapping[str, Any]) -> str:
    """Return the digest of a run's identity and results, whatever the order of keys."""
    return digest(
        [json.dumps([run[key] for key in ("model", "adapter", "model_args", "date", "results")], sort_keys=True)]
    )


def load(folder: Path) -> Store:
    """Return the store in a board's folder; an empty store where the folder has none.

    Raises:
        RecordError: it is damaged, or of another schema.
    """
    path = Path(folder) / NAME
    if not path.exists():
        return Store()
    hint = "give another --output, or --fresh to make the board anew from the runs that are given"
    try:
        data = files.parse_json(path.read_text(encoding="utf-8"))
        schema = data["schema"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise RecordError(
            f"{path}: not a whole board of lmms-patch ({type(error).__name__}: {error}); {hint}"
        ) from None
    if schema != SCHEMA:
        raise RecordError(
            f"{path}: a board of schema {shown(schema)}; this version of lmms-patch reads schema {SCHEMA}; {hint}"
        )
    try:
        found = read_as(data, Leaderboard)
        kept = tuple(map(_of_this_version, found.runs))
    except RecordError as error:
        raise RecordError(f"{path}: {error}; the board was changed or is damaged; {hint}") from None
    # Numbers that somebody edited in the board's file no longer match the run's digest.
    edited = {
        run.sha256
        for run, raw in zip(found.runs, data["runs"], strict=True)
        if run.digest and run.digest != _digest(raw)
    }
    return Store(kept, found.written, edited)


def _of_this_version(run: BoardRun) -> BoardRun:
    """Return a run of an earlier version in today's form: secrets hidden, old numbers dropped or mended.

    Raises:
        RecordError: a result cannot be.
    """
    results = []
    for result in run.results:
        numbers, metric = gone.kept(result.numbers), gone.PRIMARY.get(result.metric)
        if metric in numbers:
            numbers["score"] = numbers[metric]
            result = replace(result, metric=metric, fingerprint={**result.fingerprint, "metric": metric})
        results.append(replace(result, numbers={name: _whole(mended(number)) for name, number in numbers.items()}))
        if said := next(_odd(results[-1]), ""):
            raise RecordError(f"{clean(result.task)} of {clean(run.model)}: {said}")
    return replace(run, model_args=arguments(run.model_args), results=results, digest=UNSET)
