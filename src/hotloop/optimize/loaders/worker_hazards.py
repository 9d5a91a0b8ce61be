"""Why a loader is not given workers: each of these was seen to give wrong data, a crash or a slower
program."""

from __future__ import annotations

import io
import logging
import multiprocessing
import sys
from collections import deque
from collections.abc import Iterator
from functools import partial
from itertools import islice
from types import BuiltinMethodType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

_HANDLES = ("h5py", "lmdb", "sqlite3", "zipfile", "tarfile", "netCDF4")
"""Modules whose objects share a file position or a lock between forked processes."""
_SELF_SHARDING = ("webdataset", "datasets")
"""Packages whose iterable data sets divide themselves between workers."""
MAX_HELD, MAX_ITEMS = 4096, 64
"""Objects looked at, and of each the parts: handles lie among the first of a few, samples in long lists."""
_PLAIN = (
    int,
    float,
    complex,
    str,
    bytes,
    bytearray,
    type(None),
    type,
    ModuleType,
    logging.Logger,
    logging.Handler,
)
"""What holds nothing of its own, or only where a process writes its messages."""


def reason_against(keywords: dict[str, Any], num_workers: int, prefetch: int) -> str:
    """Return why this loader must keep its settings; empty: it may have `num_workers` workers.

    Args:
        keywords: what DataLoader is constructed with.
        num_workers: how many are wanted.
        prefetch: batches that each worker prepares ahead.
    """
    dataset = keywords.get("dataset")
    if _is_iterable(dataset) and not divides_itself(dataset):
        # Each worker would yield all of it; even one worker has only a copy of, say, a replay buffer.
        return f"the IterableDataset {type(dataset).__name__} does not divide itself between workers"
    if num_workers == 0:
        return "its worker_init_fn prepares the workers" if keywords.get("worker_init_fn") else ""
    few = _num_batches(keywords)
    if few is not None and few < num_workers * prefetch:
        # The workers' queues would never be full once: it cannot reach the state it is measured in.
        return f"it yields only {few} batches"
    if keywords.get("num_workers"):
        return ""  # the program's own workers show that the data set can be sent to them
    return _process_reason() or _dataset_reason(dataset)


def divides_itself(dataset: Any) -> bool:
    """Whether an iterable data set asks which worker it is in."""
    for cls in type(dataset).__mro__:
        if cls.__module__.split(".")[0] in _SELF_SHARDING:
            return True
        if cls.__module__.startswith("torch.utils.data"):
            continue
        functions = (getattr(value, "__code__", None) for value in vars(cls).values())
        if any(_asks(code) for code in functions if code is not None):
            return True
    return False


def _asks(code: CodeType) -> bool:
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return "get_worker_info" in code.co_names or any(_asks(constant) for constant in inner)


def _is_iterable(dataset: Any) -> bool:
    from torch.utils.data import IterableDataset

    return isinstance(dataset, IterableDataset)


def _num_batches(keywords: dict[str, Any]) -> int | None:
    """Return how many batches there will be; None where it cannot be known without asking a sampler.

    A loader's or a sampler's own length is never asked for: it can be absurd, or raise.
    """
    batch_size = keywords.get("batch_size", 1)
    if any(keywords.get(name) is not None for name in ("sampler", "batch_sampler")) or batch_size is None:
        return None
    if _is_iterable(keywords.get("dataset")):
        return None
    try:
        return -(-len(keywords["dataset"]) // int(batch_size))
    except Exception:  # a data set's __len__ is the user's code and may raise what it likes
        return None


def _process_reason() -> str:
    method = multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]
    if method != "fork":
        return f"its workers would start by {method}, for which the data set must be picklable"
    if multiprocessing.current_process().daemon:
        return "it is made in a daemonic process, which may have no children"
    return ""


def _dataset_reason(dataset: Any) -> str:
    import torch

    name = type(dataset).__name__
    for value in _held_by(dataset):
        if _is_open_file(value):
            return (
                f"the data set {name} holds an open {type(value).__name__}, which forked workers would share"
            )
        if isinstance(value, torch.Tensor) and value.device.type != "cpu":
            return (
                f"the data set {name} holds tensors on {value.device.type}, which forked workers cannot use"
            )
    return ""


def _is_open_file(value: Any) -> bool:
    if any(value is each for each in (sys.stdin, sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)):
        return False  # all processes write there
    if isinstance(value, io.IOBase):
        return not isinstance(value, (io.BytesIO, io.StringIO))  # memory is copied by the fork
    return type(value).__module__.split(".")[0] in _HANDLES


def _held_by(dataset: Any) -> Iterator[Any]:
    """Yield what a data set holds, and what that holds in turn: attributes, items, closures; the nearest first."""
    todo: deque[Any] = deque([dataset])
    seen: set[int] = {id(dataset)}
    while todo and len(seen) < MAX_HELD:
        for value in islice(_parts(todo.popleft()), MAX_ITEMS):
            if id(value) not in seen and not isinstance(value, _PLAIN):
                seen.add(id(value))
                yield value
                todo.append(value)


def _parts(holder: Any) -> Iterator[Any]:
    if isinstance(holder, dict):
        yield from dict.values(holder)
    elif isinstance(holder, (tuple, list, set, frozenset, deque)):
        yield from holder
    elif isinstance(holder, partial):
        yield from (holder.func, *holder.args, *holder.keywords.values())
    elif isinstance(holder, (MethodType, BuiltinMethodType)):
        yield holder.__self__
    elif isinstance(holder, FunctionType):
        yield from (cell.cell_contents for cell in holder.__closure__ or () if cell != CellType())
        yield from holder.__defaults__ or ()
    names = (name for cls in type(holder).__mro__ for name in _slots(cls))
    yield from (value for name in names if (value := _slot(holder, name)) is not None)
    yield from list(getattr(holder, "__dict__", {}).values())


def _slots(cls: type) -> tuple[str, ...]:
    names = vars(cls).get("__slots__", ())
    return (names,) if isinstance(names, str) else tuple(names)


def _slot(holder: Any, name: str) -> Any:
    try:
        return object.__getattribute__(holder, name)
    except AttributeError:  # it is not set, or its name is mangled
        return None
