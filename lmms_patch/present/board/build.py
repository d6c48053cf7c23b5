"""``lmms-patch leaderboard``: from folders of runs to a folder with a board. Wires; computes nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmms_patch import files
from lmms_patch.errors import OptionError
from lmms_patch.present.board import model_index, model_page, page, tables
from lmms_patch.present.board.board import Board, board
from lmms_patch.present.board.overall import Changes, Overall, changes, check_over, overall
from lmms_patch.present.ranking import by_of
from lmms_patch.runs import run as runs
from lmms_patch.text import file_names

TITLE = "Leaderboard"
_OF_MODEL = re.compile(r"model-index/[A-Za-z0-9._-]+\.md|models/[A-Za-z0-9._-]+\.html")


@dataclass(frozen=True)
class Built:
    """What was made.

    Attributes:
        folder: where it lies.
        board: groups and ranks.
        overall, changes: the means.
    """

    folder: Path
    board: Board
    overall: tuple[Overall, ...]
    changes: tuple[Changes, ...]


def leaderboard(
    folders: Sequence[Path],
    output: Path,
    *,
    by: str = "pcri",
    ignore: Collection[str] = (),
    over: Collection[str] = (),
) -> Built:
    """Read all runs and write the board's files, all or none of them; further files in the folder stay.

    Args:
        folders: of runs, at any depth, or single results files.
        output: the board's folder; made where it is not there.
        by: what to rank by (``ranking.BY``).
        ignore: settings in which runs may differ and still be ranked together.
        over: the benchmarks to take overall means over; none: chosen by who has what (``ranking.shared_benchmarks``).

    Raises:
        PatchError: an input is damaged, an option is not possible, or the folder cannot be written. The board is as it
            was.
    """
    if output.exists() and not output.is_dir():
        raise OptionError(f"{output}: not a folder; give --output a folder for the board")
    ranked = board(runs.find(folders), by_of(by), tuple(dict.fromkeys(ignore)))
    check_over(over, ranked)
    built = Built(output, ranked, tuple(overall(ranked, over)), tuple(changes(ranked, over)))
    of_models = _of_models(TITLE, ranked, output)
    made = {**of_models, **_of_board(TITLE, built, list(of_models))}
    # Only the board itself says which pages of models are its own: the folder may hold other files.
    gone = [output / name for name in _pages(output) if name not in made and (output / name).is_file()]
    with files.staged({output / name: text for name, text in made.items()}, gone):
        pass
    return built


def _pages(output: Path) -> list[str]:
    """Return the files of models named by the board in a folder; none where there is no board."""
    try:
        names = files.parse_json(files.read(output / "board.json"))["pages"]
        return [name for name in names if _OF_MODEL.fullmatch(name)]
    except (OSError, ValueError, LookupError, TypeError):
        return []


def _of_board(title: str, built: Built, pages: Sequence[str]) -> dict[str, str]:
    """Return the text of every file of a board but those of single models, by its name."""
    ranked, means = built.board, (built.overall, built.changes)
    sheets = tables.group_sheets(ranked)
    return {
        "leaderboard.csv": tables.flat_sheet(ranked).to_csv(),
        "leaderboard.md": tables.markdown_text(title, ranked, *means, sheets),
        "board.json": tables.json_text(title, ranked, *means, sheets, pages),
        "index.html": page.page(title, ranked, *means, sheets, model_page.paths(ranked)),
    }


def _of_models(title: str, ranked: Board, folder: Path) -> dict[str, str]:
    """Return the card and the page of each model, by their path in the board's folder."""
    cards, paths = file_names(ranked.models, ".md"), model_page.paths(ranked)
    out: dict[str, str] = {}
    for identity, entries in model_page.of_models(ranked).items():
        name = ranked.models[identity]
        ran = model_page.runs_of([run for run in ranked.runs if run.identity == identity], folder)
        out[paths[identity]] = page.model(title, name, entries, *ran)
        if card := model_index.card(name, [entry for _, entry in entries]):
            out[f"{model_index.FOLDER}/{cards[identity]}"] = card
    return out
