"""The arithmetic of a step against the peak that was measured of this machine."""

from __future__ import annotations

from collections import Counter

import msgspec

from hotloop.machine.card.cache import peak_flop_per_s
from hotloop.model.machine import MachineCard
from hotloop.model.observation import Observation
from hotloop.model.operators import Efficiency, Flops

PRECISIONS = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "float64": "fp64"}


def with_efficiency(observation: Observation, card: MachineCard | None) -> Observation:
    """Return the observation with FLOP/s and MFU, where FLOPs were counted.

    Args:
        observation: the light step and the FLOPs of it.
        card: what this machine can do; None: not measured.
    """
    flops = observation.deep.flops if observation.deep is not None else None
    if flops is None or observation.step is None or not flops.flop:
        return observation
    num = max(1, sum(rank.role == observation.ranks[0].role for rank in observation.ranks))
    flop = flops.flop * num
    rate = flop / observation.step.median_s
    precision = _precision(flops, observation)
    peak, why = _peak(observation, card, precision, num)
    return msgspec.structs.replace(
        observation,
        efficiency=Efficiency(
            flop=flop,
            flop_per_s=rate,
            precision=precision,
            peak_flop_per_s=peak,
            mfu=None if peak is None else rate / peak,
            why_no_peak=why,
        ),
    )


def _precision(flops: Flops, observation: Observation) -> str:
    sums: Counter[str] = Counter()
    for product in flops.products:
        sums[product.dtype] += int(product.flop)
    dtype = sums.most_common(1)[0][0]
    program = observation.program
    # cuDNN's and cuBLAS's switches are two; that of matrix products speaks for both.
    if dtype == "float32" and program.device == "cuda" and program.matmul_precision != "highest":
        return "tf32"
    return PRECISIONS.get(dtype, dtype)


def _peak(
    observation: Observation, card: MachineCard | None, precision: str, num: int
) -> tuple[float | None, str | None]:
    if card is None:
        return None, "this machine's peak is not measured: type hotloop machine"
    device = observation.program.device
    # Processes on a CPU share it; on GPUs each has its own, as launchers place them.
    peak = peak_flop_per_s(card, "cpu" if device == "cpu" else f"{device}:0", precision)
    if peak is None:
        return None, f"the machine card has no {precision} rate of {device}"
    return (peak if device == "cpu" else peak * num), None
