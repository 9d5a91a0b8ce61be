"""Matrix multiplication without torch: what the machine's numpy reaches in fp32."""

import numpy as np

from hotloop.machine.card.repeat import measure_rate
from hotloop.model.machine import DeviceRates

_SIZE = 1024
"""2.1 GFLOP: 20 to 100 ms on two cores, and out of the caches of one."""


def numpy_rates(cpu_model: str, budget_s: float = 1.0, size: int = _SIZE) -> DeviceRates:
    """Return the processor's fp32 matmul rate; convolutions and 16-bit formats need torch."""
    random = np.random.default_rng(0)
    left, right = (random.random((size, size), dtype=np.float32) for _ in range(2))
    out = np.empty((size, size), dtype=np.float32)

    def multiply() -> float:
        np.matmul(left, right, out=out)
        return 2.0 * size**3

    method = f"numpy matmul {size}x{size}, the BLAS's own threads"
    return DeviceRates(
        device="cpu",
        name=cpu_model,
        matmul_flop_per_s={"fp32": measure_rate(multiply, method, budget_s=budget_s)},
    )
