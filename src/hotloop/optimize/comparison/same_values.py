"""Are tensors that were computed in two ways the same but for rounding?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hotloop.optimize.comparison.compare import LARGEST, ROUNDINGS
from hotloop.patterns.refusal import NotThis


def require_same(what: str, alone: Sequence[Any], together: Sequence[Any], coarse: Any = None) -> float:
    """Return the largest relative difference of tensors, pair by pair; None is no gradient.

    Args:
        what: they are, as a plural.
        alone: computed one way.
        together: the other way.
        coarse: the dtype in which autocast computed some of it; None: the tensors' own.

    Raises:
        NotThis: they differ by more than rounding, or are of another kind.
    """
    if [each is None for each in alone] != [each is None for each in together]:
        raise NotThis(f"its {what} go elsewhere")
    pairs = [
        (one.detach(), other.detach()) for one, other in zip(alone, together, strict=True) if one is not None
    ]
    floor = LARGEST * max((float(one.norm()) for one, _ in pairs if one.is_floating_point()), default=0.0)
    return max((_apart(what, one, other, floor, coarse) for one, other in pairs), default=0.0)


def along(output: Any, number: int) -> Any:
    """Return what an output's gradient is taken along: no two of its values alike, no random number used up."""
    import torch

    points = torch.arange(output.numel(), device=output.device, dtype=torch.float32)
    return torch.cos(points * 1.7 + number).view(output.shape).to(output.dtype)


def _apart(what: str, one: Any, other: Any, floor: float, coarse: Any) -> float:
    import torch

    if one.dtype is not other.dtype or one.shape != other.shape:
        raise NotThis(f"its {what} are of another type or shape")
    if not one.is_floating_point():
        if not torch.equal(one, other):
            raise NotThis(f"its {what} differ")
        return 0.0
    apart = float((one.double() - other.double()).norm()) / max(float(one.norm()), floor, 1e-30)
    if not apart <= _limit(one, coarse):
        raise NotThis(f"its {what} differ by {apart:.1e}, more than rounding")
    return apart


def _limit(tensor: Any, coarse: Any) -> float:
    """Return how far two tensors may be apart; a device may compute float32 in TF32, which keeps ten bits."""
    import torch

    tf32 = tensor.is_cuda and tensor.dtype is torch.float32
    eps = max(torch.finfo(tensor.dtype).eps, torch.finfo(coarse).eps if coarse is not None else 0.0)
    return float(min(ROUNDINGS * max(eps, 2.0**-16 if tf32 else 0.0), 0.1))
