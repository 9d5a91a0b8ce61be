"""Where 8-bit layers of torchao can be tried at all."""

from __future__ import annotations

from hotloop.model.program import ProgramFacts
from hotloop.optimize.optimization import DoesNotApply


def require_layers(program: ProgramFacts, there_already: str) -> None:
    """Demand torchao, and a model with linear layers of torch's own.

    Args:
        program: as observed.
        there_already: torchao's layer, by the name of its class.

    Raises:
        DoesNotApply: with what is missing.
    """
    if "torchao" not in program.libraries:
        raise DoesNotApply("torchao is not installed beside the program: pip install torchao")
    if program.distributed == "fsdp":
        raise DoesNotApply("the model is sharded by FSDP: torchao has a setting of its own for that")
    if any(root.layer_counts.get(there_already) for root in program.roots):
        raise DoesNotApply("the program computes in 8 bits already")
    if not any(root.layer_counts.get("Linear") for root in program.roots):
        raise DoesNotApply("the model has no linear layer")
