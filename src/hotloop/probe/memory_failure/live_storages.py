"""Every storage that is alive, with the operation and the line that made it."""

from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from time import monotonic_ns
from typing import Any, NamedTuple

import torch

from hotloop.probe.instruments.frames import Frames
from hotloop.probe.instruments.operation_stacks import LOADING, OPTIMIZER, OperationStacks
from hotloop.probe.memory_failure.reserve import Reserve

FORWARD, BACKWARD, OTHER = "forward", "backward", "other"
MOST_PASSES = 3
"""Backward passes through which a step may keep an activation: of a GAN's one to three use the same forward."""
MAX_EVENTS = 20_000
"""As rows of a snapshot they take some twenty megabytes, of which there may be few."""


class Record(NamedTuple):
    """One storage.

    Attributes:
        stack: number of the lines that it was made under.
        in_graph: it was made by an operation of a graph: a backward may need it.
        turn: backward passes that had begun by then.
        number: of the storages that were seen before.
    """

    num_bytes: int
    device: str
    operator: str
    phase: str
    stack: int
    shape: tuple[int, ...]
    dtype: str
    in_graph: bool
    turn: int
    number: int


class Change(NamedTuple):
    """A storage that was made, or with a negative size released."""

    time_ns: int
    number: int
    num_bytes: int
    device: str
    stack: int


class LiveStorages:
    """The storages of this process that operations have made and that are not released."""

    def __init__(self) -> None:
        self.reserve = Reserve()
        """For the account, when there is no memory left."""
        self._frames = Frames()
        self.stacks = OperationStacks(self._frames)
        self.live: dict[int, Record] = {}
        """By address of the memory."""
        self._watched: dict[int, Any] = {}
        self._sequence = torch.autograd._get_sequence_nr
        self._pass = torch._C._current_graph_task_id
        self._made = self._sequence()
        self.turn = 0
        """Backward passes that have begun."""
        self._turns = [0]
        """By turn: the sequence number of the first node that was made in it."""
        self._newest = self._call = 0
        """Sequence numbers: the last one outside backward passes, and the first of the newest call of a model."""
        self.on_pass: list[Callable[[], None]] = []
        """Called when a backward pass begins."""
        self._oldest_released = 1
        """Passes that an activation went through before it was released, at most."""
        self._last_pass = -1
        self._num = 0
        self.events: deque[Change] = deque(maxlen=MAX_EVENTS)
        """The newest."""

    def saw(self, result: Any, operator: str, args: Any) -> None:
        """Note the storages of an operation's results, where they are new."""
        made = self._sequence()
        new_node, self._made = made > self._made, made
        if self._pass() == -1:
            self._newest = made
        for tensor in _tensors(result):
            storage = tensor.untyped_storage()
            if storage._cdata in self._watched or not storage.nbytes():
                continue
            stack = self.stacks.number(sys._getframe(2))
            phase = self.phase(stack)
            in_graph = phase == FORWARD and (new_node or any(each.requires_grad for each in _tensors(args)))
            self._num += 1
            self._keep(storage, Record(
                storage.nbytes(), str(tensor.device), operator, phase, stack, tuple(tensor.shape),
                str(tensor.dtype).removeprefix("torch."), in_graph, self.turn, self._num,
            ))  # fmt: skip

    def phase(self, stack: int) -> str:
        """Return the phase of an operation that runs now, under some lines."""
        running = self._pass()
        if running != -1:
            if running > self._last_pass:
                self._last_pass = running
                self._next_turn()
            return BACKWARD
        part = self.stacks.part(stack)
        if part in (LOADING, OPTIMIZER):
            return part
        return FORWARD if torch.is_grad_enabled() else OTHER

    def forward_began(self) -> None:
        """Note that a model is called."""
        self._call = self._sequence()

    @property
    def passes_of_a_step(self) -> int:
        """Backward passes through which this program's steps keep an activation, by those that it has released."""
        return self._oldest_released if self.turn > MOST_PASSES else MOST_PASSES

    def earlier_nodes(self, *, evaluates: bool) -> int:
        """Return the sequence number below which the nodes of a graph belong to an earlier step, or evaluation."""
        return self._call if evaluates else self._turns[max(0, self.turn - self.passes_of_a_step)]

    def _next_turn(self) -> None:
        self.turn += 1
        self._turns.append(self._newest)
        for told in self.on_pass:
            told()

    def _keep(self, storage: Any, record: Record) -> None:
        key, address = storage._cdata, storage.data_ptr()
        live, watched, events = self.live, self._watched, self.events
        number, num_bytes, device, stack = record.number, record.num_bytes, record.device, record.stack

        def released(_: Any) -> None:
            watched.pop(key, None)
            live.pop(address, None)
            if record.in_graph and self._oldest_released < self.turn - record.turn <= MOST_PASSES:
                self._oldest_released = self.turn - record.turn
            events.append(Change(monotonic_ns(), number, -num_bytes, device, stack))

        events.append(Change(monotonic_ns(), number, num_bytes, device, stack))

        live[address] = record
        watched[key] = weakref.ref(storage, released)


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _tensors(each)
