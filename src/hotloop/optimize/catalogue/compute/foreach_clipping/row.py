"""foreach_clipping: gradients are clipped all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.compute.foreach_clipping.activation import ClippingTogether
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.bounds import expected, share
from hotloop.optimize.program.source_calls import calls_of, says_foreach
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

CLIPS = ("clip_grad_norm_", "clip_grad_value_")


class ForeachClipping(Optimization):
    """Clip all gradients in a few calls.

    What it does: `torch.nn.utils.clip_grad_norm_` and `clip_grad_value_` go over all gradients of a device with
    torch's foreach operations, where the program says `foreach=False`.

    Why it is faster: one call for all gradients instead of one for each, for their norms and for their scaling; on a
    device a few kernels instead of hundreds.

    When it does not help: few, large gradients; programs that say nothing of `foreach`, because torch then does so by
    itself, on CUDA and on the CPU. What clips by a loop of its own is not changed.

    Effect on numerics: none; the norm of the norms is summed up in the same order.

    Example: `torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)`

    References: torch.nn.utils.clip_grad_norm_; PyTorch, torch._foreach operations.
    """

    name: ClassVar[str] = "foreach_clipping"
    family: ClassVar[str] = "compute"
    numerics: ClassVar[Numerics] = Numerics.EXACT

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate where the program clips one by one."""
        said = [says_foreach(call) for name in CLIPS for _, call in calls_of(observation, name)]
        if not said:
            raise DoesNotApply("the program does not clip its gradients by torch's functions")
        if False not in said:
            raise DoesNotApply("torch clips all gradients at once by itself, where nothing else is said")
        part = share(observation, Phase.OPTIMIZER, Phase.OTHER)
        return [self.candidate(prior=expected(part, 1.05))]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what changes how torch clips."""
        return ClippingTogether(at_once=True)

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return the same, as torch does it while it is off."""
        return ClippingTogether(at_once=False)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Give the calls that were seen to clip `foreach=True`."""
        from hotloop.optimize.catalogue.compute.foreach_clipping.rewrite import clip_together

        return clip_together(source, sites)
