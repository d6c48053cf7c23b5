"""How well φ reads boxes: precision, recall, exact phrases and dismissals, over phrases whose truth people wrote.

    python benchmarks/phrases.py [FILE ...] [--misses]

A file is JSON lines: ``{"text": ..., "boxes": 4, "refers": [1, 3], "dismissed": [3], "language": "english"}``.
``boxes`` is how many are shown, ``refers`` the boxes that the text uses, ``dismissed`` those that it names only to
dismiss; what stands in either is named. Without a file: the phrases of ``tests/magic/score``. Only phrases that were
not written with the rules tell how good the rules are.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import parse
from lmms_patch.magic.score.extract import regions

ROOT = Path(__file__).resolve().parents[1]
TARGETS = {"precision": 0.99, "recall": 0.97, "exact": 0.95, "dismissals": 0.85}


@dataclass(frozen=True)
class Phrase:
    """A phrase and its truth.

    Attributes:
        text: the phrase.
        boxes: how many boxes are shown.
        named: the boxes that it names, dismissed ones among them.
        dismissed: those that it names only to dismiss.
        language: what its row of the table is called.
    """

    text: str
    boxes: int
    named: frozenset[int]
    dismissed: frozenset[int]
    language: str


def from_lines(path: Path) -> Iterator[Phrase]:
    """Yield the phrases of a file of JSON lines."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            row = json.loads(line)
            shown = row["boxes"] if isinstance(row["boxes"], int) else len(row["boxes"])
            dismissed = frozenset(row.get("dismissed") or ())
            yield Phrase(
                row["text"], shown, frozenset(row["refers"]) | dismissed, dismissed, str(row.get("language", ""))
            )


def from_tests() -> Iterator[Phrase]:
    """Yield the phrases of the tests, by file."""
    for path in sorted((ROOT / "tests/magic/score").glob("phrases*.yaml")):
        for row in yaml.safe_load(path.read_text(encoding="utf-8")):
            named = frozenset(row["used"]) | frozenset(row.get("invented", ()))
            yield Phrase(row["text"], row["count"], named, frozenset(row.get("negated", ())), path.stem)


def figures(phrases: Iterable[Phrase], misses: bool = False) -> dict[str, float]:
    """Return the rates over some phrases, each with what it is a share of.

    Print every phrase that is read wrongly if ``misses``.
    """
    rows = list(phrases)
    named = both = read = exact = dismissed = told = claimed = 0
    for row in rows:
        found = regions(row.text, row.boxes)
        said = found.used | found.invented
        named, both, read, exact = (
            named + len(row.named),
            both + len(row.named & said),
            read + len(said),
            exact + (said == row.named),
        )
        dismissed, told = dismissed + len(row.dismissed), told + len(row.dismissed & found.negated)
        claimed += len(found.negated)
        if misses and (said != row.named or found.negated != row.dismissed):
            print(
                f"{row.text!r} of {row.boxes}: {sorted(said)} for {sorted(row.named)}, dismissed {sorted(found.negated)} for {sorted(row.dismissed)}"
            )
    shares = {
        "precision": (both, read),
        "recall": (both, named),
        "exact": (exact, len(rows)),
        "dismissals": (told, dismissed),
    }
    shares["dismissed rightly"] = (told, claimed)
    return {
        "phrases": len(rows),
        "boxes": named,
        "dismissed": dismissed,
        **{name: part / of if of else 1.0 for name, (part, of) in shares.items()},
    }


def main() -> int:
    """Print a row for each language (or file of the tests) and one for all; status 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--misses", action="store_true", help="print the phrases that are read wrongly")
    given = parse(parser)
    phrases = [phrase for path in given.files for phrase in from_lines(path)] or list(from_tests())
    by_language: dict[str, list[Phrase]] = defaultdict(list)
    for phrase in phrases:
        by_language[phrase.language].append(phrase)
    total = figures(phrases, given.misses)
    print("| | " + " | ".join(total) + " |")
    print("|---" * (len(total) + 1) + "|")
    for language, some in [*sorted(by_language.items()), ("all", phrases)]:
        print(
            f"| {language} | "
            + " | ".join(f"{value:.3f}" if isinstance(value, float) else str(value) for value in figures(some).values())
            + " |"
        )
    missed = [f"{name} {total[name]:.3f}, target {target}" for name, target in TARGETS.items() if total[name] < target]
    print(
        "\n".join(f"missed: {line}" for line in missed)
        or f"targets: {', '.join(f'{name} {target}' for name, target in TARGETS.items())}"
    )
    return bool(missed)


if __name__ == "__main__":
    raise SystemExit(main())
