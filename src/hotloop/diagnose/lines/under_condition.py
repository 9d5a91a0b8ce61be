"""Whether a line of the source may never have run."""

from __future__ import annotations

import ast

from hotloop.model.finding import Finding
from hotloop.model.observation import Observation
from hotloop.observe.profile.parsed_sources import lines_of, parsed

_BODIES = (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef)


def may_not_run(finding: Finding, observation: Observation) -> bool:
    """Whether a static finding lies in a branch within its loop or function, and no sample of the host is of it."""
    path, line = finding.path, finding.line
    tree = parsed(path) if path is not None else None
    if path is None or tree is None or line is None or _is_sampled(path, line, observation):
        return False
    around = [node for node in ast.walk(tree) if isinstance(node, _BODIES) and line in lines_of(node)]
    within = max(around, key=lambda node: node.lineno, default=ast.Pass())
    branches = (node for node in ast.walk(within) if isinstance(node, ast.If | ast.Match))
    return any(line in lines_of(node)[1:] for node in branches)


def _is_sampled(path: str, line: int, observation: Observation) -> bool:
    host = observation.deep.host if observation.deep is not None else None
    return host is not None and any((one.path, one.line) == (path, line) for one in host.frames)
