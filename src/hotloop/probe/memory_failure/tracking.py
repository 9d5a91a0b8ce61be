"""A run that is made to find out what fills the memory: every storage is followed from the first one on.

It ends as the program ends. Where the kernel killed the program before, the process ends itself a little earlier, so
that what held the memory is known and nobody else is killed this time.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from hotloop.probe.frameless import Before
from hotloop.probe.instruments.dispatch_mode import operator_mode
from hotloop.probe.instruments.frames import Frames, Line, Owner
from hotloop.probe.instruments.stacks import Stacks, lines_of
from hotloop.probe.memory_failure import in_workers
from hotloop.probe.memory_failure.failure_snapshot import FailureSnapshot
from hotloop.probe.memory_failure.live_storages import FORWARD, LiveStorages
from hotloop.probe.memory_failure.report_file import lines_of_frame, write_failure
from hotloop.probe.memory_failure.request import result_shape
from hotloop.probe.memory_failure.room import host_room
from hotloop.probe.memory_failure.root_calls import EVALUATION, RootCalls
from hotloop.probe.memory_failure.words import says_out_of_memory
from hotloop.probe.probe import Probe

POLL_S = 0.02
ENDED = 137
"""As the kernel would have ended it."""


def install(probe: Probe) -> None:
    """Follow the storages, and the size of the process where that has a limit."""
    from torch.utils._python_dispatch import _push_mode

    storages = LiveStorages()
    calls = RootCalls(storages)
    storages.on_pass.append(calls.went_back)
    probe.on_root_call.append(partial(_called, probe, calls))
    last = FailureSnapshot(storages)
    limit = probe.config.ends_at_bytes
    if limit is not None:
        main = threading.get_ident()
        threading.Thread(
            target=_watch_size,
            args=(probe, storages, calls, last, limit, main),
            daemon=True,
            name="hotloop-size",
        ).start()
    with probe.survive("memory failure"):
        in_workers.install(probe, storages)
    mode = _mode(probe, storages, calls, last)
    _push_mode(mode)
    with probe.survive("memory failure"):
        _follow_threads(lambda: _push_mode(mode))


def _follow_threads(begin: Callable[[], None]) -> None:
    """Do first in each thread that Python starts what has been done in this one: modes are a thread's."""
    cls: Any = threading.Thread
    cls._bootstrap_inner = Before(cls._bootstrap_inner, lambda _: begin())


def _called(probe: Probe, calls: RootCalls, module: Any, args: Any, kwargs: Any) -> None:
    with probe.survive("memory failure"):
        calls.began(module, args, kwargs)


def _watch_size(
    probe: Probe, storages: LiveStorages, calls: RootCalls, last: FailureSnapshot, limit: int, thread: int
) -> None:
    """End the process when it is as large as it may be."""
    while (host_room()["resident_bytes"] or 0) < limit:
        time.sleep(POLL_S)
    assert probe.folder is not None
    with probe.survive("memory failure"):
        frame = sys._current_frames().get(thread)
        write_failure(
            probe.folder,
            None,
            _lines(thread),
            storages,
            storages.reserve,
            device="cpu",
            frame=frame,
            given=calls.given,
        )
    with probe.survive("memory snapshot"):
        last.write(probe.folder, "cpu")
    os._exit(ENDED)


def _lines(thread: int) -> list[Line]:
    frames, stacks = Frames(), Stacks()
    found = next((stack for number, stack in stacks.look() if number == thread), b"")
    return [line for line in lines_of(found) if frames.owner_of_line(line) in (Owner.USER, Owner.LIBRARY)]


def _mode(probe: Probe, storages: LiveStorages, calls: RootCalls, last: FailureSnapshot) -> Any:
    def run(func: Any, args: Any, kwargs: Any) -> Any:
        try:
            out = func(*args, **kwargs)
        except (RuntimeError, MemoryError) as error:
            if says_out_of_memory(error) is not None and probe.folder is not None:
                device = _device_of(args, kwargs)
                with probe.survive("memory failure"):
                    shape = result_shape(func, args, kwargs)
                    _failed(probe, storages, calls, error, str(func), device, shape)
                with probe.survive("memory snapshot"):
                    last.write(probe.folder, device or "cpu")
            raise
        with probe.survive("memory failure"):
            storages.saw(out, str(func), args)
            last.look()
        return out

    return operator_mode(run)


def _failed(
    probe: Probe,
    storages: LiveStorages,
    calls: RootCalls,
    error: BaseException,
    operator: str,
    device: str | None,
    shape: tuple[int, ...] | None,
) -> None:
    assert probe.folder is not None
    frame = sys._getframe(2)
    phase = storages.phase(storages.stacks.number(frame))
    if phase == FORWARD and calls.evaluates:
        phase = EVALUATION
    write_failure(
        probe.folder,
        error,
        lines_of_frame(frame),
        storages,
        storages.reserve,
        operator=operator,
        phase=phase,
        shape=shape,
        device=device,
        frame=frame,
        batch=calls.batch_under_way(frame),
        given=calls.given,
        largest_shape=_largest_shape(probe),
    )


def _largest_shape(probe: Probe) -> tuple[int, ...] | None:
    shapes = [root["largest_shape"] for root in probe.facts.roots if "largest_shape" in root]
    return max(shapes, key=math.prod, default=None)


def _device_of(args: Any, kwargs: Any) -> str | None:
    """Return where an operation makes its result; None: not known."""
    told = kwargs.get("device")
    if isinstance(told, torch.device):
        return str(told) if told.type == "cpu" or told.index is not None else None
    pending = list(args)
    while pending:
        each = pending.pop(0)
        if isinstance(each, torch.Tensor):
            return str(each.device)
        if isinstance(each, tuple | list):
            pending += each
    return None
