"""Time in the environments of a program that acts: each step of them is needed, and comes when the policy asks."""

from __future__ import annotations

import ast
from pathlib import Path

from hotloop.diagnose.lines.hot_line import sampled_part
from hotloop.model.deep import HostSamples, Sample
from hotloop.model.observation import Observation, Phase
from hotloop.observe.profile.parsed_sources import parsed, statement_at

_METHODS = ("step", "reset")
"""Of an environment: gymnasium's names, which others have taken over."""
_PACKAGES = ("gymnasium", "gym")


def acts(observation: Observation) -> bool:
    """Whether a program acts in environments."""
    return bool(observation.program.simulators or observation.run.parts.get("rollout_s"))


def is_environments(host: HostSamples, sample: Sample) -> bool:
    """Whether a sample of a program that acts lies in an environment, or in a line that calls one."""
    frames = [
        frame for number in sample.stack if (frame := host.frames[number]).owner not in ("torch", "hotloop")
    ]
    if any(frame.function in _METHODS or _is_simulators(frame.path) for frame in frames):
        return True
    innermost = frames[-1] if frames else None
    return innermost is not None and _calls_environment(innermost.path, innermost.line)


def acting_share(observation: Observation) -> float:
    """Return the part of the samples outside the phases that lies in environments, 0 to 1."""
    return sampled_part(observation, is_environments, Phase.OTHER) if acts(observation) else 0.0


def _is_simulators(path: str) -> bool:
    return any(name in Path(path).parts for name in _PACKAGES)


def _calls_environment(path: str, line: int) -> bool:
    """Whether a line calls such a method: an environment in C has no frames."""
    tree = parsed(path)
    statement = statement_at(tree, line) if tree is not None else None
    if statement is None or isinstance(statement, ast.For | ast.While | ast.If | ast.With | ast.Try):
        return False
    calls = [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return any(isinstance(called, ast.Attribute) and called.attr in _METHODS for called in calls)
