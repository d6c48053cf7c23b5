"""The notebook of ``examples/``: its cells are run anew, and its outputs become those of today.

The site shows it as a page.

``python scripts/docs/notebook.py`` prints what differs, and ``--write`` writes the outputs into the notebook. Cells are
run in this process, without
Jupyter: what a cell prints, and what its last line gives, are shown as Jupyter would show them.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "notebook.ipynb"


def cells(path: Path = NOTEBOOK) -> list[dict[str, Any]]:
    """Return the cells of a notebook."""
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return found


def place(folder: Path) -> Path:
    """Make the notebook's place in a folder: it reads the runs beside it, as in a checkout.

    Return the folder that it runs in.
    """
    (folder / "scripts").symlink_to(ROOT / "scripts")
    (folder / "examples").mkdir()
    return folder / "examples"


def executed(given: list[dict[str, Any]], folder: Path) -> tuple[list[list[dict[str, Any]]], dict[str, Any]]:
    """Run the cells of a notebook in a folder.

    Returns:
        The outputs of each code cell, and the names that the cells leave.
    """
    names: dict[str, Any] = {}
    outputs, before = [], Path.cwd()
    os.chdir(folder)
    try:
        for number, cell in enumerate((cell for cell in given if cell["cell_type"] == "code"), 1):
            outputs.append(_outputs("".join(cell["source"]), names, number))
    finally:
        os.chdir(before)
    return outputs, names


def _outputs(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Run one cell, and return its outputs as a notebook has them."""
    body = ast.parse(source, f"cell {number}").body
    last = ast.Expression(body.pop().value) if body and isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), f"cell {number}", "exec"), names)
        shown = None if last is None else eval(compile(last, f"cell {number}", "eval"), names)
    out: list[dict[str, Any]] = []
    if text := printed.getvalue():
        out.append({"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)})
    if shown is not None:
        out.append({"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": _data(shown)})
    return out


def _data(shown: Any) -> dict[str, Any]:
    """Return how a notebook shows a thing: as a picture, as HTML, or else as text."""
    if hasattr(shown, "mark_point") or hasattr(shown, "layer"):
        file = io.BytesIO()
        shown.save(file, format="png", scale_factor=1.5)
        return {"image/png": base64.b64encode(file.getvalue()).decode()}
    if hasattr(shown, "_repr_html_"):
        return {"text/html": [shown._repr_html_()]}
    return {"text/plain": [repr(shown)]}


def words(outputs: list[list[dict[str, Any]]]) -> list[str]:
    """Return what outputs say, one text each.

    Of a picture only that there is one: its bytes are those of a version of Vega.
    """
    said = []
    for output in (one for of_cell in outputs for one in of_cell):
        data = output.get("data", {})
        said.append(
            "a picture"
            if "image/png" in data
            else "".join(output.get("text") or data.get("text/html") or data["text/plain"])
        )
    return said


def stored(given: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the outputs that stand in a notebook, for each code cell."""
    return [cell["outputs"] for cell in given if cell["cell_type"] == "code"]


def markdown(path: Path = NOTEBOOK) -> str:
    """Return a notebook as a page of the site."""
    parts = []
    for cell in cells(path):
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                parts.append(f"![what the cell draws](data:image/png;base64,{''.join(data['image/png'])})")
            elif "text/html" in data:
                parts.append("".join(data["text/html"]))
            else:
                parts.append(f"```text\n{''.join(output.get('text') or data['text/plain']).rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Compare the notebook with what its cells give; with ``--write``, mend it."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        outputs, _ = executed(notebook["cells"], place(Path(name)))
    before, after = words(stored(notebook["cells"])), words(outputs)
    if "--write" in sys.argv:
        for number, (cell, found) in enumerate(
            zip([cell for cell in notebook["cells"] if cell["cell_type"] == "code"], outputs, strict=True), 1
        ):
            cell["execution_count"], cell["outputs"] = number, found
        NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print("\n".join(one for one in after if one not in before) or "the notebook shows what its cells give")
    return int(before != after)


if __name__ == "__main__":
    sys.exit(main())
