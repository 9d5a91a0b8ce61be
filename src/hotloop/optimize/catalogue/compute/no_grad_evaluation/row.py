"""no_grad_evaluation: evaluation without a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.compute.no_grad_evaluation.activation import GraphFree
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.bounds import expected
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

FASTER = 1.14
"""A forward without a graph, as `evaluation-with-gradients` prices it."""


class NoGradEvaluation(Optimization):
    """Evaluate without keeping a graph.

    What it does: calls of the model in evaluation mode that keep gradients run under `torch.no_grad()`, line by line:
    in the first evaluation each line is watched, and from the next one on those go without a graph through whose
    outputs no backward pass came before training went on. Evaluation mode itself stays as the program sets it.

    Why it is faster: a graph keeps every activation for a backward pass that never comes: memory as in training, and
    bookkeeping in each operation.

    When it does not help: programs that evaluate under `no_grad` or `inference_mode`, as most do, or rarely. Models
    that train in evaluation mode, and evaluation that differentiates (saliency, adversarial examples), are left. So are
    lines whose inputs have gradients, and models with hooks or with attributes that keep what was computed (features
    for a perceptual loss): a backward may come by them, too.

    Effect on numerics: none; torch has faster kernels for some layers without gradients, which round differently.

    Example: `with torch.inference_mode(): score(model, validation)`

    References: PyTorch, Autograd mechanics, "Locally disabling gradient computation".
    """

    name: ClassVar[str] = "no_grad_evaluation"
    family: ClassVar[str] = "compute"
    numerics: ClassVar[Numerics] = Numerics.EXACT

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate where evaluation was seen to keep graphs."""
        from hotloop.diagnose.abstain import Abstain
        from hotloop.diagnose.price.cost import between_steps

        spent = observation.run.scored_with_gradients_s
        if spent is None:
            raise DoesNotApply("forwards in evaluation mode were not timed")
        if not spent:
            raise DoesNotApply("no forward in evaluation mode kept a graph that no backward used")
        try:
            share = between_steps(observation, spent).share
        except Abstain as missing:
            raise DoesNotApply(f"what evaluation costs is not known without {missing}") from missing
        return [self.candidate(prior=expected(share, FASTER))]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what watches the first evaluation, and takes the graph from the next ones."""
        return GraphFree()

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Put the loop that evaluates under `torch.no_grad()`."""
        from hotloop.optimize.catalogue.compute.no_grad_evaluation.rewrite import without_graph

        return without_graph(source)
