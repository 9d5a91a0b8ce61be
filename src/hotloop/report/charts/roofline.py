"""The most expensive operators under the roof of this machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hotloop.machine.card.cache import peak_flop_per_s
from hotloop.model.machine import DeviceRates, MachineCard
from hotloop.model.observation import Observation
from hotloop.model.operators import Operator

MAX_POINTS = 30
_ITEM_BYTES = {"fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2}


def roofline(observation: Observation, card: MachineCard | None) -> dict[str, Any] | None:
    """Return the roof and the operators' places under it; None: FLOPs or the machine's rates were not measured,
    or an operator is faster than the roof, which is then none.

    Intensity is FLOPs over the bytes of an operator's tensors and of what it allocates: the least that it moves.
    """
    rates = _rates(observation, card)
    operators = observation.deep.operators if observation.deep else None
    efficiency = observation.efficiency
    if card is None or rates is None or operators is None or efficiency is None:
        return None
    bandwidth = rates.memory_bytes_per_s or (card.memory_bytes_per_s if rates.device == "cpu" else None)
    peak = peak_flop_per_s(card, rates.device, efficiency.precision)
    item = _ITEM_BYTES.get(efficiency.precision, 4)
    points = [point for one in operators.operators if (point := _point(one, item)) is not None]
    if peak is None or bandwidth is None or not points:
        return None
    if max(point["rate"] for point in points) > peak:
        return None
    return {
        "peak": peak,
        "bandwidth": bandwidth.median,
        "precision": efficiency.precision,
        "points": points[:MAX_POINTS],
    }


def _rates(observation: Observation, card: MachineCard | None) -> DeviceRates | None:
    wanted = observation.program.device
    devices: Sequence[DeviceRates] = card.devices if card else ()
    return next((one for one in devices if one.device.split(":")[0] == wanted), None)


def _point(one: Operator, item: int) -> dict[str, Any] | None:
    spent = one.device_s if one.device_s is not None else one.self_s
    moved = item * one.count * sum(math.prod(shape) for shape in one.shapes) + one.allocated_bytes
    if not one.flop or not spent or not moved:
        return None
    return {"name": one.name, "intensity": one.flop / moved, "rate": one.flop / spent, "share": one.share}
