"""Every operation of a window: when it ran, which line called it, and which graph node it made or ran for.

Memory that is allocated while an operation runs is the operation's: its result, or its working memory.
"""

from __future__ import annotations

import sys
from array import array
from time import monotonic_ns
from typing import Any

import torch

from hotloop.probe.instruments.dispatch_mode import operator_mode
from hotloop.probe.instruments.frames import Frames
from hotloop.probe.instruments.operation_stacks import OperationStacks
from hotloop.probe.probe import Probe
from hotloop.probe.record.result_file import packed

MAX_OPERATIONS = 200_000
"""What comes after them is not told apart; so many rows take some megabytes."""
MIN_BYTES = 1 << 16
"""Results of fewer bytes have no shape in the account."""
NO_NODE = -1
_LARGEST = 1 << 63
"""Nodes that accumulate gradients have larger numbers."""


class MemoryOperations:
    """The operations, a row each; in a backward a row has the number of the node that runs.

    Args:
        probe: survives what fails here.
    """

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self._frames = Frames()
        self._stacks = OperationStacks(self._frames)
        self._names: dict[str, int] = {}
        self._results: dict[tuple[tuple[int, ...], str], int] = {(): 0}  # type: ignore[dict-item]
        self._begins, self._ends = array("q"), array("q")
        self._made, self._nodes = array("q"), array("q")
        self._lines, self._ops, self._shapes = array("q"), array("q"), array("q")
        self._sequence = torch.autograd._get_sequence_nr
        self._pass = torch._C._current_graph_task_id
        self._running = getattr(torch._C, "_current_autograd_node", lambda: None)

    def wants(self) -> bool:
        """Whether an operation that comes now is noted."""
        return len(self._begins) < MAX_OPERATIONS

    def note(self, func: Any, begin_ns: int, result: Any) -> None:
        """Note an operation that has ended."""
        in_backward = self._pass() != -1
        self._begins.append(begin_ns)
        self._ends.append(monotonic_ns())
        self._made.append(self._sequence())
        self._nodes.append(self._node() if in_backward else NO_NODE)
        self._lines.append(self._stacks.number(sys._getframe(2)))
        self._ops.append(self._names.setdefault(func.__name__, len(self._names)))
        self._shapes.append(self._shape(result))

    def value(self) -> dict[str, Any]:
        """Return the rows, and what their numbers stand for."""
        return {
            "begins_ns": packed("q", self._begins),
            "ends_ns": packed("q", self._ends),
            "made": packed("q", self._made),
            "nodes": packed("q", self._nodes),
            "stacks": packed("q", self._lines),
            "names": packed("q", self._ops),
            "shapes": packed("q", self._shapes),
            "stack_lines": [
                [[*line, self._stacks.owner(line)] for line in lines] for lines, _, _ in self._stacks.stacks()
            ],
            "name_words": list(self._names),
            "shape_words": [list(each) for each in self._results],
        }

    def _node(self) -> int:
        node = self._running()
        number = int(node._sequence_nr()) if node is not None else NO_NODE
        return NO_NODE if number >= _LARGEST else number

    def _shape(self, result: Any) -> int:
        first = result[0] if isinstance(result, tuple | list) and result else result
        if not isinstance(first, torch.Tensor) or first.numel() * first.element_size() < MIN_BYTES:
            return 0
        key = (tuple(first.shape), str(first.dtype).removeprefix("torch."))
        return self._results.setdefault(key, len(self._results))


def operations_mode(operations: MemoryOperations) -> Any:
    """Return the mode that notes them."""
    from torch._ops import HigherOrderOperator

    def run(func: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(func, HigherOrderOperator) or not operations.wants():
            return func(*args, **kwargs)
        begin_ns = monotonic_ns()
        out = func(*args, **kwargs)
        with operations.probe.survive("memory:operation"):
            operations.note(func, begin_ns, out)
        return out

    return operator_mode(run)
