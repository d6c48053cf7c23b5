"""What a board remembers of the runs that it has read: ``leaderboard.json``, schema 1 (``lmms-patch schema leaderboard``).

A run is known by the SHA-256 of its results file; where the file lies, its size and its time only save reading its log again. The file has a
digest of each run's numbers, and ``update`` compares the numbers with the run's files where they are at hand: anybody may have edited a board.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lmms_patch import files
from lmms_patch.ask.references import digest
from lmms_patch.ask.spec import KINDS, Kind
from lmms_patch.compare import audit
from lmms_patch.errors import RecordError, shown
from lmms_patch.present.formats import Leaderboard
from lmms_patch.runs import gone, reading
from lmms_patch.runs import run as runs
from lmms_patch.runs.numbers import Grid
from lmms_patch.runs.results import results_files
from lmms_patch.runs.typed import fault
from lmms_patch.stats import bounds
from lmms_patch.stats.intervals import of_file
from lmms_patch.stats.resample import Estimate
from lmms_patch.text import arguments, clean

SCHEMA = 1
NAME = "leaderboard.json"
_FIELDS = tuple(f.name for f in dataclasses.fields(Estimate))
RECHECKED = 1000
"""Results of the newest runs that are compared with their files each time: a second. Of the others their digest is compared."""
_SINCE = ("looks", "marginal", "sampled")
"""Fields that boards of earlier versions lack."""


@dataclass(frozen=True)
class GridNotes:
    """What stands beside the index of one grid.

    Attributes:
        band, span: of the index, and the bands that its interval reaches; None without an index.
        reason: why there is no index; empty otherwise.
        excluded: docs left out.
        fip: FIP over the docs that are not: index = 1 − MPP / this; None where the run does not say.
        null: what the luck-corrected index rests on: ``measured`` or ``assumed``; None without one, or where the board was made before it knew.
    """

    band: str | None
    span: str | None
    reason: str
    excluded: int
    fip: float | None = None
    null: str | None = None


@dataclass(frozen=True)
class Result:
    """One wrapped task of one run, as far as a board needs it.

    Attributes:
        task, filter, base, kind, metric: as in ``run.Result``.
        grids: grid sizes; empty for kinds without.
        higher: whether more of the metric is better.
        type: the papers' task type; "" where none is named.
        docs: how many have a record.
        gate: 1 valid, 0 refused (near chance, or the answers do not depend on the image), None unknown or no gate.
        gate_reason: why it fails or is unknown; empty otherwise.
        fingerprint: ``Result.fingerprint``.
        numbers: ``measures.measures``: every number with its interval, on the metric's own scale.
        notes: by grid.
        dataset: ``path``, ``name``, ``split`` of the data, as the task's config names them; None where it does not, or names local files.
        details: of ``tst``: ``diagnostic`` and ``grouping``; of ``magic``: ``dataset``.
        looks: whether the answers are shown to depend on the image; None where that was not checked.
        marginal: whether the gate is passed by less than one further standard error.
        sampled: whether its numbers are estimated from a part of the docs.
    """

    task: str
    filter: str
    base: str
    kind: str
    metric: str
    grids: tuple[int, ...]
    higher: bool
    type: str
    docs: int
    gate: int | None
    gate_reason: str
    fingerprint: Mapping[str, Any]
    numbers: Mapping[str, Estimate]
    notes: Mapping[int, GridNotes] = field(default_factory=dict)
    dataset: Mapping[str, str | None] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)
    looks: bool | None = None
    marginal: bool = False
    sampled: bool = False

    @property
    def gate_word(self) -> str:
        """What tables say of its gate."""
        return reading.verdict_word(self.gate, self.gate_reason, self.marginal)

    @property
    def index(self) -> str | None:
        """``rci``, ``pcri``, ``crci`` or ``trci``; None for a kind without an index."""
        return self.asked.index

    @property
    def asked(self) -> Kind:
        """The kind as a row of the grammar."""
        return KINDS[self.kind]

    @cached_property
    def nonsense(self) -> str:
        """Why these numbers cannot all be true (``nonsense``); empty where they can."""
        return nonsense(self)


@dataclass(frozen=True)
class File:
    """A results file: path relative to the board's folder where that is possible, size in bytes, time of change in ns."""

    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True)
class Stored:
    """One run: the hash of its results file, where copies of that file lie or lay, whose run it is, and its results.

    Attributes:
        changed: whether model, date or results are not those that their digest is of: the board was edited.
        rechecked: whether its results are those of its files, as far as this process knows.
    """

    sha256: str
    files: tuple[File, ...]
    model: str
    adapter: str
    model_args: str
    date: str
    results: tuple[Result, ...]
    changed: bool = False
    rechecked: bool = True

    @property
    def identity(self) -> tuple[str, str, str]:
        """What makes two runs runs of one model."""
        return self.model, self.adapter, self.model_args

    @property
    def order(self) -> tuple[str, str]:
        """Sorts runs by time, however their dates are written; equal dates by hash."""
        return date_order(self.date), self.sha256


def date_order(date: str) -> str:
    """Return a date as text that sorts by time, with or without hyphens: its digits.

    >>> date_order("20260102_030405") < date_order("2026-01-03T00-00-00.123")
    True
    """
    return re.sub(r"\D", "", date)[:20].ljust(20, "0")


def day(date: str) -> str:
    """Return the day of a run, however its date is written; a date that names no day as it is.

    >>> day("20260102_030405"), day("2026-01-03T00-00-00.123"), day("once")
    ('2026-01-02', '2026-01-03', 'once')
    """
    match = re.match(r"(\d{4})-?(\d\d)-?(\d\d)(?!\d)", date)
    return "-".join(match.groups()) if match else clean(date)


@dataclass(frozen=True)
class Store:
    """All runs of a board, and the files in its folder that were made for models, each with a digest of what it was made of."""

    runs: tuple[Stored, ...] = ()
    written: Mapping[str, str] = field(default_factory=dict)


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


def remember(run: runs.Run) -> tuple[Result, ...]:
    """Return what a board keeps of a run's wrapped tasks.

    Raises:
        RecordError: they are not as lmms-patch writes them, or not what their sample logs give.
    """
    out = []
    for result in run.results:
        try:
            out.append(_result(result))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise RecordError(
                f"{run.path}: {result.task} is not as lmms-patch writes it ({type(error).__name__}: {error}); was the file changed?"
            ) from None
        audit.check(result, intervals=False, stored=True)
    return tuple(out)


def _result(result: runs.Result) -> Result:
    """Return a result of a finished run as the store keeps it: numbers without their words, settings, and what the gate says."""
    described, details = result.described, result.details
    kind = result.kind
    numbers = {name: _checked(name, reading.plain(estimate)) for name, estimate in result.measures.items()}
    analysis = result.analysis if kind.index else None
    gate = analysis.gate if analysis else None
    stress = details.get("tst_details") or {}
    about = {"diagnostic": str(stress.get("diagnostic") or ""), "grouping": str(stress.get("headline") or "")} if stress else {}
    magic = details.get("magic") or {}
    return Result(
        task=result.task,
        filter=result.filter,
        base=str(described["base"]),
        kind=kind.name,
        metric=str(described["metric"]),
        grids=tuple(int(n) for n in described["grids"]),
        higher=result.higher_is_better,
        type=str(described["options"].get("type") or ""),
        docs=result.docs,
        gate=gate.number if gate else None,
        gate_reason=gate.reason if gate else "",
        fingerprint=_fingerprint(result),
        numbers=numbers,
        notes={n: _notes(grid) for n, grid in analysis.grids.items()} if analysis else {},
        dataset=_dataset(result.run.configs.get(result.task, {})),
        details={"dataset": str(magic.get("dataset") or "")} if magic else about,
        looks=reading.looks(gate) if gate else None,
        marginal=gate.marginal if gate else False,
        sampled=reading.is_sampled(result.analysis),
    )


def _fingerprint(result: runs.Result) -> dict[str, Any]:
    """Return the fingerprint in plain JSON types. A version that the run does not say is None, as the other settings."""
    plain: dict[str, Any] = json.loads(json.dumps(result.fingerprint, allow_nan=False))
    return {**plain, "benchmark version": None if plain["benchmark version"] == "None" else plain["benchmark version"]}


def _notes(grid: Grid) -> GridNotes:
    return GridNotes(grid.band, grid.span, grid.reason, grid.excluded, _finite("FIP", grid.fip), reading.null_of(grid))


def _checked(name: str, estimate: Estimate) -> Estimate:
    """Return the estimate, if it can be true: finite numbers or None, ends in order.

    Raises:
        ValueError: it cannot.
    """
    for end in (estimate.value, estimate.se, estimate.low, estimate.high):
        _finite(name, end)
    if (estimate.low is None) != (estimate.high is None):
        raise ValueError(f"{name}: an interval with one end")
    if estimate.low is not None and estimate.high is not None and estimate.low > estimate.high:
        raise ValueError(f"{name}: the interval's low end {estimate.low} is above its high end {estimate.high}")
    return estimate


def _finite(name: str, value: Any) -> Any:
    if value is not None and not bounds.is_number(value):
        raise ValueError(f"{name}: {value!r} is not a finite number")
    return value


def _dataset(config: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the data's Hub id, configuration and split. What lies on somebody's disk is not named."""
    path, name = config.get("dataset_path"), config.get("dataset_name")
    hub = runs.is_hub(path)
    return {"path": path if hub else None, "name": str(name) if hub and name is not None else None, "split": runs.split_of(config)}


# --- what cannot be true --------------------------------------------------------------------------

_ROUNDING = 1e-6
_ROUNDED = 0.02
"""How far a value may lie outside its interval, as a share of itself: some aggregations round, and the interval is of what they round."""
_ABOVE = 1.1
"""How far above the score of the gold answers a number may lie: a scorer may not read some of them, and best cells pass over such docs."""


def nonsense(result: Result) -> str:
    """Return the first way in which a result contradicts itself, in words; empty where it does not.

    It looks at the stored numbers alone, since the files of a run may have gone: counts, intervals, and FIP, MPP, index and gap
    against each other and against the range of the metric, which ends at what the gold answers score.
    """
    if result.docs < 0:
        return f"{result.docs} docs"
    for name, one in result.numbers.items():
        if said := _wrong_number(name, one):
            return said
    if result.kind == "magic" and not _within(result.numbers.get("score"), 0.0, 1.0):
        return f"{result.metric} {_short(result.numbers['score'].value)} is no fraction"
    return next((said for n in result.grids if (said := _wrong_grid(result, n))), "") if result.index else ""


def _wrong_number(name: str, one: Estimate) -> str:
    """Return what is wrong with one number: its standard error, its counts, or a value far from its interval."""
    if one.se is not None and one.se < 0:
        return f"{name} has the standard error {_short(one.se)}"
    if one.n < 0 or one.clusters < 0:
        return f"{name} is over {min(one.n, one.clusters)} docs"
    if one.value is not None and one.low is not None and one.high is not None:
        room = _ROUNDED * abs(one.value) + _ROUNDING
        if not one.low - room <= one.value <= one.high + room:
            return f"{name} {_short(one.value)} is outside its interval [{_short(one.low)}, {_short(one.high)}]"
    return ""


def _wrong_grid(result: Result, n: int) -> str:
    """Return what is wrong with the numbers of a grid; only where it has an index: a metric whose scale goes below 0 has none."""
    note, values = result.notes.get(n), {name: one.value for name, one in result.numbers.items()}
    if note is not None and not 0 <= note.excluded <= result.docs:
        return f"{note.excluded} of {result.docs} docs are excluded at grid {n}"
    used = result.numbers.get(f"mpp{n}")
    if used is not None and used.value is not None and used.n > result.docs:
        return f"mpp{n} is over {used.n} of {result.docs} docs"
    index, gap, mpp, top = values.get(f"{result.index}{n}"), values.get(f"gap{n}"), values.get(f"mpp{n}"), values.get("ceiling")
    if index is None:
        return ""
    if result.gate == 0:
        return f"{result.index}{n} has a value, but the gate refuses it"
    fip = note.fip if note is not None and note.fip is not None else values.get("fip")
    if fip is None or mpp is None:
        return f"{result.index}{n} has a value, but {'FIP' if fip is None else f'mpp{n}'} has none"
    for name, value in (("FIP", values.get("fip")), (f"FIP at grid {n}", fip), (f"mpp{n}", mpp)):
        if value is not None and value < 0:
            return f"{name} {_short(value)} is below 0, and a metric whose scale goes below 0 has no index"
        if value is not None and top is not None and 0 < top * _ABOVE < value:
            return f"{name} {_short(value)} is above {_short(top)}, which the gold answers score"
    if fip == 0 or abs(index - (1 - mpp / fip)) > _ROUNDING * max(1.0, mpp / fip):
        return f"{result.index}{n} {_short(index)} is not 1 - MPP / FIP of FIP {_short(fip)} and MPP {_short(mpp)}"
    if gap is not None and abs(gap - (fip - mpp)) > _ROUNDING * max(1.0, abs(fip), abs(mpp)):
        return f"gap{n} {_short(gap)} is not FIP - MPP of FIP {_short(fip)} and MPP {_short(mpp)}"
    return ""


def _within(number: Estimate | None, low: float, high: float) -> bool:
    return number is None or number.value is None or low - _ROUNDING <= number.value <= high + _ROUNDING


def _short(value: Any) -> str:
    return f"{value:.4g}"


# --- up to date -----------------------------------------------------------------------------------


def find(paths: Iterable[Path]) -> list[Path]:
    """Return the results files in some folders (at any depth), or given themselves; each once, without reading them.

    Raises:
        RecordError: a path without one.
    """
    by_place: dict[str, Path] = {}
    for path in paths:
        for file in [path] if path.is_file() else results_files(path):
            by_place.setdefault(os.path.realpath(file), file)
    return list(by_place.values())


def update(store: Store, files: Sequence[Path], folder: Path, tell: Callable[[str], None] = lambda line: None) -> Update:
    """Return the store with what these results files say; files that are as they were are not read, runs whose file has gone stay.

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
    old = {run.sha256 for run in store.runs if _is_of_older_version(run)}
    given = {_place(path, base): path for path in files}
    there = {file.path: Path(_absolute(file.path, base)) for run in store.runs if run.sha256 in old for file in run.files}
    alike: dict[tuple[str, ...], list[Stored]] = {}
    for run in store.runs:
        alike.setdefault((run.date, *run.identity), []).append(run)
    read, known_before = 0, len(files)
    for place, path in {**{place: path for place, path in there.items() if path.is_file()}, **given}.items():
        before = _stat(path)
        now = File(place, before.st_size, before.st_mtime_ns)
        if place in known and known[place][0] == now and known[place][1] not in old:
            continue
        sha = _hash(path)
        if sha in old or sha not in by_hash:
            if place not in given and sha not in old:
                continue  # what lies there now is another run, and nobody gave it
            read, known_before = read + 1, known_before - (place in given)
            if read % 50 == 0:
                tell(f"{read} results files read")
            one = runs.read(path)
            new = Stored(sha, (), one.model, one.adapter, one.model_args, one.date, remember(one))
            if sha in old:
                old.discard(sha)
                by_hash[sha] = new
            else:
                same = alike.setdefault((new.date, *new.identity), [])
                sha = next((other.sha256 for other in same if new.results and _says_the_same(new, other)), sha)
                if sha == new.sha256:
                    by_hash[sha] = new
                    same.append(new)
        known[place] = now, sha
    kept = _rechecked(_with_files(by_hash, known, set(given), base), {run.sha256 for run in store.runs if by_hash.get(run.sha256) is run}, base)
    mended = sum(run.changed for run in store.runs)
    gone = sum(not os.path.exists(_absolute(file.path, base)) for run in kept for file in run.files[:1])
    return Update(dataclasses.replace(store, runs=tuple(kept)), read, known_before, gone, mended)


def _rechecked(kept: Sequence[Stored], remembered: Container[str], base: str) -> list[Stored]:
    """Return runs with the numbers of their files: all that were edited, and so many of the newest as can be read in a second.

    Args:
        kept: the runs.
        remembered: the hashes of those that were not read just now.
        base: the board's folder.

    Raises:
        RecordError: numbers were edited, and the run's files are not at hand; or a file that is no longer what it was.
    """
    out, left = [], RECHECKED
    for run in sorted(kept, key=lambda run: run.order, reverse=True):
        if run.sha256 in remembered:
            left -= len(run.results)
            run = _of_its_files(run, base) if run.changed or left >= 0 else dataclasses.replace(run, rechecked=False)
        out.append(run)
    by_hash = {run.sha256: run for run in out}
    return [by_hash[run.sha256] for run in kept]


def _of_its_files(run: Stored, base: str) -> Stored:
    """Return a run with the numbers of its files; as the board remembers it, and so marked, where they are not at hand."""
    for path in (Path(_absolute(file.path, base)) for file in run.files):
        if not path.is_file() or _hash(path) != run.sha256:
            continue
        try:
            one = runs.read(path)
        except RecordError:  # the file of its objects may have gone
            continue
        now = Stored(run.sha256, run.files, one.model, one.adapter, one.model_args, one.date, tuple(map(_result, one.results)))
        same = _digest(_plain(now)) == _digest(_plain(run))
        return dataclasses.replace(run, changed=False) if same else dataclasses.replace(now, results=remember(one))
    if run.changed:
        told = f"the numbers of {clean(run.model)}, {clean(run.date)}, are not those that this board wrote, and the run's files are not at hand"
        raise RecordError(f"{NAME}: {told}; put them back where they were, or give --fresh to make the board anew from the runs that are given")
    return dataclasses.replace(run, rechecked=False)


def _says_the_same(one: Stored, other: Stored) -> bool:
    """Return whether two results files of one model and date have the same results: one is a copy, laid out otherwise."""
    if [result.task for result in one.results] != [
        result.task for result in other.results
    ]:  # most runs of a model differ in this, which is quick to see
        return False
    plain = [json.dumps([_plain_result(result) for result in run.results], sort_keys=True) for run in (one, other)]
    return plain[0] == plain[1]


def _is_of_older_version(run: Stored) -> bool:
    """Return whether a run was read by a version that did not know of all that two runs are compared by: it is read again where it still lies."""
    return any(key not in result.fingerprint for result in run.results for key in runs.RECORDED)


def _with_files(by_hash: Mapping[str, Stored], known: Mapping[str, tuple[File, str]], here: set[str], base: str) -> list[Stored]:
    """Return the runs that have a file, each with its files: those that are there, else the one where it was last."""
    places: dict[str, list[File]] = {}
    for file, sha in known.values():
        places.setdefault(sha, []).append(file)
    out = []
    for sha, run in by_hash.items():
        listed = sorted(places.get(sha, ()), key=lambda file: file.path)
        there = [file for file in listed if file.path in here or os.path.exists(_absolute(file.path, base))]
        if listed:
            out.append(dataclasses.replace(run, files=tuple(there or listed[:1])))
    return sorted(out, key=lambda run: (run.order, run.files[0].path))


def _place(path: Path, base: str) -> str:
    """Return a path as the store writes it: relative to the board's folder, with forward slashes; absolute where it is on another drive."""
    whole = os.path.realpath(path)
    try:
        return Path(os.path.relpath(whole, base)).as_posix()
    except ValueError:  # another drive
        return Path(whole).as_posix()


def _absolute(place: str, base: str) -> str:
    return os.path.normpath(os.path.join(base, place))  # the folder itself may not be there yet


def _stat(path: Path) -> os.stat_result:
    """Return size and times of a file; one line of error where it cannot be read."""
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
    """Return the file: JSON with one run on a line, so that a version control shows what came."""
    lines = [json.dumps(_plain(run), separators=(",", ":")) for run in store.runs]
    written = json.dumps(dict(store.written))
    return f'{{"schema":{SCHEMA},"written":{written},"runs":[\n' + ",\n".join(lines) + "\n]}\n"


def _plain(run: Stored) -> dict[str, Any]:
    """Return a stored run in plain JSON types; ``_stored`` reads it back."""
    out = {f.name: getattr(run, f.name) for f in dataclasses.fields(run) if f.name not in ("changed", "rechecked")}
    out["files"] = [{"path": f.path, "size": f.size, "mtime_ns": f.mtime_ns} for f in run.files]
    out["results"] = [_plain_result(result) for result in run.results]
    return {**out, "digest": _digest(out)}


def _digest(run: Mapping[str, Any]) -> str:
    """Return the digest of whose run it is and of its results, in plain JSON types and whatever the order of their keys."""
    return digest([json.dumps([run[key] for key in ("model", "adapter", "model_args", "date", "results")], sort_keys=True)])


def _plain_result(result: Result) -> dict[str, Any]:
    """Return a stored result in plain JSON types; ``_stored_result`` reads it back."""
    out = {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}
    out["numbers"] = {name: {key: getattr(one, key) for key in _FIELDS} for name, one in result.numbers.items()}
    out["notes"] = {str(n): dataclasses.asdict(g) for n, g in result.notes.items()}
    return out


def load(folder: Path) -> Store:
    """Return the store of a board's folder; an empty one where there is none yet.

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
        raise RecordError(f"{path}: not a whole board of lmms-patch ({type(error).__name__}: {error}); {hint}") from None
    if schema != SCHEMA:
        raise RecordError(f"{path}: a board of schema {shown(schema)}; this version of lmms-patch reads schema {SCHEMA}; {hint}")
    if said := fault(data, Leaderboard):
        raise RecordError(f"{path}: {said}; the board was changed or is damaged; {hint}")
    try:
        return Store(tuple(_stored(run) for run in data["runs"]), {str(name): str(made) for name, made in data["written"].items()})
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise RecordError(f"{path}: a board that was changed or is damaged ({type(error).__name__}: {error}); {hint}") from None


def _stored(run: Mapping[str, Any]) -> Stored:
    """Return a run from the plain JSON types of ``_plain``."""
    files = tuple(File(str(f["path"]), int(f["size"]), int(f["mtime_ns"])) for f in run["files"])
    texts: dict[str, Any] = {name: str(run[name]) for name in ("sha256", "model", "adapter", "model_args", "date")}
    texts["model_args"] = arguments(texts["model_args"])  # boards of earlier versions knew fewer secrets
    results = tuple(_stored_result(result) for result in run["results"])
    return Stored(files=files, results=results, changed="digest" in run and run["digest"] != _digest(run), **texts)


def _stored_result(result: Mapping[str, Any]) -> Result:
    """Return a result from the plain JSON types of ``_plain_result``; a ValueError says what in it cannot be."""
    given = {f.name: result[f.name] for f in dataclasses.fields(Result) if f.name not in _SINCE or f.name in result}
    if given["kind"] not in KINDS:
        raise ValueError(f"unknown kind {shown(given['kind'])}")
    for name, value in given["fingerprint"].items():
        if isinstance(value, (dict, list)) or (isinstance(value, float) and not bounds.is_number(value)):
            raise ValueError(f"fingerprint: {clean(name)} is no plain value")
    kind = KINDS[given["kind"]]
    if not bounds.is_whole(given["docs"]) or not all(bounds.is_whole(n, *kind.sizes) for n in given["grids"]):
        raise ValueError("docs or grids that cannot be")
    if (metric := gone.PRIMARY.get(given["metric"])) in given["numbers"]:
        given |= {"metric": metric, "fingerprint": {**given["fingerprint"], "metric": metric}}
        given["numbers"] = {**given["numbers"], "score": given["numbers"][metric]}
    given["grids"] = tuple(given["grids"])
    given["numbers"] = {name: _checked(name, of_file(one)) for name, one in gone.kept(given["numbers"]).items()}
    if missing := [name for name in _needed(given, kind) if name not in given["numbers"]]:
        raise ValueError(f"numbers have no {missing[0]}")
    given["notes"] = {int(n): GridNotes(**{**notes, "fip": _finite("FIP", notes.get("fip"))}) for n, notes in given["notes"].items()}
    return Result(**given)


def _needed(given: Mapping[str, Any], kind: Kind) -> list[str]:
    """Return the numbers without which no result is shown: the score, and of each grid with an index MPP, index and gap."""
    return ["score", *(f"{stem}{int(n)}" for n in given["notes"] if kind.index for stem in ("mpp", kind.index, "gap"))]
