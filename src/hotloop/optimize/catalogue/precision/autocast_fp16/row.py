"""autocast_fp16: the forward in float16, with gradient scaling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.machine.devices.gpu_class import gpu_class
from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.precision.autocast_fp16.activation import ScaledAutocast
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.bounds import expected, share
from hotloop.optimize.program.second_derivatives import who_differentiates_twice
from hotloop.optimize.reduced_precision.full_precision import require_full_precision
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite


class AutocastFp16(Optimization):
    """Run the forward under autocast to float16, with gradient scaling.

    What it does: as autocast_bf16, with float16. Gradients below 6e-8 vanish in float16, so they are scaled up where
    they enter the model, at its outputs, and scaled down where they leave it, at its parameters and at inputs that
    want gradients: the loss, clipping, penalties on gradients, a second optimizer, accumulation see them as they
    are. A step whose gradients overflowed is left out and the scale halved; after 500 good steps it is doubled.
    `hotloop patch` writes a `torch.amp.GradScaler` instead.

    Why it is faster: see autocast_bf16.

    When it does not help: on the CPU, where float16 has no fast units on most machines; on devices with fast
    bfloat16 (Ampere, MI300 and newer), which needs no scaling. It is refused where a step cannot be left out
    (LBFGS evaluates the loss inside it; an update by hand is none of an optimizer's), under FSDP, and with
    `create_graph=True`. A penalty on the weights themselves that is added to the loss would be scaled down too:
    parity refuses it where that shows.

    Effect on numerics: 11 bits of mantissa, a range of only 6e-8 to 65504.

    Example: `scaler = torch.amp.GradScaler(); scaler.scale(loss).backward(); scaler.step(optimizer);
    scaler.update()`

    References: torch.amp documentation; Micikevicius et al., Mixed Precision Training, 2018.
    """

    name: ClassVar[str] = "autocast_fp16"
    family: ClassVar[str] = "precision"
    numerics: ClassVar[Numerics] = Numerics.TOLERANCE
    saves_memory: ClassVar[bool] = True
    conflicts: ClassVar[frozenset[str]] = frozenset({"autocast_bf16", "lossy_in_half", "slow_in_half"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate, for a full-precision model whose steps can be left out."""
        require_full_precision(observation)
        program = observation.program
        if program.device == "cpu":
            raise DoesNotApply(
                "the model is on the CPU, where float16 needs gradient scaling and is no faster than bfloat16"
            )
        _require_steps_that_can_be_left_out(observation)
        # Published advice promises 1.5-2x; where bfloat16 is as fast it needs no scaling, and comes first.
        factor = 1.6 if _only_fp16(observation) else 1.35
        prior = expected(share(observation, Phase.FORWARD, Phase.BACKWARD), factor)
        return [self.candidate(prior=prior)]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return autocast to float16 with scaled gradients."""
        return ScaledAutocast()

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Put forward and loss under autocast, and a scaler through backward, clipping, step and checkpoints."""
        from hotloop.optimize.catalogue.precision.autocast_fp16.rewrite import rewrite_with_scaler

        return rewrite_with_scaler(source, sites)

    def rewrite_beside(self, source: Editor, sites: Sites) -> Sequence[str]:
        """Keep the sigmoids that outputs are made of in fp32."""
        from hotloop.optimize.reduced_precision.sigmoid_rewrite import keep_sigmoids_in_fp32

        return keep_sigmoids_in_fp32(source, sites)


def _require_steps_that_can_be_left_out(observation: Observation) -> None:
    """Refuse programs in which an overflow could reach the weights.

    Raises:
        DoesNotApply: with what was seen.
    """
    program = observation.program
    if not program.optimizers:
        raise DoesNotApply(
            "no optimizer of torch.optim steps, so a step that overflows could not be left out"
        )
    if any(one.cls == "LBFGS" for one in program.optimizers):
        raise DoesNotApply("LBFGS evaluates the loss inside its step, which could not be left out")
    if program.distributed == "fsdp":
        raise DoesNotApply("the model is sharded by FSDP: its own MixedPrecision has to be used")
    if who := who_differentiates_twice(observation):
        raise DoesNotApply(f"{who} differentiates twice (create_graph=True)")


def _only_fp16(observation: Observation) -> bool:
    devices = [one for one in observation.machine.get("accelerators") or () if isinstance(one, dict)]
    classes = [gpu_class(str(one.get("name"))) for one in devices]
    return any(one is not None and one.half_precision == "fp16" for one in classes)
