"""fused_optimizer: the optimizer's step in one kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.model.program import OptimizerFacts
from hotloop.model.sites import SiteKind, Sites
from hotloop.optimize.catalogue.compute.fused_optimizer.activation import OptimizerKeywords
from hotloop.optimize.catalogue.compute.fused_optimizer.knob import OptimizerKnob
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.parameters import choice, only
from hotloop.optimize.program.bounds import bound, expected, require_share, share
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

IMPLEMENTATIONS = ("fused", "foreach")


class FusedOptimizer(Optimization):
    """Take the optimizer's step in one kernel for all parameters.

    What it does: optimizers of torch are made with `fused=True` where they take it, else with `foreach=True`;
    `implementation="foreach"` uses that for all of them.

    Why it is faster: the plain implementation calls a dozen small operations for each parameter; `foreach`
    calls them for lists of parameters, `fused` passes over parameter, gradient and state once.

    When it does not help: where the step is a small part of the whole; on CUDA `foreach` is torch's default
    already. Optimizers of other packages, and differentiable ones, are left alone. Programs with sparse
    embedding gradients are left alone: the fused kernels refuse them.

    Effect on numerics: the order of operations within the update.

    Example: `torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)`

    References: torch.optim documentation, "Algorithms"; PyTorch performance tuning guide.
    """

    name: ClassVar[str] = "fused_optimizer"
    family: ClassVar[str] = "compute"
    numerics: ClassVar[Numerics] = Numerics.EXACT

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return fused, and on the CPU also foreach."""
        plain = _plain(observation)
        require_share(observation, Phase.OPTIMIZER, "the optimizer")
        # Measured on two cores, 66 tensors, 1.8 M parameters: AdamW 36.8 ms plain, 22.4 foreach, 10.6 fused.
        factors = {"fused": 3.5, "foreach": 1.6}
        if not any(optimizer.supports_fused for optimizer in plain):
            del factors["fused"]
        if observation.program.device == "cuda" and "fused" in factors:
            del factors["foreach"]
        part = share(observation, Phase.OPTIMIZER)
        return [
            self.candidate(
                params={"implementation": implementation},
                max_gain=bound(observation, Phase.OPTIMIZER),
                prior=expected(part, factor),
            )
            for implementation, factor in factors.items()
        ]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the implementation."""
        only(params, "implementation")
        choice(params, "implementation", IMPLEMENTATIONS)

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what changes the optimizers' keywords."""
        return OptimizerKeywords(params.get("implementation", "fused"))

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return what changes living optimizers to and fro."""
        return OptimizerKnob(params.get("implementation", "fused"))

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Give each optimizer of torch the keyword where it is constructed."""
        from hotloop.optimize.rewriting.constructions import remove_keyword, set_keywords
        from hotloop.optimize.rewriting.outcomes import changed, not_observed
        from hotloop.source.keywords import Changes

        keyword = params.get("implementation", "fused")
        optimizers = [
            site
            for site in sites.of(SiteKind.OPTIMIZER)
            if site.callee.startswith("torch.optim.") and site.callee.split(".")[-1] in FUSED | FOREACH_ONLY
        ]
        if not optimizers:
            return not_observed("optimizer of torch", f"optimizer = torch.optim.AdamW(..., {keyword}=True)")
        changes = Changes()
        for site in optimizers:
            foreach = keyword == "foreach" or site.callee.split(".")[-1] in FOREACH_ONLY
            name, other = ("foreach", "fused") if foreach else ("fused", "foreach")
            remove_keyword(source, site, other)  # torch refuses both together
            changes += set_keywords(source, site, {name: "True"})
        return changed(changes, f"each optimizer has {keyword}=True")


def _plain(observation: Observation) -> Sequence[OptimizerFacts]:
    """Return the optimizers that run neither fused nor foreach and could."""
    program = observation.program
    if not program.optimizers:
        raise DoesNotApply("the program has no optimizer object")
    if all(optimizer.fused for optimizer in program.optimizers):
        raise DoesNotApply("the optimizer is fused already")
    if any("complex" in dtype for root in program.roots for dtype in root.dtypes):
        raise DoesNotApply("the model has complex parameters, which fused kernels refuse")
    plain = [o for o in program.optimizers if not o.fused and (o.supports_fused or o.cls in FOREACH_ONLY)]
    if not plain:
        names = ", ".join(sorted({optimizer.cls for optimizer in program.optimizers}))
        raise DoesNotApply(f"{names} has neither a fused nor a foreach implementation")
    if program.device == "cuda" and not any(optimizer.supports_fused for optimizer in plain):
        raise DoesNotApply("no fused implementation; foreach is torch's default on CUDA already")
    return plain


FUSED = frozenset({"Adagrad", "Adam", "AdamW", "SGD"})
"""Optimizers of torch 2.6 and newer that take fused."""
FOREACH_ONLY = frozenset({"Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"})
"""Optimizers of torch 2.6 and newer that take foreach and not fused."""
