"""Plans to write and to spoil."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path

import msgspec

from hotloop.machine.host.identity import identity
from hotloop.model.observation import SCHEMA
from hotloop.model.optimization import Numerics
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import Compatibility, ParityEvidence, Plan, PlanStep
from hotloop.tune.plan.plan_file import to_toml

WORKERS = PlanStep(
    name="loader_workers",
    params={"num_workers": 2, "persistent_workers": True},
    ratio=1.3,
    low=1.2,
    high=1.4,
    break_even_steps=80,
    evidence="2 workers were seen",
)
BF16 = PlanStep(name="autocast_bf16", ratio=1.5, low=1.45, high=1.55, numerics=Numerics.TOLERANCE)


def plan_for(script: Path | None, *steps: PlanStep) -> Plan:
    """A plan that fits this machine, this torch and the script."""
    parity = ParityEvidence(
        passed=True, statistic=0.001, limit=0.02, num_steps=64, method="worst window", evidence="0.001"
    )
    return Plan(
        steps=steps,
        speedup=Ratio(1.95, 1.8, 2.1) if steps else None,
        parity=parity if steps else None,
        fit=Compatibility(
            machine=msgspec.to_builtins(identity()),
            torch_version=version("torch"),
            script=str(script) if script else None,
            script_sha256=hashlib.sha256(script.read_bytes()).hexdigest() if script else None,
            command=("python", str(script)) if script else ("python", "-m", "package"),
        ),
        schema=SCHEMA,
    )


def write_plan(folder: Path, script: Path | None, *steps: PlanStep) -> Path:
    """Write it as the file that is looked for first."""
    path = folder / "hotloop.toml"
    path.write_text(to_toml(plan_for(script, *steps)))
    return path
