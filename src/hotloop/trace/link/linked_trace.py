"""A trace with its call tree and launches worked out: what every analysis starts from."""

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from hotloop.trace.link.launches import Launches, link
from hotloop.trace.link.nesting import Nesting, nest
from hotloop.trace.read.columns import NONE, Array
from hotloop.trace.read.kinds import Kind
from hotloop.trace.read.trace import DeviceEvents, Trace


@dataclass(frozen=True)
class LinkedTrace:
    """A trace and what follows from it alone."""

    trace: Trace
    nesting: Nesting
    nearest_operator: Array
    """Per host event: the innermost operator at or above it."""
    launches: Launches

    @cached_property
    def argument_row(self) -> Array:
        """Per host event: its row in `Trace.operators`; -1: it has none."""
        rows = np.full(len(self.trace.host), NONE, dtype=np.int32)
        rows[self.trace.operators.row] = np.arange(len(self.trace.operators.row), dtype=np.int32)
        return rows

    @cached_property
    def nearest_python(self) -> Array:
        """Per host event: the innermost Python function at or above it."""
        return self.nesting.nearest(self.trace.host.kind == Kind.PYTHON)

    def on_device(self, device: int) -> "LinkedTrace":
        """The same trace with the work of one of its devices only."""
        chosen = self.trace.device.device == device
        if np.all(chosen):
            return self
        rows = np.flatnonzero(chosen)
        columns = (getattr(self.trace.device, column.name)[rows] for column in fields(DeviceEvents))
        launches = Launches(self.launches.call[rows], self.launches.operator[rows])
        return replace(self, trace=replace(self.trace, device=DeviceEvents(*columns)), launches=launches)

    def name(self, row: int) -> str:
        """The name of a host event."""
        return self.trace.names[int(self.trace.host.name[row])]


def link_trace(trace: Trace) -> LinkedTrace:
    """Work out the call tree and the launches."""
    nesting = nest(trace.host)
    nearest = nesting.nearest(trace.host.kind == Kind.OPERATOR)
    return LinkedTrace(trace, nesting, nearest, link(trace, nearest))
