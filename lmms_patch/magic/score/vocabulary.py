"""The words that name, number and dismiss boxes, in fourteen languages: ``regions.yaml`` as pieces of regular expressions."""

from __future__ import annotations

import re
from importlib import resources

import msgspec

_FILE = resources.files("lmms_patch.magic.score").joinpath("regions.yaml")
LANGUAGES = msgspec.yaml.decode(_FILE.read_bytes(), type=dict[str, dict[str, list[str]]])
"""By language, the pieces of each entry; the file says what the entries are."""
LETTER = "A-Za-zßÀ-ɏḀ-ỿЀ-ӿа-яऀ-ॣॱ-ॿ"
"""Letters of scripts that write a space between words: only there a word ends where no letter follows."""
ENGLISH = ("zero", *LANGUAGES["english"]["numbers"])
ENGLISH_NTH = ("zeroth", *LANGUAGES["english"]["nth"])


def pieces(*entries: str, of: str = "") -> str:
    """Return the pieces of some entries in all languages, or in one, as alternatives, long ones first."""
    spoken = [LANGUAGES[of]] if of else LANGUAGES.values()
    found = {piece for language in spoken for entry in entries for piece in language.get(entry, ())}
    # an alternative that fits is taken even where a longer one
    # would fit too; and a set's order differs from run to run
    return f"(?:{'|'.join(sorted(found, key=lambda piece: (-len(piece), piece)))})"


def pattern(text: str) -> re.Pattern[str]:
    """Return a regular expression to which case does not matter."""
    return re.compile(text, re.IGNORECASE)


def words(*entries: str) -> str:
    """Return the pieces of some entries as whole words."""
    return rf"(?<![{LETTER}]){pieces(*entries)}(?![{LETTER}])"
