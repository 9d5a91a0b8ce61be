"""int8_training: the products of linear layers in 8-bit integers, by torchao."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.model.sites import Sites
from hotloop.optimize.catalogue.precision.int8_training.activation import Int8Layers
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.bounds import expected, share
from hotloop.optimize.reduced_precision.eight_bit_layers import FITS
from hotloop.optimize.reduced_precision.eight_bit_need import require_layers
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

AMPERE = (8, 0)
"""Compute capability of the first whose integer units torchao's kernels are made for."""
USUAL = 1.2
"""Of forward and backward beside bfloat16, for large products, compiled; small ones become slower."""


EAGER = 0.8
"""So much of that without torch.compile, which fuses scaling and rounding."""


class Int8Training(Optimization):
    """Compute the products of linear layers in 8-bit integers.

    What it does: before the first training forward, torchao's layer takes the place of each `torch.nn.Linear` whose
    sizes are multiples of 16. Weights stay what they are, for the optimizer and for `state_dict`; for each product of
    forward and backward, rows of both matrices are scaled and rounded to 8-bit integers, and the result is scaled back.

    Why it is faster: the matrix units of Ampere and Ada do twice as many products of 8-bit integers as of bfloat16.
    On GPUs without float8 units (A100, RTX 30) it is the only such choice.

    When it does not help: small products, where scaling and rounding cost more than the product saves; without
    torch.compile, which fuses them. torchao has to be installed beside the program, and keeps this among its
    prototypes. Layers with hooks, and a model that is one layer, are left alone. A model that is pickled whole, not as
    a `state_dict`, needs torchao where it is loaded.

    Effect on numerics: seven bits and a sign for each row's largest value. On only where the parity check passes.

    Example: `torchao.quantization.quantize_(model, Int8MixedPrecisionTrainingConfig(module_swap=True))`

    References: Xi et al. 2024, Jetfire: Efficient and Accurate Transformer Pretraining with INT8 Data Flow; torchao
    documentation, quantized training.
    """

    name: ClassVar[str] = "int8_training"
    family: ClassVar[str] = "precision"
    numerics: ClassVar[Numerics] = Numerics.TOLERANCE
    interacts: ClassVar[frozenset[str]] = frozenset({"autocast_bf16", "compile"})
    conflicts: ClassVar[frozenset[str]] = frozenset({"float8_training"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the candidate, where device, library and layers allow it."""
        program = observation.program
        if program.device != "cuda" or program.hip_version:
            raise DoesNotApply("torchao's kernels for products of 8-bit integers are NVIDIA's")
        if program.capability is None or program.capability < AMPERE:
            seen = "unknown" if program.capability is None else ".".join(map(str, program.capability))
            raise DoesNotApply(f"this GPU is too old for torchao's int8 kernels (compute capability {seen})")
        require_layers(program, "Int8MixedPrecisionTrainingLinear")
        part = share(observation, Phase.FORWARD, Phase.BACKWARD)
        factor = USUAL * (1.0 if any(root.compiled for root in program.roots) else EAGER)
        return [self.candidate(params={}, prior=expected(part, factor))]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what exchanges the layers."""
        return Int8Layers()

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Exchange the layers behind the statement that names the model."""
        from hotloop.optimize.rewriting.model import behind_the_models

        return behind_the_models(
            source,
            sites,
            ("torch", "torchao.quantization", "torchao.prototype.quantized_training"),
            _line,
            "the model computes in int8 already",
        )


def _line(model: str, torch: str, quantization: str, training: str) -> str:
    lines = [
        f"{quantization}.quantize_(",
        f"    {model},",
        f"    {training}.Int8MixedPrecisionTrainingConfig(module_swap=True),",
        f"    filter_fn=lambda layer, name: name and type(layer) is {torch}.nn.Linear",
        f"    and {FITS},",
        ")",
    ]
    return "\n".join(lines)
