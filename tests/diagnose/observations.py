"""Observations of programs that are known, to ask rules about."""

from __future__ import annotations

from typing import Any

import msgspec

from hotloop.model.observation import (
    Anchor,
    Memory,
    Observation,
    Phase,
    PhaseTime,
    RankObservation,
    RunAccount,
    StepTime,
)
from hotloop.model.program import LoaderFacts, OptimizerFacts, ProgramFacts

STEP_S = 0.1
SHARES = {
    Phase.DATA: 0.01,
    Phase.FORWARD: 0.4,
    Phase.BACKWARD: 0.55,
    Phase.OPTIMIZER: 0.03,
    Phase.OTHER: 0.01,
}
LOADER = LoaderFacts(
    num_workers=0,
    batch_size=32,
    pin_memory=False,
    persistent_workers=False,
    prefetch_factor=None,
    dataset="Pictures",
    dataset_len=3200,
    num_iterators=1,
    path="train.py",
    line=12,
    used_in_step=True,
)
OPTIMIZER = OptimizerFacts(
    cls="AdamW", num_parameters=1000, fused=True, foreach=None, supports_fused=True, path="train.py", line=20
)
STEP = StepTime(
    num=50,
    median_s=STEP_S,
    low_s=0.098,
    high_s=0.102,
    p50_s=STEP_S,
    p95_s=0.11,
    p99_s=0.12,
    samples_per_s=320.0,
    rhythm=("data", "forward", "backward", "optimizer"),
)
FINE = Observation(
    command=("train.py",),
    step=STEP,
    phases={phase: PhaseTime(share * STEP_S, share) for phase, share in SHARES.items()},
    ranks=(RankObservation(rank=None, pid=1, role="train", step=STEP, phases={}),),
    memory=Memory(peak_bytes=1 << 30, device="cpu", method="largest resident set"),
    run=RunAccount(
        wall_s=12.0,
        parts={
            "import_s": 2.0,
            "setup_s": 1.0,
            "step_forward_s": 4.0,
            "step_backward_s": 5.0,
            "unaccounted_s": 0.0,
        },
    ),
    coverage=(),
    program=ProgramFacts(num_threads=8, loaders=(LOADER,), optimizers=(OPTIMIZER,)),
    anchor=Anchor("optimizer", 0),
    machine={"num_cores": 8, "memory_bytes": 16 << 30, "isa": ("avx2",), "accelerators": ()},
    exit_code=None,
)
"""One process that trains on all cores of a CPU without bfloat16 units, and wastes nothing."""


def observed(**changes: Any) -> Observation:
    """Return the fine program's observation with some fields replaced."""
    return msgspec.structs.replace(FINE, **changes)


def with_phases(**shares: float) -> Observation:
    """Return it with these shares; forward takes what is left."""
    named: dict[Phase, float] = {
        phase: share for phase, share in SHARES.items() if phase is not Phase.FORWARD
    }
    named.update({Phase(name): share for name, share in shares.items()})
    named.setdefault(Phase.FORWARD, 1.0 - sum(named.values()))
    return observed(phases={phase: PhaseTime(share * STEP_S, share) for phase, share in named.items()})


def with_program(observation: Observation = FINE, **changes: Any) -> Observation:
    """Return it with other facts of the program."""
    return msgspec.structs.replace(
        observation, program=msgspec.structs.replace(observation.program, **changes)
    )


def with_loader(observation: Observation = FINE, **changes: Any) -> Observation:
    """Return it with another loader."""
    return with_program(observation, loaders=(msgspec.structs.replace(LOADER, **changes),))


def with_parts(observation: Observation = FINE, **parts: float) -> Observation:
    """Return it with more parts of the run, of a program whose epochs were seen."""
    account = RunAccount(
        wall_s=observation.run.wall_s + sum(parts.values()), parts={**observation.run.parts, **parts}
    )
    return msgspec.structs.replace(observation, run=account, epoch_steps=10)
