"""Loops in Python, in the model or the loss, that the forward spends its time in: seen by samples, read by `ast`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from math import inf
from pathlib import Path

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.hot_line import BELONGS, samples_of
from hotloop.model.deep import HostSamples, Sample
from hotloop.model.finding import Finding, Severity
from hotloop.model.observation import Observation, Phase

TURNS = 16
"""Fewer turns are no loop over a tensor. With as many, some operator runs as often at one set of shapes."""
MANY_OPERATORS = 1500
"""In a step: then turns are many, and each may call a module of modules (a layer with its activation)."""
_CALLS_A_MODULE = "_call_impl"
MUCH = 0.1
"""Of the samples."""
Loop = ast.For | ast.While


def forward_loops(observation: Observation, files: Iterable[str]) -> Iterator[Finding]:
    """Yield the outermost loops that hold much of the step, all of it forward, and whose turns stand for themselves.

    Loops over a model's layers are left out, and recurrences: both are loops by nature. Prices come from elsewhere.

    Args:
        observation: with samples of the host's stacks, and the operators of a step.
        files: the program's own.
    """
    operators = observation.deep.operators if observation.deep else None
    if operators is None or max((one.count for one in operators.operators), default=0.0) < TURNS:
        return
    try:
        host, own = samples_of(observation, "train")
    except Abstain:
        return
    deepest = 2 if operators.num >= MANY_OPERATORS else 1
    for path in files:
        end = 0
        for loop in _loops(path):
            if loop.lineno > end and not _is_natural(loop) and _is_slow(host, own, path, loop, deepest):
                end = loop.end_lineno or loop.lineno
                yield Finding(
                    code="python-loop-over-tensor",
                    title="A Python loop goes over a tensor",
                    severity=Severity.WARNING,
                    path=path,
                    line=loop.lineno,
                    evidence="a loop in Python runs in each forward, and its turns do not need one another",
                    advice="Write it as one operation on the whole tensor, or use torch.vmap.",
                    optimization="vectorized_loop",
                )


def _loops(path: str) -> list[Loop]:
    """Return the loops of a file, the outer ones first."""
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    found = [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)]
    return sorted(found, key=lambda loop: (loop.lineno, -(loop.end_lineno or 0)))


def _is_slow(host: HostSamples, own: list[Sample], path: str, loop: Loop, deepest: int) -> bool:
    """Whether much of the time is under the loop's body, all of that in the forward, and in nothing large.

    Args:
        host: for its frames.
        own: the training thread's samples.
        path: of the loop's file.
        loop: the loop.
        deepest: modules in one another that the loop may call: a loop over views runs a whole encoder in each turn.
    """
    inside = range(loop.lineno, (loop.end_lineno or loop.lineno) + 1)
    under = [sample for sample in own if _modules_below(host, sample, path, inside) <= deepest]
    whole = sum(sample.spent_s for sample in under)
    forward = sum(sample.spent_s for sample in under if sample.phase == Phase.FORWARD.value)
    return whole >= MUCH * sum(sample.spent_s for sample in own) and forward >= BELONGS * whole


def _modules_below(host: HostSamples, sample: Sample, path: str, inside: range) -> float:
    """Return how many modules' calls lie in one another below the loop's frame; infinite: the loop is not there."""
    frames = [host.frames[number] for number in sample.stack]
    at = next((at for at, one in enumerate(frames) if one.path == path and one.line in inside), None)
    return inf if at is None else sum(one.function == _CALLS_A_MODULE for one in frames[at + 1 :])


def _is_natural(loop: Loop) -> bool:
    """Whether it goes from layer to layer, or a turn reads what an earlier one has made."""
    if isinstance(loop, ast.While):
        return True
    counters = {name.id for name in _names(loop.target)}
    calls = [node for part in loop.body for node in ast.walk(part) if isinstance(node, ast.Call)]
    if any(counters & _called(call) for call in calls):
        return True
    made = {name.id for part in loop.body for name in _names(part) if isinstance(name.ctx, ast.Store)}
    return bool(_carried(loop.body, made - counters))


def _called(call: ast.Call) -> set[str]:
    """Return the names in what is called: of `layer(x)` and `self.layers[i](x)`, not of `row.mean()`."""
    if isinstance(call.func, ast.Name):
        return {call.func.id}
    return {name.id for name in _names(call.func.slice)} if isinstance(call.func, ast.Subscript) else set()


def _carried(body: list[ast.stmt], made: set[str]) -> set[str]:
    """Return the names of the body that a turn reads before it has made them itself."""
    known: set[str] = set()
    carried: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.AugAssign):  # a sum, whatever the order of its terms
            reads = {name.id for name in _names(statement.value)}
        elif isinstance(statement, ast.Assign) and _adds_to_itself(statement):
            reads = set()
        else:
            reads = {name.id for name in _names(statement) if isinstance(name.ctx, ast.Load)}
        carried |= (reads & made) - known
        known |= {name.id for name in _names(statement) if isinstance(name.ctx, ast.Store)}
    return carried


def _adds_to_itself(assign: ast.Assign) -> bool:
    """`loss = loss + part`."""
    value, targets = assign.value, {name.id for target in assign.targets for name in _names(target)}
    return (
        isinstance(value, ast.BinOp)
        and isinstance(value.op, ast.Add)
        and any(isinstance(side, ast.Name) and side.id in targets for side in (value.left, value.right))
    )


def _names(node: ast.AST) -> Iterator[ast.Name]:
    return (one for one in ast.walk(node) if isinstance(one, ast.Name))
