"""torch.profiler for a few steps, which gives way to a profiler of the program's own."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from hotloop.probe.instruments.instrument import Unavailable
from hotloop.probe.probe import Probe

_STARTERS = ("_prepare_profiler", "_enable_profiler", "_enable_profiler_legacy")
"""Functions of `torch.autograd.profiler` through which every profiler of a program is started."""


NUM_READINGS = 5
"""Of the clocks, of which the quickest counts."""
_OURS: WeakSet[Any] = WeakSet()
"""Profilers of earlier windows: what was read from one may keep it alive."""


class TorchProfiler:
    """A profiler that is started and stopped at step boundaries.

    Args:
        probe: the probe.
        name: of the instrument that it serves.
    """

    def __init__(self, probe: Probe, name: str) -> None:
        self._probe = probe
        self._name = name
        self._profiler: Any = None
        self._gave_way = False
        self._restore: list[Callable[[], None]] = []
        self._unix_ns = 0
        """What the clock of the profiler is ahead of the monotonic one."""

    def start(self, **options: Any) -> None:
        """Start it.

        Raises:
            Unavailable: the program has a profiler of its own.
        """
        import torch
        from torch.autograd import profiler

        if torch._C._autograd._profiler_enabled() or _has_profiler():
            raise Unavailable("the program uses torch.profiler itself")
        device = "cuda" if torch.cuda.is_initialized() else None
        self._unix_ns = unix_minus_monotonic_ns()
        self._profiler = profiler.profile(use_device=device, **options)
        # Not by entering it: an optimization that switches debugging tools off lets that do nothing.
        self._profiler._prepare_trace()
        _OURS.add(self._profiler)
        self._profiler._start_trace()
        for name in _STARTERS:
            self._give_way_to(profiler, name)

    def stop(self) -> Any:
        """Stop it and return it.

        Raises:
            Unavailable: the program has started a profiler of its own meanwhile.
        """
        self._end()
        if self._gave_way:
            raise Unavailable("the program started torch.profiler itself meanwhile")
        return self._profiler

    def monotonic_ns(self, unix_ns: int) -> int:
        """Return a time of the profiler's on the monotonic clock."""
        return unix_ns - self._unix_ns

    def _end(self) -> None:
        while self._restore:
            self._restore.pop()()
        if not self._gave_way and self._profiler is not None:
            self._profiler.__exit__(None, None, None)

    def _give_way_to(self, module: Any, name: str) -> None:
        original = getattr(module, name, None)
        if original is None:
            return

        def starter(*args: Any, **kwargs: Any) -> Any:
            with self._probe.survive(f"deep:{self._name}"):
                self._end()
                self._gave_way = True
            return original(*args, **kwargs)

        setattr(module, name, starter)
        self._restore.append(lambda: setattr(module, name, original))


def _has_profiler() -> bool:
    """Whether the program holds a profiler: one with a schedule is prepared long before it is started."""
    from torch.autograd.profiler import profile
    from torch.profiler import profile as scheduled

    return any(
        issubclass(type(each), (profile, scheduled)) and each not in _OURS for each in gc.get_objects()
    )


def unix_minus_monotonic_ns() -> int:
    """Return how far the clocks are apart: whoever loses its core between two readings is a millisecond off."""
    readings = [(time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(NUM_READINGS)]
    before, unix_ns, after = min(readings, key=lambda each: each[2] - each[0])
    return unix_ns - (before + after) // 2
