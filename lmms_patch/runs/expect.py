"""Is a results file's description of a task as we write it? Readers refuse what is not, before a number is taken from it. Pure.

Types and ranges are those of the schema (``lmms-patch schema details``); here is which keys readers cannot do without, and what must agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lmms_patch.runs.schemas.check import fault
from lmms_patch.stats.bounds import is_number, is_whole

Check = Callable[[Any], bool]


def wrong(described: Mapping[str, Any], details: Mapping[str, Any]) -> str:
    """What is not as it should be, in words; empty where all is.

    Args:
        described: ``configs.<task>.lmms_patch``.
        details: the value of the metric ``patch``; may be empty.
    """
    found = _described(described)
    if found or not details:
        return found
    found = fault("details", {key: value for key, value in details.items() if key != "magic"})
    found = found or _first(details, {"magic": _dict}, "", optional=True) or _settings(details.get("settings") or {})
    if not found and details.get("analysis"):
        found = _analysis(details["analysis"])
    if not found and details.get("tst_details"):
        found = _tst(details["tst_details"])
    if not found and details.get("magic"):
        found = _magic(details["magic"])
    return found


MOST_DRAWS = 100_000
"""Draws that a file may ask for: they are made again where a run is analysed."""


def _settings(settings: Mapping[str, Any]) -> str:
    """What is wrong with the statistics' settings: they say how much is computed, so each has its bounds."""
    checks: dict[str, Check] = {
        "draws": lambda value: is_whole(value, 1, MOST_DRAWS),
        "seed": lambda value: is_whole(value, 0, 2**64),
        "level": _level,
        "seconds": lambda value: is_number(value) and value > 0,
        **dict.fromkeys(("delta", "scale"), _number),
        "chance": lambda value: _number(value) or isinstance(value, str),
        "form": _text_or_none,
        "signed": lambda value: isinstance(value, bool),
    }
    return _first(settings, checks, "settings.", optional=True)


def _described(described: Mapping[str, Any]) -> str:
    grids = described.get("grids")
    if not isinstance(grids, list) or not all(isinstance(n, int) and not isinstance(n, bool) and 2 <= n <= 9 for n in grids):
        return "grids is no list of grid sizes"
    return _first(described, {"base": _text, "kind": _text, "metric": _text, "options": _dict}, "")


def _analysis(analysis: Mapping[str, Any]) -> str:
    needed = {"metric": _text, "fip": estimate, "chance": _dict, "gate": _dict, "grids": _dict, "ceiling": _number, "warnings": _texts}
    found = _first(analysis, needed, "analysis.")
    chance = analysis.get("chance") or {}
    found = found or _first(chance, {"floors": _dict, "value": _number, "floor": _text_or_none, "reason": _text}, "analysis.chance.")
    found = found or _first(chance, {"constants": _dict, "published": _number}, "analysis.chance.", optional=True)
    if not found and not all(estimate(one) for one in chance["floors"].values()):
        found = "analysis.chance.floors holds something that is no estimate"
    found = found or _first(analysis.get("gate") or {}, {"valid": _flag, "threshold": _number, "reason": _text}, "analysis.gate.")
    if not found and not _looks((analysis.get("gate") or {}).get("looks", [])):
        found = "analysis.gate.looks holds something that is no comparison"
    found = found or next((said for n, grid in analysis["grids"].items() if (said := _grid(n, grid))), "")
    if not found and analysis.get("failed") is not None:
        counts = dict.fromkeys(("docs", "of", "calls", "asked", "first"), _count)
        found = (
            _first(analysis["failed"], {**counts, "text": _text}, "analysis.failed.") if _dict(analysis["failed"]) else "analysis.failed is no object"
        )
    return found or (_regions(analysis["regions"]) if analysis.get("regions") is not None else "")


def _regions(regions: Any) -> str:
    where = "analysis.regions."
    if not isinstance(regions, Mapping):
        return "analysis.regions is of another type"
    found = _first(regions, {"sets": _dict, "mean": _dict, **dict.fromkeys(("best", "even", "average"), estimate), "both": _number}, where)
    for name, grid in () if found else regions["sets"].items():
        found = found or (_set(f"{where}sets.{name}.", grid) if isinstance(grid, Mapping) else f"{where}sets.{name} is of another type")
        found = found or ("" if estimate(regions["mean"].get(name)) else f"{where}mean has no {name}")
    return found


def _grid(n: str, grid: Any) -> str:
    where = f"analysis.grids.{n}."
    if not str(n).isdigit() or not isinstance(grid, Mapping):
        return f"analysis.grids has something that is no grid: {n!r}"
    found = _set(where, grid)
    shares = grid.get("shares")
    if not found and shares is not None and not _shares(shares, int(n) ** 2):
        found = f"{where}shares are not of {int(n) ** 2} cells"
    return found


def _set(where: str, grid: Mapping[str, Any]) -> str:
    """What is wrong with the numbers of a set of views: a grid, or boxes of one sort."""
    needed = {"fip": _number, "mpp": estimate, "index": estimate, "gap": estimate, "excluded": _number, "warnings": _texts}
    found = _first(grid, needed, where)
    for key in ("adj", "adj_blind"):
        adj = grid.get(key)
        if not found and adj is not None and not (isinstance(adj, Mapping) and estimate(adj.get("estimate"))):
            found = f"{where}{key} has no estimate"
        numbers = dict.fromkeys(("asked", "saturated_docs", "without_donor", "fip0", "mpp0", "kappa_full", "kappa_best"), _number)
        found = found or (_first(adj, numbers, f"{where}{key}.", optional=True) if adj is not None else "")
        if not found and adj is not None and not _classes(adj.get("classes", [])):
            found = f"{where}{key}.classes holds something that is no answer class"
    return found


def _looks(looks: Any) -> bool:
    checks = {
        "against": _text,
        "value": _flag,
        **dict.fromkeys(("full", "other", "docs", "wanted"), _number),
        "reason": _text,
        "difference": _difference,
    }
    return isinstance(looks, list) and all(isinstance(one, Mapping) and not _first(one, checks, "", optional="against" not in one) for one in looks)


def _difference(found: Any) -> bool:
    return found is None or estimate(found)


def _classes(classes: Any) -> bool:
    numbers = dict.fromkeys(("docs", "fip", "fip0", "mpp", "mpp0", "ceiling"), _number)
    return isinstance(classes, list) and all(isinstance(one, Mapping) and not _first(one, numbers, "", optional=True) for one in classes)


def _shares(shares: Any, cells: int) -> bool:
    if not isinstance(shares, Mapping) or not _number(shares.get("p")) or not _number(shares.get("centre")):
        return False
    parts = [shares.get(key) for key in ("score", "win", "p_cells")]
    known = [part for part in parts if part is not None]
    return all(isinstance(part, list) and len(part) == cells and all(_number(one) and one is not None for one in part) for part in known) and (
        shares.get("score") is None or shares.get("p_cells") is not None
    )


def _tst(found: Mapping[str, Any]) -> str:
    said = _first(found, {"headline": _text, "by_grouping": _dict, "chance": _number}, "tst_details.")
    if said:
        return said
    if found["headline"] not in found["by_grouping"]:
        return f"tst_details.by_grouping has no {found['headline']!r}"
    groups = found["by_grouping"].values()
    return (
        ""
        if all(isinstance(one, Mapping) and estimate(one.get("accuracy")) and estimate(one.get("above")) for one in groups)
        else ("tst_details.by_grouping holds something without accuracy")
    )


def _magic(found: Mapping[str, Any]) -> str:
    said = _first(found, {"variant": _text, "metric": _text, "numbers": _dict, "counts": _dict, "warnings": _texts, "judge": _text_or_none}, "magic.")
    if said:
        return said
    by_type = found.get("by_type") or {}
    if not isinstance(by_type, Mapping):
        return "magic.by_type is of another type"
    parts = [("numbers", found["numbers"]), *((f"by_type.{name}", part) for name, part in by_type.items())]
    for where, numbers in parts:
        if not isinstance(numbers, Mapping) or not all(estimate(one) for one in numbers.values()):
            return f"magic.{where} holds something that is no estimate"
    return "" if found["metric"] in found["numbers"] else f"magic.numbers has no {found['metric']!r}, which the task is about"


def estimate(found: Any) -> bool:
    """Whether something is an estimate: numbers or null, the interval's ends in order."""
    if not isinstance(found, Mapping) or not {"value", "se", "low", "high", "n", "clusters", "draws"} <= set(found):
        return False
    numbers = [found.get(key) for key in ("value", "se", "low", "high")]
    if not all(_number(one) for one in numbers) or not isinstance(found.get("reason", ""), str):
        return False
    others = {**dict.fromkeys(("n", "clusters", "draws"), _count), "effective": _number, "level": _level}
    if _first(found, others, "", optional=True):
        return False
    low, high = found["low"], found["high"]
    return low is None or high is None or low <= high + 1e-9


def _first(found: Mapping[str, Any], checks: Mapping[str, Check], where: str, optional: bool = False) -> str:
    """The first key that is missing or of another type; empty where there is none."""
    for key, check in checks.items():
        if key not in found and not optional:
            return f"{where}{key} is missing"
        if key in found and not check(found[key]):
            return f"{where}{key} is of another type"
    return ""


def _count(value: Any) -> bool:
    return is_whole(value)


def _level(value: Any) -> bool:
    return is_number(value) and 0.5 <= value < 1


def _dict(value: Any) -> bool:
    return isinstance(value, Mapping)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _flag(value: Any) -> bool:
    return value is None or isinstance(value, bool)


def _number(value: Any) -> bool:
    return value is None or is_number(value)
