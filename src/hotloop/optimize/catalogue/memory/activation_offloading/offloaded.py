"""Storages that autograd has saved, out in host memory until the backward asks for them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from hotloop.optimize.catalogue.memory.activation_offloading.link import Link

AHEAD = 2
"""Storages that are fetched before they are asked for: one is computed with while the next one comes."""


class Offloaded:
    """One storage.

    Args:
        link: to the host.
        flat: all of it, as a tensor of bytes.
        before: what was offloaded before it in the same forward: the backward asks for that next.
    """

    def __init__(self, link: Link, flat: Any, before: Offloaded | None) -> None:
        self._link = link
        self._host, self._gone = link.out(flat)
        self._before = weakref.ref(before) if before is not None else lambda: None
        self._coming: Any = None
        """The copy on the device, and the event after it; None: not fetched, or handed out."""
        self._flat: Any = None
        """The copy that was handed out, as long as others are to get it, too."""
        self._was_used = False
        self.num_views = 0
        """That autograd keeps and has not asked for."""

    def fetch(self) -> None:
        """Begin to copy it back."""
        if self._coming is None:
            self._coming = self._link.back(self._host, self._gone)

    def get(self) -> Any:
        """Return it on the device, and fetch what is asked for next."""
        flat = self._flat
        if flat is None:
            self.fetch()
            flat, come = self._coming
            self._link.arrive(flat, come)
        self.num_views -= 1
        self._coming, self._was_used = None, True
        self._flat = flat if self.num_views > 0 else None
        for ahead in self._ahead():
            ahead.fetch()
        return flat

    def _ahead(self) -> Iterator[Offloaded]:
        """Yield the storages that are asked for next, as far as they were not handed out yet."""
        ahead = self._before()
        for _ in range(AHEAD):
            if ahead is None:
                return
            if not ahead._was_used:
                yield ahead
            ahead = ahead._before()


class View:
    """A tensor in an offloaded storage: what autograd keeps in place of the tensor.

    Args:
        storage: that it lies in.
        tensor: whose place in it is kept.
    """

    def __init__(self, storage: Offloaded, tensor: Any) -> None:
        self._storage = storage
        storage.num_views += 1
        self._dtype = tensor.dtype
        self._place = (tensor.shape, tensor.stride(), tensor.storage_offset())

    def get(self) -> Any:
        """Return the tensor."""
        return self._storage.get().view(self._dtype).as_strided(*self._place)
