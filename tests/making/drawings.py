"""What a figure of matplotlib really paints: each line of text with its outline, and what lies outside the figure."""

import math
from contextlib import contextmanager

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg


@contextmanager
def _recording(found):
    """Note each line of text in place of painting it: the text, and its outline in pixels from the upper left."""
    real = RendererAgg.draw_text

    def draw_text(self, gc, x, y, s, prop, angle, ismath=False, mtext=None):
        wide, tall, below = self.get_text_width_height_descent(s, prop, ismath)
        turn = math.radians(angle)
        corners = [(0, below), (wide, below), (wide, below - tall), (0, below - tall)]
        outline = [
            (x + a * math.cos(turn) + b * math.sin(turn), y - a * math.sin(turn) + b * math.cos(turn))
            for a, b in corners
        ]
        if s.strip():
            found.append((s, outline))

    RendererAgg.draw_text = draw_text
    try:
        yield
    finally:
        RendererAgg.draw_text = real


def painted(drawing):
    """The lines of text of a figure, with their outlines in pixels; and the size of the figure in pixels."""
    found = []
    canvas = FigureCanvasAgg(drawing)
    with _recording(found):
        canvas.draw()
    return found, canvas.get_width_height()


def overlapping(outlines, spare=1.0):
    """Pairs of outlines that share more than a strip as wide as ``spare`` pixels (separating axes: exact for convex shapes).

    Only pairs whose upright boxes share that much are looked at: these are few.
    """
    corners = np.array([points for _, points in outlines]).reshape(len(outlines), -1, 2)
    low, high = corners.min(axis=1, initial=np.inf), corners.max(axis=1, initial=-np.inf)
    shared = np.minimum(high[:, None], high[None]) - np.maximum(low[:, None], low[None])
    pairs = np.argwhere(np.triu((shared > spare).all(axis=-1), 1))
    return [(outlines[i][0], outlines[k][0]) for i, k in pairs if _share(outlines[i][1], outlines[k][1], spare)]


def _share(a, b, spare):
    for shape in (a, b):
        for (x, y), (u, v) in zip(shape, [*shape[1:], shape[0]], strict=True):
            long = math.hypot(u - x, v - y)
            if not long:
                continue
            across = (-(v - y) / long, (u - x) / long)
            one, other = ([p * across[0] + q * across[1] for p, q in points] for points in (a, b))
            if min(max(one), max(other)) - max(min(one), min(other)) <= spare:
                return False
    return True


def outside(outlines, size, spare=0.5):
    """The texts that reach over the edge of the figure by more than ``spare`` pixels."""
    wide, tall = size
    return [
        s
        for s, points in outlines
        if not all(-spare <= x <= wide + spare and -spare <= y <= tall + spare for x, y in points)
    ]


def marks_outside(drawing, spare=0.5):
    """The lines and patches that reach over the edge of the figure, by what they tell who points at them."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    from lmms_patch.present.report.figures.canvas import told

    wide, tall = FigureCanvasAgg(drawing).get_width_height()
    renderer = drawing.canvas.get_renderer()
    out = []
    for artist in drawing.findobj(lambda one: isinstance(one, (Line2D, Rectangle)) and bool(one.get_gid())):
        box = artist.get_window_extent(renderer)
        if box.x0 < -spare or box.y0 < -spare or box.x1 > wide + spare or box.y1 > tall + spare:
            out.append(told(artist.get_gid()))
    return out
