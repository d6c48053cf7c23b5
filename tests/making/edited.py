"""Tables of a written run, written anew with other rows or with something else in their footers."""

import json

import polars as pl
import pyarrow.parquet as pq
from msgspec import structs

from lmms_patch.runs import samples


def edit(run, /, task="*", rows=lambda frame: frame, **about):
    """Write the tables of a run as another run would have: other rows, other attributes of ``About``; the run."""
    folder = run if run.is_dir() else run.parent
    for path in folder.glob(f"*_samples_{task}.parquet"):
        samples.write(path, rows(samples.frame_of(path)), structs.replace(samples.about_of(path), **about))
    return run


def rewrite(path, rows=lambda frame: frame, footer=lambda told: told):
    """Write a table as another program would: nothing in its footer follows the rows."""
    told = json.loads(pq.read_metadata(path).metadata[samples.KEY])
    rows(pl.read_parquet(path)).write_parquet(path, metadata={samples.KEY.decode(): json.dumps(footer(told))})
    return path
