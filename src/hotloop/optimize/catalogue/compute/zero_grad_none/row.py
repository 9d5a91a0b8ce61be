"""zero_grad_none: gradients are let go instead of filled with zeros."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.compute.zero_grad_none.activation import GradientsLetGo
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.source_calls import calls_of, keeps_gradients
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite


class ZeroGradNone(Optimization):
    """Let gradients go instead of filling them with zeros.

    What it does: `zero_grad(set_to_none=False)` of optimizers and modules sets gradients to None. Where a parameter
    has no new gradient at the next step, it gets its zeros back and the calls are left alone from then on, because
    momentum and weight decay would have moved it.

    Why it is faster: nothing is written into the gradients, and the backward pass stores them instead of reading,
    adding and writing. Their memory is free during the forward pass.

    When it does not help: None is torch's default since 2.0; loops that call `p.grad.zero_()` by themselves are not
    changed. Gradients that are views of one buffer (gradient buckets) are left alone.

    Effect on numerics: none.

    Example: `optimizer.zero_grad()`

    References: PyTorch performance tuning guide, "Use parameter.grad = None"; torch.optim.Optimizer.zero_grad.
    """

    name: ClassVar[str] = "zero_grad_none"
    family: ClassVar[str] = "compute"
    numerics: ClassVar[Numerics] = Numerics.EXACT

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate where the source keeps gradients."""
        if not any(keeps_gradients(call) for _, call in calls_of(observation, "zero_grad")):
            raise DoesNotApply("no zero_grad(set_to_none=False) stands in the program")
        return [self.candidate(prior=1.02)]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what changes the calls."""
        return GradientsLetGo(at_once=True)

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return what changes the calls while it is on."""
        return GradientsLetGo(at_once=False)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Take the argument away; torch's default is None."""
        from hotloop.optimize.catalogue.compute.zero_grad_none.rewrite import let_gradients_go

        return let_gradients_go(source)
