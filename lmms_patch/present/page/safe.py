"""What makes drawings and pictures harmless in a page: refuses drawings with more in them than shapes, and pictures that are none. Pure.

Texts are escaped by jinja2 (autoescape is on everywhere), after ``lmms_patch.text`` took out what acts on its
neighbours.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from lmms_patch.present import palette
from lmms_patch.text import block

# --- pictures -------------------------------------------------------------------------------------

_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")


def picture(uri: str | None) -> str | None:
    """Return the URI of a self-contained picture (``data:``, base64, a raster format); else None."""
    return uri if uri and _PICTURE.fullmatch(uri) else None


# --- drawings -------------------------------------------------------------------------------------


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[\w-]+", text))


_ELEMENTS = _words("svg g defs clipPath path rect circle line text tspan use title")
_ATTRIBUTES = _words(
    "id viewBox d x y x1 y1 x2 y2 cx cy r rx ry dx dy width height transform href version"
    " fill fill-opacity stroke stroke-width stroke-opacity stroke-linecap stroke-linejoin stroke-dasharray stroke-miterlimit"
    " opacity font-family font-size font-style font-weight text-anchor dominant-baseline clip-path display pointer-events"
)
"""What Vega draws with."""
_URL = re.compile(r"url\(\s*['\"]?#(?P<id>[^'\")]+)['\"]?\s*\)")
_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"


def drawing(svg: str, name: str) -> str:
    """Return an SVG drawing of nothing but shapes and texts, for use inside the page.

    Elements and attributes that are not on the list are refused, styles too (the page's policy allows none inline);
    colours follow the page (``palette.in_page``); ids get the name of the drawing in front, so that drawings in one page
    do not clash; the drawing is as wide as its ``viewBox`` says, so that letters of all drawings have one size.

    Args:
        svg: the drawing, with its ``viewBox``.
        name: letters, digits, hyphens and underscores; unique in the page.

    Raises:
        ValueError: it is no SVG, or has a script, an event, a foreign element or a link to anywhere but itself: a
            defect of whatever drew it.
    """
    if "<!ENTITY" in svg:
        raise ValueError(f"figure {name}: an entity is declared")
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError as error:
        raise ValueError(f"figure {name}: not an SVG: {error}") from None
    if _local(root.tag) != "svg":
        raise ValueError(f"figure {name}: the outer element is {_local(root.tag)}, not svg")
    # Only ids that something refers to stay.
    used = set(re.findall(r'(?:url\(|href=")#([^)"]*)', svg))
    for element in root.iter():
        if element.get("id") not in used:
            element.attrib.pop("id", None)
        _check(element, name)
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    if box := re.fullmatch(r"[-\d.]+[\s,]+[-\d.]+[\s,]+([\d.]+)[\s,]+[\d.]+", root.get("viewBox", "").strip()):
        root.attrib["width"] = f"{float(box[1]):.0f}"
    root.attrib |= {"xmlns": "http://www.w3.org/2000/svg", "focusable": "false"}
    return ElementTree.tostring(root, encoding="unicode")


def _local(tag: object) -> str:
    return str(tag).rpartition("}")[2] if isinstance(tag, str) else "?"


def _check(element: ElementTree.Element, name: str) -> None:
    """Refuse what is not on the list, and rewrite the rest in place."""
    tag = _local(element.tag)
    if tag not in _ELEMENTS:
        raise ValueError(f"figure {name}: element {tag!r} is not allowed")
    # Browsers read the contents of a title as HTML, so only texts may be inside.
    if tag == "title" and len(element):
        raise ValueError(f"figure {name}: an element in {tag!r}")
    element.tag = tag
    given, element.attrib = dict(element.attrib), {}
    element.text, element.tail = (block(text) if text and text.strip() else "" for text in (element.text, element.tail))
    for key, value in given.items():
        key = key.replace(_XLINK, "")
        if key in _ATTRIBUTES:
            element.attrib[key] = value
        elif not key.startswith(
            ("aria-", "class", "role", "{")
        ):  # those say nothing here: the page names the drawing itself
            raise ValueError(f"figure {name}: attribute {key!r} of {tag!r} is not allowed")
    for key, value in element.attrib.items():
        element.attrib[key] = _inside(key, value, name)


def _inside(key: str, value: str, name: str) -> str:
    """Return an attribute whose links stay inside the drawing."""
    if key == "id":
        return f"{name}-{value}"
    if key == "href":
        if value.startswith("#"):
            return f"#{name}-{value[1:]}"
        raise ValueError(f"figure {name}: a link to {value[:60]!r}")
    value = _URL.sub(lambda link: f"url(#{name}-{link['id']})", value)
    if re.search(r"url\((?!#)|javascript:|https?:|//", value, re.IGNORECASE):
        raise ValueError(f"figure {name}: {key} leads out of the drawing: {value[:60]!r}")
    return re.sub(r"#[0-9a-f]{6}\b", lambda colour: palette.in_page(colour[0]), value)
