"""chunked_cross_entropy: the loss of a large vocabulary without copies of the logits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.memory.chunked_cross_entropy.activation import ChunkedLoss
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.recomputable import require_recomputable
from hotloop.optimize.program.source_calls import calls_of
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

EXPECTED = 0.95
"""The last layer's product is computed once more in the backward; two passes over the logits go away."""


class ChunkedCrossEntropy(Optimization):
    """Compute the cross-entropy of a large vocabulary by chunks.

    What it does: where `cross_entropy` is given the whole output of an `nn.Linear` that has more classes than inputs,
    the loss is summed over chunks of rows, and the backward computes the logits of a chunk again, with the gradients of
    the layer's input and weights. A chunk of logits is as large as the layer's input.

    Why it is faster: it is not; it is smaller. The plain loss keeps the log-softmax of all logits and makes their
    gradient and that of the log-softmax: three tensors of batch x length x vocabulary beside the logits themselves.

    When it does not help: few classes. Logits that are shifted or converted between layer and loss (a copy), class
    weights, label smoothing and probabilities as targets are left to torch. The logits stay what they are for a
    program that reads them, but their own gradient is not computed (`retain_grad`, `autograd.grad` with respect to
    them). Not together with compile or Liger's kernels, which have a loss of their own; it works under DDP (which
    sees the layer's gradients as before) and autocast.

    Effect on numerics: the order of sums.

    Example: `loss = liger_kernel.transformers.LigerFusedLinearCrossEntropyLoss()(head.weight, hidden, targets)`

    References: Hsu et al. 2024, Liger Kernel; Wijmans et al. 2024, Cut Your Losses in Large-Vocabulary Language Models.
    """

    name: ClassVar[str] = "chunked_cross_entropy"
    family: ClassVar[str] = "memory"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    saves_memory: ClassVar[bool] = True
    conflicts: ClassVar[frozenset[str]] = frozenset({"activation_memory_budget", "compile", "liger_kernels"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate, for a program whose source computes a cross-entropy."""
        require_recomputable(observation)
        if not any("Linear" in root.layer_counts for root in observation.program.roots):
            raise DoesNotApply("the model has no Linear")
        names = ("cross_entropy", "CrossEntropyLoss")
        if not any(True for name in names for _ in calls_of(observation, name)):
            raise DoesNotApply("the program's source calls no cross_entropy")
        return [self.candidate(prior=EXPECTED)]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what computes the loss."""
        return ChunkedLoss()

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Show what to write: the loss needs the hidden states, which the model has to hand out."""
        from hotloop.source.outcome import Refused

        return Refused(
            "the loss needs the last layer's input, which only the model's author can hand out",
            "loss = 0\n"
            "for part, wanted in zip(hidden.chunk(16), targets.chunk(16)):  # N x D, N\n"
            "    rows = torch.utils.checkpoint.checkpoint(model.head, part, use_reentrant=False)\n"
            '    loss = loss + F.cross_entropy(rows, wanted, reduction="sum")\n'
            "loss = loss / len(targets)",
        )
