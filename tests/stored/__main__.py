"""Write the stored numbers anew, and print what differs from those that were there: ``python -m tests.stored``."""

import json
import lzma
import sys
import tempfile
from pathlib import Path

from lmms_patch.app.cli import main
from tests.stored import NUMBERS, differences, numbers, stored, unpack

with tempfile.TemporaryDirectory() as folder:
    out = Path(folder) / "out"
    out.mkdir()
    made = numbers(unpack(Path(folder)), out, main)
changes = list(differences(stored(), made)) if NUMBERS.exists() else ["there were none"]
print("\n".join(changes) or "no number differs")
if changes and "--write" in sys.argv:
    NUMBERS.write_bytes(lzma.compress(json.dumps(made).encode()))
