"""Which activation function a formula is, told by what it gives: any way of writing it is recognized."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import NamedTuple

from hotloop.patterns.refusal import NotThis
from hotloop.patterns.torch_modules import is_torch_module

POINTS = tuple(-5.0 + 0.37 * at for at in range(28))
"""Where a formula is tried: the forms of GELU differ by 5e-4 between them."""
TOLERANCE = 1e-5
"""Constants are written with six digits and more."""
MODULES = frozenset({"torch", "math", "np", "numpy", "F", "functional", "nn", "special"})
"""What the first name of a function is called by; other first names are values."""
NOT_TENSORS = frozenset({"math", "np", "numpy"})
"""What these compute of a value, no tensor is: the same formula in a transform of pictures must stay."""
_CONSTANTS = {"pi": math.pi, "e": math.e}


class Function(NamedTuple):
    """A function of torch.nn.functional."""

    name: str
    """`gelu`."""
    keywords: str = ""
    """`, approximate="tanh"`."""


class Formula(NamedTuple):
    """What a formula computes."""

    function: Function
    given: str
    """The value that it is a function of, as it is written: `x`."""


def formula(node: ast.expr) -> Formula | None:
    """Return the activation function that an expression writes out; None: it is something else."""
    try:
        reader = _Reader()
        values = [reader.value(node, point) for point in POINTS]
    except (NotThis, ArithmeticError, ValueError, TypeError):
        return None
    if reader.given is None or not reader.is_tensor:
        return None
    for function, reference in _KNOWN.items():
        if all(
            abs(value - reference(x)) <= TOLERANCE * (1 + abs(x))
            for value, x in zip(values, POINTS, strict=True)
        ):
            return Formula(function, reader.given)
    return None


class _Reader:
    """Computes an expression; the one value in it that is not known is what it is a function of."""

    def __init__(self) -> None:
        self.given: str | None = None
        self.is_tensor = False
        """One of torch's functions, or a method, is called with the value."""

    def value(self, node: ast.expr, x: float) -> float:
        """Return the expression where its value is `x`.

        Raises:
            NotThis: it is more than arithmetic on one value.
        """
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return float(node.value)
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            return float(_BINARY[type(node.op)](self.value(node.left, x), self.value(node.right, x)))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            inner = self.value(node.operand, x)
            return -inner if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.Call) and not node.keywords:
            return self._called(node, x)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._named(node, x)
        raise NotThis(f"{type(node).__name__} is no arithmetic")

    def _called(self, node: ast.Call, x: float) -> float:
        if not isinstance(node.func, ast.Attribute):
            raise NotThis("whose function is called cannot be told")
        owner = node.func.value
        name, args = node.func.attr, node.args if _is_module(owner) else [owner, *node.args]
        if any(_reads_a_value(each, x) for each in args):
            if ast.unparse(owner).split(".")[0] in NOT_TENSORS:
                raise NotThis("it is computed of numbers or arrays")
            self.is_tensor = True
        function = _FUNCTIONS.get((name, len(args)))
        if function is None:
            raise NotThis(f"{name} is not known")
        return function(*(self.value(each, x) for each in args))

    def _named(self, node: ast.Name | ast.Attribute, x: float) -> float:
        if isinstance(node, ast.Attribute) and _is_module(node.value) and node.attr in _CONSTANTS:
            return _CONSTANTS[node.attr]
        text = ast.unparse(node)
        if not all(word.isidentifier() for word in text.split(".")):
            raise NotThis("it is computed, and would be computed once instead")
        if self.given not in (None, text):
            raise NotThis("it is a function of more than one value")
        self.given = text
        return x


def _reads_a_value(node: ast.expr, x: float) -> bool:
    reader = _Reader()
    reader.value(node, x)
    return reader.given is not None


def _is_module(node: ast.expr) -> bool:
    return is_torch_module(node) or ast.unparse(node).split(".")[0] in MODULES


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


def _softplus(x: float) -> float:
    return math.log1p(math.exp(x))


_BINARY: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_FUNCTIONS: Mapping[tuple[str, int], Callable[..., float]] = {
    ("tanh", 1): math.tanh,
    ("erf", 1): math.erf,
    ("exp", 1): math.exp,
    ("sqrt", 1): math.sqrt,
    ("square", 1): lambda x: x * x,
    ("sigmoid", 1): _sigmoid,
    ("softplus", 1): _softplus,
    ("pow", 2): operator.pow,
    ("mul", 2): operator.mul,
    ("multiply", 2): operator.mul,
    ("add", 2): operator.add,
    ("div", 2): operator.truediv,
    ("tensor", 1): float,
    ("Tensor", 1): float,
}
_KNOWN: Mapping[Function, Callable[[float], float]] = {
    Function("gelu"): lambda x: 0.5 * x * (1.0 + math.erf(x / math.sqrt(2.0))),
    Function("gelu", ', approximate="tanh"'): lambda x: (
        0.5 * x * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))
    ),
    Function("silu"): lambda x: x * _sigmoid(x),
    Function("mish"): lambda x: x * math.tanh(_softplus(x)),
}
