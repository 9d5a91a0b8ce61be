"""Which steps of a plan the program does by itself, because the plan was written into its source."""

from __future__ import annotations

import hashlib
from pathlib import Path

from hotloop.model.optimization import Candidate
from hotloop.model.tuning import Plan
from hotloop.tune.executor import PlanSteps


def in_source(plan: Plan, folder: Path) -> tuple[str, ...]:
    """Return the steps that are in the files of a folder; none where a file is not exactly what the patch makes."""
    known = plan.patched.sources
    if not known or any(_digest(folder / path) != digest for path, digest in known.items()):
        return ()
    return plan.patched.steps


def rest_of(plan: Plan, done: tuple[str, ...]) -> PlanSteps:
    """Return what is to be switched on from outside."""
    return tuple(
        Candidate(name=step.name, params=step.params) for step in plan.steps if step.name not in done
    )


def _digest(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
