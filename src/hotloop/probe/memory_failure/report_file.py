"""Writes what is known of a failure, next to the process's other records."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.utils.data import get_worker_info

from hotloop.probe.instruments.frames import Frames, Line, Owner, line_of
from hotloop.probe.instruments.storage_classes import OTHER
from hotloop.probe.memory_failure.account import held_now, walked_tensors
from hotloop.probe.memory_failure.holders import Named, holders, kept_addresses, named_values
from hotloop.probe.memory_failure.live_storages import LiveStorages
from hotloop.probe.memory_failure.request import phase_of_request
from hotloop.probe.memory_failure.reserve import Reserve
from hotloop.probe.memory_failure.room import device_room, host_room, shared_memory_room
from hotloop.probe.memory_failure.root_calls import EVALUATION
from hotloop.probe.memory_failure.words import STEM, asked_bytes, device_index, is_of_shared_memory
from hotloop.probe.record.result_file import write_result_file

MAX_WORDS = 600
_DEVICE_WORDS = ("cuda", "hip ", "cublas", "cudnn", "gpu")


def write_failure(
    folder: Path,
    error: BaseException | None,
    stack: list[Line],
    storages: LiveStorages | None,
    reserve: Reserve,
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
    """Write it: first what takes hardly any memory, in its place then what can be found out.

    Args:
        folder: of the records.
        error: that says so; None: the process is near its limit, and is to be ended.
        stack: the program's lines, the innermost first.
        storages: what was followed; None: nothing was.
        reserve: that is given back for it.
        operator: that asked.
        phase: of the step.
        shape: of what that operator would have made; None: not known.
        device: on which it asked; None: as the error's words say.
        frame: the innermost of the program's then; None: the one in which the error was raised.
        batch: that the model was given whose call is under way; None: not known.
        given: addresses of the tensors that a model was given at last.
        largest_shape: of earlier batches with another shape; None: there was none.
    """
    known = write_brief(folder, error, stack, reserve, phase=phase_of_request(phase, shape))
    on = device or _device(known["error"])
    named: list[Named] = _unless_short(lambda: named_values(frame or _innermost(error)), [])
    rows: list[Any] = _unless_short(walked_tensors, [])
    earlier = _earlier_nodes(storages, phase)
    found = {
        "device": on,
        "on_rocm": torch.version.hip is not None,
        "operator": operator,
        "shape": shape,
        "tracked": storages is not None,
        "room": _unless_short(lambda: device_room(_index(on)), None) if on != "cpu" else None,
        "holders": _unless_short(lambda: holders(named, _of_models(rows), earlier), []),
        "in_worker": get_worker_info() is not None,
        "batch": batch,
        "largest_shape": largest_shape,
        **_unless_short(lambda: held_now(on, storages, rows, kept_addresses(named, given)), {}),
    }
    write_result_file(failure_path(folder), {**known, **found})


def write_brief(
    folder: Path,
    error: BaseException | None,
    stack: list[Line],
    reserve: Reserve,
    *,
    phase: str | None = None,
) -> dict[str, Any]:
    """Write and return what takes hardly any memory or time: no variable of the program is looked at.

    Args:
        folder: of the records.
        error: that says so; None: there is none.
        stack: the program's lines, the innermost first.
        reserve: that is given back for it, once it is known what was free.
        phase: of the step.
    """
    room = _unless_short(host_room, {})
    reserve.give_back()
    text = "" if error is None else "".join(traceback.format_exception_only(type(error), error)).strip()
    shared = shared_memory_room() if is_of_shared_memory(text) else {}
    known = {
        "error": text[:MAX_WORDS],
        "asked_bytes": asked_bytes(text),
        "stack": [list(line) for line in stack[:12]],
        "phase": phase,
        "host": {**(room or _unless_short(host_room, {})), **shared},
        "by_class": {},
    }
    write_result_file(failure_path(folder), known)
    return known


def mark_failure(path: Path, **marks: Any) -> None:
    """Add to what was written: how it went on."""
    if path.exists():
        write_result_file(path, {**json.loads(path.read_text("ascii")), **marks})


def failure_path(folder: Path) -> Path:
    """Return where this process writes what is known of its failure."""
    return folder / f"{STEM}-{os.getpid()}.json"


def _unless_short(look: Callable[[], Any], otherwise: Any) -> Any:
    """Return what a look finds; where even that needs more memory than there is, the rest is told without it."""
    try:
        return look()
    except (MemoryError, RuntimeError, OSError):
        return otherwise


def _earlier_nodes(storages: LiveStorages | None, phase: str | None) -> int:
    return 0 if storages is None else storages.earlier_nodes(evaluates=phase == EVALUATION)


def _of_models(rows: Iterable[Mapping[str, Any]]) -> set[int]:
    return {row["address"] for row in rows if row["class"] != OTHER}


def _innermost(error: BaseException | None) -> FrameType | None:
    trace = error.__traceback__ if error is not None else None
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame if trace is not None else None


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
    if not torch.cuda.is_initialized() or not any(word in words for word in _DEVICE_WORDS):
        return "cpu"
    index = device_index(text)
    return f"cuda:{torch.cuda.current_device() if index is None else index}"


def _index(device: str) -> int | None:
    _, _, number = device.partition(":")
    return int(number) if number.isdigit() else None
