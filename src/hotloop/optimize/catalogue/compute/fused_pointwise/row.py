"""fused_pointwise: activation functions that are written out become one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.compute.fused_pointwise.activation import PointwiseSwap
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.bounds import expected, share
from hotloop.optimize.program.source_calls import model_texts
from hotloop.patterns.activations.pattern import written_out
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

USUAL = 1.08
"""Of forward and backward together, where activations are large."""


class FusedPointwise(Optimization):
    """Replace activation functions that are written out by torch's own.

    What it does: expressions of the model that compute GELU (either form), SiLU or Mish operation by operation get one
    call of `torch.nn.functional` in their place. What an expression computes is told by its values, however it is
    written. In the first training forward every module that runs one is run both ways on the inputs it was just
    given; outputs and gradients have to agree before it is on.

    Why it is faster: each operation reads and writes the whole activation and keeps it for the backward pass. GELU
    in its tanh form is eight of them; the call is one, and keeps its input alone. A small GPT-2 of transformers, whose
    GELU is written out, took steps 1.14 times as fast [1.10, 1.17] on two cores of an AMD EPYC (2026-11-22; `tune`,
    three fresh sets).

    When it does not help: small activations; models that torch.compile fuses already. Left alone are formulas over
    several statements, and those whose value is computed on the spot.

    Effect on numerics: rounding, once instead of at every operation.

    Example: `y = F.gelu(x, approximate="tanh")`

    References: PyTorch performance tuning guide, "Fuse operations"; Hendrycks & Gimpel 2016, Gaussian error linear
    units.
    """

    name: ClassVar[str] = "fused_pointwise"
    family: ClassVar[str] = "compute"
    numerics: ClassVar[Numerics] = Numerics.TOLERANCE
    conflicts: ClassVar[frozenset[str]] = frozenset({"compiled_chains"})
    interacts: ClassVar[frozenset[str]] = frozenset({"autocast_bf16", "autocast_fp16", "compile"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate where the model's code writes an activation function out."""
        if any(root.compiled for root in observation.program.roots):
            raise DoesNotApply("the program compiles its model, and the compiler fuses such chains itself")
        if not any(map(written_out, model_texts(*observation.program.roots))):
            raise DoesNotApply("the model's code writes no activation function out")
        part = share(observation, Phase.FORWARD, Phase.BACKWARD)
        return [self.candidate(prior=expected(part, USUAL))]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what compares and exchanges."""
        return PointwiseSwap(at_once=True)

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return what compares, and exchanges when it is switched."""
        return PointwiseSwap(at_once=False)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Write the call where the formula stands."""
        from hotloop.optimize.catalogue.compute.fused_pointwise.rewrite import replace_pointwise

        return replace_pointwise(source)
