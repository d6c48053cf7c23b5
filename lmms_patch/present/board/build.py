"""``lmms-patch leaderboard``: from folders of runs to a folder with a board. Wires; computes nothing."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lmms_patch.errors import PatchError, RecordError
from lmms_patch.present.board import model_index, model_page, store, tables, write
from lmms_patch.present.board.board import Board, board
from lmms_patch.present.board.memory import BoardRun, Identity
from lmms_patch.present.board.overall import Changes, Overall, changes, check_over, overall
from lmms_patch.present.ranking import by_of

TITLE = "Leaderboard"
_OF_MODEL = re.compile(r"model-index/[A-Za-z0-9._-]+\.md|models/[A-Za-z0-9._-]+\.html")


@dataclass(frozen=True)
class Built:
    """What was made.

    Attributes:
        folder: where it lies.
        board: groups and ranks.
        overall, changes: the means.
        update: what was read.
        written: files that were written or removed; empty where nothing changed.
    """

    folder: Path
    board: Board
    overall: tuple[Overall, ...]
    changes: tuple[Changes, ...]
    update: store.Update
    written: tuple[str, ...]


def leaderboard(
    folders: Sequence[Path],
    output: Path,
    *,
    by: str = "pcri",
    ignore: Collection[str] = (),
    over: Collection[str] = (),
    fresh: bool = False,
    title: str = TITLE,
    tell: Callable[[str], None] = lambda line: None,
) -> Built:
    """Update a board with some runs, and write its files; known results files are not read again.

    Args:
        folders: of runs, at any depth, or single results files; none: the board is written again from what it knows.
        output: the board's folder; made where it is not there.
        by: what to rank by (``ranking.BY``).
        ignore: keys of ``Result.fingerprint`` in which runs may differ and still be ranked together.
        over: the benchmarks to take overall means over; none: chosen by who has what (``ranking.shared_benchmarks``).
        fresh: forget all runs but those in ``folders``.
        title: of the page.
        tell: told of progress, a line at a time.

    Raises:
        PatchError: an input is damaged, an option is not possible, or the folder cannot be written. The board is as it
            was.
    """
    output = Path(output)
    if output.exists() and not output.is_dir():
        raise PatchError(f"{output}: not a folder; give --output a folder for the board")
    with write.locked(output, tell):
        known, before = _known(output, fresh)
        if not folders and not known.runs:
            raise RecordError(
                f"{output}: no board here yet, and no runs were given; give the folders that were --output_path of runs"
            )
        files = store.find([Path(folder) for folder in folders])
        updated = store.update(known, files, output, tell)
        ranked = board(updated.store, by_of(by), tuple(dict.fromkeys(ignore)))
        check_over(over, ranked)
        overalls, steps = tuple(overall(ranked, over)), tuple(changes(ranked, over))
        made, of_models = _files(title, ranked, overalls, steps), _of_models(title, ranked, updated.store, output)
        for name, (digest, text) in of_models.items():
            # An equal digest means that the file on disk is what would be written now.
            if before.get(name) != digest or not (output / name).is_file():
                made[name] = text()
        kept = dataclasses.replace(updated.store, written={name: digest for name, (digest, _) in of_models.items()})
        made[store.NAME] = store.to_text(kept)
        written = write.publish(
            output, made, [name for name in before if _OF_MODEL.fullmatch(name) and name not in of_models]
        )
    return Built(output, ranked, overalls, steps, dataclasses.replace(updated, store=kept), tuple(written))


def _known(output: Path, fresh: bool) -> tuple[store.Store, Mapping[str, str]]:
    """Return the store of the board, and the files made for models."""
    if not fresh:
        known = store.load(output)
        return known, known.written
    try:
        return store.Store(), store.load(output).written
    except RecordError:
        return store.Store(), {}


def _files(title: str, ranked: Board, overalls: Sequence[Overall], steps: Sequence[Changes]) -> dict[str, str]:
    """Return the text of every file of a board but for the pages of models, by its name.

    Both pages say of which state the board is: where a run is killed while it renames its files, they differ in that
    until the next run.
    """
    from lmms_patch.present.board import page

    sheets = tables.group_sheets(ranked)
    found = tables.json_text(title, ranked, overalls, steps, sheets)
    state = hashlib.sha256(found.encode("utf-8", "replace")).hexdigest()[:8]
    return {
        "leaderboard.csv": tables.flat_sheet(ranked).to_csv(),
        "leaderboard.md": f"{tables.markdown_text(title, ranked, overalls, steps, sheets)}\nState: {state}\n",
        "board.json": found,
        "index.html": page.page(title, ranked, overalls, steps, sheets, model_page.paths(ranked), state),
    }


def _of_models(title: str, ranked: Board, known: store.Store, folder: Path) -> dict[str, tuple[str, Callable[[], str]]]:
    """Return the files of each model: path in the board's folder -> digest of the contents, and the maker."""
    from lmms_patch.present.board import page

    out: dict[str, tuple[str, Callable[[], str]]] = {}
    for name, (model, entries, digest) in model_index.wanted(ranked).items():
        out[name] = digest, partial(model_index.card, model, entries)
    paths, runs = model_page.paths(ranked), dict[Identity, list[BoardRun]]()
    for run in known.runs:
        runs.setdefault(run.identity, []).append(run)
    for identity, of_model in model_page.of_models(ranked).items():
        shown = title, ranked.models[identity], of_model, *model_page.runs_of(runs[identity], folder)
        out[paths[identity]] = model_page.signed(*shown), partial(page.model, *shown)
    return out
