"""What the body of a `forward` computes, statement by statement, on numbers that are made up."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hotloop.optimize.catalogue.compute.fused_layers.grid import Grid, root, shape_of
from hotloop.patterns.refusal import NotThis

MODULES = frozenset({"torch", "math", "F", "functional", "nn"})
"""What the first name of a function is called by; other first names are values."""
DEEPEST = 4
"""Methods that call methods."""


class Forward:
    """Runs the `forward` of a class whose body is arithmetic.

    Args:
        methods: of the class, by name.
        attributes: `self.eps` and the like.
    """

    def __init__(self, methods: Mapping[str, ast.FunctionDef], attributes: Mapping[str, Any]) -> None:
        self._methods = methods
        self._attributes = attributes

    def run(self, x: Any) -> Any:
        """Return what `forward` returns for `x`.

        Raises:
            NotThis: its body is more than arithmetic.
        """
        return self._called("forward", [x], 0)

    def _called(self, name: str, values: list[Any], depth: int) -> Any:
        method = self._methods.get(name)
        if method is None or depth > DEEPEST:
            raise NotThis(f"{name} is not a method of the class")
        names = parameters(method)
        if len(names) != len(values):
            raise NotThis(f"{name} takes something else")
        return _Body(self, dict(zip(names, values, strict=True)), depth).run(method.body)

    def method(self, name: str, values: list[Any], depth: int) -> Any:
        """Return what a method of the class returns."""
        return self._called(name, values, depth + 1)

    def attribute(self, name: str) -> Any:
        """Return `self.name`."""
        if name not in self._attributes:
            raise NotThis(f"self.{name} is not known")
        return self._attributes[name]


def parameters(method: ast.FunctionDef) -> list[str]:
    """Return the names of what a method takes, without `self`.

    Raises:
        NotThis: it takes more than that, or is decorated.
    """
    args = method.args
    if (
        method.decorator_list
        or args.vararg
        or args.kwarg
        or args.kwonlyargs
        or args.posonlyargs
        or args.defaults
    ):
        raise NotThis("it takes more than its inputs")
    return [each.arg for each in args.args[1:]]


class _Body:
    """The statements of one call."""

    def __init__(self, forward: Forward, names: dict[str, Any], depth: int) -> None:
        self._forward = forward
        self._names = names
        self._given = set(names)
        self._depth = depth

    def run(self, body: list[ast.stmt]) -> Any:
        for at, statement in enumerate(body):
            if isinstance(statement, ast.Return) and statement.value is not None and at == len(body) - 1:
                return self._value(statement.value)
            self._do(statement)
        raise NotThis("it does not end in one return")

    def _do(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            return
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            self._assign(statement.targets[0], self._value(statement.value))
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            self._assign(statement.target, self._value(statement.value))
        else:
            raise NotThis(f"{type(statement).__name__} is no arithmetic")

    def _assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self._names[target.id] = value
        elif isinstance(target, ast.Tuple) and isinstance(value, tuple) and len(value) == len(target.elts):
            for one, part in zip(target.elts, value, strict=True):
                self._assign(one, part)
        else:
            raise NotThis("something else than a name is assigned")

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return node.value if isinstance(node.value, bool) else float(node.value)  # 10**10**10 overflows
        if isinstance(node, ast.Name):
            return self._names[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            return _BINARY[type(node.op)](self._value(node.left), self._value(node.right))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._value(node.operand)
        if isinstance(node, (ast.Tuple, ast.List)):
            return tuple(map(self._value, node.elts))
        if isinstance(node, ast.Subscript):
            return self._value(node.value)[int(self._value(node.slice))]
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        raise NotThis(f"{type(node).__name__} is no arithmetic")

    def _attribute(self, node: ast.Attribute) -> Any:
        if node.attr in {"dtype", "device"} or _is_module(node.value):
            return None  # how values are kept, not what they are
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return self._forward.attribute(node.attr)
        if node.attr == "shape":
            return shape_of(self._value(node.value))
        raise NotThis(f"{node.attr} is not known")

    def _call(self, node: ast.Call) -> Any:
        if not isinstance(node.func, ast.Attribute):
            raise NotThis("whose function is called cannot be told")
        owner, name = node.func.value, node.func.attr
        values = [self._value(each) for each in node.args]
        if isinstance(owner, ast.Name) and owner.id == "self":
            if node.keywords:
                raise NotThis("a method is given keywords")
            return self._forward.method(name, values, self._depth)
        if name in _AS_IT_IS and not _is_module(owner):
            return self._value(owner)
        keywords = {each.arg: self._value(each.value) for each in node.keywords if each.arg}
        if name not in _FUNCTIONS or len(keywords) != len(node.keywords):
            raise NotThis(f"{name} is not known")
        keywords.pop("dtype", None)
        return _FUNCTIONS[name](*([] if _is_module(owner) else [self._value(owner)]), *values, **keywords)


def _is_module(node: ast.expr) -> bool:
    return ast.unparse(node).split(".")[0] in MODULES


def _last(x: Any, dim: Any) -> Grid:
    """Return what is reduced along the last dimension.

    Raises:
        NotThis: it is another, or a number.
    """
    if dim not in (-1, (-1,)) or not shape_of(x):
        raise NotThis("it goes over another dimension than the last")
    grid: Grid = x
    return grid


def _mean(x: Any, dim: Any, keepdim: bool = False) -> Any:
    return _last(x, dim).reduced(lambda row: math.fsum(row) / len(row), keepdim)


def _sum(x: Any, dim: Any, keepdim: bool = False) -> Any:
    return _last(x, dim).reduced(math.fsum, keepdim)


def _var(
    x: Any, dim: Any, unbiased: bool = True, keepdim: bool = False, correction: int | None = None
) -> Any:
    missing = int(unbiased) if correction is None else int(correction)

    def variance(row: Sequence[float]) -> float:
        middle = math.fsum(row) / len(row)
        return math.fsum((each - middle) ** 2 for each in row) / (len(row) - missing)

    return _last(x, dim).reduced(variance, keepdim)


def _std(x: Any, *args: Any, **keywords: Any) -> Any:
    return root(_var(x, *args, **keywords))


def _var_mean(x: Any, dim: Any, *args: Any, **keywords: Any) -> Any:
    mean = _mean(x, dim, keywords.get("keepdim", False))
    return _var(x, dim, *args, **keywords), mean


def _norm(x: Any, p: float = 2, dim: Any = None, keepdim: bool = False) -> Any:
    if p != 2:
        raise NotThis("it is another norm")
    return root(_sum(x * x, dim, keepdim))


_AS_IT_IS = frozenset({"to", "float", "double", "type", "type_as", "contiguous"})
"""What changes how values are kept, and nothing that is computed."""
_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "mean": _mean,
    "sum": _sum,
    "var": _var,
    "std": _std,
    "var_mean": _var_mean,
    "norm": _norm,
    "vector_norm": _norm,
    "pow": operator.pow,
    "square": lambda x: x * x,
    "sqrt": root,
    "rsqrt": lambda x: 1.0 / root(x),
    "reciprocal": lambda x: 1.0 / x,
    "mul": operator.mul,
    "add": operator.add,
    "sub": operator.sub,
    "div": operator.truediv,
    "size": lambda x, dim: shape_of(x)[int(dim)],
    "numel": lambda x: math.prod(shape_of(x)),
}
