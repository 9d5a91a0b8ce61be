"""Loops in Python, in the model or the loss, that the forward spends its time in: seen by samples, read by `ast`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from math import inf

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.lines.hot_line import BELONGS, calls_a_module, samples_of
from hotloop.model.deep import Deep, HostSamples, Sample
from hotloop.model.finding import Finding, Severity
from hotloop.model.observation import Observation, Phase
from hotloop.observe.profile.parsed_sources import lines_of, parsed

TURNS = 16
"""Fewer turns are no loop over a tensor. With as many, some operator runs as often at one set of shapes."""
MANY_OPERATORS = 1500
"""In a step: then turns are many, and each may call a module of modules (a layer with its activation)."""
MIN_SHARE_TO_REPORT = 0.1
"""Share of the samples."""
Loop = ast.For | ast.While | ast.ListComp | ast.GeneratorExp


def forward_loops(observation: Observation, files: Iterable[str]) -> Iterator[Finding]:
    """Yield the outermost loops that hold much of the step, all of it forward, and whose turns stand for themselves.

    Loops over a model's layers are left out, and recurrences: both are loops by nature. Prices come from elsewhere.

    Args:
        observation: with samples of the host's stacks, and the operators of a step, profiled or counted by line.
        files: the program's own.
    """
    num_operators, num_turns = _operators(observation.deep) if observation.deep else (0.0, 0.0)
    if num_turns < TURNS:
        return
    try:
        host, own = samples_of(observation, "train")
    except Abstain:
        return
    many = num_operators >= MANY_OPERATORS
    for path in files:
        end = 0
        for loop in _loops(path, {frame.line for frame in host.frames if frame.path == path}):
            if (
                loop.lineno > end
                and not _is_natural(loop, many=many)
                and _is_slow(host, own, path, loop, 1 + many)
            ):
                end = lines_of(loop)[-1]
                yield Finding(
                    code="python-loop-over-tensor",
                    title="A Python loop goes over a tensor",
                    severity=Severity.WARNING,
                    path=path,
                    line=loop.lineno,
                    evidence="a loop in Python runs in each forward, and its turns do not need one another",
                    advice="Write it as one operation on the whole tensor, or use torch.vmap.",
                )


def _operators(deep: Deep) -> tuple[float, float]:
    """Return how many operators a step calls, and how often the most frequent of them, or of lines that call some."""
    if deep.operators is not None:
        return deep.operators.num, max((one.count for one in deep.operators.operators), default=0.0)
    lines = [one for one in deep.line_work.lines if one.operators] if deep.line_work else []
    return max((one.operators for one in lines), default=0.0), max((one.runs for one in lines), default=0.0)


def _loops(path: str, lines: set[int]) -> list[Loop]:
    """Return the loops of a file that hold lines which were sampled, the outer ones first."""
    tree = parsed(path)
    nodes = ast.walk(tree) if tree is not None else ()
    found = [node for node in nodes if isinstance(node, Loop) and not lines.isdisjoint(lines_of(node))]
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
    inside = lines_of(loop)
    under = [sample for sample in own if _modules_below(host, sample, path, inside) <= deepest]
    whole = sum(sample.spent_s for sample in under)
    forward = sum(sample.spent_s for sample in under if sample.phase == Phase.FORWARD.value)
    return whole >= MIN_SHARE_TO_REPORT * sum(sample.spent_s for sample in own) and forward >= BELONGS * whole


def _modules_below(host: HostSamples, sample: Sample, path: str, inside: range) -> float:
    """Return how many modules' calls lie in one another below the loop's frame; infinite: the loop is not there."""
    frames = [host.frames[number] for number in sample.stack]
    at = next((at for at, one in enumerate(frames) if one.path == path and one.line in inside), None)
    return inf if at is None else sum(calls_a_module(one) for one in frames[at + 1 :])


def _is_natural(loop: Loop, *, many: bool) -> bool:
    """Whether it goes from layer to layer, or a turn reads what an earlier one has made.

    Modules beside one another, each on the same input, could be one; a few of them are as good.

    Args:
        loop: the loop.
        many: a step has so many operators that its turns are many.
    """
    if isinstance(loop, ast.While):
        return True
    if isinstance(loop, ast.For):
        counters = {name.id for name in _names(loop.target)}
        made = {name.id for part in loop.body for name in _names(part) if isinstance(name.ctx, ast.Store)}
        if _carried(loop.body, made - counters, set()):
            return True
        parts: list[ast.AST] = list(loop.body)
    else:
        counters = {name.id for each in loop.generators for name in _names(each.target)}
        parts = [loop.elt]
    calls = [node for part in parts for node in ast.walk(part) if isinstance(node, ast.Call)]
    return not many and any(counters & _called(call) for call in calls)


def _called(call: ast.Call) -> set[str]:
    """Return the names in what is called: of `layer(x)` and `self.layers[i](x)`, not of `row.mean()`."""
    if isinstance(call.func, ast.Name):
        return {call.func.id}
    return {name.id for name in _names(call.func.slice)} if isinstance(call.func, ast.Subscript) else set()


def _carried(body: list[ast.stmt], made: set[str], known: set[str]) -> set[str]:
    """Return the names that a turn reads before it has made them itself.

    Args:
        body: statements of a turn, or of a block within it.
        made: the names that a turn makes.
        known: those that it has made so far; grows.
    """
    carried: set[str] = set()
    for statement in body:
        blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
        if any(blocks):
            heads = [
                one for one in ast.iter_child_nodes(statement) if isinstance(one, ast.expr | ast.withitem)
            ]
            carried |= {name.id for head in heads for name in _loaded(head)} & made - known
            known |= {name.id for head in heads for name in _names(head) if isinstance(name.ctx, ast.Store)}
            for block in blocks:
                carried |= _carried(block, made, known)
            continue
        if isinstance(statement, ast.AugAssign):  # a sum, whatever the order of its terms
            reads = {name.id for name in _names(statement.value)}
        elif isinstance(statement, ast.Assign) and _adds_to_itself(statement):
            reads = set()
        else:
            reads = {name.id for name in _loaded(statement)}
        carried |= (reads & made) - known
        known |= {name.id for name in _names(statement) if isinstance(name.ctx, ast.Store)}
    return carried


def _loaded(node: ast.AST) -> Iterator[ast.Name]:
    return (name for name in _names(node) if isinstance(name.ctx, ast.Load))


def _adds_to_itself(assign: ast.Assign) -> bool:
    """`loss = loss + part`, and not `x = x + layer(x)`."""
    value, targets = assign.value, {name.id for target in assign.targets for name in _names(target)}
    read = [name.id for name in _loaded(value) if name.id in targets]
    return (
        isinstance(value, ast.BinOp)
        and isinstance(value.op, ast.Add)
        and len(read) == 1
        and any(isinstance(side, ast.Name) and side.id in targets for side in (value.left, value.right))
    )


def _names(node: ast.AST) -> Iterator[ast.Name]:
    return (one for one in ast.walk(node) if isinstance(one, ast.Name))
