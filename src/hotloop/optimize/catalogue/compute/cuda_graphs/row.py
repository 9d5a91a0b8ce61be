"""cuda_graphs: the forward and backward of a model replayed as graphs, without compiling it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.model.quantities import duration
from hotloop.optimize.catalogue.compute.cuda_graphs.activation import GraphedForward
from hotloop.optimize.knobs.within_forward import Gated
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.bounds import expected, share
from hotloop.optimize.program.second_derivatives import who_differentiates_twice
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

LAUNCH_S = 5e-6
"""What the host takes to send one small kernel off, Python included (PyTorch blog, "Accelerating PyTorch with CUDA
Graphs"): where an operator has more time than some of these, the device is not kept waiting."""
LAUNCH_BOUND = 4
"""Launches that an operator may have time for."""
CAPTURE_STEPS = 3
"""Warm-up, the capture itself, and the first replay."""


class CudaGraphs(Optimization):
    """Replay the model's forward and backward as CUDA graphs.

    What it does: `torch.cuda.make_graphed_callables` captures the kernels of one training forward, and of its backward,
    on the shapes that were seen; every later call copies its inputs into the graph's memory and replays it. What the
    model returns is copied out of that memory. A call of other shapes, in the other mode (train, eval), or before the
    backward of the one before it runs as it did.

    Why it is faster: one launch instead of hundreds: a step made of small kernels waits for Python, and the device
    stands still meanwhile. It works where torch.compile does not.

    When it does not help: large kernels, which the host is ahead of anyway; torch.compile in mode reduce-overhead,
    which does the same. Refused where shapes vary, where the model has hooks (a replay calls none), under
    DistributedDataParallel and its like, with several backward passes in a step (they would write into one buffer), and
    where the forward reads a value on the host (the capture fails, and the program goes on without).

    Effect on numerics: none; dropout draws other random numbers.

    Example: `model = torch.cuda.make_graphed_callables(model, (sample,))`

    References: PyTorch documentation, "CUDA Graphs"; torch.cuda.make_graphed_callables.
    """

    name: ClassVar[str] = "cuda_graphs"
    family: ClassVar[str] = "compute"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    conflicts: ClassVar[frozenset[str]] = frozenset({"compile", "compiled_chains"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate, for a step that launches more than it computes."""
        _require_capturable(observation)
        prior = 1.05
        operators = observation.deep.operators if observation.deep is not None else None
        if operators is not None and observation.step is not None and operators.num:
            each_s = observation.step.median_s / operators.num
            if each_s > LAUNCH_BOUND * LAUNCH_S:
                raise DoesNotApply(
                    f"an operator has {duration(each_s)} on average: launches do not hold the device up"
                )
            prior = 1.3
        part = share(observation, Phase.FORWARD, Phase.BACKWARD)
        return [self.candidate(prior=expected(part, prior))]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what captures and replays."""
        return GraphedForward()

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return the gate between the graph and the program's own call."""
        return Gated(GraphedForward(), settle_steps=CAPTURE_STEPS, lasting=True)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Show what to write: it needs a batch of the program's own to capture with."""
        from hotloop.source.outcome import Refused

        code = "sample = next(iter(loader))[0].to(device)\n"
        code += "model = torch.cuda.make_graphed_callables(model, (sample,))"
        return Refused("a graph is captured with a batch, before the first step", code)


def _require_capturable(observation: Observation) -> None:
    program = observation.program
    if program.device != "cuda":
        raise DoesNotApply(f"the model is on {program.device}: graphs are CUDA's")
    if not program.roots:
        raise DoesNotApply("no module is called as a whole, so there is nothing to capture")
    if any(root.compiled for root in program.roots):
        raise DoesNotApply("the program compiles its model, and the compiler has graphs of its own")
    if any(root.shapes_vary for root in program.roots):
        raise DoesNotApply("CUDA graphs need fixed input shapes")
    if program.distributed:
        raise DoesNotApply(
            f"the model is distributed ({program.distributed}): its hooks would not be replayed"
        )
    if who := who_differentiates_twice(observation):
        raise DoesNotApply(f"{who} differentiates twice (create_graph=True): a graph's backward cannot be")
    if observation.step is not None and _num_backward(observation.step.rhythm) > 1:
        raise DoesNotApply("several backward passes make a step, and would write into one buffer")


def _num_backward(rhythm: Sequence[str]) -> int:
    """Return how often a backward comes in a turn of the loop, two standing for many."""
    return sum(part.count("backward") * (2 if "x(" in part else 1) for part in rhythm)
