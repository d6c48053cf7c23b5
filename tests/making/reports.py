"""Results of a page, made up: entries whose analysis has the numbers that a test names."""

import numpy as np
from msgspec import to_builtins

from lmms_patch.ask.kinds import KINDS
from lmms_patch.present.page.figures import Figure
from lmms_patch.present.page.rows import Entry, rows_of
from lmms_patch.runs.numbers import Analysis, Necessity
from lmms_patch.stats.index import disagreement
from lmms_patch.stats.resample import Estimate
from lmms_patch.stats.spatial import cell_shares
from tests.making.analyses import completed
from tests.making.results import cross_validated, result

NEAR = "near chance: FIP 0.26 is below 0.30"


def undrawn(drawing, folder):
    """Stand for ``figures.write`` in tests of what a page says: all that it says of a figure, without the time of drawing it."""
    svg = "<svg xmlns='http://www.w3.org/2000/svg'/>"
    (folder / f"{drawing.name}.svg").write_text(svg, encoding="utf-8")
    told = drawing.title, drawing.caption, drawing.section, drawing.entry, "; ".join(drawing.tips), svg
    return Figure(drawing.name, *told, tuple(drawing.tips))


def estimate(value, half=None, n=200, reason=""):
    ends = (None, None) if half is None or value is None else (value - half, value + half)
    return Estimate(value, None if half is None else half / 1.96, *ends, n, n, 1000, reason=reason)


def plain(*given, **more):
    return to_builtins(estimate(*given, **more))


def shares(n, docs=200, seed=0, weights=None, kind="rci"):
    """Shares of docs that each cell, or segment, answers with its own probability."""
    cells = KINDS[kind].cells(n)
    weights = np.full(cells, 0.4) if weights is None else np.asarray(weights, float)
    scores = (np.random.default_rng(seed).random((docs, cells)) < weights).astype(float)
    found = cell_shares(scores, permutations=99)
    listed = {
        key: None if getattr(found, key) is None else np.asarray(getattr(found, key)).tolist()
        for key in ("score", "win", "p_cells")
    }
    return {**listed, "centre": found.centre, "p": found.p, "docs": docs}


def necessity(one_cell, whole_image, unsolved, text=0.0, n=3, docs=200, again=50):
    """What docs need: shares of the classes; ``text`` None: no doc was asked again."""
    asked = text is not None
    shares = {"text": text, "one cell": one_cell, "whole image": whole_image, "unsolved": unsolved}
    known = {name: estimate(share if asked else None, 0.03 if asked else None, docs) for name, share in shares.items()}
    solved = one_cell + whole_image
    of_solved = [
        estimate(whole_image / of if asked and of else None, 0.03 if asked and of else None, docs)
        for of in ((text or 0) + solved, solved)
    ]
    return Necessity(n, docs, again if asked else 0, known, *of_solved)


def entry(base="toy", model="model", grids=(2, 3), fip=0.8, indices=(-0.1, -0.2), half=0.05, refused="", kind="rci",
          seed=0, weights=None, steady=None, needs=None, ceiling=1.0, **more):  # fmt: skip
    """A result with an index.

    Args:
        indices: at each grid; with ``half`` on either side.
        refused: why the gate refuses it.
        steady: the steady index at each grid.
        needs: the shares of text, one cell, whole image and unsolved at each grid.
    """
    by_grid, maps = {}, []
    for at, (n, index) in enumerate(zip(grids, indices, strict=True)):
        other = steady[at] if steady else None
        by_grid[n] = {
            "n": n, "fip": fip, "shares": shares(n, seed=seed, weights=weights, kind=kind), "warnings": [],
            "mpp": plain(fip * (1 - index), 0.04), "reason": refused, "excluded": 0,
            "index": plain(None if refused else index, half, reason=refused),
            "gap": plain(None if refused else fip * index, half, reason=refused),
            "mark": "" if other is None or refused else disagreement(index, other),
        }  # fmt: skip
        if needs or other is not None:
            made = to_builtins(necessity(*(needs or (0.25, 0.25, 0.25, 0.25)), n=n))
            maps.insert(0, {**made, "index": plain(other, 0.02, reason="" if other is not None else "not told")})
    known = {
        "metric": "acc", "n_docs": 200, "fip": plain(fip, 0.04), "ceiling": ceiling, "grids": by_grid,
        "chance": {"value": 0.25, "floor": "uniform", "floors": {"uniform": plain(0.25, 0.03)}, "reason": ""},
        "gate": {"valid": not refused, "fip": fip, "chance": 0.25, "reason": refused, "threshold": 0.3, "delta": 0.01},
        "necessity": maps,
    }  # fmt: skip
    names = ("task", "metric", "type_", "path", "date", "higher_is_better")
    of = {name: more.pop(name) for name in names if name in more}
    found = result(model, base, kind, grids, docs=200, analysis=completed(Analysis, known), **of)
    label = "".join(c if c.isalnum() and c.isascii() else "-" for c in f"e-{base}-{model}".lower())
    return Entry(found, model, more.pop("label", label), **more)


def rows(entries):
    """The rows of some entries."""
    return [row for one in entries for row in rows_of(one)]


def tst_entry(base="toy", tst=0.45, chance=0.25, majority=0.3):
    ends = [plain(value, 0.05) for value in (tst, tst - majority)]
    found = result(
        "tst_rf", base, "tst", task=f"{base}_tst5", docs=200, tst_details=cross_validated(*ends, majority, chance)
    )
    return Entry(found, "tst_rf", f"e-{base}-tst")


def region_entries(models):
    """Results of a MAGIC task by so many models, with every number that its figures show."""
    stream = np.random.default_rng(3)
    names = [f"magiscore_{what}_{mean}" for what in ("recall", "precision") for mean in ("micro", "macro")]
    out = []
    for m in range(models):
        numbers = {
            name: plain(float(stream.uniform(0.3, 0.9)), 0.05)
            for name in (*names, "magiscore_f1_macro", "acc_short", "acc_synonym")
        }
        magic = {
            "variant": "all",
            "metric": "acc_short",
            "judge": None,
            "numbers": numbers,
            "counts": {},
            "warnings": [],
        }
        found = result(f"org/model-{m}", "magic", "magic", metric="acc_short", magic=magic, docs=200)
        out.append(Entry(found, f"org/model-{m}", f"e-magic-{m}"))
    return out
