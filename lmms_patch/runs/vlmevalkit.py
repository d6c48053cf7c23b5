"""Result files of VLMEvalKit, read as docs with an answer and a score for the full image and for each cell.

VLMEvalKit writes a table for each model and dataset, ``{model}_{dataset}.xlsx`` (or ``.tsv``, ``.csv``, ``.json``,
``.pkl``), with the columns ``index``, ``question``, ``A`` to ``H``, ``answer``, ``prediction`` and more. Once it has
judged, it writes another with a column of scores: ``hit`` in ``..._openai_result.xlsx``, ``score`` in
``..._auxmatch.xlsx``. An RCI or PCRI run made there has a dataset for each cell of the image, whose name says which
cell.

Source: https://github.com/open-compass/VLMEvalKit (``vlmeval/smp/file.py``, ``vlmeval/dataset/image_mcq.py``,
``image_yorn.py``).
"""

from __future__ import annotations

import csv
import io
import math
import re
import string
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_patch import files
from lmms_patch.errors import OptionError, RecordError
from lmms_patch.runs.results import is_of_run
from lmms_patch.text import line

SCORES = ("hit", "score", "eval_score", "eval", "correct", "is_correct", "match")
"""Columns that hold a doc's score, the first that is there."""
OTHER = "Other Answers"
"""What VLMEvalKit writes as option B of an open question of MMMU when it evaluates; option A is then the gold. No model saw them."""
TURN = 10**6
"""What VLMEvalKit adds to the index of a question for each turn of its options."""
GROUP = "g_index"
"""The column in which VLMEvalKit's circular evaluation names the question that a row turns."""
QUESTION = "group"
"""The field of a record that holds the question whose options its row turns."""
ENDINGS = (".xlsx", ".tsv", ".csv", ".json", ".pkl")
CROPS = tuple(
    "{dataset}_" + word
    for name in ("patch", "crop", "cell", "grid")
    for word in (
        *(f"{name}_{{n}}_{{row}}_{{col}}", f"{name}{{n}}_{{row}}_{{col}}", f"{{n}}x{{n}}_{name}_{{row}}_{{col}}"),
        *(f"{name}_{{n}}x{{n}}_{{row}}_{{col}}", f"{name}_{{n}}x{{n}}_{{cell}}", f"{{n}}x{{n}}_{name}_{{cell}}"),
        *(f"{name}_{{n}}_{{cell}}", f"{name}{{n}}_{{cell}}", f"{name}_{{cell}}", f"{name}{{cell}}"),
    )
)
"""How the dataset of a cell may be named, where the user does not say: ``MMStar_patch_3_1_2``, ``MMStar_patch3_5``, ``MMStar_patch_5`` ..."""
_PLACES = ("dataset", "n", "row", "col", "cell")
# tables of sums and of the judge's own work, hidden files, and the files by which Excel locks others (~$)
_NO_RESULTS = re.compile(r"_(acc|score|fine|tmp|PREV|supp|structs|rating|checkpoint|all|eval)(_all)?$|^\.|^~\$")
_JUDGED = re.compile(
    r"_(?P<judge>auxmatch|(?:exact_matching|[^_]+)_result|exact_matching|openai|gpt-?\d[^_]*|chatgpt[^_]*|qwen[^_]*|deepseek[^_]*)(?:_score)?$"
)
# no table of results is larger, and a larger file may fill the memory
_MAX_BYTES = 2**30


# --- tables ---------------------------------------------------------------------------------------


def rows_of(path: Path, trust_pickle: bool = False) -> list[dict[str, Any]]:
    """Return the rows of a table, each by column name; cells without a value are None.

    Args:
        path: a file of one of ``ENDINGS``.
        trust_pickle: read a pickle, which may run any code.

    Raises:
        RecordError: the file cannot be read, holds no table, has two columns of one name, or is a pickle that is not
            trusted.
    """
    ending = path.suffix.lower()
    try:
        if ending == ".pkl" and not trust_pickle:
            raise RecordError(
                f"{path}: a pickle can run any code when it is read; save it as .xlsx or .tsv, or type --trust-pickle if you wrote it yourself"
            )
        if path.stat().st_size > _MAX_BYTES:
            raise RecordError(f"{path}: larger than 1 GiB, so no table of results")
        rows = _READERS[ending](path)
    except RecordError:
        raise
    except Exception as error:
        # of a library that reads what anybody may have written
        raise RecordError(f"{path}: cannot be read as a table ({type(error).__name__}: {line(error, 150)})") from None
    _check_names(path, list(dict.fromkeys(name for row in rows for name in row if name is not None)))
    named = [{_column(name): _cell(value) for name, value in row.items() if name is not None} for row in rows]
    return [row for row in named if any(value is not None for value in row.values())]


def _check_names(path: Path, names: Sequence[Any]) -> None:
    """Refuse columns with the same name but for capitals and spaces: nobody says which of them is meant.

    Raises:
        RecordError: there are such columns.
    """
    named = [str(name) for name in names if name is not None and str(name).strip()]
    same = [name for name, count in Counter(map(_column, named)).items() if count > 1]
    if same:
        told = ", ".join(repr(line(name, 40)) for name in named if _column(name) == same[0])
        raise RecordError(
            f"{path}: several columns have the name {line(same[0], 40)!r} ({told}); rename or remove all but one"
        )


def _column(name: Any) -> str:
    """Return a column's name: small letters, but for the letters of options."""
    text = str(name).strip()
    return text if text in string.ascii_uppercase else text.lower()


def _cell(value: Any) -> Any:
    """Return a cell as text, whole number, fraction, truth value or None; NaN and empty texts are None."""
    # NumPy's own numbers
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        value = value.item()
    if isinstance(value, float):
        return None if math.isnan(value) else int(value) if value.is_integer() else value
    if isinstance(value, str):
        return value if value.strip() else None
    return value if value is None or isinstance(value, (bool, int)) else str(value)


def _xlsx(path: Path) -> list[dict[str, Any]]:
    from openpyxl import load_workbook

    # a small file can unpack to more than the memory holds
    with zipfile.ZipFile(path) as parts:
        if sum(part.file_size for part in parts.infolist()) > _MAX_BYTES:
            raise RecordError(f"{path}: larger than 1 GiB when it is unpacked, so no table of results")
    # read_only: the sheets are not held in memory as a whole
    book = load_workbook(path, read_only=True, data_only=True)
    try:
        sheets = {sheet.title: _filled(sheet) for sheet in book.worksheets}
    finally:
        book.close()
    # only a sheet with a column 'index' can be the table
    tables = {
        title: rows
        for title, rows in sheets.items()
        if rows and "index" in [str(name).strip().lower() for name in rows[0]]
    }
    if len(tables) != 1:
        told = (
            f"{len(tables)} sheets with a column 'index' ({', '.join(tables)})"
            if tables
            else f"no sheet with a column 'index' ({', '.join(sheets)})"
        )
        raise RecordError(f"{path}: {told}; one is needed")
    title, (head, *rows) = next(iter(tables.items()))
    _check_names(path, head)
    # ``data_only`` gives None for a formula that no spreadsheet program has computed
    if any(None in row for row in rows):
        rows = _with_formulas(path, title, rows)
    named = [(place, name) for place, name in enumerate(head) if name is not None]
    return [{name: row[place] if place < len(row) else None for place, name in named} for row in rows]


def _filled(sheet: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a sheet with cells, each cut after its last cell.

    A lone cell at the sheet's far end would otherwise make billions of empty cells.
    """
    # else each row is as long as the file says that the sheet is wide
    sheet.reset_dimensions()
    return [row for row in sheet.iter_rows(values_only=True) if row]


def _with_formulas(path: Path, sheet: str, rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Return rows with the text of each formula in place of its missing value.

    An answer that begins with ``=`` is stored as a formula. A score that is a formula is refused as no number.
    """
    from openpyxl import load_workbook

    book = load_workbook(path, read_only=True)
    try:
        # without ``data_only`` the library gives formulas in place of their values
        _, *written = _filled(book[sheet])
    finally:
        book.close()
    return [
        tuple(text if value is None else value for value, text in zip(row, texts, strict=True))
        for row, texts in zip(rows, written, strict=True)
    ]


def _separated(path: Path, mark: str) -> list[dict[str, Any]]:
    # a column may hold an image
    csv.field_size_limit(2**31 - 1)
    # Excel begins a CSV file with a byte-order mark
    text = io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")
    table = csv.DictReader(text, delimiter=mark)
    _check_names(path, table.fieldnames or ())
    rows = list(table)
    # the csv module puts cells beyond the head under None, and fills missing cells with None
    if odd := next((number for number, row in enumerate(rows, 1) if None in row or None in row.values()), None):
        raise RecordError(
            f"{path}: row {odd} has more or fewer cells than the head; the file is cut, or of another form"
        )
    return [{name: _typed(value) for name, value in row.items()} for row in rows]


def _typed(text: str) -> Any:
    """Return a text as the number, truth value or None that Python and pandas write so; any other text as it is."""
    if text in ("True", "False"):
        return text == "True"
    if text.lower() == "nan":
        return None
    # with leading zeros or more digits it is an id, which must stay as it is
    if re.fullmatch(r"-?(0|[1-9]\d{0,14})", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?\d{1,15}\.\d{1,17}(e[+-]?\d{1,3})?", text) else text


def _json(path: Path) -> list[dict[str, Any]]:
    data = files.parse_json(path.read_text(encoding="utf-8"))
    if isinstance(data, dict) and data and all(isinstance(values, dict) for values in data.values()):
        keys = dict.fromkeys(key for values in data.values() for key in values)
        # pandas' own form: column -> row -> value
        return [{name: values.get(key) for name, values in data.items()} for key in keys]
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        raise RecordError(f"{path}: no list of rows")
    return data


def _pickle(path: Path) -> list[dict[str, Any]]:
    import pickle

    data: Any = pickle.loads(path.read_bytes())
    if hasattr(data, "to_dict") and hasattr(data, "columns"):
        _check_names(path, list(data.columns))
        data = data.to_dict("records")
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        raise RecordError(
            f"{path}: no table, but a {type(data).__name__}; save the table that has a column of predictions"
        )
    return data


_READERS: Mapping[str, Any] = {
    ".xlsx": _xlsx,
    ".tsv": lambda path: _separated(path, "\t"),
    ".csv": lambda path: _separated(path, ","),
    ".json": _json,
    ".pkl": _pickle,
}


# --- which file is what ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """What the user says of the files; None: found out.

    Attributes:
        model: the model's name, with which the files' names begin.
        crop: how the dataset of a cell is named (``CROPS``).
        score: the column of scores.
        judge: which judge's scores, where a dataset has several: ``openai``, ``exact_matching``.
        trust_pickle: read pickles.
    """

    model: str | None = None
    crop: str | None = None
    score: str | None = None
    judge: str | None = None
    trust_pickle: bool = False


@dataclass(frozen=True)
class Cell:
    """A cell of a grid.

    Attributes:
        n: size of the grid; 0 where the name does not say it.
        row, col: as the name has them; None where it has ``cell``.
        cell: as the name has it; None where it has ``row`` and ``col``.
    """

    n: int
    row: int | None = None
    col: int | None = None
    cell: int | None = None


@dataclass(frozen=True)
class Scored:
    """The answers of a model to a dataset, with scores.

    Attributes:
        path: the table with scores.
        column: the column of scores.
        rows: by index.
    """

    path: Path
    column: str
    rows: Mapping[str, Mapping[str, Any]]


@dataclass
class Benchmark:
    """The answers of a model to a benchmark, on full images and on the cells of grids.

    Attributes:
        model, dataset: names.
        full: on full images.
        grids: grid size -> cell, row by row from 1 -> answers.
    """

    model: str
    dataset: str
    full: Scored
    grids: dict[int, dict[int, Scored]] = field(default_factory=dict)


def find(paths: Sequence[Path], asked: Asked) -> list[Benchmark]:
    """Return the benchmarks below some folders, or of some files.

    Raises:
        OptionError: the pattern of ``crop`` cannot be read.
        RecordError: no table of results, names that cannot be told apart, no scores, or cells that are missing.
    """
    patterns = [_pattern(asked.crop)] if asked.crop else [_pattern(one) for one in CROPS]
    found: dict[tuple[str, str], dict[Cell | None, list[tuple[str, Path]]]] = defaultdict(lambda: defaultdict(list))
    for path in _tables(paths):
        stem, judge = path.stem, ""
        if match := _JUDGED.search(stem):
            stem, judge = stem[: match.start()], match["judge"].removesuffix("_result")
        model = _model(path, stem, asked.model)
        dataset, cell = _place(stem.removeprefix(f"{model}_"), patterns)
        found[model, dataset][cell].append((judge, path))
    if not found:
        raise RecordError(
            f"{', '.join(map(str, paths))}: no result files of VLMEvalKit ({{model}}_{{dataset}}{', '.join(ENDINGS)})"
        )
    return [_benchmark(model, dataset, parts, asked) for (model, dataset), parts in sorted(found.items())]


def _tables(paths: Sequence[Path]) -> list[Path]:
    """Return the given files, and the files in given folders which may hold results. A file behind several links comes once."""
    out: dict[Path, None] = {}
    for path in paths:
        if path.is_file():
            if path.suffix.lower() not in ENDINGS:
                raise RecordError(f"{path}: not a table of VLMEvalKit; it must end in {', '.join(ENDINGS)}")
            out[path] = None
        elif path.is_dir():
            inside = (
                one
                for one in sorted(path.rglob("*"))
                if one.is_file() and one.suffix.lower() in ENDINGS and not is_of_run(one)
            )
            out |= dict.fromkeys(one for one in inside if "_" in one.stem and not _NO_RESULTS.search(one.stem))
        else:
            raise RecordError(f"{path}: no such file or folder")
    # A pickle beside a table of the same name is an intermediate result of the judge.
    kept = [
        path
        for path in out
        if path.suffix != ".pkl" or not any(path.with_suffix(end) in out for end in ENDINGS if end != ".pkl")
    ]
    # VLMEvalKit writes into a folder for each evaluation, and links the newest files into the folder above.
    return list({path.resolve(): path for path in reversed(kept)}.values())[::-1]


def _model(path: Path, stem: str, given: str | None) -> str:
    """Return the model's name, with which the file's name begins: as given, or the name of a folder above."""
    names = [given] if given is not None else [folder.name for folder in path.absolute().parents]
    model = next((name for name in names if name and stem.startswith(f"{name}_")), None)
    if model is None:
        what = (
            f"does not begin with the model {given!r}"
            if given is not None
            else "does not begin with the name of a folder above it"
        )
        raise RecordError(
            f"{path}: its name {what}, so model and dataset cannot be told apart; type --model NAME as the file's name has it"
        )
    return model


def _pattern(text: str) -> re.Pattern[str]:
    """Return the regular expression of a pattern such as ``{dataset}_patch_{n}_{row}_{col}``.

    Raises:
        OptionError: an unknown place, or not enough of them.
    """
    parts = re.split(r"\{(\w*)\}", text)
    places = parts[1::2]
    if odd := [place for place in places if place not in _PLACES]:
        raise OptionError(
            f"--crop {text}: unknown place {{{odd[0]}}}; allowed: {', '.join(f'{{{place}}}' for place in _PLACES)}"
        )
    if "dataset" not in places or ({"row", "col"} <= set(places)) == ("cell" in places):
        raise OptionError(
            f"--crop {text}: it needs {{dataset}}, and either {{row}} and {{col}} or {{cell}}: {{dataset}}_patch_{{n}}_{{row}}_{{col}}"
        )
    out, seen = "", set()
    for place, part in enumerate(parts):
        if place % 2 == 0:
            out += re.escape(part)
        elif part in seen:
            # a place named twice must hold the same text both times
            out += f"(?P={part})"
        else:
            seen.add(part)
            out += f"(?P<{part}>{'.+' if part == 'dataset' else '[0-9]{1,2}'})"
    return re.compile(out)


def _place(name: str, patterns: Iterable[re.Pattern[str]]) -> tuple[str, Cell | None]:
    """Return the dataset and the cell named by a dataset's name; None: the full image."""
    for pattern in patterns:
        if match := pattern.fullmatch(name):
            given = {
                key: int(value) for key, value in match.groupdict().items() if key != "dataset" and value is not None
            }
            return match["dataset"], Cell(given.get("n", 0), given.get("row"), given.get("col"), given.get("cell"))
    return name, None


def _benchmark(
    model: str, dataset: str, parts: Mapping[Cell | None, list[tuple[str, Path]]], asked: Asked
) -> Benchmark:
    where = f"{model}, {dataset}"
    if None not in parts:
        raise RecordError(
            f"{where}: results of {len(parts)} cells, but none of the full image ({model}_{dataset}{ENDINGS[0]})"
        )
    grids = _grids(where, [cell for cell in parts if cell is not None])
    read = {cell: _scored(where, files_, asked) for cell, files_ in parts.items()}
    done = Benchmark(model, dataset, read[None])
    for n, cells in grids.items():
        done.grids[n] = {number: read[cell] for number, cell in sorted(cells.items())}
    _check_docs(where, done)
    return done


def _grids(where: str, cells: Sequence[Cell]) -> dict[int, dict[int, Cell]]:
    """Return the cells of each grid by number, row by row from 1.

    Whether names count from 0 or 1 is decided by the whole grid.

    Raises:
        RecordError: cells are missing, twice, or of no grid.
    """
    by_size: dict[int, list[Cell]] = defaultdict(list)
    unsized = [cell for cell in cells if not cell.n]
    # cells in a square number tell the size of their grid
    size = math.isqrt(len(unsized))
    if size * size != len(unsized):
        raise RecordError(
            f"{where}: {len(unsized)} cells without the size of their grid, which is no square number; name it in --crop with {{n}}"
        )
    for cell in cells:
        by_size[cell.n or size].append(cell)
    out = {}
    for n, own in sorted(by_size.items()):
        if not 2 <= n <= 9:
            raise RecordError(f"{where}: cells of a {n}x{n} grid; allowed: 2x2 to 9x9")
        fits = []
        for start in (0, 1):
            numbers = [_number(cell, n, start) for cell in own]
            if sorted(map(str, numbers)) == sorted(map(str, range(1, n * n + 1))):
                fits.append({number: cell for number, cell in zip(numbers, own, strict=True) if number is not None})
        if len(fits) != 1:
            shown = ", ".join(sorted(_named(cell) for cell in own))
            raise RecordError(
                f"{where}: the {n}x{n} grid needs {n * n} cells, each once, numbered from 0 or from 1 throughout; there are {len(own)} ({shown})"
            )
        out[n] = fits[0]
    return out


def _number(cell: Cell, n: int, start: int) -> int | None:
    """Return the number of a cell from 1, where names count from ``start``; None for a cell outside the grid."""
    if cell.cell is not None:
        number = cell.cell - start + 1
        return number if 1 <= number <= n * n else None
    assert cell.row is not None
    assert cell.col is not None
    row, col = cell.row - start, cell.col - start
    return row * n + col + 1 if 0 <= row < n and 0 <= col < n else None


def _named(cell: Cell) -> str:
    return f"{cell.cell}" if cell.cell is not None else f"{cell.row}_{cell.col}"


def _scored(where: str, given: Sequence[tuple[str, Path]], asked: Asked) -> Scored:
    """Return the table with scores among the tables of a dataset.

    Raises:
        RecordError: none has scores, or several have.
    """
    fitting = [(judge, path) for judge, path in given if asked.judge is None or judge == asked.judge]
    if not fitting:
        told = ", ".join(sorted({judge or "none" for judge, _ in given}))
        raise RecordError(f"{where}: no file of judge {asked.judge!r}; there are: {told}")
    found, seen = [], []
    for judge, path in fitting:
        # passed over in silence, since other tables are there
        if path.suffix.lower() == ".pkl" and not asked.trust_pickle and len(fitting) > 1:
            continue
        rows = rows_of(path, asked.trust_pickle)
        columns = list(dict.fromkeys(name for row in rows for name in row))
        column = asked.score.lower() if asked.score and asked.score.lower() in columns else None
        if asked.score is None:
            column = next((name for name in SCORES if name in columns), None)
        seen.append((path, columns))
        if column is not None:
            found.append((judge, path, column, rows))
    if not found:
        path, columns = seen[0] if seen else (fitting[0][1], [])
        wanted = asked.score or ", ".join(SCORES)
        raise RecordError(
            f"{path}: no column of scores (looked for: {wanted}; found: {line(', '.join(columns), 200)}); "
            "let VLMEvalKit evaluate first, or name the column with --score"
        )
    if len(found) > 1:
        if len({judge for judge, _, _, _ in found}) == 1:
            names = ", ".join(str(path) for _, path, _, _ in found)
            raise RecordError(
                f"{where}: several files with scores ({line(names, 400)}); give one of these files, or the folder of one evaluation"
            )
        names = ", ".join(path.name for _, path, _, _ in found)
        raise RecordError(
            f"{where}: several files with scores ({names}); name one judge with --judge, such as {found[0][0] or 'openai'}"
        )
    _, path, column, rows = found[0]
    scores = [row.get(column) for row in rows]
    if formula := next((one for one in scores if isinstance(one, str) and one.startswith("=")), None):
        raise RecordError(
            f"{path}: the {column} {line(formula, 40)!r} is a formula without its value; open the file in a spreadsheet program and save it"
        )
    if all(score is None for score in scores):
        raise RecordError(
            f"{path}: no row has a {column}; let VLMEvalKit evaluate first, or name another column with --score"
        )
    return Scored(path, column, _by_index(path, rows))


def _by_index(path: Path, rows: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return rows by their index; 7, 7.0 and "7" are the same index.

    Raises:
        RecordError: columns or indices are missing, or an index stands twice.
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    if missing := [name for name in ("index", "prediction") if name not in columns]:
        raise RecordError(
            f"{path}: no column {missing[0]!r} (looked for: index, prediction; found: {line(', '.join(columns), 200) or 'nothing'})"
        )
    keys = [None if row.get("index") is None else str(row["index"]).strip() for row in rows]
    if None in keys:
        raise RecordError(f"{path}: row {keys.index(None) + 1} has no index")
    twice = [key for key, count in Counter(keys).items() if count > 1]
    if twice:
        raise RecordError(
            f"{path}: index {twice[0]} stands {keys.count(twice[0])} times ({len(twice)} such indices); each doc has one row"
        )
    return {str(key): row for key, row in zip(keys, rows, strict=True)}


def _check_docs(where: str, done: Benchmark) -> None:
    """Refuse cells whose docs are not among the docs of the full image, or are different questions.

    Raises:
        RecordError: a doc or its question differs; says which.
    """
    known = done.full.rows
    if not known:
        raise RecordError(f"{done.full.path}: no rows")
    for cells in done.grids.values():
        for part in cells.values():
            if more := [key for key in part.rows if key not in known]:
                raise RecordError(
                    f"{part.path}: index {more[0]} is not among those of the full image ({done.full.path.name}); is it another dataset?"
                )
            if not part.rows:
                raise RecordError(f"{part.path}: no rows")
            for key, row in part.rows.items():
                for name in ("question", "answer"):
                    theirs, own = known[key].get(name), row.get(name)
                    if theirs is not None and own is not None and str(theirs) != str(own):
                        raise RecordError(
                            f"{part.path}: index {key} has another {name} than in {done.full.path.name} "
                            f"({line(own, 40)} and {line(theirs, 40)}); is it another dataset?"
                        )


# --- what rows are --------------------------------------------------------------------------------


def letters(row: Mapping[str, Any]) -> str:
    """Return the letters of a row's options.

    VLMEvalKit shows each by the letter of its column, also where columns before it are empty.
    """
    return "".join(letter for letter in string.ascii_uppercase if row.get(letter) is not None)


def open_golds(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the golds of open questions shown by a judged table as a choice, with the gold as option A.

    Before evaluating MMMU, VLMEvalKit gives each open question the options gold and "Other Answers". Some versions leave the gold in
    ``answer``, some write A there. Where "Other Answers" is the gold of a question, the option was asked.
    """
    filled = {key: row for key, row in rows.items() if row.get("B") == OTHER and letters(row) == "AB"}
    golds = {key: str(row["A"]) for key, row in filled.items()}
    alike = all(str(row.get("answer")) in ("A", golds[key]) for key, row in filled.items())
    return golds if alike else {}


def turned(rows: Mapping[str, Mapping[str, Any]]) -> tuple[str, dict[str, str]]:
    """Return the question of each row where some questions stand in several rows, their options turned.

    Returns:
        How the question is known ("index % 1000000", or the column ``g_index``), and the question of each row; both are
        empty where each row is a question of its own.
    """
    if any(row.get(GROUP) is not None for row in rows.values()):
        of_rows = {key: str(key if row.get(GROUP) is None else row[GROUP]) for key, row in rows.items()}
        return (GROUP, of_rows) if len(set(of_rows.values())) < len(rows) else ("", {})
    if not all(re.fullmatch(r"\d{1,15}", key) for key in rows):
        return "", {}
    of_rows = {key: str(int(key) % TURN) for key in rows}
    asked: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for key, row in rows.items():
        asked[of_rows[key]].add((str(row.get("question")), *sorted(str(row[letter]) for letter in letters(row))))
    several = {question for question, count in Counter(of_rows.values()).items() if count > 1}
    # only turned options repeat a question with the same set of options, at least two
    alike = all(len(asked[question]) == 1 and len(min(asked[question])) > 2 for question in several)
    return (f"index % {TURN}", of_rows) if several and alike else ("", {})
