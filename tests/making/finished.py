"""A finished run of one task, whose aggregation is any function of the items."""

from msgspec import structs

from lmms_patch.ask.kinds import KINDS
from lmms_patch.ask.spec import Options, WrapSpec
from tests.making.files import DATE, described, lines_of, write_files
from tests.making.recordings import mean
from tests.making.runs import Native, details

FEW = 400


def finish(folder, records, aggregate=mean, *, options=None, higher=True, kind="rci", name="toy",
           made=None, about=None, date=DATE, flat=None):  # fmt: skip
    """The two files of a finished run of one task; the aggregation is any function of the items."""
    grids = tuple(records[0]["grids"])
    spec = WrapSpec(name, KINDS[kind], grids, Options(**(options or {})))
    records = [{**record, "task": spec.name, "base": name, "kind": kind} for record in records]
    known = [r for r in records if "acc" in r["views"][0]["items"]]
    items = [r["views"][0]["items"]["acc"] for r in known]

    def whole():
        return None if any("error" in r["views"][0] for r in records) else aggregate(items)

    def over_cells(n):
        if any("error" in view for r in records for view in r["views"]):
            return None, None, "some docs could not be scored"
        used = [r for r in known if str(n) in r["best"]]
        return (
            aggregate([r["views"][0]["items"]["acc"] for r in used]),
            aggregate([r["views"][r["best"][str(n)]]["items"]["acc"] for r in used]),
            "",
        )

    found = details(spec, records, Native(whole, over_cells, aggregate), higher=higher)
    found.about = {**found.about, "made": structs.replace(found.about["made"], **(made or {}))}
    values = {"acc": whole(), **{f"acc_mpp{n}": over_cells(n)[1] for n in grids}, "patch": found, **(flat or {})}
    return write_files(folder, {spec.name: (values, described(spec), lines_of(records))}, date=date, **(about or {}))
