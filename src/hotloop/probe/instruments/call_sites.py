"""Call sites: which lines of the user's program wait for values, copy tensors and make new ones, and for how long.

For a few steps the methods of `torch.Tensor` and the functions of torch that do this are replaced by ones that look
who called. What torch calls inside of such a call is part of it. Modes (`TorchFunctionMode`, `TorchDispatchMode`) would
see the same, but compiled code is guarded on them and would be compiled again.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from time import perf_counter_ns
from types import FrameType, ModuleType
from typing import Any

import torch

from hotloop.probe.frameless import Around, own_method
from hotloop.probe.instruments.frames import Caller, Frames, Owner
from hotloop.probe.instruments.instrument import Instrument
from hotloop.probe.instruments.replaced import Replaced
from hotloop.probe.instruments.watched_calls import COPY, CREATE, SYNC, Watched, functions, methods
from hotloop.probe.probe import Probe

Key = tuple[str, int, str, str, str, str, str | None, bool]
"""path, line, function, call, kind, device, through, loading"""
MAX_SITES = 4096
"""More places than this are a program that writes programs; what comes later is not kept."""
_OWN_AFFAIRS = tuple(
    os.path.join(os.path.dirname(torch.__file__), *part) + os.sep
    for part in (
        ("optim",),
        ("utils", "data"),
        ("_dynamo",),
        ("_inductor",),
        ("distributed",),
        ("_functorch",),
    )
)
"""Parts of torch whose tensors on the host are there to be read: step counters, indices, sizes."""


class CallSites(Instrument):
    """Watches calls by line.

    Args:
        probe: the probe.
    """

    seconds = 1.0

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe)
        self._frames = Frames()
        self._busy = _Busy()
        self._step: dict[Key, list[int]] = {}
        self._steps: list[dict[Key, list[int]]] = []
        self._replaced = Replaced(self._frames)
        self._compiles = False
        self._builtins: dict[int, str] = {}
        """TorchScript's table of what it compiles by identity."""

    def start(self) -> None:
        """Replace the calls."""
        self._prepare_torch()
        self._install()

    def step(self) -> None:
        """Keep what the step did apart."""
        self._steps.append(self._step)
        self._step = {}

    def stop(self) -> dict[str, Any]:
        """Put everything back."""
        self._replaced.put_back()
        keys = {key: number for number, key in enumerate({key for step in self._steps for key in step})}
        return {
            "keys": list(keys),
            "steps": [[(keys[key], *spent) for key, spent in step.items()] for step in self._steps],
            "functions": not self._compiles,
        }

    def step_aside(self) -> None:
        """Be gone while torch.compile reads code."""
        self._replaced.put_back()

    def step_back(self) -> None:
        """Go on."""
        if not self._replaced:
            self._install()

    def after_fork(self) -> None:
        """Put everything back in a child."""
        self._replaced.put_back()

    # Replacing -----------------------------------------------------------------------------------------------------

    def _prepare_torch(self) -> None:
        """Let torch fill the tables that it makes once, from the attributes that are replaced here."""
        with contextlib.suppress(ImportError, AttributeError):  # a later torch may have no such table
            from torch.utils import _device

            _device._device_constructors()
        with contextlib.suppress(ImportError, AttributeError):
            from torch.jit import _builtins

            self._builtins = _builtins._get_builtin_table()
        # Compiled code is guarded on the identity of torch's functions, and would be compiled again.
        self._compiles = self.probe.compiles()

    def _install(self) -> None:
        for watched in methods():
            with contextlib.suppress(Exception):  # this torch has it not
                self._replace(watched.place(), watched)
        if not self._compiles:
            for watched in functions():
                with contextlib.suppress(Exception):
                    self._replace(watched.place(), watched)

    def _replace(self, owner: Any, watched: Watched) -> None:
        if isinstance(owner, ModuleType):
            original = vars(owner)[watched.name]
            replaced = self._watching(original, watched)
            self._replaced.set_imported(original, replaced)
            self._let_torchscript_know(original, replaced)
        else:
            changed = self._watching(own_method(owner, watched.name), watched)
            replaced = Around(getattr(owner, watched.name), changed)
        self._replaced.set(owner, watched.name, replaced)

    def _let_torchscript_know(self, original: Any, replaced: Any) -> None:
        name = self._builtins.get(id(original))
        if name is not None:
            self._builtins[id(replaced)] = name
            self._replaced.also(lambda: self._builtins.__delitem__(id(replaced)))

    # Watching ------------------------------------------------------------------------------------------------------

    def _watching(self, original: Any, watched: Watched) -> Any:
        busy, clock, note = self._busy, perf_counter_ns, self._note

        def call(*args: Any, **kwargs: Any) -> Any:
            if busy.inside:
                return original(*args, **kwargs)
            busy.inside = True
            try:
                begin = clock()
                result = original(*args, **kwargs)
                spent = clock() - begin
                with contextlib.suppress(Exception):  # the probe fails open
                    note(watched, args, kwargs, result, spent, sys._getframe(1))
            finally:
                busy.inside = False
            return result

        # A pickle names what it finds, and finds torch's own again.
        call.__module__ = watched.module
        call.__name__ = watched.name
        call.__qualname__ = ".".join(part for part in (watched.owner, watched.name) if part)
        return call

    def _note(
        self, watched: Watched, args: Any, kwargs: Any, result: Any, spent_ns: int, frame: FrameType
    ) -> None:
        kind = watched.judge(args, kwargs, result)
        caller = self._frames.caller(frame) if kind is not None else None
        if kind is None or caller is None:
            return
        if kind is CREATE and caller.owner is Owner.TORCH:
            return  # a gradient's seed, a layer's first state
        device = watched.device or _device_of(args[0] if kind is SYNC and args else result)
        if kind is SYNC and device == "cpu" and (caller.loading or _own_affair(caller)):
            return
        size = result.numel() * result.element_size() if kind in (COPY, CREATE) else 0
        if kind is COPY and result is args[0]:
            size = 0
        through = f"{caller.direct.path}:{caller.direct.line}" if caller.direct != caller.at else None
        says = watched.says if watched.named is None else watched.named(args)
        key = (*caller.at, says, kind, device, through, caller.loading)
        entry = self._step.get(key)
        if entry is None:
            if len(self._step) >= MAX_SITES:
                return
            entry = self._step[key] = [0, 0, 0]
        entry[0] += 1
        entry[1] += spent_ns
        entry[2] += size


class _Busy(threading.local):
    """Whether this thread is inside a watched call."""

    inside = False


def _device_of(value: Any) -> str:
    device = getattr(value, "device", None)
    kind = getattr(device, "type", None)
    return kind if isinstance(kind, str) else "cpu"


def _own_affair(caller: Caller) -> bool:
    return caller.owner is Owner.TORCH and caller.direct.path.startswith(_OWN_AFFAIRS)
