"""Whether reading the samples of a loader draws random numbers: seen once, without a frame of ours meanwhile."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from hotloop.probe.frameless import BeforeCall
from hotloop.probe.record.generators import GlobalGenerators


def _generators() -> GlobalGenerators | None:
    """Return their states; None: one cannot be asked, and the program goes on."""
    try:
        return GlobalGenerators()
    except Exception:
        return None


def draws_once(iterator: Any, told: Callable[[tuple[str, ...]], None]) -> None:
    """Tell which global generators of random numbers are drawn from while the samples of a batch are read.

    It is the second batch: what is made once, on first use, is there by then. What orders samples, or collates them,
    may draw as it likes.

    Args:
        iterator: of a DataLoader; where workers read the samples nothing is told.
        told: called once, with the names of the generators.
    """
    fetcher = iterator.__dict__.get("_dataset_fetcher")
    if fetcher is None or "fetch" in fetcher.__dict__:
        return
    seen: list[GlobalGenerators | None] = []

    def read() -> None:
        seen.append(_generators() if seen else None)
        if len(seen) == 2:
            del fetcher.fetch
            collate = fetcher.collate_fn
            fetcher.collate_fn = BeforeCall(collate, functools.partial(collated, collate))

    def collated(collate: Any) -> None:
        fetcher.collate_fn = collate
        with contextlib.suppress(Exception):  # the program goes on
            before = seen[-1]
            if before is not None:
                told(before.drawn())

    fetcher.fetch = BeforeCall(fetcher.fetch, read)
