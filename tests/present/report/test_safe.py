"""Drawings and pictures of a run are made harmless before they reach a page."""

import io
import re

import pytest

from lmms_patch.present.report import safe
from tests.making import pages

# --- drawings and pictures ------------------------------------------------------------------------

SVG = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 9 9">{}</svg>'


@pytest.mark.parametrize(
    "inside",
    [
        "<script>alert(1)</script>",
        '<a href="https://example.org"><path d="M0 0"/></a>',
        '<path d="M0 0" onload="alert(1)"/>',
        '<path d="M0 0" ONCLICK="alert(1)"/>',
        '<use href="https://example.org/x.svg#a"/>',
        '<use xlink:href="//example.org/x.svg#a"/>',
        '<image href="http://example.org/x.png"/>',
        '<image href="data:image/svg+xml;base64,AAAA"/>',
        '<rect fill="url(https://example.org/x)"/>',
        '<rect style="fill: url(https://example.org/x)"/>',
        "<foreignObject><p>x</p></foreignObject>",
        '<animate attributeName="href" to="javascript:alert(1)"/>',
        "<style>@import url(https://example.org)</style>",
        "<style>path { fill: red } * { }</style>",
        "<g><title>x<script>alert(1)</script></title></g>",
        '<g><title>x<image href="#a"/></title></g>',
        "<desc><text>x</text></desc>",
        '<g><title onclick="alert(1)">x</title></g>',
        '<rect fill="var(--a, url(https://example.org/x))"/>',
        "<path",
    ],
)
def test_drawings_with_more_than_shapes_are_refused(inside):
    with pytest.raises(ValueError, match="figure f0"):
        safe.drawing(SVG.format(inside), "f0")


@pytest.mark.parametrize(
    "text",
    ["", "hello", "<html/>", '<!DOCTYPE svg [<!ENTITY x "y">]><svg xmlns="http://www.w3.org/2000/svg">&x;</svg>'],
)
def test_what_is_no_drawing_is_refused(text):
    with pytest.raises(ValueError, match="figure f0"):
        safe.drawing(text, "f0")


def test_a_drawing_keeps_its_looks_without_styles_and_its_links_inside():
    found = safe.drawing(pages.figure("x", "runs").svg, "f7")
    assert "style" not in found
    (width,) = re.findall(r'<svg[^>]* width="([^"]*)"', found)
    assert float(width) == pytest.approx(safe.SCALE * float(re.search(r'viewBox="0 0 ([\d.]+) ', found)[1]), abs=0.5)
    assert not re.search(r'<svg[^>]* height="', found)
    assert 'stroke-linejoin="round"' in found
    assert 'stroke="currentColor"' in found
    assert 'clip-path="url(#f7-c)"' in found
    assert 'id="f7-c"' in found
    assert 'href="#f7-p"' in found
    assert 'font-size="10px"' in found
    assert 'text-anchor="middle"' in found
    assert "RCI, 3×3" in found


def test_what_a_mark_tells_is_text():
    told = "&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt; &amp;lt;b&amp;gt; \u202e −0.25"
    kept = safe.drawing(SVG.format(f'<g><title>{told}</title><path fill="#0072b2" d="M0 0"/></g>'), "f0")
    assert "<title>&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt; &amp;lt;b&amp;gt; \ufffd −0.25</title>" in kept
    assert 'fill="var(--series-1, #0072b2)"' in kept


def test_a_drawing_of_matplotlib_passes():
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(3, 2))
    axes = drawn.subplots()
    axes.imshow([[1, 2], [3, 4]])
    axes.errorbar([0, 1], [0, 1], yerr=[0.1, 0.2], fmt="o", label="<b>&")
    axes.text(0, 0, "a $ b <script>", style="italic", weight="bold", rotation=30)
    axes.legend()
    out = io.StringIO()
    drawn.savefig(out, format="svg")
    found = safe.drawing(out.getvalue().partition("<svg")[1] + out.getvalue().partition("<svg")[2], "f1")
    assert "style=" not in found
    assert found.count("<image") == 1


@pytest.mark.parametrize(
    "uri",
    [
        None,
        "",
        "x.png",
        "https://example.org/x.png",
        "data:text/html;base64,AAAA",
        "data:image/svg+xml;base64,AAAA",
        'data:image/png;base64,AA"onload="',
        "data:image/png;base64,AAAA\n",
    ],
)
def test_what_is_no_picture_is_none(uri):
    assert safe.picture(uri) is None


def test_a_picture_stays():
    assert safe.picture("data:image/png;base64,AAAA") == "data:image/png;base64,AAAA"
