"""fused_layers: normalizations that are written out become one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.model.program import ModuleFacts
from hotloop.optimize.catalogue.compute.fused_layers.activation import NormSwap
from hotloop.optimize.catalogue.compute.fused_layers.pattern import RMS_NORM, WrittenNorm, written_norms
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.bounds import expected, share
from hotloop.optimize.program.source_calls import model_texts
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

USUAL = 1.08
"""Of forward and backward together, in a transformer."""


class FusedLayers(Optimization):
    """Replace normalizations that are written out by torch's own.

    What it does: a class of the model whose `forward` computes layer norm or RMS norm over the last dimension
    operation by operation calls `torch.nn.functional.layer_norm` or `rms_norm` instead. What a `forward` computes is
    told by its values, however it is written; which attribute is the weight, the bias and the epsilon, too. In the
    first training forward every such module is run both ways on the inputs it was just given; outputs and gradients
    have to agree before it is on.

    Why it is faster: mean, difference, square, root, quotient, product and sum each read and write the whole
    activation and keep it for the backward pass; one kernel reads it once.

    When it does not help: small activations; models that torch.compile fuses already; RMS norm on the CPU, for which
    torch has no kernel of its own. Left alone are forms that torch does not have: an epsilon that is added to the
    standard deviation, the sample's standard deviation, another dimension than the last.

    Effect on numerics: rounding, once instead of at every operation.

    Example: `y = F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps)`

    References: Ba, Kiros & Hinton 2016, Layer normalization; Zhang & Sennrich 2019, Root mean square layer
    normalization; torch.nn.functional.rms_norm.
    """

    name: ClassVar[str] = "fused_layers"
    family: ClassVar[str] = "compute"
    numerics: ClassVar[Numerics] = Numerics.TOLERANCE
    conflicts: ClassVar[frozenset[str]] = frozenset({"liger_kernels"})
    interacts: ClassVar[frozenset[str]] = frozenset({"autocast_bf16", "autocast_fp16", "compile"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate where a class of the model writes a normalization out."""
        program = observation.program
        if any(root.compiled for root in program.roots):
            raise DoesNotApply("the program compiles its model, and the compiler fuses such chains itself")
        found = [norm for root in program.roots for norm in _norms(root)]
        if not found:
            raise DoesNotApply("no class of the model writes a normalization out")
        if program.device == "cpu" and all(each.name == RMS_NORM for each in found):
            raise DoesNotApply("torch has no kernel of its own for RMS norm on the CPU")
        part = share(observation, Phase.FORWARD, Phase.BACKWARD)
        return [self.candidate(prior=expected(part, USUAL))]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what compares and exchanges."""
        return NormSwap(at_once=True)

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return what compares, and exchanges when it is switched."""
        return NormSwap(at_once=False)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Write the call as the body of `forward`."""
        from hotloop.optimize.catalogue.compute.fused_layers.rewrite import replace_norms

        return replace_norms(source)


def _norms(root: ModuleFacts) -> list[WrittenNorm]:
    """Return those of a model's files of which it has a layer."""
    return [
        norm
        for text in model_texts(root)
        for norm in written_norms(text)
        if norm.function.split(".")[-2] in root.layer_counts
    ]
