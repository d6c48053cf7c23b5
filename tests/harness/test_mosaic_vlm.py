"""The embedded model answers as the host's adapter does without our faster encoder, and the encoder is left alone where it would not see the same."""

from __future__ import annotations

import io

import pyarrow.parquet as pq
import pytest
from lmms_eval.api.instance import Instance
from lmms_eval.models.chat.lfm2_5_vl import LFM2_5_VL
from lmms_patch.harness.models.mosaic_vlm import MosaicVLM
from PIL import Image

from lmms_patch.ask.views import cell_box
from lmms_patch.resources import folder
from tests.sizes import size

MOSAIC = folder("tasks") / "mosaic"


def asked(docs):
    """The first docs of each family: each on its sheet, on the cells of both grids, and on the sheet of the family's doc before."""
    found = []
    for path in sorted((MOSAIC / "data").glob("*.parquet")):
        rows = pq.read_table(path, columns=["image", "question"]).slice(0, docs).to_pylist()
        sheets = [Image.open(io.BytesIO(row["image"]["bytes"])).convert("RGB") for row in rows]
        for at, (row, sheet) in enumerate(zip(rows, sheets, strict=True)):
            cells = [sheet.crop(cell_box(sheet.size, n, r, c)) for n in (2, 3) for r in range(n) for c in range(n)]
            found += [{"image": image, "question": row["question"]} for image in (sheet, *cells, sheets[at - 1])]
    return found


def messages(doc):
    return [
        {"role": "user", "content": [{"type": "image", "url": doc["image"]}, {"type": "text", "text": doc["question"]}]}
    ]


def answers(model, docs):
    model.task_dict = {"mosaic": {"test": docs}}
    settings = {"max_new_tokens": 4, "temperature": 0, "do_sample": False}
    requests = [
        Instance(
            "generate_until",
            (doc["question"], messages, settings, at, "mosaic", "test"),
            0,
            {"task": "mosaic", "doc_id": at, "repeats": 1},
        )
        for at, doc in enumerate(docs)
    ]
    return [answer.text for answer in model.generate_until(requests)]


@pytest.mark.parametrize("batch", [1, 8])
def test_answers_are_those_of_the_adapter_as_it_is(batch):
    docs = asked(size(1, 8))[::2] if batch == 1 else asked(size(2, 8))
    plain = LFM2_5_VL(pretrained=str(MOSAIC / "model"), device="cpu", dtype="float32", batch_size=batch)
    wanted = answers(plain, docs)
    assert answers(MosaicVLM(batch_size=batch), docs) == wanted
    assert len(set(wanted)) > 5
    assert "" not in wanted  # the adapter's answer where the model fails
