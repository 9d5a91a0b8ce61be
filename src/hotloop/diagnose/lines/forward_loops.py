"""Loops in Python, in the model or the loss, that the forward spends its time in: seen by samples, read by `ast`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from math import inf

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.lines.hot_line import BELONGS, calls_a_module, samples_of
from hotloop.diagnose.lines.line_price import line_price
from hotloop.model.deep import Deep, Frame, HostSamples, Sample
from hotloop.model.finding import Finding, Severity
from hotloop.model.observation import Observation, Phase
from hotloop.observe.profile.parsed_sources import lines_of, parsed
from hotloop.source.carried import carries, changes_itself
from hotloop.source.running_offsets import offsets

TURNS = 16
"""Fewer turns are no loop over a tensor. With as many, some operator runs as often at one set of shapes."""
MANY_OPERATORS = 1500
"""In a step: then turns are many, and each may call a module of modules (a layer with its activation)."""
MIN_SHARE_TO_REPORT = 0.1
"""Share of the step, with the backward."""
Loop = ast.For | ast.While | ast.ListComp | ast.GeneratorExp


def forward_loops(observation: Observation, files: Iterable[str]) -> Iterator[Finding]:
    """Yield the outermost loops that hold much of the step, with their backward, and whose turns stand for themselves.

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
                and _is_slow(observation, host, own, path, loop, 1 + many)
                and not _keeps_state(host, own, path, loop)
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


def _is_slow(
    observation: Observation, host: HostSamples, own: list[Sample], path: str, loop: Loop, deepest: int
) -> bool:
    """Whether much of the time is the loop's body with its backward, run in the forward, and in nothing large.

    Args:
        observation: for the price of the lines.
        host: for its frames.
        own: the training thread's samples.
        path: of the loop's file.
        loop: the loop.
        deepest: modules in one another that the loop may call: a loop over views runs a whole encoder in each turn.
    """
    inside = lines_of(loop)
    depths = [_modules_below(host, sample, path, inside) for sample in own]
    under = [sample for sample, depth in zip(own, depths, strict=True) if depth < inf]
    shallow = [sample for sample, depth in zip(own, depths, strict=True) if depth <= deepest]
    forward = [sample for sample in shallow if sample.phase == Phase.FORWARD.value]
    if not forward or _spent(forward) < BELONGS * _spent(shallow):
        return False
    share = line_price(observation, path, inside).cost.share
    return share * _spent(shallow) / _spent(under) >= MIN_SHARE_TO_REPORT


def _spent(samples: list[Sample]) -> float:
    return sum(sample.spent_s for sample in samples)


def _keeps_state(host: HostSamples, own: list[Sample], path: str, loop: Loop) -> bool:
    """Whether a method that was seen below the loop leaves something in its object, as a spiking neuron does.

    Layers of torch's own leave nothing that the next turn computes with.
    """
    inside, below = lines_of(loop), set[Frame]()
    for sample in own:
        frames = [host.frames[number] for number in sample.stack]
        at = next(
            (at for at, one in enumerate(frames) if one.path == path and one.line in inside), len(frames)
        )
        below.update(one for one in frames[at + 1 :] if one.owner not in ("torch", "hotloop"))
    functions = (_function_at(one.path, one.line) for one in below)
    return any(one is not None and changes_itself(one) for one in functions)


def _function_at(path: str, line: int) -> ast.AST | None:
    tree = parsed(path)
    holding = [
        node
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(holding, key=lambda node: node.lineno, default=None)


def _modules_below(host: HostSamples, sample: Sample, path: str, inside: range) -> float:
    """Return how many modules' calls lie in one another below the loop's frame; infinite: the loop is not there."""
    frames = [host.frames[number] for number in sample.stack]
    at = next((at for at, one in enumerate(frames) if one.path == path and one.line in inside), None)
    return inf if at is None else sum(calls_a_module(one) for one in frames[at + 1 :])


def _is_natural(loop: Loop, *, many: bool) -> bool:
    """Whether it goes from layer to layer or over nothing, or a turn reads what an earlier one has made.

    Modules beside one another, each on the same input, could be one; a few of them are as good.

    Args:
        loop: the loop.
        many: a step has so many operators that its turns are many.
    """
    if isinstance(loop, ast.While):
        return True
    if isinstance(loop, ast.For):
        if carries(loop):
            return True
        counters = {name.id for name in _names(loop.target)}
        parts: list[ast.AST] = list(loop.body)
        goes_on = counters | offsets(loop)
    else:
        counters = {name.id for each in loop.generators for name in _names(each.target)}
        parts = [loop.elt, *(test for each in loop.generators for test in each.ifs)]
        goes_on = counters
    if not any(name.id in goes_on for part in parts for name in _names(part)):
        return True  # the same in each turn: samples of something random, or what has a state
    calls = [node for part in parts for node in ast.walk(part) if isinstance(node, ast.Call)]
    return not many and any(counters & _called(call) for call in calls)


def _called(call: ast.Call) -> set[str]:
    """Return the names in what is called: of `layer(x)` and `self.layers[i](x)`, not of `row.mean()`."""
    if isinstance(call.func, ast.Name):
        return {call.func.id}
    return {name.id for name in _names(call.func.slice)} if isinstance(call.func, ast.Subscript) else set()


def _names(node: ast.AST) -> Iterator[ast.Name]:
    return (one for one in ast.walk(node) if isinstance(one, ast.Name))
