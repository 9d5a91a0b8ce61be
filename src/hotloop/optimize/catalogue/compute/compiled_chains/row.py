"""compiled_chains: chains of pointwise operations become one kernel each, where the whole model does not compile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.compute.compiled_chains.activation import ChainSwap
from hotloop.optimize.catalogue.compute.compiled_chains.pattern import Chain, chains
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.bounds import expected, share
from hotloop.optimize.program.compilable import require_compilable
from hotloop.optimize.program.source_calls import model_texts
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

USUAL = 1.06
"""Of forward and backward together; what the order of trials goes by."""
CHAIN_S = 3.0
"""To compile one, forward and backward, on a core of an AMD EPYC."""


class CompiledChains(Optimization):
    """Compile chains of pointwise operations, each by itself.

    What it does: expressions of the model's code with several pointwise operations (rotary embedding, SwiGLU, gates of
    an own cell, activation functions, scale and shift) are given to `torch.compile` as functions of what they are
    computed from; functions of the same file that only compute (`rotate_half`) go along. In the first training forward
    each chain is run both ways on what it was just given; outputs and gradients have to agree before it is on. Where
    the compiler fails later, the chain runs as it was.

    Why it is faster: each operation reads and writes the whole activation and keeps it for the backward pass; one
    kernel does so once. Forward and backward took so many times less on one core of an AMD EPYC (2026-11-23; processor
    time, seven turns, median [lowest, highest]): rotary embedding of 8x8x256x64, 2.8 [2.0, 5.3]; SwiGLU's product of
    2048x1024, 1.4 [1.2, 2.5].

    When it does not help: a model that compiles as a whole, which fuses more (`compile`); small activations, where the
    compiled function's checks cost more than the kernel. Each chain takes seconds to compile. Programs that
    differentiate twice cannot use it.

    Effect on numerics: rounding, once instead of at every operation.

    Example: `rotated = torch.compile(lambda x, cos, sin: x * cos + rotate_half(x) * sin)`

    References: Ansel et al., PyTorch 2, ASPLOS 2024; PyTorch performance tuning guide, "Fuse operations".
    """

    name: ClassVar[str] = "compiled_chains"
    family: ClassVar[str] = "compute"
    numerics: ClassVar[Numerics] = Numerics.TOLERANCE
    conflicts: ClassVar[frozenset[str]] = frozenset(
        {"compile", "cuda_graphs", "fused_layers", "fused_pointwise"}
    )
    interacts: ClassVar[frozenset[str]] = frozenset({"autocast_bf16", "autocast_fp16"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate where the model's code has chains."""
        require_compilable(observation)
        names = {each.name for each in _found(observation)}
        if not names:
            raise DoesNotApply("the model's code has no chain of pointwise operations")
        part = share(observation, Phase.FORWARD, Phase.BACKWARD)
        prior = expected(part, USUAL)
        return [self.candidate(prior=prior, one_off_s=CHAIN_S * len(names))]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what compares, compiles and exchanges."""
        return ChainSwap(at_once=True)

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return what compares and compiles, and exchanges when it is switched."""
        return ChainSwap(at_once=False)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Refuse: a function for each chain wants a name, which is the user's matter."""
        from hotloop.source.outcome import Refused

        texts = [source.file(path).module.code for path in source.draft.files]
        found = sorted((each for text in texts for each in chains(text)), key=lambda each: -each.num)
        example = found[0].text if found else "lambda x, gate: F.silu(gate) * x"
        return Refused(
            "a function for each chain wants a name of yours",
            f"fused = torch.compile({example})  # once, in the module; then called where the expression stands",
        )


def _found(observation: Observation) -> list[Chain]:
    return [each for text in model_texts(*observation.program.roots) for each in chains(text)]
