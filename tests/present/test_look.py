"""The rules that all pages share: in one sheet, which both pages begin with."""

import numpy as np
import pytest
from PIL import Image

from lmms_patch.present import look


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
