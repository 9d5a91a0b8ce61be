"""cpu_allocator's switches as a knob: malloc takes them while the program runs."""

from __future__ import annotations

import ctypes

from hotloop.probe.activation.knob import Knob

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -2, -3, -4
"""Of mallopt(3), with the values of <malloc.h>."""
_DEFAULT_TOP_PAD, _DEFAULT_MMAP_MAX = 128 << 10, 65_536
_LARGEST_MMAP, _LARGEST_TRIM = 32 << 20, 64 << 20
"""Where malloc's own thresholds end up in a program that frees large buffers (mallopt(3), M_MMAP_THRESHOLD)."""


class MallocKnob(Knob):
    """Keeps large buffers while on.

    The thresholds that malloc adapts by itself stand still once one is set, so what is off afterwards is where they
    end up, not where they were.

    Args:
        keep_bytes: free memory that is not given back.
        pad_bytes: by which the heap grows beyond what is asked for.
    """

    settle_steps = 3
    lasting = True

    def __init__(self, keep_bytes: int, pad_bytes: int) -> None:
        self._on = {_MMAP_MAX: 0, _TRIM_THRESHOLD: min(keep_bytes, (1 << 31) - 1), _TOP_PAD: pad_bytes}
        self._taken = False

    def switch(self, on: bool) -> None:
        """Set what malloc keeps."""
        off = {
            _MMAP_MAX: _DEFAULT_MMAP_MAX,
            _MMAP_THRESHOLD: _LARGEST_MMAP,
            _TRIM_THRESHOLD: _LARGEST_TRIM,
            _TOP_PAD: _DEFAULT_TOP_PAD,
        }
        library = ctypes.CDLL(None)
        results = [library.mallopt(name, value) for name, value in (self._on if on else off).items()]
        self._taken = self._taken or (on and all(results))
        if not on:
            library.malloc_trim(0)

    def effect(self) -> tuple[bool, str]:
        """Return whether malloc took them."""
        return self._taken, "mallopt took the switches" if self._taken else "mallopt refused"
