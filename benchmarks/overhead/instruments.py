"""What is switched on and off: hotloop's hooks, `torch.profiler`, TraceML's `trace_step`."""

from __future__ import annotations

import gc
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from time import monotonic_ns
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.optim import optimizer as optim
from torch.utils.data import DataLoader, dataloader

Program = Callable[[], tuple[nn.Module, Callable[[], None]]]
"""Makes a model and a function that takes one step of its training."""
WARM_UP_STEPS = 100
_HOOK = "_compiled_call_impl"
_PATCHED: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (torch, ("save",)),
    (torch.autograd, ("backward", "grad")),
    (DataLoader, ("__init__", "__iter__")),
    (dataloader._BaseDataLoaderIter, ("__init__", "__next__")),
    (optim.Optimizer, ("__init__",)),
)
_STEP_HOOKS = (optim._global_optimizer_pre_hooks, optim._global_optimizer_post_hooks)


class Instrument(ABC):
    """Something that can be taken out of a running process and put back.

    Args:
        program: what it is put into.
    """

    step: Callable[[], None]
    """Takes one step."""

    def __init__(self, program: Program) -> None:
        self.install()
        self.model, self.plain = program()
        self.step = self.plain
        for _ in range(WARM_UP_STEPS):
            self.step()

    def install(self) -> None:  # noqa: B027 - some need nothing
        """Put in what has to be there before the program is made."""

    @abstractmethod
    def switch(self, *, on: bool) -> None:
        """Put it in, or take it out."""


class _Hooks(NamedTuple):
    """What stands in all places of the probe."""

    values: list[Any]
    steps: list[dict[int, Any]]
    root: Any


class Hotloop(Instrument):
    """The probe, as the launcher puts it in."""

    def install(self) -> None:
        """Remember what is patched, then put the probe in."""
        from hotloop.probe.control.control_page import ControlPage
        from hotloop.probe.process.config import ProbeConfig
        from hotloop.probe.setup.install import install

        self._off = [(owner, name, getattr(owner, name)) for owner, names in _PATCHED for name in names]
        self._scratch = tempfile.TemporaryDirectory()
        folder = Path(self._scratch.name)
        ControlPage.create(folder / "control").close()
        install(ProbeConfig(folder=str(folder)))

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        from hotloop.probe.record.burst_timing import BurstTiming

        (self.pace,) = (each for each in gc.get_objects() if isinstance(each, BurstTiming))
        self._in: _Hooks | None = None
        self._left_ns = 0

    def switch(self, *, on: bool) -> None:
        """Put all hooks in, or take all out."""
        if on and self._in is not None:
            self._put(self._in)
            self._in = None
            self._forget_absence()
        elif not on and self._in is None:
            self._in = self._there()
            self._put(_Hooks([value for *_, value in self._off], [{}, {}], None))
            self._left_ns = monotonic_ns()

    def _there(self) -> _Hooks:
        """Return what stands in the places now: while the recorder is lean, hook points leave by themselves."""
        values = [getattr(owner, name) for owner, name, _ in self._off]
        return _Hooks(values, [dict(hooks) for hooks in _STEP_HOOKS], self.model.__dict__.get(_HOOK))

    def _put(self, hooks: _Hooks) -> None:
        for (owner, name, _), value in zip(self._off, hooks.values, strict=True):
            if getattr(owner, name) is not value:
                setattr(owner, name, value)
        for place, kept in zip(_STEP_HOOKS, hooks.steps, strict=True):
            place.clear()
            place.update(kept)
        self.model.__dict__.pop(_HOOK, None)
        if hooks.root is not None:
            self.model.__dict__[_HOOK] = hooks.root

    def _forget_absence(self) -> None:
        """Let the time in which the probe was out not count as time of the steps that it saw."""
        if self.pace._begun is not None:
            steps, begun_ns, *counts = self.pace._begun
            self.pace._begun = (steps, begun_ns + monotonic_ns() - self._left_ns, *counts)


class TorchProfiler(Instrument):
    """`torch.profiler` recording operators; starting, stopping and exporting it are not counted."""

    _running: Any = None

    def switch(self, *, on: bool) -> None:
        """Start a recording, or end it and throw it away."""
        if self._running is not None:
            self._running.__exit__(None, None, None)
            self._running = None
        if on:
            self._running = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
            self._running.__enter__()


class TraceML(Instrument):
    """TraceML in its automatic mode, the step under `trace_step`; what it patches at start stays in."""

    def install(self) -> None:
        """Start TraceML as its manual says."""
        import traceml_ai  # type: ignore[import-not-found]

        traceml_ai.init(mode="auto", on_missing_aggregator="raise")
        self._trace_step = traceml_ai.trace_step

    def _traced(self) -> None:
        with self._trace_step(self.model):
            self.plain()

    def switch(self, *, on: bool) -> None:
        """Trace the steps, or not."""
        self.step = self._traced if on else self.plain


INSTRUMENTS: dict[str, type[Instrument]] = {
    "hotloop": Hotloop,
    "torch.profiler": TorchProfiler,
    "TraceML": TraceML,
}
