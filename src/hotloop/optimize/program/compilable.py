"""Whether torch.compile can work on a program, as far as was observed."""

from __future__ import annotations

import os
import shutil

from hotloop.model.observation import Observation
from hotloop.optimize.optimization import DoesNotApply
from hotloop.optimize.program.second_derivatives import who_differentiates_twice

FIRST_S, LAYER_S = 12.0, 0.5
"""What compiling takes, and for each layer: 69 and 91 s for the 120 of a U-Net, 30 for 61 of a transformer, 30 for 21
of a graph network, 20 for 15 convolutions, 11 for 13 of a policy, forward and backward on two cores (torch 2.13)."""
ON_A_GPU = 0.6
"""Of that: a GPT of six layers took 13 s for training and as long for its evaluation (H200, sixteen cores)."""


def compile_s(observation: Observation) -> float:
    """Return the seconds that compiling the whole model is expected to take, with cold caches."""
    layers = sum(sum(root.layer_counts.values()) for root in observation.program.roots)
    whole_s = FIRST_S + LAYER_S * layers
    return whole_s * ON_A_GPU if observation.program.device == "cuda" else whole_s


def require_compilable(observation: Observation) -> None:
    """Demand that torch.compile can be of use.

    Raises:
        DoesNotApply: with the reason.
    """
    program = observation.program
    if not program.roots:
        raise DoesNotApply("no module is called as a whole, so there is nothing to compile")
    if any(root.compiled for root in program.roots):
        raise DoesNotApply("the program already compiles its model")
    if who := who_differentiates_twice(observation):
        raise DoesNotApply(f"{who} differentiates twice (create_graph=True): compiled code cannot")
    if program.distributed == "fsdp":
        raise DoesNotApply("the model is sharded by FSDP: the program itself has to compile its blocks")
    if program.device == "cpu" and not _compiler():
        raise DoesNotApply("no C++ compiler was found (g++, clang++ or $CXX): on the CPU it is needed")


def _compiler() -> str | None:
    named = os.environ.get("CXX")
    return shutil.which(named) if named else shutil.which("g++") or shutil.which("clang++")
