"""What is known of the operations of a window: what each computed, from what, and where its backward goes."""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass
from threading import get_ident
from typing import Any

import torch

from hotloop.probe.instruments.frames import Frames
from hotloop.probe.instruments.gradient_use import GradientUse
from hotloop.probe.instruments.operation_stacks import OperationStacks
from hotloop.probe.instruments.table_gradients import TableGradients
from hotloop.probe.instruments.value_numbers import ValueNumbers, kind_of, tensors_in
from hotloop.probe.probe import Probe

MAX_OPERATIONS = 60_000
"""What comes after them is let through; so many take some seconds to look at."""
NO_NODE, ACCUMULATE = -1, -2
"""Numbers of operations without a graph node, and of what adds gradients to parameters."""
_LARGEST = 1 << 63
"""Nodes that accumulate gradients have larger numbers."""
_DEPTH = 3
"""Frames from ours to the function that called the engine."""


@dataclass
class Operation:
    """One call of an operator outside of backward passes.

    Attributes:
        stack: number of the lines that it came from.
        spent_ns: how long it took.
        node: the number of its graph node.
        reaches: groups of parameters that its inputs were computed from.
        direct: groups of the parameters among its inputs.
        counts: it is work, not a view or a copy.
        repeated: its result was computed earlier in the step.
        first: it is computed again later in the step.
        constant: it is computed in other steps, too.
    """

    stack: int
    spent_ns: int
    node: int
    reaches: int
    direct: int
    counts: bool
    repeated: bool
    constant: bool
    first: bool = False


class OperationWatch:
    """What is known of the operations of a window.

    Args:
        probe: survives what fails here.
    """

    def __init__(self, probe: Probe) -> None:
        self.frames = Frames()
        self.stacks = OperationStacks(self.frames)
        self.values = ValueNumbers()
        self.gradients = GradientUse(self.values.storage)
        self.gradients.start()
        self.operations: list[Operation] = []
        self.backward: dict[tuple[int, int], int] = defaultdict(int)
        """By pass and node."""
        self.tables = TableGradients(self.values.storage)
        self.steps = 0
        self.probe = probe
        self._reaches: dict[int, int] = defaultdict(int)
        """By memory: groups that gradients flow to from there."""
        self._thread = get_ident()
        self._last_node = NO_NODE
        self._sequence = torch.autograd._get_sequence_nr
        self._pass = torch._C._current_graph_task_id
        self._running = torch._C._current_autograd_node
        self._expected = self._sequence()

    def next_step(self) -> None:
        """A step has ended."""
        self.steps += 1
        self.values.step = self.steps

    def finish(self) -> None:
        """The window has ended."""
        self.gradients.finish(self.steps - 1)

    # Backward passes -----------------------------------------------------------------------------------------------

    def enter(self) -> bool:
        """A pass begins."""
        if get_ident() != self._thread:
            return False
        with self.probe.survive("dataflow:backward"):
            caller = sys._getframe(_DEPTH)
            asked = caller.f_locals
            self.values.passes += 1
            at = self.frames.caller(caller)
            self.gradients.begin(
                at.at if at else None,
                self.steps,
                accumulates=caller.f_code.co_name == "backward",
                keeps=bool(asked.get("create_graph")),
            )
            return True
        return False

    def leave(self) -> None:
        """It ends."""
        with self.probe.survive("dataflow:backward"):
            self.gradients.end()

    # Operations ----------------------------------------------------------------------------------------------------

    def wants(self) -> bool:
        """Whether an operation that comes now is looked at."""
        if len(self.operations) >= MAX_OPERATIONS or self.probe.capturing():
            return False
        return get_ident() == self._thread or self._pass() != -1

    def before(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Return what must be known of an operation before it changes its arguments."""
        if self._pass() != -1:
            return None
        made = self._sequence()
        node = made - 1 if made > self._expected else NO_NODE
        inputs = list(tensors_in((args, kwargs)))
        storages = [self.values.storage(each) for each in inputs]
        direct = 0
        for each, storage in zip(inputs, storages, strict=True):
            if each.requires_grad and each.is_leaf:
                group = self.gradients.group(each)
                direct |= group
                self._reaches[storage] |= group
        return (
            node,
            storages,
            direct,
            self.values.key(func, args, kwargs),
            self.stacks.number(sys._getframe(2)),
        )

    def after(self, func: Any, args: Any, kwargs: Any, known: Any, out: Any, spent_ns: int) -> None:
        """Note an operation that has ended."""
        self.values.written(func, args, kwargs)
        if known is None:
            self._note_backward(func, args, out, spent_ns)
        else:
            node, storages, direct, key, stack = known
            kind = kind_of(func)
            self.gradients.read(storages, kind.name)
            reaches = 0
            if node != NO_NODE:
                for storage in storages:
                    reaches |= self._reaches.get(storage, 0)
                for each in tensors_in(out):
                    self._reaches[self.values.storage(each)] |= reaches
            before = self.values.computed(key, out, len(self.operations))
            counts = kind.counts and bool(storages)
            again, constant = before.in_step, before.constant
            self.operations.append(Operation(stack, spent_ns, node, reaches, direct, counts, again, constant))
            if again:
                self.operations[before.first].first = True
            for place in before.places:
                self.operations[place].constant = True
        self._expected = self._sequence()

    def _note_backward(self, func: Any, args: Any, out: Any, spent_ns: int) -> None:
        node = self._node()
        task = self.gradients.open[-1] if self.gradients.open else -1
        self.backward[task, node] += spent_ns
        name = func._overloadpacket.__name__
        self.tables.note(name, args, out, node, spent_ns, accumulates=node == ACCUMULATE)
        if node != ACCUMULATE:  # gradients of one pass that go into another, as those of a graph cut in two
            self.gradients.read(map(self.values.storage, tensors_in(args)), name)

    def _node(self) -> int:
        """Return the number of the node that runs; between nodes gradients are added up, for the last one."""
        running = self._running()
        if running is not None:
            number = int(running._sequence_nr())
            self._last_node = ACCUMULATE if number >= _LARGEST else number
        return self._last_node
