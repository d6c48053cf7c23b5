"""Decoders of videos that adapters of lmms-eval may use and that are not always installed.

A test that asks for one without it is skipped, and says why.
"""

from __future__ import annotations

from typing import Any

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
