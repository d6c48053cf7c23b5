"""The explorer as a folder: one page with all docs in it, and their images beside it.

It opens from disk, without a server and without a network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from lmms_patch import files
from lmms_patch.errors import OptionError, RecordError
from lmms_patch.present import look
from lmms_patch.present.explore.explorer import Explorer
from lmms_patch.present.explore.page import file
from lmms_patch.present.explore.pictures import Pictures

MOST = 2_000
"""Docs that a folder may hold: its page reads all of them at once."""
MARK = "explore.json"
"""The file by which a folder is known to be an export, and may be replaced."""
OURS = {"made by": "lmms-patch explore --export", "schema": 1}
"""What that file says of every export."""
_IMAGE = re.compile(r"\d+-\d+\.(png|jpg)")
_STYLE, _SCRIPT, _VIEWPORT = (
    '<link rel="stylesheet" href="explore.css">\n',
    '<script src="explore.js" defer></script>\n',
    '<meta charset="utf-8">\n',
)

Tell = Callable[[str], None]


def write(explorer: Explorer, pictures: Pictures, output: Path, tell: Tell = lambda line: None) -> int:
    """Write the explorer of some runs into a folder, whole or not at all.

    Args:
        explorer: what is shown; its docs are read here.
        pictures: the images.
        output: the folder; an earlier export there is replaced, anything else is refused.
        tell: is handed a line as work goes on.

    Returns:
        How many docs it has.

    Raises:
        PatchError: there are too many docs, a log cannot be read, or the folder cannot be written.
    """
    # Both checks before any doc is read: an export of a large run takes a while.
    files.check_folder(output, MARK, "--export", "an earlier export")
    _check_earlier(output)
    count = sum(task.main.result.docs for task in explorer.tasks)
    if count > MOST:
        raise OptionError(
            f"--export: {count:,} docs are more than {MOST:,}, as many as a page from disk may hold; leave out --export to serve them"
        )
    explorer.load()
    if explorer.fault:
        raise RecordError(explorer.fault)
    with files.folder(output, "--export") as folder:
        (folder / "images").mkdir()
        images = [_images(explorer, pictures, number, folder, tell) for number in range(len(explorer.tasks))]
        (folder / "index.html").write_text(page(explorer, images), encoding="utf-8", errors="replace")
        (folder / MARK).write_text(json.dumps({**OURS, "docs": count}) + "\n", encoding="utf-8")
    return count


def _check_earlier(output: Path) -> None:
    """Check whether a folder to be replaced is an earlier export and nothing else.

    Raises:
        OptionError: it is none, or has other files in it.
    """
    if not output.is_dir() or not any(output.iterdir()):
        return
    try:
        about = json.loads((output / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        about = None
    if not isinstance(about, dict) or any(about.get(key) != value for key, value in OURS.items()):
        raise OptionError(
            f"--export {output}: its {MARK} is not that of an earlier export, so the folder is not replaced; name a new folder"
        )
    others = [path.name for path in output.iterdir() if path.name not in (MARK, "index.html", "images")]
    if (images := output / "images").is_dir():
        others += [f"images/{path.name}" for path in images.iterdir() if not _IMAGE.fullmatch(path.name)]
    if others:
        raise OptionError(
            f"--export {output}: {sorted(others)[0]} is not of an earlier export, so the folder is not replaced; name a new folder"
        )


def page(explorer: Explorer, images: list[list[dict[str, str]]]) -> str:
    """Return the page with all docs.

    Args:
        explorer: whose docs are read.
        images: shape (tasks, docs), of each doc ``file``, its image, and ``why`` there is none.
    """
    numbers = range(len(explorer.tasks))
    columns = [explorer.columns(number) for number in numbers]
    data = {
        "about": explorer.about(),
        "columns": columns,
        "docs": [[explorer.doc(number, place) for place in range(len(columns[number]["ids"]))] for number in numbers],
        "maps": [
            [explorer.maps(number, category) for category in range(len(columns[number]["categories"]))]
            for number in numbers
        ],
        "images": images,
    }
    css, js = file("explore.css"), file("explore.js")
    # Such a text would end its element in the middle, and the rest would stand in the page.
    if "</style" in css.lower() or "</script" in js.lower():
        raise ValueError("a style sheet or script that closes its own element")
    # Hashes and not 'unsafe-inline': only these very texts may run.
    own = f"style-src '{look.hashed(css)}'; script-src '{look.hashed(js)}'"
    policy = f"default-src 'none'; img-src 'self' file:; {own}; base-uri 'none'; form-action 'none'"
    made = file("index.html").replace(
        _VIEWPORT, f'{_VIEWPORT}<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    )
    made = made.replace(_STYLE, f"<style>{css}</style>\n").replace(_SCRIPT, "")
    # Every < is written as an escape, so that no text of a run ends the element.
    inline = json.dumps(data, allow_nan=False, ensure_ascii=True).replace("<", "\\u003c")
    scripts = f'<script type="application/json" id="data">{inline}</script>\n<script>{js}</script>\n'
    return made.replace("</body>", f"{scripts}</body>")


def _images(explorer: Explorer, pictures: Pictures, number: int, folder: Path, tell: Tell) -> list[dict[str, str]]:
    """Write the images of a task's docs, and return their files."""
    task, out, known = explorer.tasks[number], [], 0
    tell(f"taking images of {task.name}")
    for place in range(len(task.main.docs or ())):
        picture = pictures.take(*explorer.seen(number, place))
        name = f"images/{number}-{place}.{'png' if picture.type == 'image/png' else 'jpg'}" if picture.data else ""
        if name:
            (folder / name).write_bytes(picture.data)
            known += 1
        out.append({"file": name, "why": picture.why})
    if not known and out:
        tell(f"{task.name}: no images: {out[0]['why']}")
    return out
