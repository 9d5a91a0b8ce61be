"""Every storage on the virtual GPU: when it was made and freed, by which operator, module and line."""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

from hotloop.probe.virtual_gpu.caching_allocator import CachingAllocator

_SKIPPED = ("/torch/", "/hotloop/probe/", "<frozen", "<string>", "/contextlib.py", "/functools.py")


class Record:
    """One storage.

    Attributes:
        num_bytes: its size.
        itemsize: bytes of an element of the tensor that it was made for.
        operator: that made it.
        phase: of the step in which it was made: start, forward, backward, optimizer, between.
        module: path of the innermost module that ran, "" outside the model.
        line: the innermost line of the user's own, as file:line; else of a library; None: there is none.
        saved: it was alive when a backward began, made by a forward.
    """

    __slots__ = ("itemsize", "line", "module", "num_bytes", "operator", "phase", "saved")

    def __init__(
        self,
        num_bytes: int,
        operator: str,
        phase: str,
        module: str,
        line: str | None,
        itemsize: int = 1,
    ) -> None:
        self.num_bytes = num_bytes
        self.itemsize = itemsize
        self.operator = operator
        self.phase = phase
        self.module = module
        self.line = line
        self.saved = False


class Storages:
    """The storages of this process that are on the device.

    Args:
        place: of what is made now: the phase and the path of the module.
        allocator: what the program is told of its memory, and refused by.
    """

    def __init__(self, place: Callable[[], tuple[str, str]], allocator: CachingAllocator) -> None:
        self._place = place
        self.allocator = allocator
        self._one_at_a_time = threading.RLock()
        """Threads of the program make and free storages, too."""
        self._numbers: dict[int, int] = {}
        """Of live storages, by their address."""
        self.records: list[Record] = []
        self.events: list[tuple[int, int]] = []
        """`(number of the storage, bytes)` of what was allocated, `(number, -bytes)` of what was freed, in order."""
        self.peak_at = -1
        """Index of the event that reached the peak of all by now."""
        self.num_steps = 0
        """Of the program's training steps, those that are over."""
        self.peak_step = 0
        """`num_steps` at that peak."""

    def saw(self, tensor: Any, operator: str) -> None:
        """Note the storage of a tensor on the device, if it is new."""
        storage = tensor.untyped_storage()
        address = storage._cdata
        with self._one_at_a_time:
            if address in self._numbers:
                return
            self._numbers[address] = self._made(storage.nbytes(), operator, tensor.element_size())
        weakref.finalize(storage, self._freed, address).atexit = False

    def follow_resizing(self) -> None:
        """Have storages that are resized in place freed and made anew: FSDP gathers parameters into them."""
        cls: Any = torch.UntypedStorage
        original = cls.resize_

        @functools.wraps(original)
        def resize_(storage: Any, size: int) -> Any:
            number = self._numbers.get(storage._cdata)
            if number is not None and size != self.records[number].num_bytes:
                self._gone(number)
                before = self.records[number]
                self._numbers[storage._cdata] = self._made(size, before.operator, before.itemsize)
            return original(storage, size)

        cls.resize_ = resize_

    def _made(self, num_bytes: int, operator: str, itemsize: int) -> int:
        number = len(self.records)
        phase, module = self._place()
        before = self.allocator.peak_allocated
        self.allocator.allocate(number, num_bytes)
        if self.allocator.peak_allocated > before:
            self.peak_at, self.peak_step = len(self.events), self.num_steps
        self.records.append(Record(num_bytes, operator, phase, module, _user_line(), itemsize))
        self.events.append((number, num_bytes))
        return number

    def number_of(self, tensor: Any) -> int | None:
        """Return the number of a tensor's storage; None: it is not on the device."""
        return self._numbers.get(tensor.untyped_storage()._cdata)

    def live(self) -> list[int]:
        """Return the numbers of all live storages, the oldest first."""
        return sorted(self._numbers.values())

    def backward_begins(self) -> None:
        """Mark what a forward has made and is alive: it was saved for this backward, or is still needed."""
        for number in self.live():
            record = self.records[number]
            record.saved = record.saved or record.phase == "forward"

    def _freed(self, address: int) -> None:
        with self._one_at_a_time:
            number = self._numbers.pop(address, None)
            if number is not None:
                self._gone(number)

    def _gone(self, number: int) -> None:
        self.events.append((number, -self.records[number].num_bytes))
        self.allocator.free(number)


def _user_line() -> str | None:
    """Return the innermost line that is not torch's; the user's own before a library's."""
    frame: FrameType | None = sys._getframe(4)
    library = None
    while frame is not None:
        file = frame.f_code.co_filename
        if not any(part in file for part in _SKIPPED):
            place = f"{file}:{frame.f_lineno}"
            if "site-packages" not in file and not file.startswith(sys.base_prefix + "/lib"):
                return place
            library = library or place
        frame = frame.f_back
    return library
