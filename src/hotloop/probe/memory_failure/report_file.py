"""Writes what is known of a failure, next to the process's other records."""

from __future__ import annotations

import os
import traceback
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from hotloop.probe.instruments.frames import Frames, Line, Owner, line_of
from hotloop.probe.instruments.storage_classes import OTHER
from hotloop.probe.memory_failure.account import held_now, walked_tensors
from hotloop.probe.memory_failure.holders import Named, holders, kept_addresses, named_values
from hotloop.probe.memory_failure.live_storages import LiveStorages
from hotloop.probe.memory_failure.request import phase_of_request
from hotloop.probe.memory_failure.room import device_room, host_room
from hotloop.probe.memory_failure.root_calls import EVALUATION
from hotloop.probe.memory_failure.words import STEM, asked_bytes
from hotloop.probe.record.result_file import write_result_file

MAX_WORDS = 600


def write_failure(
    folder: Path,
    error: BaseException | None,
    stack: list[Line],
    storages: LiveStorages | None,
    *,
    operator: str | None = None,
    phase: str | None = None,
    shape: tuple[int, ...] | None = None,
    device: str | None = None,
    frame: FrameType | None = None,
    batch: dict[str, Any] | None = None,
    given: Collection[int] = (),
    largest_shape: tuple[int, ...] | None = None,
) -> None:
    """Write it.

    Args:
        folder: of the records.
        error: that says so; None: the process is near its limit, and is to be ended.
        stack: the program's lines, the innermost first.
        storages: what was followed; None: nothing was.
        operator: that asked.
        phase: of the step.
        shape: of what that operator would have made; None: not known.
        device: on which it asked; None: as the error's words say.
        frame: the innermost of the program's then; None: the one in which the error was raised.
        batch: that the model was given whose call is under way; None: not known.
        given: addresses of the tensors that a model was given at last.
        largest_shape: of earlier batches with another shape; None: there was none.
    """
    room = host_room()
    if storages is not None:
        storages.reserve.give_back()
    text = "" if error is None else "".join(traceback.format_exception_only(type(error), error)).strip()
    on = device or _device(text)
    named, rows = _named(frame or _innermost(error)), walked_tensors()
    write_result_file(
        folder / f"{STEM}-{os.getpid()}.json",
        {
            "error": text[:MAX_WORDS],
            "asked_bytes": asked_bytes(text),
            "device": on,
            "stack": [list(line) for line in stack[:12]],
            "operator": operator,
            "phase": phase_of_request(phase, shape),
            "shape": shape,
            "tracked": storages is not None,
            "host": room,
            "room": device_room(_index(on)) if on != "cpu" else None,
            "holders": holders(named, _of_models(rows), _earlier_nodes(storages, phase)),
            "in_worker": _in_worker(),
            "batch": batch,
            "largest_shape": largest_shape,
            **held_now(on, storages, rows, kept_addresses(named, given)),
        },
    )


def _earlier_nodes(storages: LiveStorages | None, phase: str | None) -> int:
    return 0 if storages is None else storages.earlier_nodes(evaluates=phase == EVALUATION)


def _of_models(rows: Iterable[Mapping[str, Any]]) -> set[int]:
    return {row["address"] for row in rows if row["class"] != OTHER}


def _named(frame: FrameType | None) -> list[Named]:
    """Return what names hold; empty where even that needs more memory than there is."""
    try:
        return named_values(frame)
    except (MemoryError, RuntimeError):
        return []


def _innermost(error: BaseException | None) -> FrameType | None:
    trace = error.__traceback__ if error is not None else None
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame if trace is not None else None


def _in_worker() -> bool:
    from torch.utils.data import get_worker_info

    return get_worker_info() is not None


def lines_of_traceback(error: BaseException) -> list[Line]:
    """Return the program's lines under which an exception was raised, the innermost first."""
    frames = Frames()
    lines, trace = [], error.__traceback__
    while trace is not None:
        if frames.owner(trace.tb_frame) in (Owner.USER, Owner.LIBRARY):
            lines.append(
                Line(trace.tb_frame.f_code.co_filename, trace.tb_lineno, trace.tb_frame.f_code.co_name)
            )
        trace = trace.tb_next
    return lines[::-1]


def lines_of_frame(frame: FrameType | None) -> list[Line]:
    """Return the program's lines that a frame is under, the innermost first."""
    frames, lines = Frames(), []
    while frame is not None:
        if frames.owner(frame) in (Owner.USER, Owner.LIBRARY):
            lines.append(line_of(frame))
        frame = frame.f_back
    return lines


def _device(text: str) -> str:
    words = text.lower()
    if any(word in words for word in ("cuda", "hip ", "cublas", "cudnn", "gpu")):
        import torch

        return f"cuda:{torch.cuda.current_device()}" if torch.cuda.is_initialized() else "cpu"
    return "cpu"


def _index(device: str) -> int | None:
    _, _, number = device.partition(":")
    return int(number) if number.isdigit() else None
