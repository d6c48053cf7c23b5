"""The folder that a pruning leaves.

| file | content |
|---|---|
| ``kept_ids.txt``, ``removed_ids.txt`` | stable ids, one a line; the removed ones in order of removal |
| ``removed.csv`` | ``key, doc_id, category, round, score`` of every removed doc |
| ``categories.csv``, ``categories.md`` | TsT paper, Table 8: category, original count, removed, percent removed, final count; total last |
| ``history.json`` | every round (``prune.Round``); an interrupted pruning continues from it |
| ``judge.json`` | the judge's numbers, saved one by one (``controls``) |
| ``pruned.json`` | all of it: ``schema`` (1), ``base``, ``settings``, ``stopped``, ``over_pruned``, ``judged``, ``overlap``, ``kept``, ``removed`` |
| ``task/`` | a task folder for ``--include_path`` (``harness.tst.pruned_task``) |

``kept`` and ``removed`` are lists of ``{key, doc_id}``. Scores are fractions on the metric's own scale, percentages are
percent.

Source: TsT paper, https://arxiv.org/abs/2511.04655.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_patch import files
from lmms_patch.errors import OTHER_VERSION, RecordError, shown
from lmms_patch.runs.typed import read_as
from lmms_patch.tst.formats import Pruning
from lmms_patch.tst.items import Item
from lmms_patch.tst.prune import SCHEMA, Pruned, save_json


def read(path: Path) -> Pruning:
    """Read a ``pruned.json``.

    Raises:
        RecordError: it cannot be read, is not whole, or is of another version.
    """
    try:
        data = files.parse_json(path.read_text(encoding="utf-8"))
        if isinstance(data, dict) and data.get("schema") == SCHEMA:
            return read_as(data, Pruning)
    except (OSError, ValueError, RecordError) as error:
        raise RecordError(f"{path}: not a whole pruned.json of lmms-patch prune ({error})") from None
    if not isinstance(data, dict) or "schema" not in data:
        raise RecordError(f"{path}: not a whole pruned.json of lmms-patch prune (no schema)")
    raise RecordError(f"{path}: of schema {shown(data['schema'])}; {OTHER_VERSION}")


def categories(items: Sequence[Item], pruned: Pruned) -> list[tuple[str, int, int, float, int]]:
    """Return TsT paper, Table 8: (category, original count, removed, percent removed, final count).

    The last row is the total.
    """
    before = Counter(item.category for item in items)
    gone = Counter(items[int(i)].category for i in pruned.removed)
    rows = [
        (name or "(none)", count, gone[name], 100 * gone[name] / count, count - gone[name])
        for name, count in sorted(before.items())
    ]
    removed = len(pruned.removed)
    return [*rows, ("Total", len(items), removed, 100 * removed / max(1, len(items)), len(items) - removed)]


def write(
    folder: Path, base: str, items: Sequence[Item], pruned: Pruned, settings: Mapping[str, Any], more: Mapping[str, Any]
) -> None:
    """Write all files but the task folder and the states.

    Args:
        folder: where to write.
        base: the task that was pruned.
        items: all its items.
        pruned: the result.
        settings: in plain JSON types.
        more: ``judged`` and ``overlap`` in plain JSON types.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept, removed = [items[int(i)] for i in pruned.kept], [items[int(i)] for i in pruned.removed]
    _text(folder / "kept_ids.txt", [item.key for item in kept])
    _text(folder / "removed_ids.txt", [item.key for item in removed])
    number = {key: done.number for done in pruned.rounds for key in done.removed}
    rows = [
        [item.key, item.doc_id, item.category, number[item.key], f"{s:.6g}"]
        for item, s in zip(removed, pruned.scores, strict=True)
    ]
    _csv(folder / "removed.csv", [["key", "doc_id", "category", "round", "score"], *rows])
    table = categories(items, pruned)
    header = ["category", "original", "removed", "percent removed", "final"]
    _csv(folder / "categories.csv", [header, *([name, a, b, f"{c:.1f}", d] for name, a, b, c, d in table)])
    lines = [f"| {name} | {a} | {b} | {c:.1f} % | {d} |" for name, a, b, c, d in table]
    _text(
        folder / "categories.md",
        [
            "| Question category | Original count | Removed | Percent removed | Final count |",
            "|---|---|---|---|---|",
            *lines,
        ],
    )
    about = {
        "schema": SCHEMA,
        "base": base,
        "settings": dict(settings),
        "stopped": pruned.stopped,
        "over_pruned": pruned.over_pruned,
    }
    ids = {
        name: [{"key": item.key, "doc_id": item.doc_id} for item in own]
        for name, own in (("kept", kept), ("removed", removed))
    }
    save_json(folder / "pruned.json", {**about, **more, **ids})


def _text(path: Path, lines: Sequence[str]) -> None:
    files.write(path, "".join(f"{line}\n" for line in lines))


def _csv(path: Path, rows: Sequence[Sequence[Any]]) -> None:
    out = io.StringIO()
    # by default the module ends lines as Windows does, on every system
    csv.writer(out, lineterminator="\n").writerows(rows)
    _text(path, out.getvalue().splitlines())
