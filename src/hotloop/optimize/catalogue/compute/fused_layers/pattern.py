"""Find classes whose `forward` is a normalization of the last dimension, told by what it gives."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from hotloop.optimize.catalogue.compute.fused_layers.arithmetic import Forward
from hotloop.optimize.catalogue.compute.fused_layers.grid import Grid, root, same
from hotloop.patterns.refusal import NotThis

LAYER_NORM, RMS_NORM = "layer_norm", "rms_norm"
WORDS = ("mean(", "sum(", "var(", "norm(")
"""One of them stands in every such class."""
LARGEST_EPS = 0.05
_RTOL = 1e-9
_ROLES = ("weight", "bias", "eps")
_WIDTH = 7


@dataclass(frozen=True)
class WrittenNorm:
    """A class that writes a normalization out.

    Attributes:
        function: qualified name of its `forward`.
        line: where that begins.
        returned: what the `forward` returns; the call goes in its place.
        gone: the statements before it, which then lead to nothing.
        name: `layer_norm` or `rms_norm`, of torch.nn.functional.
        arguments: of the call, as source.
        helpers: other methods that compute a part of it; a subclass may have its own.
        unsure: why its source alone does not tell that the call takes its weights; empty: it does.
    """

    function: str
    line: int
    returned: ast.expr
    gone: tuple[ast.stmt, ...]
    name: str
    arguments: str
    helpers: frozenset[str] = frozenset()
    unsure: str = ""


@dataclass(frozen=True)
class _Meaning:
    """What the attributes of a class stand for."""

    names: Mapping[str, str]
    """Role to attribute."""
    eps: float | None
    """None: it is an attribute."""


def written_norms(source: str) -> list[WrittenNorm]:
    """Return what is found in a source, in its order; nothing where it is not Python."""
    if not any(word in source for word in WORDS):
        return []
    try:
        tree = ast.parse(source)
    except (SyntaxError, RecursionError, ValueError):
        return []
    classes = list(_classes(tree, ""))
    return [
        found
        for name, cls in classes
        if (found := _norm(name, cls)) is not None
        and not any(_has_its_own(each, cls.name, found.helpers) for _, each in classes)
    ]


def _has_its_own(cls: ast.ClassDef, base: str, helpers: frozenset[str]) -> bool:
    """Whether a class derives from another one and has its own of the methods that compute a part of it."""
    bases = {ast.unparse(each).rpartition(".")[2] for each in cls.bases}
    own = {each.name for each in cls.body if isinstance(each, ast.FunctionDef)}
    return base in bases and "forward" not in own and not own.isdisjoint(helpers)


def _classes(tree: ast.AST, prefix: str) -> Iterator[tuple[str, ast.ClassDef]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield f"{prefix}{node.name}", node
            yield from _classes(node, f"{prefix}{node.name}.")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _classes(node, f"{prefix}{node.name}.<locals>.")
        else:
            yield from _classes(node, prefix)


def _norm(name: str, cls: ast.ClassDef) -> WrittenNorm | None:
    methods = {each.name: each for each in cls.body if isinstance(each, ast.FunctionDef)}
    from hotloop.optimize.catalogue.compute.fused_layers.arithmetic import parameters

    forward = methods.get("forward")
    if forward is None or not isinstance(forward.body[-1], ast.Return) or forward.body[-1].value is None:
        return None
    try:
        (given,) = parameters(forward)
        return _told(f"{name}.forward", forward, given, methods)
    except (NotThis, ArithmeticError, ValueError, TypeError, LookupError, AttributeError):
        return None


def _told(
    name: str, forward: ast.FunctionDef, given: str, methods: Mapping[str, ast.FunctionDef]
) -> WrittenNorm | None:
    read = _read(forward, methods)
    if len(read) > len(_ROLES):
        return None
    for roles in permutations(_ROLES, len(read)):
        names = dict(zip(roles, sorted(read), strict=True))
        epsilons = [None] if "eps" in names else sorted(_constants(forward, methods), reverse=True)
        for eps in epsilons:
            told = _which(methods, _Meaning(names, eps))
            if told is None:
                continue
            function, plus_one = told
            last = forward.body[-1]
            assert isinstance(last, ast.Return)
            assert last.value is not None
            return WrittenNorm(
                function=name,
                line=forward.lineno,
                returned=last.value,
                gone=tuple(each for each in forward.body[:-1] if not _is_text(each)),
                name=function,
                arguments=_arguments(given, function, names, eps, plus_one=plus_one),
                helpers=frozenset(_helpers(forward, methods)),
                unsure=_unsure(methods.get("__init__"), names),
            )
    return None


def _unsure(init: ast.FunctionDef | None, names: Mapping[str, str]) -> str:
    """Why it cannot be told that weights are of one dimension and epsilon is a number."""
    made = {
        ast.unparse(target): node.value
        for node in (ast.walk(init) if init is not None else ())
        if isinstance(node, ast.Assign)
        for target in node.targets
    }
    for role, attribute in names.items():
        value = made.get(f"self.{attribute}")
        if value is None:
            return f"where self.{attribute} is made is not seen"
        if role == "eps":
            if isinstance(value, ast.Call):
                return f"self.{attribute} is not a plain number"
        elif not _has_one_dimension(value):
            return f"self.{attribute} may have more dimensions than one, or one value"
    return ""


def _has_one_dimension(value: ast.expr) -> bool:
    """Whether it is `Parameter(torch.ones(size))` or like it."""
    if not isinstance(value, ast.Call) or not ast.unparse(value.func).endswith("Parameter") or not value.args:
        return False
    made = value.args[0]
    size = made.args[0] if isinstance(made, ast.Call) and len(made.args) == 1 else None
    return isinstance(size, (ast.Name, ast.Attribute)) or (
        isinstance(size, ast.Constant) and isinstance(size.value, int) and size.value > 1
    )


def _helpers(forward: ast.FunctionDef, methods: Mapping[str, ast.FunctionDef]) -> set[str]:
    nodes = _reached(forward, methods)
    return {node.attr for node in nodes if isinstance(node, ast.Attribute) and node.attr in methods}


def _which(methods: Mapping[str, ast.FunctionDef], meaning: _Meaning) -> tuple[str, bool] | None:
    """Return which one it is, and whether the weight is what is added to one."""
    points = _points()
    values: dict[str, Any] = {
        "weight": _from_to(0.4, 1.9),
        "bias": _from_to(-0.7, 0.8),
        "eps": 3e-4,
    }
    attributes = {attribute: values[role] for role, attribute in meaning.names.items()}
    try:
        own = Forward(methods, attributes).run(points)
    except (NotThis, ArithmeticError, ValueError, TypeError, LookupError, AttributeError):
        return None
    eps = values["eps"] if meaning.eps is None else meaning.eps
    weight = values["weight"] if "weight" in meaning.names else 1.0
    bias = values["bias"] if "bias" in meaning.names else 0.0
    centred = points - _means(points)
    layer = centred / root(_means(centred * centred) + eps)
    rms = points / root(_means(points * points) + eps)
    if _same(own, layer * weight + bias):
        return LAYER_NORM, False
    if "bias" in meaning.names:
        return None
    if _same(own, rms * weight):
        return RMS_NORM, False
    return (RMS_NORM, True) if "weight" in meaning.names and _same(own, rms * (1 + weight)) else None


def _points() -> Grid:
    """Return rows of three sizes, the first beside zero, and two of one value, as padding is."""
    rows = [
        [size * math.cos(1.7 * (number * _WIDTH + at)) + shift for at in range(_WIDTH)]
        for number, (size, shift) in enumerate(((1.0, 0.3), (0.1, 0.0), (1e-3, 0.0)))
    ]
    return Grid.of_rows([*rows, [0.0] * _WIDTH, [0.5] * _WIDTH])


def _from_to(first: float, last: float) -> Grid:
    return Grid.of_row([first + (last - first) * at / (_WIDTH - 1) for at in range(_WIDTH)])


def _means(grid: Grid) -> Grid:
    return grid.reduced(lambda row: math.fsum(row) / len(row), True)


def _same(one: Any, other: Grid) -> bool:
    return same(one, other, _RTOL)


def _arguments(
    given: str, function: str, names: Mapping[str, str], eps: float | None, *, plus_one: bool
) -> str:
    own = {role: f"self.{attribute}" for role, attribute in names.items()}
    weight = own.get("weight", "None")
    parts = [given, f"{given}.shape[-1:]", f"1 + {weight}" if plus_one else weight]
    if function == LAYER_NORM:
        parts.append(own.get("bias", "None"))
    return ", ".join([*parts, own.get("eps", repr(eps))])


def _read(forward: ast.FunctionDef, methods: Mapping[str, ast.FunctionDef]) -> set[str]:
    """Return the attributes of `self` that are read, not called."""
    found: set[str] = set()
    called: set[str] = set()
    for node in _reached(forward, methods):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            (called if node.attr in methods else found).add(node.attr)
    return found


def _constants(forward: ast.FunctionDef, methods: Mapping[str, ast.FunctionDef]) -> set[float]:
    return {
        node.value
        for node in _reached(forward, methods)
        if isinstance(node, ast.Constant) and isinstance(node.value, float) and 0 < node.value < LARGEST_EPS
    }


def _reached(forward: ast.FunctionDef, methods: Mapping[str, ast.FunctionDef]) -> Iterator[ast.AST]:
    todo, seen = [forward], {forward.name}
    while todo:
        for node in ast.walk(todo.pop()):
            yield node
            if isinstance(node, ast.Attribute) and node.attr in methods and node.attr not in seen:
                seen.add(node.attr)
                todo.append(methods[node.attr])


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
