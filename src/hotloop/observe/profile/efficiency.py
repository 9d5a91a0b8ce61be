"""The arithmetic of a step against the peak that was measured of this machine."""

from __future__ import annotations

from collections import Counter

import msgspec

from hotloop.machine.card.cache import is_noisy, peak_flop_per_s
from hotloop.model.machine import MachineCard
from hotloop.model.observation import Observation
from hotloop.model.operators import Efficiency, Flops, Product
from hotloop.model.quantities import percent
from hotloop.stats.quietness import is_busy

BEATEN = (
    "the program computes faster than the peak that hotloop machine measured: type hotloop machine --fresh on a quiet "
    "machine"
)
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
    rate = flop / observation.step.whole_s
    precision = _main_precision(flops, observation)
    peak, why = _peak(observation, card, flops, num)
    if peak is not None and rate > peak:
        peak, why = None, BEATEN
    return msgspec.structs.replace(
        observation,
        efficiency=Efficiency(
            flop=flop,
            flop_per_s=rate,
            precision=precision,
            peak_flop_per_s=peak,
            peak_foreign_share=card.foreign_ratio if card is not None and peak is not None else None,
            mfu=None if peak is None else rate / peak,
            why_no_peak=why,
        ),
    )


def with_quiet_peak(observation: Observation, card: MachineCard | None) -> Observation:
    """Return a stored observation with a peak that was measured on a quiet machine, or with none.

    Args:
        observation: of any age: an earlier version quoted peaks that other processes had held down.
        card: what this machine can do now; None: not measured, or the observation is of another machine.
    """
    kept = observation.efficiency
    if kept is not None and kept.peak_flop_per_s is not None:
        share = kept.peak_foreign_share
        is_quiet = share is not None and not is_busy(share)
        if is_quiet and kept.flop_per_s <= kept.peak_flop_per_s:
            return observation
    return with_efficiency(observation, card)


def _main_precision(flops: Flops, observation: Observation) -> str:
    sums: Counter[str] = Counter()
    for product in flops.products:
        sums[_precision(product, observation)] += int(product.flop)
    return sums.most_common(1)[0][0]


def _precision(product: Product, observation: Observation) -> str:
    """Return what the device computes a product in: cuDNN and cuBLAS have a switch each, and cuDNN's is on."""
    program = observation.program
    if product.dtype == "float32" and program.device == "cuda" and program.hip_version is None:
        if "conv" in product.name:
            return "tf32" if program.convolution_precision == "tf32" else "fp32"
        return "tf32" if program.matmul_precision != "highest" else "fp32"
    return PRECISIONS.get(product.dtype, product.dtype)


def _peak(
    observation: Observation, card: MachineCard | None, flops: Flops, num: int
) -> tuple[float | None, str | None]:
    """Return the rate at which the step's arithmetic would run if each product ran at the peak of its own precision."""
    if card is None:
        return None, "this machine's peak is not measured: type hotloop machine"
    if is_noisy(card):
        return None, (
            f"this machine's peak was measured while other processes used {percent(card.foreign_ratio or 0.0)} of the "
            "CPU: type hotloop machine when they have left"
        )
    device = observation.program.device
    index = next((use.index for use in observation.memory.devices), 0)
    seconds = 0.0
    for product in flops.products:
        precision = _precision(product, observation)
        rate = _rate(card, "cpu" if device == "cpu" else f"{device}:{index}", precision)
        if rate is None:
            return None, f"the machine card has no {precision} rate of {device}"
        seconds += product.flop / rate
    # Processes on a CPU share it; on GPUs each has its own, as launchers place them.
    return flops.flop / seconds * (1 if device == "cpu" else num), None


def _rate(card: MachineCard, device: str, precision: str) -> float | None:
    """Return a peak; a device without TF32 units computes in float32 where TF32 is allowed."""
    rate = peak_flop_per_s(card, device, precision)
    return peak_flop_per_s(card, device, "fp32") if rate is None and precision == "tf32" else rate
