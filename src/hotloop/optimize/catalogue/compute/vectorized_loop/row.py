"""vectorized_loop: a Python loop over the rows of a tensor becomes one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.compute.vectorized_loop.activation import BatchedTurns
from hotloop.optimize.catalogue.compute.vectorized_loop.pattern import row_loops
from hotloop.optimize.optimization import Optimization
from hotloop.optimize.program.loops_of_source import faster_loops
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

FASTER = 5.0
"""A script with a loss by rows took steps 5.2 times as fast when it was written as one operation."""


class VectorizedLoop(Optimization):
    """Make all turns of a loop over a tensor's rows in one call.

    What it does: a `for` over rows (`for row in x`, `for i in range(len(x))` with `x[i]`, also by zip and enumerate)
    whose turns only name what they compute, and then add it to a sum, append it to a list or put it in a place, is
    made by `torch.vmap`. The first two times the loop runs as it is, and values and gradients of the one call are
    compared with those of the turns on the loop's own inputs. The program runs changed as it is read; no file is.

    Why it is faster: each turn pays for the interpreter, the dispatcher, autograd and a launch, forward and backward,
    for a single row. One call pays once.

    When it does not help: few rows, or large ones. It is left where a turn needs the last one's result, breaks,
    branches, draws random numbers, prints or changes something; where it appends parts of a tensor to a list, which
    are still that tensor's; where it calls what is not torch's own; where vmap cannot do it.

    Effect on numerics: sums in another order.

    Example: `loss = loss + torch.vmap(lambda row: (row - row.mean()).square().mean())(output).sum()`

    References: torch.vmap; PyTorch, Broadcasting semantics.
    """

    name: ClassVar[str] = "vectorized_loop"
    family: ClassVar[str] = "compute"
    numerics: ClassVar[Numerics] = Numerics.TOLERANCE
    edits_source: ClassVar[bool] = True

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate where such a loop takes a part of the step."""
        prior = faster_loops(
            observation,
            row_loops,
            "loops over rows",
            "no loop of the program goes over the rows of a tensor",
            FASTER,
        )
        return [self.candidate(prior=prior)]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what changes the source as it is read."""
        return BatchedTurns(at_once=True)

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return the same, with the loop while it is off."""
        return BatchedTurns(at_once=False)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Write the call in the loop's place; that its rows are a tensor's was seen in the run alone."""
        from hotloop.optimize.catalogue.compute.vectorized_loop.rewrite import vectorize

        return vectorize(source)
