"""What the site adds to the pages of ``docs/``: pages of the repository that lie elsewhere, and the commands' own help. For ``mkdocs.yml``."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import commands
import notebook
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
ELSEWHERE = {
    "examples/notebook.ipynb": "guides/notebook.md",
    "README.md": "project/readme.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "benchmarks/README.md": "project/benchmarks.md",
    "tasks/mosaic/README.md": "project/mosaic.md",
    "tasks/mosaic_video/README.md": "project/mosaic-video.md",
    "tasks/magic/mosaic/README.md": "project/magic-mosaic.md",
}
"""Pages that lie outside ``docs/``, and their place on the site."""
LINK = re.compile(r"(`+[^`]+`+)|\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that lie outside ``docs/``."""
    for path, place in ELSEWHERE.items():
        content = (
            notebook.markdown(ROOT / path) if path.endswith(".ipynb") else (ROOT / path).read_text(encoding="utf-8")
        )
        files.append(File.generated(config, place, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Write the commands' help into their page, and lead links to where their targets are on the site."""
    place = page.file.src_uri
    if place == "reference/commands.md":
        markdown = markdown.replace(commands.MARK, commands.reference())
    return relinked(markdown, place)


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Put every table into a box that scrolls, and that the keyboard reaches."""
    return html.replace("<table>", '<div class="scroll" tabindex="0"><table>').replace("</table>", "</table></div>")


def relinked(markdown: str, place: str) -> str:
    """Return a page whose links between ``docs/`` and the rest of the repository lead to pages of the site.

    A link to what is no page of the site becomes plain text, as the site does not hold it.
    """
    path = {site: path for path, site in ELSEWHERE.items()}.get(place, f"docs/{place}")

    def lead(found: re.Match[str]) -> str:
        code, text, target = found.groups()
        if code or re.match(r"[a-z]+:|#", target):
            return found[0]
        file, _, anchor = target.partition("#")
        there = os.path.normpath(os.path.join(os.path.dirname(path), file))
        site = ELSEWHERE.get(there, there.removeprefix("docs/") if there.startswith("docs/") else "")
        if not site or (ROOT / there).is_dir():
            return text
        return f"[{text}]({os.path.relpath(site, os.path.dirname(place) or '.')}{'#' * bool(anchor)}{anchor})"

    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.M | re.S)
    return "".join(part if part.startswith("```") else LINK.sub(lead, part) for part in parts)
