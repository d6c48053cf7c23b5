"""Is a doc's record as we write it? Readers refuse what is not, before a number is taken from it. Pure.

``fault`` says it in words, by the schema (``lmms-patch schema patch``). ``is_right`` says the same of 200,000 docs in a tenth of the time: it is
asked first, of every record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from lmms_patch.ask.spec import KINDS, MAX_GRID, MIN_GRID, REGIONS
from lmms_patch.errors import RecordError
from lmms_patch.runs.schemas import check
from lmms_patch.runs.scoring import plain
from lmms_patch.stats.bounds import LARGEST, is_number, is_whole

_VIEWS = frozenset(("full", "cell", "occlude", "blind", "blank", "shuffle", "region"))
_ROLES = frozenset(("gold", "option", "constant", "stratum", "other"))
_FORMATS = frozenset(("mc", "yesno", "number", "open", "caption"))
_GROUPINGS = frozenset(("source", "none", "text"))
_GRIDS = frozenset(map(str, range(MIN_GRID, MAX_GRID + 1)))
_SETS = _GRIDS | set(REGIONS)
LOANS = 100
"""Donors of a doc that a log may have; ours write 10. A table has a column for each."""
PIXELS = 10**6
"""Of a side of an image."""
DOCS = 10**15
"""Beyond any doc's number."""
_NEEDED = ("doc_id", "views", "best", "excluded")
_NEEDED_OF_VIEW = ("kind", "scores", "items")


def wrong_views(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a doc's views on another doc's image; empty where it was not asked so, and in records of earlier versions."""
    wrong = record.get("wrong_image")
    return [] if wrong is None else wrong.get("views", [])


def first_box(view: Mapping[str, Any]) -> list[int]:
    """Return the box of a cell on the first image.

    Raises:
        RecordError: it has none, or one that is not of four pixels.
    """
    boxes = view.get("boxes")
    if not boxes or not _boxes(boxes):
        raise RecordError("a cell of the log without its box in pixels; the file was changed or written by another program")
    found: list[int] = boxes[0]
    return found


def is_right(record: Mapping[str, Any]) -> bool:
    """Tell whether the parts of a record are of the types that readers count on."""
    try:
        return _is_right(record)
    except (KeyError, TypeError, AttributeError):
        return False


def fault(record: Mapping[str, Any]) -> str:
    """Say what is wrong with a record that ``is_right`` refuses, and where in it: ``patch.views[0].n must be ...``."""
    where = "patch"
    if missing := [key for key in _NEEDED if key not in record]:
        return f"{where}.{missing[0]} is missing"
    if said := check.fault("patch", record, where):
        return said
    views = [(f"{where}.views[{i}]", view) for i, view in enumerate(record["views"])]
    wrong = [(f"{where}.wrong_image.views[{i}]", view) for i, view in enumerate(wrong_views(record))]
    for place, view in (*views, *wrong):
        needed = (*_NEEDED_OF_VIEW, *(("n", "row", "col") if "cell" in view else ()), *(("relevant",) if "region" in view else ()))
        for key in (*needed, *(("said",) if (place, view) in wrong else ())):
            if key not in view:
                return f"{place}.{key} is missing"
        if "cell" in view and not (view["cell"] == view["row"] * view["n"] + view["col"] + 1 and max(view["row"], view["col"]) < view["n"]):
            return f"{place}.cell must be the number of the cell in its row and column, row by row from 1"
    return _of_parts(record, where) or f"{where} must be as docs/records.md says"


def _of_parts(record: Mapping[str, Any], where: str) -> str:
    """What is wrong with the parts of a record beside its views, as far as the schema does not say it."""
    for name in ("best", "excluded"):
        if odd := [key for key in record[name] if key not in _SETS]:
            return f"{where}.{name} must be by grid or set of boxes, not {check.shown(odd[0])}"
    if odd := [key for key, place in record["best"].items() if place >= len(record["views"])]:
        return f"{where}.best.{odd[0]} must be the place of one of its {len(record['views'])} views"
    if "wrong_image" in record and "from" not in record["wrong_image"]:
        return f"{where}.wrong_image.from is missing"
    for i, one in enumerate(record.get("baselines", ())):
        if missing := [key for key in ("answer", "roles", "scores") if key not in one]:
            return f"{where}.baselines[{i}].{missing[0]} is missing"
    lent, tst = record.get("lent"), record.get("tst")
    if lent:
        if missing := [key for key in ("to", "p", "full", "best") if key not in lent]:
            return f"{where}.lent.{missing[0]} is missing"
        if len({len(one) for one in (lent["to"], lent["p"], lent["full"], *lent["best"].values())}) > 1:
            return f"{where}.lent must have as many numbers in each of its lists"
    if tst:
        if missing := [key for key in ("grouping", "scores") if key not in tst]:
            return f"{where}.tst.{missing[0]} is missing"
        if tst["grouping"] not in tst["scores"]:
            return f"{where}.tst.scores has no {check.shown(tst['grouping'])}"
    return ""


def hashed(record: Mapping[str, Any]) -> bytes:
    """Return the SHA-256 of a doc's record, whatever the order of its keys and however a file writes it."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), default=plain)
    return hashlib.sha256(text.encode()).digest()


def log_digest(hashes: Iterable[bytes]) -> str:
    """Return the digest of a whole log, 16 hex digits, from its records (``hashed``) in any order.

    A run writes it into its results file, so that a log that was changed afterwards does not pass for the run's own.
    """
    return hashlib.sha256(b"".join(sorted(hashes))).hexdigest()[:16]


def _is_right(record: Mapping[str, Any]) -> bool:
    views, best, excluded = record["views"], record["best"], record["excluded"]
    if not (is_whole(record["doc_id"], 0, DOCS) and type(views) is list and views and type(best) is dict and type(excluded) is dict):
        return False
    if not all(map(_is_view, views)):
        return False
    most = len(views) - 1
    if not all(key in _SETS and is_whole(place, 0, most) for key, place in best.items()):
        return False
    if not all(key in _SETS and type(why) is str for key, why in excluded.items()):
        return False
    if not _has_names(record) or not _sizes(record.get("image_sizes", [])):
        return False
    return _is_wrong_image(record) and _is_answered(record) and _is_lent(record.get("lent", {})) and _is_tested(record.get("tst", {}))


def _has_names(record: Mapping[str, Any]) -> bool:
    names = all(type(record.get(key, "")) is str for key in ("task", "base", "stratum", "images"))
    grids = record.get("grids", [])
    return names and record.get("kind", "rci") in KINDS and type(grids) is list and all(is_whole(n, MIN_GRID, MAX_GRID) for n in grids)


def _is_view(view: Any) -> bool:
    if view["kind"] not in _VIEWS or type(view["items"]) is not dict or not _scores(view["scores"]):
        return False
    if "cell" in view:
        n, row, col = view["n"], view["row"], view["col"]
        if not (type(n) is type(row) is type(col) is int and MIN_GRID <= n <= MAX_GRID and 0 <= row < n and 0 <= col < n):
            return False
        if type(view["cell"]) is not int or view["cell"] != row * n + col + 1:
            return False
    elif "n" in view and not is_whole(view["n"], MIN_GRID, MAX_GRID):
        return False
    if "region" in view and not (is_whole(view["region"], 1) and type(view["relevant"]) is bool):
        return False
    for key in ("error", "failed", "said"):
        if key in view and type(view[key]) is not str:
            return False
    if view.get("swapped", True) is not True or ("cell" not in view and not _of_no_cell(view)):
        return False
    return _boxes(view.get("boxes", []))


def _boxes(boxes: Any) -> bool:
    """Whether boxes are four pixels each; without calls, since a log has millions of them."""
    if type(boxes) is not list:
        return False
    for box in boxes:
        if type(box) is not list or len(box) != 4:
            return False
        for side in box:
            if type(side) is not int or not 0 <= side <= PIXELS:
                return False
    return True


def _of_no_cell(view: Mapping[str, Any]) -> bool:
    """Whether what a view without a cell says of rows and boxes is of their type all the same."""
    least = {"row": 0, "col": 0, "region": 1}
    return all(is_whole(view[key], low) for key, low in least.items() if key in view) and type(view.get("relevant", True)) is bool


def _scores(scores: Any) -> bool:
    if type(scores) is not dict:
        return False
    for score in scores.values():
        if score is not None and not ((type(score) is float or type(score) is int) and -LARGEST <= score <= LARGEST):
            return False
    return True


def _numbers(found: Any) -> bool:
    return type(found) is list and all(one is None or is_number(one) for one in found)


def _sizes(sizes: Any) -> bool:
    return type(sizes) is list and all(type(size) is list and len(size) == 2 and all(is_whole(side, 1, PIXELS) for side in size) for size in sizes)


def _is_wrong_image(record: Mapping[str, Any]) -> bool:
    if "wrong_image" not in record:
        return True
    wrong = record["wrong_image"]
    views = wrong.get("views", [])
    right = is_whole(wrong["from"], 0, DOCS) and _sizes(wrong.get("image_sizes", [])) and type(views) is list
    return right and all(_is_view(view) and "said" in view for view in views)


def _is_answered(record: Mapping[str, Any]) -> bool:
    """Whether what is said of the doc's answer, and the uninformed answers, are right."""
    answer, baselines = record.get("answer", {}), record.get("baselines", [])
    if type(record.get("fields", {})) is not dict or type(answer) is not dict or type(baselines) is not list:
        return False
    if answer.get("format", "mc") not in _FORMATS and answer["format"] != "":
        return False
    if type(answer.get("label", "")) is not str or not is_whole(answer.get("options", 0), 0, PIXELS):
        return False
    if not isinstance(answer.get("gold"), (str, type(None))):
        return False
    return all(
        type(one["answer"]) is str
        and type(one["roles"]) is list
        and bool(one["roles"])
        and _ROLES.issuperset(one["roles"])
        and _scores(one["scores"])
        and type(one.get("items", {})) is dict
        for one in baselines
    )


def _is_lent(lent: Any) -> bool:
    if type(lent) is not dict:
        return False
    if not lent:
        return True
    to, donors, full, best = lent["to"], lent["p"], lent["full"], lent["best"]
    if type(to) is not list or type(donors) is not list or type(best) is not dict:
        return False
    lists = [full, *best.values()]
    if not all(is_whole(doc, 0, DOCS) for doc in to) or not all(is_whole(p, 0, LOANS - 1) for p in donors) or not all(map(_numbers, lists)):
        return False
    return all(len(one) == len(to) for one in (donors, *lists))


def _is_tested(tst: Any) -> bool:
    if type(tst) is not dict:
        return False
    if not tst:
        return True
    if tst["grouping"] not in _GROUPINGS or not all(
        tst.get(key) is None or is_number(tst[key]) for key in ("s", "s_minus_chance", "chance", "delta")
    ):
        return False
    zero, answers = tst.get("zero_shot"), tst.get("answers", [])
    by_grouping = [tst["scores"], tst.get("baseline", {})]
    return (
        all(type(one) is dict and all(map(_numbers, one.values())) for one in by_grouping)
        and tst["grouping"] in tst["scores"]
        and type(tst.get("diagnostic", "")) is str
        and is_whole(tst.get("fold", 0), 0)
        and type(answers) is list
        and all(type(one) is str for one in answers)
        and (zero is None or (type(zero) is dict and all(zero.get(key) is None or is_number(zero[key]) for key in ("s", "score"))))
    )
