"""What a plug-in derives from to have modules of one class compute another way: a kernel of its own, say.

It says which class, and what class takes its place; applying, comparing, switching, the trial and the rewrite are here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.model.sites import SiteKind, Sites
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.plugins.replaced_modules import ReplacedModules
from hotloop.optimize.program.bounds import expected, share
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite


class ModuleReplacement(Optimization):
    """Modules of one class get another class, with the same parameters and another forward."""

    numerics: ClassVar[Numerics] = Numerics.TOLERANCE
    replaces: ClassVar[str]
    """Name of the class, of modules without submodules: `RMSNorm`."""
    applied_by: ClassVar[str]
    """Qualified name of a function of the plug-in that takes the model and does it for good: `my_kernels.use_them`."""
    guess: ClassVar[float] = 1.1
    """Speed ratio of forward and backward to order the trials by."""

    @abstractmethod
    def replacement(self, module: Any) -> type:
        """Return the class that takes a module's class's place; called in the user's process.

        Raises:
            NotThis: it cannot, with the reason.
        """

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate where the model has such modules."""
        if not any(root.layer_counts.get(self.replaces) for root in observation.program.roots):
            raise DoesNotApply(f"the model has no {self.replaces}")
        if any(root.compiled for root in observation.program.roots):
            raise DoesNotApply("the program compiles its model, which fixes the classes of its modules")
        part = share(observation, Phase.FORWARD, Phase.BACKWARD)
        return [self.candidate(prior=expected(part, self.guess))]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what compares and exchanges."""
        return ReplacedModules(self.replaces, self.replacement, at_once=True)

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return what compares, and exchanges when it is switched."""
        return ReplacedModules(self.replaces, self.replacement, at_once=False)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Call the plug-in's function behind the statement that names the model."""
        from hotloop.optimize.rewriting.model import add_line, named_model
        from hotloop.optimize.rewriting.outcomes import not_observed, summed_up
        from hotloop.source.imports import module_name

        package, _, function = self.applied_by.rpartition(".")
        models = sites.of(SiteKind.MODEL)
        if not models:
            return not_observed("construction of the model", f"{self.applied_by}(model)")
        notes: list[str] = []
        for site in models:
            name = named_model(source, site).name
            module_name(source, named_model(source, site).place.path, package)
            notes += add_line(source, named_model(source, site), f"{package}.{function}({name})")
        return summed_up(notes, f"{self.applied_by} takes the model")
