"""The activation and knob of faster_decode: PIL's JPEG images are decoded by another library."""

from __future__ import annotations

import functools
from typing import Any

from hotloop.optimize.catalogue.input.faster_decode.decoders import DECODERS, Decode
from hotloop.optimize.dataset.shared_count import SharedCount
from hotloop.probe.activation.knob import Knob

CHECKED = 16
"""Images that every process decodes both ways before it trusts the faster one."""
EVERY = 200
"""One in so many is compared after that."""
MAX_DIFFERENCE = 2
"""Of 255, in any pixel: what another rounding in the transform and in the conversion of colors can give."""


class FastJpegs(Knob):
    """Stands where PIL decodes a JPEG image.

    Args:
        decoder: its name.
        on: from the start; a knob is switched on later.
    """

    def __init__(self, decoder: str, *, on: bool = True) -> None:
        self._decoder = decoder
        self._on = on
        self._decode: Decode | None = None
        self._reason = "no JPEG image was decoded by PIL"
        self._num_seen = 0
        self._num_decoded = SharedCount()

    def on_torch(self) -> None:
        """Stand in for PIL's decoder."""
        from PIL.JpegImagePlugin import JpegImageFile

        self._decode = DECODERS[self._decoder]()
        cls: Any = JpegImageFile
        original = cls.load

        @functools.wraps(original)
        def load(image: Any) -> Any:
            if self._on and self._decode is not None and _is_whole(image, cls):
                self._load(image, self._decode, original)
            return original(image)

        cls.load = load

    def _load(self, image: Any, decode: Decode, original: Any) -> None:
        """Decode an image; one that the other library refuses, or that is to be compared, is left to PIL."""
        try:
            pixels = decode(_bytes_of(image), image.mode == "RGB")
        except Exception:  # truncated or unusual: PIL says what it thinks of it
            return
        self._num_seen += 1
        if self._num_seen <= CHECKED or self._num_seen % EVERY == 0:
            original(image)
            self._compare(image, pixels)
        else:
            _put(image, pixels)
            self._num_decoded.add()

    def _compare(self, image: Any, pixels: Any) -> None:
        import numpy as np

        own = np.asarray(image).astype(np.int16)
        same_size = own.size == pixels.size
        difference = int(np.abs(own - pixels.reshape(own.shape)).max()) if same_size else 255
        if difference > MAX_DIFFERENCE:
            self._decode = None
            self._reason = f"{self._decoder} gives a pixel that is {difference} of 255 away from PIL's"

    def switch(self, on: bool) -> None:
        """Decode by the other library, or by PIL; workers that run already go on as they do."""
        self._on = on

    def effect(self) -> tuple[bool, str]:
        """Return whether images were decoded by the other library, in this process or its workers."""
        num = self._num_decoded.value
        if not num or self._decode is None:
            few = (
                self._reason if self._decode is None or not self._num_seen else "too few images were decoded"
            )
            return False, few
        return True, f"{num} images were decoded by {self._decoder}, within {MAX_DIFFERENCE} of 255 of PIL's"


def _is_whole(image: Any, cls: Any) -> bool:
    """Whether nothing of an image was decoded yet, and all of it is wanted as it is in the file."""
    if type(image) is not cls or len(image.tile) != 1 or image.decoderconfig:
        return False
    name, _, _, arguments = image.tile[0]
    return (
        name == "jpeg" and image.mode in {"RGB", "L"} and arguments[0] == image.mode and image.fp is not None
    )


def _bytes_of(image: Any) -> bytes:
    place = image.fp.tell()
    image.fp.seek(0)
    try:
        raw: bytes = image.fp.read()
        return raw
    finally:
        image.fp.seek(place)


def _put(image: Any, pixels: Any) -> None:
    """Do what PIL does when it has decoded the last tile."""
    from PIL import Image

    image.im = Image.fromarray(pixels.reshape(pixels.shape[:2]) if pixels.shape[2] == 1 else pixels).im
    image.tile = []
    image.readonly = 0
    image.load_end()
    if image._exclusive_fp and image._close_exclusive_fp_after_loading:
        image.fp.close()
    image.fp = None
