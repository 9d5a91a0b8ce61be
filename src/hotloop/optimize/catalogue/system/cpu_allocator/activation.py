"""The activation of cpu_allocator: sees which allocator serves the process."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from hotloop.probe.activation.activation import Activation

LARGE = 64 << 20
"""Above every threshold at which glibc's malloc would map a buffer by itself (at most 32 MiB, mallopt(3))."""
_FIELDS = (
    "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
)  # fmt: skip


class _Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS]


class AllocatorInUse(Activation):
    """Looks at the allocator of this process.

    Args:
        allocator: `glibc` (with its switches), `jemalloc` or `tcmalloc`.
    """

    def __init__(self, allocator: str) -> None:
        self._allocator = allocator
        self._seen: tuple[bool, str] | None = None

    def effect(self) -> tuple[bool, str]:
        """Return whether the allocator is there; looked at once."""
        if self._seen is None:
            self._seen = _glibc_keeps() if self._allocator == "glibc" else _is_loaded(self._allocator)
        return self._seen


def _glibc_keeps() -> tuple[bool, str]:
    """Whether a large buffer comes from the heap: it is not counted among the mapped regions."""
    libc: Any = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        return False, "this C library cannot say how it allocates (glibc before 2.33)"
    libc.mallinfo2.restype = _Mallinfo2
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
    before = libc.mallinfo2().hblks
    buffer = libc.malloc(LARGE)
    mapped = libc.mallinfo2().hblks - before
    libc.free(buffer)
    if mapped:
        return False, "a buffer of 64 MiB was mapped from the system"
    return True, "a buffer of 64 MiB came from the heap"


def _is_loaded(name: str) -> tuple[bool, str]:
    """Whether the library is mapped and `malloc` is its own."""
    maps = Path("/proc/self/maps").read_text() if Path("/proc/self/maps").exists() else ""
    ranges = [line.split() for line in maps.splitlines() if f"lib{name}" in line]
    if not ranges:
        return False, f"lib{name} is not loaded"
    libc: Any = ctypes.CDLL(None)
    address = ctypes.cast(libc.malloc, ctypes.c_void_p).value or 0
    for words in ranges:
        low, high = (int(end, 16) for end in words[0].split("-"))
        if low <= address < high:
            return True, f"malloc is that of {words[-1]}"
    return False, f"lib{name} is loaded, but malloc comes from a different library"
