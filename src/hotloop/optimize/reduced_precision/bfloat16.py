"""What autocast to bfloat16 is expected to bring, and whether this processor has the units for it."""

from __future__ import annotations

from hotloop.model.observation import Observation, Phase
from hotloop.optimize.optimization import DoesNotApply
from hotloop.optimize.program.bounds import expected, share
from hotloop.optimize.reduced_precision.full_precision import require_full_precision

_BF16 = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
"""Flags of processors that compute with bfloat16."""


def expected_of_bfloat16(observation: Observation) -> float:
    """Return the expected speed-up of a full-precision program under autocast.

    Raises:
        DoesNotApply: it has reduced its precision already.
    """
    require_full_precision(observation)
    # Published scripts gave 1.0-2.1 by hand: 1.5 on what autocast touches is the middle of it. A processor
    # without bf16 instructions emulates them (measured on a Zen 3: 5 to 13 times as slow).
    factor = 0.2 if _emulated(observation) else 1.5
    return expected(share(observation, Phase.FORWARD, Phase.BACKWARD), factor)


def require_bfloat16(observation: Observation) -> None:
    """Demand that autocast to bfloat16 can make this program faster.

    Raises:
        DoesNotApply: it computes in reduced precision already, or on a processor that emulates bfloat16.
    """
    if expected_of_bfloat16(observation) <= 1:
        raise DoesNotApply("this processor has no bfloat16 units: all of the model is slower in it")


def _emulated(observation: Observation) -> bool:
    isa = observation.machine.get("isa")
    return observation.program.device == "cpu" and isa is not None and not _BF16.intersection(isa)
