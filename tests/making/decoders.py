"""Decoders of videos that adapters of lmms-eval may use: each returns the frames of a file, and the seconds at which they are shown.

A test that asks for one that is not installed is skipped, and says why.
"""

from __future__ import annotations

from typing import Any

import av
import cv2
import numpy as np
import pytest


def decord_reader() -> Any:
    """Return ``decord.VideoReader``."""
    return pytest.importorskip(
        "decord", reason="decord is not installed: it has wheels for Linux on x86-64 alone"
    ).VideoReader


def torchcodec_decoder() -> Any:
    """Return ``torchcodec.decoders.VideoDecoder``.

    It brings no FFmpeg and loads the system's. Without one, it loads PyAV's of version 7, where ``LD_LIBRARY_PATH``
    names a folder with links such as ``libavutil.so.59`` to the files of ``av.libs``, and that folder itself.
    """
    decoders = pytest.importorskip("torchcodec.decoders", reason="torchcodec is not installed", exc_type=ImportError)
    try:
        decoders.VideoDecoder(b"")
    except RuntimeError as error:
        if "Could not load libtorchcodec" in str(error):
            pytest.skip("torchcodec finds no FFmpeg: it loads the system's shared libraries")
    except ValueError:
        pass
    return decoders.VideoDecoder


def by_pyav(path):
    with av.open(path) as container:
        found = [
            (np.rot90(frame.to_ndarray(format="rgb24"), round(frame.rotation / 90)), frame.time)
            for frame in container.decode(video=0)
        ]
    return np.stack([frame for frame, _ in found]), [time for _, time in found]


def by_opencv(path):
    capture, frames = cv2.VideoCapture(path), []
    while (frame := capture.read())[0]:
        frames.append(frame[1][..., ::-1])
    return np.stack(frames), None


def by_decord(path):
    reader = decord_reader()(path)
    every = range(len(reader))
    return reader.get_batch(list(every)).asnumpy(), reader.get_frame_timestamp(list(every))[:, 0].tolist()


def by_decord_backwards(path):
    """Jump to one frame after another, the last one first, as adapters do that take frames one by one."""
    reader = decord_reader()(path)
    found = {i: reader[i].asnumpy() for i in reversed(range(len(reader)))}
    return np.stack([found[i] for i in sorted(found)]), None


def by_torchcodec(path):
    decoder = torchcodec_decoder()(path, dimension_order="NHWC")
    found = decoder.get_frames_at(list(range(len(decoder))))
    return found.data.numpy(), found.pts_seconds.tolist()


DECODERS = [by_pyav, by_opencv, by_decord, by_decord_backwards, by_torchcodec]
