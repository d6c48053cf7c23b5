"""The five drawings of a report as Vega-Lite, and their files: SVG, PDF and PNG, written without a browser or a network.

Each takes rows, of which each is a mark: where it lies, what is written beside it, and what it tells (``tip``) who points
at it. Texts and axes have the one colour ``palette.INK``, which a page draws in its own (``report.safe``). Vega lays
out, measures letters, and cuts long names with an ellipsis.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from lmms_patch import files
from lmms_patch.present import palette
from lmms_patch.stats.index import BANDS

Row = Mapping[str, Any]
Panels = Mapping[str, Sequence[Row]]
"""Rows by the title of their panel, of which a line is a line; a single title may be empty."""
WIDE = 380
"""Pixels of the plot beside the names."""
INK = palette.INK
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
"""Fonts of equal width: what Vega measures is what a reader sees."""
SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "triangle-right")
LABELS = 120
"""Of more rows numbers are by hover alone."""
_NAME, _SIDE = 200, 190
"""Pixels of a name, and of the side of a panel."""
_LINES = "split(datum.label, '\\n')"
_TEXT = {"labelColor": INK, "titleColor": INK, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
_LINE = {"domainColor": INK, "tickColor": INK, "gridColor": INK, "gridOpacity": 0.12}
_BELOW = {"layout": {"bottom": {"direction": "vertical", "anchor": "start", "margin": 4}}}
_CONFIG: dict[str, Any] = {
    "font": FONT,
    "background": "transparent",
    "axis": {**_TEXT, **_LINE, "labelLimit": _NAME, "labelFlush": False, "labelSeparation": 4},
    "legend": {**_TEXT, **_BELOW, "labelLimit": _NAME, "orient": "bottom", "symbolOpacity": 1},
    "title": {"color": INK, "fontSize": 12, "fontWeight": "normal", "anchor": "start", "limit": _SIDE + 40},
    "view": {"stroke": None},
    "line": {"color": INK},
    "rule": {"color": INK},
    "text": {"color": INK, "fontSize": 12, "font": FONT},
}
_MARK = re.compile(r'<(\w+) aria-label="([^"]*)" role="graphics-symbol" aria-roledescription="[^"]*"([^>]*?)(/?)>')


# --- the five drawings ----------------------------------------------------------------------------


def intervals(rows: Sequence[Row], axis: str, ends: tuple[float, float], banded: bool = False) -> Any:
    """Draw numbers as marks with their intervals: a row for each benchmark, and in the row a lane for each model.

    Args:
        rows: ``row``, ``lane``, ``value``, ``low``, ``high`` (None: not known), ``solid``, ``tip``; ``label`` stands
            beside it. A row without a value is its label, as strong as ``shade``.
        axis: what the axis says.
        ends: of the axis; a number beyond lies on its end.
        banded: draw the bands of the RCI paper behind the numbers, else a line at 0.
    """
    lanes, names = _each(rows, "lane"), _each(rows, "row")
    x: dict[str, Any] = {
        "scale": alt.Scale(domain=ends, nice=False, clamp=True),
        "title": axis,
        "axis": alt.Axis(grid=False),
    }
    place = _names(names, grid=True, tickBand="extent"), alt.YOffset("lane:N", sort=lanes)
    told = [row for row in rows if len(rows) <= LABELS or row["value"] is None]
    behind = _bands(ends) if banded else _marks([{}]).mark_rule(strokeDash=[2, 3], aria=False).encode(alt.XDatum(0))
    spans = _known(rows, "low").mark_rule(strokeWidth=1.6)
    texts = _marks(told).mark_text(align="left", dx=8).encode(alt.Opacity("shade:Q", scale=None))
    return alt.layer(
        behind,
        spans.encode(alt.X("low:Q", **x), alt.X2("high:Q"), _stroke(lanes), *place),
        _points(_known(rows, "value"), lanes).encode(alt.X("value:Q", **x), *place),
        texts.encode(*place, alt.Text("label:N"), x=alt.value("width")),
    ).properties(width=WIDE, height=alt.Step(15 if len(lanes) > 1 else 22))


def heat(panels: Panels, colours: Mapping[str, str], step: tuple[int, int] | None = None) -> Any:
    """Draw tables in colours, side by side.

    Args:
        panels: rows with ``x``, ``row``, ``level`` (None: no colour), ``text``, ``ink``, ``edge`` (width of an outline)
            and ``tip``.
        colours: of each level.
        step: width and height of a cell, and names of columns lean; None: cells are squares.
    """
    scale = alt.Scale(domain=[*colours], range=[*colours.values()])
    legend = alt.Legend(
        symbolStrokeColor=INK, symbolStrokeWidth=0.5, columns=5, values=[*colours][:: -(-len(colours) // 5)]
    )
    turned = {"labelAngle": -40, "labelAlign": "left"} if step else {"labelAngle": 0}
    made = {}
    for title, rows in panels.items():
        across, down = _each(rows, "x"), _each(rows, "row")
        top = alt.Axis(orient="top", ticks=False, domain=False, labelLimit=150, **turned)
        place = {"x": alt.X("x:N", sort=across, title=None, axis=top), "y": _names(down)}
        width, height = step or (_SIDE // len(across), max(24, _SIDE // len(across)))
        made[title] = alt.layer(
            _known(rows, "level")
            .mark_rect(stroke=INK)
            .encode(
                alt.Fill("level:N", scale=scale, title=None, legend=legend),
                alt.StrokeWidth("edge:Q", scale=None),
                **place,
            ),
            _marks(rows).mark_text(fontSize=11).encode(alt.Color("ink:N", scale=None), alt.Text("text:N"), **place),
        ).properties(width=width * len(across), height=height * len(down))
    return _beside(made, 3)


def scatter(panels: Panels, x: str, y: str, ends: tuple[float, float], diagonal: bool = False) -> Any:
    """Draw points with both their intervals; only the highest and the lowest are named.

    Args:
        panels: rows with ``x``, ``y``, ``xlow``, ``xhigh``, ``ylow``, ``yhigh``, ``lane``, ``solid``, ``name`` and
            ``tip``.
        x: what the axes say.
        y: likewise.
        ends: of both axes.
        diagonal: draw the line on which both are equal.
    """
    lanes = _each([row for rows in panels.values() for row in rows], "lane")
    scale = alt.Scale(domain=ends, nice=False)
    made = {}
    for title, rows in panels.items():
        across, up = alt.X("x:Q", scale=scale, title=x), alt.Y("y:Q", scale=scale, title=y)
        line = _marks([{"x": end, "y": end} for end in ends]).mark_line(strokeDash=[2, 3], strokeWidth=1, aria=False)
        layers = [
            *[line.encode(across, up)] * diagonal,
            _known(rows, "xlow").mark_rule().encode(alt.X("xlow:Q"), alt.X2("xhigh:Q"), up, _stroke(lanes)),
            _known(rows, "ylow").mark_rule().encode(across, alt.Y("ylow:Q"), alt.Y2("yhigh:Q"), _stroke(lanes)),
            _points(_marks(rows), lanes).encode(across, up),
        ]
        for key, side, dy, extreme in (("ylow", "top", 9, min), ("yhigh", "bottom", -9, max))[len(rows) == 1 :]:
            named = extreme(({**row, "y": row["y"] if row[key] is None else row[key]} for row in rows), key=_height)
            layers.append(
                _marks([named]).mark_text(baseline=side, dy=dy, limit=150).encode(across, up, alt.Text("name:N"))
            )
        made[title] = alt.layer(*layers).properties(width=_SIDE + 60, height=_SIDE + 60)
    return _beside(made, 2)


def curves(panels: Panels, ticks: Sequence[str], x: str, y: str, ends: tuple[float, float]) -> Any:
    """Draw numbers over what was asked, a panel for each benchmark and a line for each model.

    Args:
        panels: rows with ``x`` (0 is the first tick), ``value``, ``low``, ``high``, ``lane``, ``joined`` (None: by no
            line), ``solid`` and ``tip``.
        ticks: from left to right.
        x: what the axes say.
        y: likewise.
        ends: of the vertical axis.
    """
    lanes = _each([row for rows in panels.values() for row in rows], "lane")
    scale, room = (alt.Scale(domain=both, nice=False) for both in (ends, (-0.5, len(ticks) - 0.5)))
    named = alt.Axis(values=[*range(len(ticks))], labelExpr=f"{json.dumps([*ticks])}[datum.value]", grid=False)
    across, up = alt.X("x:Q", title=x, scale=room, axis=named), alt.Y("value:Q", title=y, scale=scale)
    made = {}
    for title, rows in panels.items():
        made[title] = alt.layer(
            _marks([{}]).mark_rule(strokeDash=[2, 3], aria=False).encode(alt.YDatum(0)),
            _known(rows, "joined").mark_line(strokeWidth=1.2, aria=False).encode(across, up, _stroke(lanes)),
            _known(rows, "low").mark_rule().encode(across, alt.Y("low:Q"), alt.Y2("high:Q"), _stroke(lanes)),
            _points(_marks(rows), lanes).encode(across, up),
        ).properties(width=_SIDE + 40, height=_SIDE - 30)
    return _beside(made, 2)


def bars(rows: Sequence[Row], colours: Mapping[str, str], axis: str) -> Any:
    """Draw shares of a whole, in percent, as stacked bars.

    Args:
        rows: ``row``, ``part``, ``start``, ``end``, ``middle``, ``text`` and ``tip``.
        colours: of each part.
        axis: what the axis says.
    """
    x: dict[str, Any] = {"scale": alt.Scale(domain=(0, 100)), "title": axis}
    y = _names(_each(rows, "row"))
    fill = alt.Fill("part:N", title=None, scale=alt.Scale(domain=[*colours], range=[*colours.values()]))
    boxes = _marks(rows).mark_bar().encode(alt.X("start:Q", **x), alt.X2("end:Q"), y, fill)
    texts = _marks(rows).mark_text().encode(alt.X("middle:Q", **x), y, alt.Text("text:N"))
    return alt.layer(boxes, texts).properties(width=WIDE, height=alt.Step(36))


# --- parts of them --------------------------------------------------------------------------------


def _each(rows: Iterable[Row], key: str) -> list[Any]:
    return list(dict.fromkeys(row[key] for row in rows))


def _height(row: Row) -> float:
    return float(row["y"])


def _marks(rows: Iterable[Row]) -> Any:
    data = tuple(map(dict, rows))  # Altair copies lists again and again
    chart = alt.Chart({"values": data})
    return chart.encode(alt.Description("tip:N")) if any("tip" in row for row in data) else chart


def _known(rows: Iterable[Row], key: str) -> Any:
    return _marks(row for row in rows if row[key] is not None)


def _names(names: Sequence[str], **more: Any) -> Any:
    """Return the vertical axis of named rows; a name may have two lines."""
    shift = -7 if any("\n" in name for name in names) else 0
    looks = {"labelExpr": _LINES, "labelOffset": shift, "labelPadding": 8, "ticks": False, "domain": False, **more}
    return alt.Y("row:N", sort=[*names], title=None, axis=alt.Axis(**looks))


def _stroke(lanes: Sequence[str]) -> Any:
    """Colour marks by their lane, with a legend where there are several lanes."""
    legend = alt.Legend(columns=2) if len(lanes) > 1 else None
    return alt.Stroke(
        "lane:N", scale=alt.Scale(domain=[*lanes], range=[*palette.SERIES_LIGHT]), title=None, legend=legend
    )


def _points(chart: Any, lanes: Sequence[str]) -> Any:
    """Draw points in the colour and shape of their lane."""
    stroke = _stroke(lanes).to_dict()
    shapes = {**stroke, "scale": alt.Scale(domain=[*lanes], range=[*SHAPES])}
    looks = alt.Stroke(**stroke), alt.Fill(**stroke), alt.Shape(**shapes), alt.FillOpacity("solid:Q", scale=None)
    return chart.mark_point(size=52, strokeWidth=1.6, opacity=1).encode(*looks)


def _bands(ends: tuple[float, float]) -> Any:
    """Draw the bands of the index (RCI paper, 3.2) between the ends of an axis."""
    borders = [ends[0], *(end for end, _ in BANDS), ends[1]]
    rows = [{"band": name, "from": borders[k], "to": borders[k + 1]} for k, name in enumerate(palette.NAMES)]
    scale = alt.Scale(domain=[*palette.NAMES], range=[*palette.BAND_LIGHT])
    legend = alt.Legend(symbolOpacity=0.5, symbolType="square", columns=3)
    colour = alt.Color("band:N", title=None, scale=scale, legend=legend)
    return _marks(rows).mark_rect(opacity=0.5, aria=False).encode(alt.X("from:Q"), alt.X2("to:Q"), colour)


def _beside(charts: Mapping[str, Any], columns: int) -> Any:
    return alt.concat(*(chart.properties(title=title.split("\n")) for title, chart in charts.items()), columns=columns)


# --- files ----------------------------------------------------------------------------------------


def svg(chart: Any) -> str:
    """Return a drawing as SVG on no ground, with titles for browsers to show to who points at a mark."""
    made = vl_convert.vegalite_to_svg({**chart.to_dict(validate=False), "config": _CONFIG})
    return _MARK.sub(
        lambda mark: f"<{mark[1]}{mark[3]}><title>{mark[2]}</title>{f'</{mark[1]}>' * bool(mark[4])}", made
    )


def write(chart: Any, path: Path) -> str:
    """Write a drawing as ``.svg`` and ``.pdf`` on no ground and as ``.png`` on white; return the SVG."""
    made = svg(chart)
    ground = made.replace("><g", '><rect width="100%" height="100%" fill="#ffffff"/><g', 1)
    files.write(path.with_name(f"{path.name}.svg"), made)
    files.write(path.with_name(f"{path.name}.pdf"), vl_convert.svg_to_pdf(made))
    files.write(path.with_name(f"{path.name}.png"), vl_convert.svg_to_png(ground, scale=1.5))
    return made
