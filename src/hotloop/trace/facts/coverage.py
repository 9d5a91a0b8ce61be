"""How much of the device's time each figure rests on."""

import msgspec
import numpy as np

from hotloop.trace.facts.operators import OperatorRow
from hotloop.trace.link.linked_trace import LinkedTrace
from hotloop.trace.read.columns import NONE


class TraceCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of device time, 0 to 1."""

    launch_share: float
    """With a known launch: what idle causes and queue times rest on."""
    operator_share: float
    """Under a known operator: what operators and modules rest on."""
    work_share: float
    """Of operators whose FLOPs or bytes follow from their shapes: what rates and rooflines rest on."""


def trace_coverage(linked: LinkedTrace, operators: tuple[OperatorRow, ...]) -> TraceCoverage | None:
    """The coverage of a trace; None: there is no device time."""
    device = linked.trace.device
    duration = device.end - device.start
    total = int(duration.sum())
    if not total:
        return None
    launched = int(duration[linked.launches.call != NONE].sum())
    under = int(np.sum(duration[linked.launches.operator != NONE]))
    return TraceCoverage(
        launch_share=launched / total,
        operator_share=under / total,
        work_share=sum(row.device_us for row in operators if row.kind is not None) * 1000 / total,
    )
