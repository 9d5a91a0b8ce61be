"""The limit of device memory that an arm runs under."""

from __future__ import annotations

from typing import Any

from hotloop.diagnose.memory_limit import FULL
from hotloop.probe.activation.description import described
from hotloop.probe.device.memory_cap import NAME, DeviceMemoryCap
from hotloop.tune.executor import PlanSteps
from hotloop.tune.trials.batch_size import num_samples
from hotloop.tune.trials.setting import Setting


def cap_bytes(setting: Setting, plan: PlanSteps) -> int | None:
    """Return what an arm may hold of a device; None: as much as there is.

    The program as it is has no limit: what it is compared with has to run. A larger batch has to leave head room.
    """
    if not plan or not setting.devices:
        return None
    total = min(device.total_bytes for device in setting.devices)
    room = int(FULL * total) if num_samples(plan) > 1 else total
    limit = min(room, setting.fit_bytes or total)
    return limit if limit < total else None


def cap_orders(setting: Setting, plan: PlanSteps) -> list[dict[str, Any]]:
    """Return what the probe of an arm is told of its limit."""
    limit = cap_bytes(setting, plan)
    if limit is None:
        return []
    return [{"name": NAME, "knob": False, "edits_source": False, "make": described(DeviceMemoryCap(limit))}]
