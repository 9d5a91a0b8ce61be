"""Whether there is any precision left to reduce."""

from __future__ import annotations

from hotloop.model.observation import Observation
from hotloop.optimize.optimization import DoesNotApply

_WIDE = frozenset({"float64", "complex128"})
_REDUCED = frozenset({"bfloat16", "float16"})


def require_full_precision(observation: Observation) -> None:
    """Refuse programs that already reduce precision, or that want more of it than fp32.

    Raises:
        DoesNotApply: with what was seen.
    """
    program = observation.program
    if program.autocast_dtype is not None:
        raise DoesNotApply(f"the program already runs under autocast to {program.autocast_dtype}")
    dtypes = {dtype.removeprefix("torch.") for root in program.roots for dtype in root.dtypes}
    if dtypes & _WIDE:
        raise DoesNotApply(
            f"the model computes in {', '.join(sorted(dtypes & _WIDE))}: that precision is meant"
        )
    if dtypes and dtypes <= _REDUCED:
        raise DoesNotApply(f"the model's parameters are {', '.join(sorted(dtypes))} already")
