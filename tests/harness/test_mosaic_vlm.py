"""The embedded model answers as the host's adapter does without our faster encoder, and the encoder is left alone where it would not see the same."""

from __future__ import annotations

import io

import pyarrow.parquet as pq
import pytest
import torch
from lmms_eval.api.instance import Instance
from lmms_eval.models.chat.lfm2_5_vl import LFM2_5_VL
from PIL import Image
from transformers import AutoModelForImageTextToText

from lmms_patch.ask.views import cell_box
from lmms_patch.harness.models import vision
from lmms_patch.harness.models.mosaic_vlm import MosaicVLM
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


def encoder():
    """The vision encoder of the embedded model as transformers has it."""
    return AutoModelForImageTextToText.from_pretrained(MOSAIC / "model", dtype=torch.float32).eval().base_model.visual


def images(*grids):
    """The patches of images of noise, and their grids."""
    noise = torch.Generator().manual_seed(1)
    return torch.cat([torch.randn(rows * columns, 1176, generator=noise) for rows, columns in grids]), torch.tensor(
        [[1, *grid] for grid in grids]
    )


@torch.no_grad()
def features(one, pixels, grids):
    return one(pixels, grid_thw=grids).pooler_output


@pytest.mark.parametrize("batch", [1, 8])
def test_answers_are_those_of_the_adapter_as_it_is(batch):
    docs = asked(size(1, 8))[::2] if batch == 1 else asked(size(2, 8))
    plain = LFM2_5_VL(pretrained=str(MOSAIC / "model"), device="cpu", dtype="float32", batch_size=batch)
    wanted = answers(plain, docs)
    assert answers(MosaicVLM(batch_size=batch), docs) == wanted
    assert len(set(wanted)) > 5
    assert "" not in wanted  # the adapter's answer where the model fails


def test_features_are_those_of_the_plain_encoder():
    """Of images of several sizes in one batch, of windows at the edge that are smaller, and of images that were seen before."""
    plain, fast = encoder(), encoder()
    assert vision.hasten(fast)
    for config in (plain.config, fast.config):
        assert config.window_size == 28
    plain.window_size = fast.window_size = 56  # windows of 2 x 2 tokens: those at the edge of odd grids are smaller
    for grids in ([(12, 12)], [(12, 12), (4, 6), (6, 4), (12, 12)], [(10, 6), (2, 2), (2, 14)]):
        pixels, sizes = images(*grids)
        wanted = features(plain, pixels, sizes)
        for _ in range(2):
            torch.testing.assert_close(features(fast, pixels, sizes), wanted)


def test_an_image_is_encoded_once_while_it_is_remembered(monkeypatch):
    monkeypatch.setattr(vision, "REMEMBERED", 2)
    encoded, plain = [], encoder()

    def forward(pixels, grid_thw):
        encoded.append(grid_thw.tolist())
        return plain(pixels, grid_thw=grid_thw)

    remembering = vision.Remembering(forward)
    see = torch.no_grad()(remembering)
    for grids in ([(4, 4), (4, 6)], [(4, 4)], [(4, 4), (4, 6), (4, 8)], [(4, 6), (4, 8)], [(4, 4)]):
        see(
            torch.cat([torch.full((rows * columns, 1176), columns / 8.0) for rows, columns in grids]),
            torch.tensor([[1, *grid] for grid in grids]),
        )
    assert encoded == [[[1, 4, 4], [1, 4, 6]], [[1, 4, 8]], [[1, 4, 4]]]  # the last one was forgotten for the third


def odd(*_, **__):
    raise KeyError("cu_seqlens")


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("_tell_windows", odd),
        ("_tell_windows", lambda module, args, kwargs: (args, kwargs | {"windows": [int(kwargs["cu_seqlens"][-1])]})),
        ("attend", lambda module, query, key, value, mask, **_: (value.transpose(1, 2), None)),
    ],
)
def test_an_encoder_that_would_see_otherwise_is_left_as_it_is(monkeypatch, name, other):
    plain, one = encoder(), encoder()
    monkeypatch.setattr(vision, name, other)
    assert not vision.hasten(one)
    pixels, sizes = images((12, 12), (4, 6))
    assert torch.equal(features(one, pixels, sizes), features(plain, pixels, sizes))
