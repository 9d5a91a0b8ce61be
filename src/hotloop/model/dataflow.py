"""What operations compute from what, and where gradients go: seen below autograd, for a few steps."""

from __future__ import annotations

import msgspec


class CodeLine(msgspec.Struct, frozen=True):
    """A line of Python outside of torch."""

    path: str
    line: int
    function: str
    owner: str = "user"
    """`user` or `library`."""


class OperationGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The operations that were called from one stack of lines; times are sums over the window."""

    lines: tuple[int, ...]
    """Indices of lines, the outermost first."""
    part: str
    """`forward` (whatever is no backward), `loading` or `optimizer`."""
    parametrized: bool
    """A weight is made of others (weight norm, spectral norm)."""
    num: int
    spent_s: float
    neutral_s: float
    """Of it, in views, copies, and what makes tensors of nothing."""
    first_s: float
    """Of it, in operations that are repeated later in the step."""
    repeated_s: float
    """Of it, in operations that compute what was computed earlier in the same step."""
    constant_s: float
    """Of it, in operations that compute the same in each step."""
    new_s: float
    """The rest of it: in operations that compute something of their own."""
    graph_s: float
    """Of it, in operations that keep a graph."""
    backward_s: float
    """In the backward of these operations."""
    again_backward_s: float
    """Of that, in the backward of the repeated ones."""
    unheld_s: float
    """Of that, for parameters that no optimizer holds."""
    unheld_graph_s: float
    """Of `graph_s`, in operations whose whole backward is for such parameters."""
    dropped_s: float
    """Of `backward_s`, for gradients of parameters that were dropped before anybody read them."""
    unread_s: float = 0.0
    """Of `backward_s`, for gradients of inputs (leaves that are no parameters) that nobody read."""


class BackwardCalls(msgspec.Struct, frozen=True, kw_only=True):
    """The backward passes that one line calls; times are sums over the window."""

    path: str
    line: int
    function: str
    num: int
    spent_s: float
    again_s: float
    """Of it, in nodes that an earlier pass of the step went through, whose gradients these add to."""


class TableGradients(msgspec.Struct, frozen=True, kw_only=True):
    """Dense gradients of a table of which some rows were looked up; sums over the window."""

    lines: tuple[int, ...]
    num_rows: int
    width: int
    num: int
    """Look-ups."""
    used: int
    """Rows that were looked up, each once in a look-up."""
    spent_s: float


class Dataflow(msgspec.Struct, frozen=True, kw_only=True):
    """A window of some steps, each operation with the line that it came from."""

    num_steps: int
    backward_s: float
    """In all operations of backward passes."""
    lines: tuple[CodeLine, ...]
    groups: tuple[OperationGroup, ...]
    backwards: tuple[BackwardCalls, ...]
    tables: tuple[TableGradients, ...]

    def spent_s(self, part: str = "forward") -> float:
        """Return the time of all operations of a part."""
        return sum(group.spent_s for group in self.groups if group.part == part)
