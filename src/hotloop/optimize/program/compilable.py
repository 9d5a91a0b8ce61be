"""Whether torch.compile can work on a program, as far as was observed."""

from __future__ import annotations

import os
import shutil

from hotloop.model.observation import Observation
from hotloop.optimize.optimization import DoesNotApply


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
    if program.double_backward:
        raise DoesNotApply("the program differentiates twice (create_graph=True): compiled code cannot")
    if program.distributed == "fsdp":
        raise DoesNotApply("the model is sharded by FSDP: the program itself has to compile its blocks")
    if program.device == "cpu" and not _compiler():
        raise DoesNotApply("no C++ compiler was found (g++, clang++ or $CXX): on the CPU it is needed")


def _compiler() -> str | None:
    named = os.environ.get("CXX")
    return shutil.which(named) if named else shutil.which("g++") or shutil.which("clang++")
