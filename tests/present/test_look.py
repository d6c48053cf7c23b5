"""The rules that all pages share: in one sheet, which both pages begin with."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lmms_patch.present import look, palette
from lmms_patch.present.explore import page as explorer
from lmms_patch.present.page import environment

HERE = Path(look.__file__).parent
OWN = {"report": HERE / "page" / "templates" / "page.css", "explorer": HERE / "explore" / "page" / "explore.css"}


def rules(css):
    """The rules of a style sheet outside of @media, spaces left out."""
    plain = re.sub(r"/\*.*?\*/", "", css, flags=re.S)
    top = re.sub(r"@\w[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", plain)
    return {
        (re.sub(r"\s+", " ", selector).strip(), re.sub(r"\s+", " ", body).strip())
        for selector, body in re.findall(r"([^{}]+)\{([^{}]*)\}", top)
    }


def test_both_pages_begin_with_the_shared_sheet():
    assert look.css().startswith(palette.css())
    assert environment("lmms_patch.present.report").globals["css"].startswith(look.css())
    assert explorer.file("explore.css").startswith(look.css())


@pytest.mark.parametrize("name", OWN)
def test_no_shared_rule_stands_in_a_page_again(name):
    shared, own = (rules(path.read_text(encoding="utf-8")) for path in (HERE / "look.css", OWN[name]))
    assert {".sr, .skip:not(:focus)", ".theme", ":focus-visible"} <= {selector for selector, _ in shared}
    assert shared & own == set()
    assert not any(selector.startswith((".theme", ".sr", ".skip", ":focus-visible")) for selector, _ in own)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "L", "RGB"])
def test_an_image_on_a_page_is_small_and_white_where_it_was_transparent(mode):
    """Upper half black, lower half black but transparent: the lower one becomes white wherever the mode can be transparent at all."""
    image = Image.new("RGBA", (400, 200), (0, 0, 0, 255))
    image.paste((0, 0, 0, 0), (0, 100, 400, 200))
    shown = look.on_white(image.convert(mode), 100)
    assert (shown.mode, shown.size) == ("RGB", (100, 50))
    pixels = np.asarray(shown)
    assert (pixels[:20] == 0).all()
    assert (pixels[30:] == (255 if mode in ("RGBA", "LA", "P") else 0)).all()
