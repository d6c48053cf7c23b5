"""Write the stored numbers anew, and print what differs from those that were there: ``python -m tests.stored``."""

import json
import lzma
import sys
import tempfile
from pathlib import Path

from lmms_patch.app.cli import main
from lmms_patch.present.report.figures import canvas
from tests.making.reports import undrawn
from tests.stored import NUMBERS, differences, numbers, stored, unpack

canvas.write = undrawn  # no number is made of a drawing
with tempfile.TemporaryDirectory() as folder:
    out = Path(folder) / "out"
    out.mkdir()
    made = numbers(unpack(Path(folder)), out, main)
changes = list(differences(stored(), made)) if NUMBERS.exists() else ["there were none"]
print("\n".join(changes) or "no number differs")
if changes and "--write" in sys.argv:
    NUMBERS.write_bytes(lzma.compress(json.dumps(made).encode()))
