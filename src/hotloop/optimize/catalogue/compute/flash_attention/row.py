"""flash_attention: attention that is written out becomes one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.compute.flash_attention.activation import AttentionSwap
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.bounds import expected, share
from hotloop.optimize.program.second_derivatives import who_differentiates_twice
from hotloop.optimize.program.source_calls import model_texts
from hotloop.patterns.attention.pattern import Attention, attentions
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite


class FlashAttention(Optimization):
    """Replace attention that is written out by scaled_dot_product_attention.

    What it does: functions of the model that compute `softmax(q @ k.transpose(-2, -1) * scale) @ v`, also with
    masks, dropout and einsum equations, get a call of `scaled_dot_product_attention` in its place. In the first
    training forward every module that runs one is run with and without the call on the inputs it was just given;
    outputs, gradients and rates of dropout have to agree before it is on.

    Why it is faster: the matrix of all pairs is never written to memory, and is not kept for the backward pass.
    Memory grows with the length instead of its square. A small GPT (four layers, 256 tokens, no dropout) took steps
    1.3 times as fast on two busy cores of an AMD EPYC (2026-11-22; median of 12 interleaved pairs, quartiles 1.2-1.9,
    single pairs 0.7-2.4).

    When it does not help: short sequences; on the CPU, dropout of the weights, for which there is no fused kernel;
    models that torch.compile fuses already. It is refused where the weights are used elsewhere (returned, kept,
    shown), where the scores go through an operation that the kernels do not have, where a gradient is differentiated
    (`create_graph=True`), and where the comparison fails.

    Effect on numerics: sums in another order, the softmax in fp32 even under autocast; with dropout, other random
    numbers.

    Example: `y = F.scaled_dot_product_attention(q, k, v, is_causal=True)`

    References: Dao et al., FlashAttention, 2022; torch.nn.functional.scaled_dot_product_attention.
    """

    name: ClassVar[str] = "flash_attention"
    family: ClassVar[str] = "compute"
    numerics: ClassVar[Numerics] = Numerics.TOLERANCE
    interacts: ClassVar[frozenset[str]] = frozenset({"autocast_bf16", "autocast_fp16", "compile"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate where the model's code holds attention that can be replaced."""
        if any(root.compiled for root in observation.program.roots):
            # The comparison stands in forward hooks, which compiled code would take in.
            raise DoesNotApply(
                "the program compiles its model, and the compiler has patterns for attention itself"
            )
        if who := who_differentiates_twice(observation):
            raise DoesNotApply(f"{who} differentiates a gradient, which the kernels of attention cannot")
        found = _written_out(observation)
        usable = [each for each in found if not each.refused]
        if not found:
            raise DoesNotApply("the model's code writes no attention out")
        if not usable:
            reasons = {f"{each.function} (line {each.line}): {each.refused}" for each in found}
            raise DoesNotApply(f"its attention cannot be replaced: {'; '.join(sorted(reasons))}")
        part = share(observation, Phase.FORWARD, Phase.BACKWARD)
        return [self.candidate(prior=expected(part, 1.2))]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what compares and exchanges."""
        return AttentionSwap(at_once=True)

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return what compares, and exchanges when it is switched."""
        return AttentionSwap(at_once=False)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Write the call where the second product stands, and take away what only led to it."""
        from hotloop.optimize.catalogue.compute.flash_attention.rewrite import replace_attention

        return replace_attention(source)


def _written_out(observation: Observation) -> list[Attention]:
    """Return the attention in the files that the roots' code stands in."""
    texts = model_texts(*observation.program.roots)
    return [found for text in texts if "softmax" in text.lower() for found in attentions(text)]
