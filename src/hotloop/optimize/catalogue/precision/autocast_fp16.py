"""autocast_fp16: the forward in float16, with gradient scaling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.precision.full_precision import require_full_precision
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.parameters import only

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite


class AutocastFp16(Optimization):
    """Run the forward under autocast to float16, with gradient scaling.

    What it would do: as autocast_bf16, with float16, for devices that compute float16 fast and bfloat16 not
    (V100, T4, MI250X). Gradients below 6e-8 vanish in float16, so the loss is scaled up before the backward,
    gradients are scaled down before clipping and the step, and steps whose gradients overflow are left out.

    Why it is faster: see autocast_bf16.

    When it does not help: on the CPU, where float16 has no fast units on most machines; on devices with
    bfloat16, which needs no scaling.

    Effect on numerics: 11 bits of mantissa, a range of only 6e-8 to 65504.

    State: not tried yet. Scaling inside an unmodified program has to leave out the overflowing steps, and the
    hook points cannot do that so far; each program is told the reason that holds for it.

    Example: `scaler = torch.amp.GradScaler(); scaler.scale(loss).backward(); scaler.step(optimizer);
    scaler.update()`

    References: torch.amp documentation; Micikevicius et al., Mixed Precision Training, 2018.
    """

    name: ClassVar[str] = "autocast_fp16"
    family: ClassVar[str] = "precision"
    numerics: ClassVar[Numerics] = Numerics.TOLERANCE
    conflicts: ClassVar[frozenset[str]] = frozenset({"autocast_bf16"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Refuse, with the reason that holds for this program."""
        require_full_precision(observation)
        if observation.program.device == "cpu":
            raise DoesNotApply(
                "the model is on the CPU, where float16 needs gradient scaling and is no faster than bfloat16"
            )
        raise DoesNotApply("float16 needs gradient scaling, which is not done yet; autocast_bf16 needs none")

    def validate(self, params: Mapping[str, Any]) -> None:
        """Refuse: no plan can hold it yet.

        Raises:
            ValueError: always.
        """
        only(params)
        raise ValueError("autocast_fp16 cannot be switched on yet: use autocast_bf16")

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Put forward and loss under autocast, and a scaler through backward, clipping, step and checkpoints."""
        from hotloop.optimize.catalogue.precision.scaler_rewrite import rewrite_with_scaler

        return rewrite_with_scaler(source, sites)
