"""Drawings and pictures of a run are made harmless before they reach a page."""

import pytest

from lmms_patch.present.page import safe

# --- drawings and pictures ------------------------------------------------------------------------

SVG = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 9 9">{}</svg>'


MORE = [
    "<script>alert(1)</script>", '<a href="https://example.org"><path d="M0 0"/></a>',
    '<path d="M0 0" onload="alert(1)"/>', '<path d="M0 0" ONCLICK="alert(1)"/>',
    '<use href="https://example.org/x.svg#a"/>', '<use xlink:href="//example.org/x.svg#a"/>',
    '<image href="http://example.org/x.png"/>', '<image href="data:image/svg+xml;base64,AAAA"/>',
    '<rect fill="url(https://example.org/x)"/>', '<rect style="fill: url(https://example.org/x)"/>',
    "<foreignObject><p>x</p></foreignObject>", '<animate attributeName="href" to="javascript:alert(1)"/>',
    "<style>@import url(https://example.org)</style>", "<style>path { fill: red } * { }</style>",
    "<g><title>x<script>alert(1)</script></title></g>", '<g><title>x<image href="#a"/></title></g>',
    "<desc><text>x</text></desc>", '<g><title onclick="alert(1)">x</title></g>',
    '<rect fill="var(--a, url(https://example.org/x))"/>', "<path",
]  # fmt: skip


@pytest.mark.parametrize("inside", MORE)
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


def test_what_a_mark_tells_is_text():
    told = "&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt; &amp;lt;b&amp;gt; \u202e −0.25"
    kept = safe.drawing(SVG.format(f'<g><title>{told}</title><path fill="#0072b2" d="M0 0"/></g>'), "f0")
    assert "<title>&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt; &amp;lt;b&amp;gt; \ufffd −0.25</title>" in kept
    assert 'fill="var(--series-1, #0072b2)"' in kept


NO_PICTURES = [
    None, "", "x.png", "https://example.org/x.png", "data:text/html;base64,AAAA", "data:image/svg+xml;base64,AAAA",
    'data:image/png;base64,AA"onload="', "data:image/png;base64,AAAA\n",
]  # fmt: skip


@pytest.mark.parametrize("uri", NO_PICTURES)
def test_what_is_no_picture_is_none(uri):
    assert safe.picture(uri) is None


def test_a_picture_stays():
    assert safe.picture("data:image/png;base64,AAAA") == "data:image/png;base64,AAAA"
