"""The limit of device memory that an arm runs under."""

from __future__ import annotations

from typing import Any

from hotloop.diagnose.memory_limit import FULL
from hotloop.probe.activation.description import described
from hotloop.probe.device.memory_cap import NAME, DeviceMemoryCap
from hotloop.tune.executor import SetOrder
from hotloop.tune.trials.batch_size import num_samples
from hotloop.tune.trials.setting import Setting


def cap_bytes(setting: Setting, order: SetOrder, at: int) -> int | None:
    """Return what an arm may hold of a device; None: as much as there is.

    The program as it is has no limit: what it is compared with has to run. A change that saves too little alone is
    measured without one, since two of them may fit together: a plan has to run under it in its proof. A larger batch
    has to leave head room.

    Args:
        setting: what all arms share.
        order: the set.
        at: which of its plans.
    """
    plan = order.plans[at]
    if not plan or not setting.devices:
        return None
    total = min(device.total_bytes for device in setting.devices)
    limits = [total]
    if num_samples(plan) > 1:
        limits.append(int(FULL * total))
    if at in order.limited and setting.fit_bytes is not None:
        limits.append(setting.fit_bytes)
    return min(limits) if min(limits) < total else None


def cap_orders(setting: Setting, order: SetOrder, at: int) -> list[dict[str, Any]]:
    """Return what the probe of an arm is told of its limit."""
    limit = cap_bytes(setting, order, at)
    if limit is None:
        return []
    return [{"name": NAME, "knob": False, "edits_source": False, "make": described(DeviceMemoryCap(limit))}]
