"""Where the checkout lies, and the data that may lie beside it (CI has it, a user does not)."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "data"
