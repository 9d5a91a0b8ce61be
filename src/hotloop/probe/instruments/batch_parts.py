"""Times the parts of every batch that is made in this process: opening, reading, decoding, transforms, collating.

While it looks, torch's fetchers, the data set's transforms and the libraries' calls (`loading_calls`) are replaced by
ones that mark their beginning and their end. It calls nothing of the program's by itself.
"""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hotloop.probe.frameless import Around
from hotloop.probe.instruments.constant_calls import ConstantCalls
from hotloop.probe.instruments.frames import Frames
from hotloop.probe.instruments.loading_calls import loading_calls
from hotloop.probe.instruments.memory_rows import are_rows
from hotloop.probe.instruments.opened_folder import OpenedFolder
from hotloop.probe.instruments.part_clock import Part, PartClock
from hotloop.probe.instruments.replaced import Replaced
from hotloop.probe.instruments.sample_length import Padding, length_of, padding
from hotloop.probe.instruments.sample_transforms import (
    code_of,
    innermost,
    is_function,
    line_of_transform,
    name_of,
    transforms_of,
)

_TENSORS_DEEP = 4
_FILES = frozenset({"builtins.open", "io.open"})
_MAKES = ("__getitems__", "__getitem__", "__iter__")
"""What makes samples, the first that a data set has."""


class BatchParts:
    """What one process does for its batches, for as long as it looks."""

    def __init__(self) -> None:
        self._clock = PartClock()
        self._frames = Frames()
        self._replaced = Replaced(self._frames)
        self._known: dict[int, tuple[Any, Part]] = {}
        self._num_batches = self._num_samples = self._used_bytes = 0
        self._padding = Padding(0, 0, 0)
        self._of_rows = 0
        self._read_before: tuple[int, int] | None = None
        self._opened = OpenedFolder()
        self._constant = ConstantCalls(self._frames)

    def install(self) -> None:
        """Replace the calls."""
        from torch.utils.data._utils import fetch

        self._read_before = bytes_read()
        for cls in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
            self._replaced.set(cls, "fetch", Around(cls.fetch, self._fetching(cls.fetch)))
        for call in loading_calls():
            with contextlib.suppress(Exception):  # a class in C, or not in this version
                self._replace(call.place(), call.name, Part(call.kind, call.says))
        self._watch_handing_over()

    def remove(self) -> None:
        """Put everything back."""
        self._clock.running = False
        self._replaced.put_back()

    def value(self) -> dict[str, Any]:
        """Return what was seen, for msgpack."""
        now = bytes_read()
        read = None
        if now is not None and self._read_before is not None:
            read = [after - before for after, before in zip(now, self._read_before, strict=True)]
        return {
            "parts": [_transform_if_library(row) for row in self._clock.rows()],
            "batches": self._num_batches,
            "samples": self._num_samples,
            "used_bytes": self._used_bytes,
            "read": read,
            "padding": self._padding,
            "of_rows": self._of_rows,
            "folder": self._opened.value(),
            "constant": self._constant.value(),
        }

    # Replacing -----------------------------------------------------------------------------------------------------

    def _replace(self, owner: Any, name: str, part: Part) -> None:
        original = getattr(owner, name)
        timed = self._opening(original, part) if part.name in _FILES else self._timed(original, part)
        if isinstance(owner, type):
            self._replaced.set(owner, name, Around(original, timed))
        else:
            self._replaced.set_imported(original, timed)
            self._replaced.set(owner, name, timed)

    def _timed(self, original: Any, part: Part) -> Any:
        clock = self._clock

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not clock.counts(part.kind):
                return original(*args, **kwargs)
            clock.begin(part)
            try:
                return original(*args, **kwargs)
            finally:
                clock.end()

        return call

    def _opening(self, original: Any, part: Part) -> Any:
        """Binary files are handed out as ones whose reads are timed."""
        timed, clock = self._timed(original, part), self._clock

        @functools.wraps(original)
        def opened(*args: Any, **kwargs: Any) -> Any:
            file = timed(*args, **kwargs)
            if clock.inside():
                self._opened.note(getattr(file, "name", None))
            if type(file) is not io.BufferedReader or not clock.counts("read"):
                return file
            return _TimedReader(file.detach(), clock)

        return opened

    def _watch_handing_over(self) -> None:
        """Batches are pickled and unpickled outside of any fetch."""
        from multiprocessing.reduction import ForkingPickler

        part, clock = Part("hand_over", "between processes"), self._clock
        for name in ("dumps", "loads"):
            original = getattr(ForkingPickler, name)

            def packed(*args: Any, original: Any = original, **kwargs: Any) -> Any:
                clock.begin(part)
                try:
                    return original(*args, **kwargs)
                finally:
                    clock.end()

            self._replaced.set(ForkingPickler, name, staticmethod(packed))

    # Batches -------------------------------------------------------------------------------------------------------

    def _fetching(self, original: Any) -> Any:
        clock = self._clock

        def fetch(fetcher: Any, index: Any) -> Any:
            if not clock.running or clock.inside() or not _trains():
                return original(fetcher, index)
            own = self._part_of(fetcher.dataset)
            collate = fetcher.collate_fn
            fetcher.collate_fn = self._collating(collate)
            looks = self._constant.begin()
            clock.begin(own)
            try:
                batch = original(fetcher, index)
            finally:
                clock.end()
                fetcher.collate_fn = collate
                if looks:
                    self._constant.end(_num_samples(index))
            self._count(index, batch)
            return batch

        return fetch

    def _collating(self, collate: Any) -> Any:
        """Collating is timed; then its samples and its batch are looked at."""
        timed = self._timed(collate, Part("collate", _called(collate), *self._at(collate)))

        def collated(samples: Any) -> Any:
            batch = timed(samples)
            with contextlib.suppress(Exception):  # the probe fails open
                self._note_padding(samples, batch)
            return batch

        return collated

    def _note_padding(self, samples: Any, batch: Any) -> None:
        self._of_rows += are_rows(samples)
        lengths = [length_of(sample) for sample in samples] if isinstance(samples, list) else []
        known = [length for length in lengths if length is not None]
        if len(known) == len(lengths):
            more = zip(self._padding, padding(known, batch), strict=True)
            self._padding = Padding(*(before + after for before, after in more))

    def _at(self, function: Any) -> tuple[str | None, int | None]:
        code = code_of(function)
        users = code is not None and self._frames.is_users(code.co_filename)
        return (code.co_filename, code.co_firstlineno) if code is not None and users else (None, None)

    def _part_of(self, dataset: Any) -> Part:
        """Return the part for a data set's own code; at first sight its transforms are replaced."""
        known = self._known.get(id(dataset))
        if known is None:
            source = innermost(dataset)
            method = next(name for name in _MAKES if hasattr(type(source), name) or name == _MAKES[-1])
            part = Part(
                "own", f"{type(source).__name__}.{method}", *self._at(getattr(type(source), method, None))
            )
            known = self._known[id(dataset)] = (dataset, part)  # held, so that its id stays its own
            with contextlib.suppress(Exception):  # the probe fails open
                self._replace_transforms(dataset)
        return known[1]

    def _replace_transforms(self, dataset: Any) -> None:
        classes: set[type] = set()
        for value, holder, key in transforms_of(dataset):
            cls = type(value)
            part = Part("transform", name_of(value), *line_of_transform(value, self._frames))
            if not is_function(value):
                if cls not in classes:
                    classes.add(cls)
                    self._replaced.set(cls, "__call__", Around(cls.__call__, self._timed(cls.__call__, part)))
            elif isinstance(holder, list):
                self._replaced.set_item(holder, key, self._timed(value, part))
            else:
                self._replaced.set(holder, key, self._timed(value, part))

    def _count(self, index: Any, batch: Any) -> None:
        self._num_batches += 1
        self._num_samples += _num_samples(index)
        self._used_bytes += tensor_bytes(batch, _TENSORS_DEEP)


def _num_samples(index: Any) -> int:
    return len(index) if isinstance(index, (list, tuple)) else 1


class _TimedReader(io.BufferedReader):
    """A file whose reads are parts of a sample."""

    def __init__(self, raw: Any, clock: PartClock) -> None:
        super().__init__(raw)
        self._clock = clock

    def read(self, *args: Any) -> Any:
        if not self._clock.counts("read"):
            return super().read(*args)
        self._clock.begin(_READ)
        try:
            return super().read(*args)
        finally:
            self._clock.end()


_READ = Part("read", "file.read")


def _transform_if_library(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "kind": "transform"} if row["kind"] == "library" else row


def _called(function: Any) -> str:
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def _trains() -> bool:
    """An evaluation's batches are made without gradients; a worker does not know, and counts."""
    import torch

    return bool(torch.is_grad_enabled())


def tensor_bytes(value: Any, depth: int) -> int:
    """Return the size of the tensors of a batch, those that its objects hold included (a batch of graphs)."""
    if hasattr(value, "element_size") and hasattr(value, "numel"):
        return int(value.numel() * value.element_size())
    if not depth:
        return 0
    if isinstance(value, Mapping):
        return sum(tensor_bytes(part, depth - 1) for part in value.values())
    if isinstance(value, (list, tuple)):
        return sum(tensor_bytes(part, depth - 1) for part in value)
    return sum(tensor_bytes(part, depth - 1) for part in _attributes(value))


def _attributes(value: Any) -> list[Any]:
    """Return what an object holds, in a dictionary of its own or in slots; nothing of functions and modules."""
    if isinstance(value, (type, str, bytes, int, float)) or callable(value):
        return []
    slots = [name for cls in type(value).__mro__ for name in cls.__dict__.get("__slots__", ())]
    return [*getattr(value, "__dict__", {}).values(), *(getattr(value, name, None) for name in slots)]


def bytes_read() -> tuple[int, int] | None:
    """Return the bytes that this process has read, and in how many calls; None: the system does not tell."""
    try:
        lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    told = dict(line.split(": ") for line in lines)
    return int(told["rchar"]), int(told["syscr"])
