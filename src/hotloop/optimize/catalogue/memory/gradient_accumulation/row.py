"""gradient_accumulation: the model sees a batch in parts, and learns from the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.memory.gradient_accumulation.activation import MicroBatches
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.parameters import integer, only, required
from hotloop.optimize.program.bounds import share
from hotloop.optimize.program.recomputable import require_recomputable
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

PARTS = (2, 4, 8)
EXPECTED = 0.3
"""Share of the forward where it was not measured; it is computed twice."""


class GradientAccumulation(Optimization):
    """Compute the model on parts of each batch and accumulate the gradients.

    What it does: the model is called with `micro_batches` parts of the batch, one after the other, each under
    `torch.utils.checkpoint`; the loop receives the joined output and computes its loss on the whole batch. The backward
    recomputes one part at a time and adds its gradients up.

    Why it is faster: it is not; it is smaller. Activations of one part are in memory at a time. The optimizer, the
    scheduler and logging see one step for each batch, as before, and the loss is the loop's own: means over tokens,
    weights and a short last batch come out right, because nothing has to be weighted again.

    When it does not help: models that return their own loss, which would have to be reweighed (a transformers model
    given labels); a peak outside the model. Refused with batch norm, whose statistics would be those of a part (that is
    another problem: semantic), and under DDP, which expects one forward for each backward. Before the first batch is
    seen in parts, the model is called with all samples but those of a part exchanged for others, and in parts: where a
    sample's output changes by more than rounding, where that cannot be told, or where a call fails, the program goes
    on with the whole batch. A loop that accumulates by itself saves the second forward: divide the batch by hand,
    weight each loss with its part's share of the samples (of the tokens, if that is what the mean is over), and call
    `no_sync` in all parts but the last.

    Effect on numerics: the order in which gradients are summed up. Dropout draws one mask for each part instead of one
    for the batch: such a model is held to the curve of its loss.

    Example: `out = torch.cat([checkpoint(model, part, use_reentrant=False) for part in x.chunk(4)])`

    References: torch.utils.checkpoint documentation; Gao et al. 2021, Scaling Deep Contrastive Learning Batch Size
    under Memory Limited Setup.
    """

    name: ClassVar[str] = "gradient_accumulation"
    family: ClassVar[str] = "memory"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    saves_memory: ClassVar[bool] = True
    conflicts: ClassVar[frozenset[str]] = frozenset(
        {
            "activation_checkpointing",
            "activation_memory_budget",
            "activation_offloading",
            "compile",
            "compiled_chains",
            "cuda_graphs",
        }
    )

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return as many parts as there are samples for."""
        require_recomputable(observation)
        program = observation.program
        layers = {name for root in program.roots for name in root.layer_counts}
        if any("BatchNorm" in name for name in layers):
            raise DoesNotApply(
                "batch norm would see the statistics of a part: a different problem (semantic)"
            )
        if program.distributed:
            raise DoesNotApply(
                f"{program.distributed} expects one forward for each backward: by hand, with no_sync"
            )
        sizes = [shape[0] for root in program.roots for shape in root.input_shapes[:1] if shape]
        parts = [num for num in PARTS if not sizes or num <= min(sizes)]
        if not parts:
            raise DoesNotApply("a batch is one sample")
        forward = share(observation, Phase.FORWARD)
        numerics = Numerics.TOLERANCE if any("Drop" in name for name in layers) else self.numerics
        return [
            self.candidate(
                params={"micro_batches": num},
                numerics=numerics,
                prior=1.0 / (1.0 + (EXPECTED if forward is None else forward)),
            )
            for num in parts
        ]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the number of parts."""
        only(params, "micro_batches")
        required(params, "micro_batches")
        integer(params, "micro_batches", 2, 1024)

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what calls the model in parts."""
        return MicroBatches(params["micro_batches"])

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Call the model in parts where the loop calls it, if it is given one tensor."""
        from hotloop.optimize.catalogue.memory.gradient_accumulation.rewrite import rewrite_calls

        return rewrite_calls(source, sites, params["micro_batches"])
