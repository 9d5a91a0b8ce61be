"""Decoders of JPEG files that may be faster than PIL's, where they are installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

Decode = Callable[[bytes, bool], Any]
"""Of a file's bytes, in color or not: an array of bytes, height x width x 1 or 3."""


def _simplejpeg() -> Decode:
    import simplejpeg

    def decode(raw: bytes, color: bool) -> Any:
        space = "RGB" if color else "GRAY"
        return simplejpeg.decode_jpeg(raw, colorspace=space, fastdct=False, fastupsample=False)

    return decode


def _turbojpeg() -> Decode:
    import turbojpeg

    library = turbojpeg.TurboJPEG()

    def decode(raw: bytes, color: bool) -> Any:
        return library.decode(raw, pixel_format=turbojpeg.TJPF_RGB if color else turbojpeg.TJPF_GRAY)

    return decode


def _torchvision() -> Decode:
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg

    def decode(raw: bytes, color: bool) -> Any:
        mode = ImageReadMode.RGB if color else ImageReadMode.GRAY
        data = torch.frombuffer(bytearray(raw), dtype=torch.uint8)
        return decode_jpeg(data, mode=mode).permute(1, 2, 0).contiguous().numpy()

    return decode


DECODERS: dict[str, Callable[[], Decode]] = {
    "simplejpeg": _simplejpeg,
    "turbojpeg": _turbojpeg,
    "torchvision": _torchvision,
}


def installed() -> list[str]:
    """Return the decoders that this Python has."""
    return [name for name in DECODERS if importlib.util.find_spec(name) is not None]
