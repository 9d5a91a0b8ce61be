"""Which call on the host launched which work on the device."""

from dataclasses import dataclass

import numpy as np

from hotloop.trace.read.clock import Int64
from hotloop.trace.read.columns import NONE, Array
from hotloop.trace.read.trace import Trace


@dataclass(frozen=True)
class Launches:
    """Per device event."""

    call: Array
    """Host row of the call that launched it; -1: the trace has none."""
    operator: Array
    """Host row of the operator it was launched under; -1: none is known."""


def link(trace: Trace, nearest_operator: Array) -> Launches:
    """Join device events to calls by correlation, and to operators by nesting or else by external id."""
    call = _lookup(trace.calls.correlation, trace.calls.row, trace.device.correlation)
    operator = np.where(call >= 0, nearest_operator[call], NONE) if len(nearest_operator) else call
    by_id = _lookup(trace.operators.external, trace.operators.row, trace.device.external)
    return Launches(call, np.where(operator >= 0, operator, by_id).astype(np.int32))


def _lookup(keys: Int64, rows: Array, wanted: Int64) -> Array:
    """The row of each wanted key; the first where a key is repeated; -1 where it is missing."""
    valid = np.flatnonzero(keys > 0)
    if not len(valid):
        return np.full(len(wanted), NONE, dtype=np.int32)
    order = valid[np.argsort(keys[valid], kind="stable")]
    index = np.minimum(np.searchsorted(keys[order], wanted), len(order) - 1)
    found = keys[order][index] == wanted
    return np.where(found, rows[order][index], NONE).astype(np.int32)
