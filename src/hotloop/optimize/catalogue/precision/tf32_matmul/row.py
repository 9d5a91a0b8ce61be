"""tf32_matmul: fp32 matrix products on tensor cores, with TF32 inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.precision.tf32_matmul.activation import (
    HighPrecision,
    current_precision,
    set_precision,
)
from hotloop.optimize.knobs.flag import FlagKnob
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.bounds import expected, share
from hotloop.optimize.reduced_precision.full_precision import require_full_precision
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

ALONE, BESIDE = 2.0, 1.05
"""Of forward and backward: a guess between none and the 8x of the data sheet; of a model with convolutions, whose
arithmetic is theirs and is in TF32 already (0.99 [0.96, 1.03] of a ResNet-50 on an H200)."""


class Tf32Matmul(Optimization):
    """Compute fp32 matrix products with TF32 on tensor cores.

    What it does: `torch.set_float32_matmul_precision("high")`: the inputs of fp32 matrix products are rounded
    to TF32, sums stay fp32.

    Why it is faster: tensor cores of NVIDIA devices since Ampere compute TF32 products up to 8 times as fast
    as fp32.

    When it does not help: devices before Ampere and the CPU do not have it; under autocast matrix products
    are in half precision already; convolutions use TF32 by default (`torch.backends.cudnn.allow_tf32`).

    Effect on numerics: 11 bits of mantissa instead of 24 in the products. On only where the parity check
    passes.

    Example: `torch.set_float32_matmul_precision("high")`

    References: torch.set_float32_matmul_precision; "CUDA semantics: TensorFloat-32" in the PyTorch
    documentation.
    """

    name: ClassVar[str] = "tf32_matmul"
    family: ClassVar[str] = "precision"
    numerics: ClassVar[Numerics] = Numerics.TOLERANCE

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate, for fp32 models on a CUDA device."""
        program = observation.program
        if program.device != "cuda":
            raise DoesNotApply(f"the model is on {program.device}: TF32 needs an NVIDIA GPU since Ampere")
        if program.hip_version is not None:
            raise DoesNotApply("this is a ROCm build of torch: TF32 is NVIDIA's")
        if program.matmul_precision != "highest":
            raise DoesNotApply(f"the program already sets matmul precision {program.matmul_precision!r}")
        require_full_precision(observation)
        convolves = any(_convolves(root.layer_counts) for root in program.roots)
        prior = expected(share(observation, Phase.FORWARD, Phase.BACKWARD), BESIDE if convolves else ALONE)
        return [self.candidate(prior=prior)]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what sets the precision."""
        return HighPrecision()

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return the precision as a flag."""
        return FlagKnob(current_precision, set_precision, "high")

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Set the precision behind the imports of the program's main file."""
        from hotloop.optimize.rewriting.outcomes import summed_up
        from hotloop.optimize.rewriting.settings import call_setting

        notes = call_setting(source, sites.sites, "torch.set_float32_matmul_precision", '"high"')
        return summed_up(notes, "the precision is set")


def _convolves(layer_counts: Mapping[str, int]) -> bool:
    """Whether most layers are convolutions; a vision transformer begins with one."""
    num = sum(count for name, count in layer_counts.items() if name.startswith("Conv"))
    return num > layer_counts.get("Linear", 0)
