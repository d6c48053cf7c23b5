"""What the page of a report says of bands: where each ends is said once, in ``stats.index``."""

import re

from lmms_patch.present.report import page
from lmms_patch.stats.index import band
from tests.making import pages


def test_the_legend_has_the_bands_of_the_paper():
    """RCI paper, §3.2; and each number of the legend lies in the band that it is said to bound."""
    legend = page.page(pages.report()).partition('aria-label="Bands of the index">')[2].partition("</p>")[0]
    said = re.findall(r'<span class="([a-z-]+)">([a-z ]+) ([≤<≥]) ([−+][0-9.]+)</span>', legend.replace("&lt;", "<"))
    assert [one[1:] for one in said] == [
        ("strong local", "≤", "−0.30"),
        ("moderate local", "≤", "−0.10"),
        ("balanced", "≤", "+0.10"),
        ("moderate global", "<", "+0.30"),
        ("strong global", "≥", "+0.30"),
    ]
    for _, name, sign, end in said:
        assert (band(float(end.replace("−", "-"))) == name) == (sign != "<")
