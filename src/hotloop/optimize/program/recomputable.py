"""Whether parts of a model may be computed again in the backward, as far as was observed."""

from __future__ import annotations

from hotloop.model.observation import Observation
from hotloop.optimize.optimization import DoesNotApply
from hotloop.optimize.program.second_derivatives import who_differentiates_twice


def require_recomputable(observation: Observation) -> None:
    """Demand that the program trains a model which eager code runs.

    Raises:
        DoesNotApply: with the reason.
    """
    program = observation.program
    if not program.roots:
        raise DoesNotApply("no module is called as a whole, so there is nothing to recompute")
    if not any(root.training and root.grad_mode in {"", "grad"} for root in program.roots):
        raise DoesNotApply("the program trains nothing: no activations are kept")
    if any(root.compiled for root in program.roots):
        raise DoesNotApply(
            "the program compiles its model: set torch._functorch.config.activation_memory_budget by hand"
        )
    if who := who_differentiates_twice(observation):
        raise DoesNotApply(f"{who} differentiates twice (create_graph=True)")
    if program.distributed == "fsdp":
        raise DoesNotApply("the model is sharded by FSDP: wrap its blocks with FSDP's own checkpointing")
