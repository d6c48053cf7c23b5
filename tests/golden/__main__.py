"""Compare every golden number; ``--write`` stores them, ``--record SCENE ...`` asks models for the answers of scenes first."""

import json
import lzma
import sys
import tempfile
from pathlib import Path

from tests.golden import ANSWERS, NUMBERS, differences, every, record, stored, table, write
from tests.golden.scenes import RF, SCENES

with tempfile.TemporaryDirectory() as place:
    folder = Path(place)
    if "--record" in sys.argv:
        answers = stored() if ANSWERS.exists() else {}
        named = [name for name in sys.argv[1:] if not name.startswith("-")]
        for name in named or [name for name, scene in SCENES.items() if not scene.of and scene.adapter != RF]:
            answers[name] = record(name, folder / "recorded")
            print(name, len(answers[name]), "answers")
            ANSWERS.write_bytes(lzma.compress(json.dumps(answers).encode(), preset=9))
    made = every(folder)
changes = sorted(differences(table(), made)) if NUMBERS.exists() else ["there were none"]
print("\n".join(changes[:200]) or "no number differs", len(made), "rows")
if "--write" in sys.argv:
    write(made)
