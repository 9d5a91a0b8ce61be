"""Writes what is known of a failure, next to the process's other records."""

from __future__ import annotations

import os
import traceback
from pathlib import Path
from types import FrameType

from hotloop.probe.instruments.frames import Frames, Line, Owner, line_of
from hotloop.probe.memory_failure.account import held_now
from hotloop.probe.memory_failure.live_storages import LiveStorages
from hotloop.probe.memory_failure.room import device_room, host_room
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
    device: str | None = None,
) -> None:
    """Write it.

    Args:
        folder: of the records.
        error: that says so; None: the process is near its limit, and is to be ended.
        stack: the program's lines, the innermost first.
        storages: what was followed; None: nothing was.
        operator: that asked.
        phase: of the step.
        device: on which it asked; None: as the error's words say.
    """
    text = "" if error is None else "".join(traceback.format_exception_only(type(error), error)).strip()
    on = device or _device(text)
    write_result_file(
        folder / f"{STEM}-{os.getpid()}.json",
        {
            "error": text[:MAX_WORDS],
            "asked_bytes": asked_bytes(text),
            "device": on,
            "stack": [list(line) for line in stack[:12]],
            "operator": operator,
            "phase": phase,
            "tracked": storages is not None,
            "host": host_room(),
            "room": device_room(_index(on)) if on != "cpu" else None,
            **held_now(on, storages),
        },
    )


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
