"""Find expressions of several pointwise operations in a source."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hotloop.optimize.program.purity import NotIndependent, Purity, at_module_level, torch_names
from hotloop.patterns.functions import functions

LEAST = 2
"""Operations: one is a kernel already."""
MOST_ARGUMENTS = 8
MOST_CHAINS = 16
"""Of a file, the longest ones: each takes seconds to compile."""
POINTWISE = frozenset(
    """
    abs add atan clamp clip cos div divide elu erf exp exp2 expm1 gelu hardsigmoid hardswish hardtanh leaky_relu log
    log1p log2 logsigmoid maximum minimum mish mul multiply neg pow reciprocal relu relu6 rsqrt selu sigmoid sign silu
    sin softplus sqrt square sub subtract tanh where
    """.split()  # noqa: SIM905 - a list of so many quoted words is not read
)
OF_TENSORS = frozenset({"cos", "exp", "log", "relu", "rsqrt", "sigmoid", "sin", "sqrt", "square", "tanh"})
"""Methods that arrays, sets and tables of other packages do not have."""
CASTS = frozenset({"to", "float", "type_as"})
"""They cost a pass over memory by themselves, and none within a kernel."""
_OPERATORS: Mapping[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Pow: "**",
}


@dataclass(frozen=True)
class Chain:
    """An expression of several pointwise operations.

    Attributes:
        function: qualified name of the function it stands in.
        line: where it begins.
        expression: what becomes the call.
        text: a lambda of what it is computed from.
        arguments: what it is computed from, as it is written.
        names: of the module that the lambda calls.
        num: operations.
    """

    function: str
    line: int
    expression: ast.expr
    text: str
    arguments: tuple[str, ...]
    names: frozenset[str]
    num: int

    @property
    def name(self) -> str:
        """The same for chains that compute the same."""
        return f"chain_{hashlib.sha256(self.text.encode()).hexdigest()[:12]}"


def chains(source: str) -> list[Chain]:
    """Return what is found in a source, in its order; nothing where it is not Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, RecursionError, ValueError):
        return []
    reader = _Reader(tree)
    found = [
        each for name, body in functions(tree, "") for node in body for each in reader.chains_in(name, node)
    ]
    longest = sorted({each.name: each.num for each in found}.items(), key=lambda one: -one[1])[:MOST_CHAINS]
    kept = {name for name, _ in longest}
    return [each for each in found if each.name in kept]


class _Reader:
    """Reads the expressions of a file."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._torch = torch_names(ast.walk(tree))
        self._global = torch_names(at_module_level(tree))
        self._own = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}

    def chains_in(self, function: str, node: ast.AST) -> Iterator[Chain]:
        """Yield the largest ones: what is inside one is part of it."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            return
        if isinstance(node, (ast.BinOp, ast.Call)):
            one = _Expression(self)
            body = one.text_of(node)
            if one.num >= LEAST and one.is_tensor and 0 < len(one.arguments) <= MOST_ARGUMENTS:
                names = ", ".join(f"a{at}" for at in range(len(one.arguments)))
                text, arguments = f"lambda {names}: {body}", tuple(one.arguments)
                yield Chain(function, node.lineno, node, text, arguments, frozenset(one.names), one.num)
                return
        for child in ast.iter_child_nodes(node):
            yield from self.chains_in(function, child)

    def is_torchs(self, func: ast.expr) -> bool:
        """Whether a function is called by a name of torch's: `torch.tanh`, `F.silu`."""
        return _root(func) in self._torch

    def is_known_outside(self, func: ast.expr) -> bool:
        """Whether that name is the module's: what a function imports for itself is not known in a lambda."""
        return _root(func) in self._global

    def num_of_own(self, name: str) -> int:
        """Return the pointwise operations of a function of the file's own; 0: it does more, or none of torch's."""
        function = self._own.get(name)
        if function is None:
            return 0
        try:
            purity = Purity(self._tree)
            purity.require(ast.parse(f"{name}()", mode="eval").body)
        except NotIndependent:
            return 0
        calls = [each for each in ast.walk(function) if isinstance(each, ast.Call)]
        if purity.called or not any(self.is_torchs(each.func) for each in calls):
            return 0
        return sum(isinstance(each, (ast.BinOp, ast.Call, ast.UnaryOp)) for each in ast.walk(function))


class _Expression:
    """One expression, as a lambda of what is not pointwise in it."""

    def __init__(self, reader: _Reader) -> None:
        self._reader = reader
        self.arguments: list[str] = []
        self.names: set[str] = set()
        self.num = 0
        self.is_tensor = False
        """A function of torch's computes a part of it."""

    def text_of(self, node: ast.expr) -> str:
        """Return an expression in terms of `a0`, `a1` and so on."""
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return repr(node.value)
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            self.num += 1
            return f"({self.text_of(node.left)} {_OPERATORS[type(node.op)]} {self.text_of(node.right)})"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return f"(-{self.text_of(node.operand)})"
        if isinstance(node, ast.Call):
            called = self._called(node)
            if called:
                return called
        return self._argument(node)

    def _called(self, node: ast.Call) -> str:
        """Return a call that is a part of the chain; empty: it is not."""
        func = node.func
        if any(not _is_plain(each) for each in node.keywords) or any(
            isinstance(each, ast.Starred) for each in node.args
        ):
            return ""
        if isinstance(func, ast.Name) and (num := self._reader.num_of_own(func.id)):
            self.num += num
            self.is_tensor = True
            self.names.add(func.id)
            return self._call(func.id, node, node.args)
        if not isinstance(func, (ast.Attribute, ast.Name)):
            return ""
        name = func.attr if isinstance(func, ast.Attribute) else func.id
        if self._reader.is_known_outside(func) and name in POINTWISE:
            self.num += 1
            self.is_tensor = True
            self.names.add(_root(func))
            return self._call(ast.unparse(func), node, node.args)
        if (
            not isinstance(func, ast.Attribute)
            or self._reader.is_torchs(func)
            or name not in POINTWISE | CASTS
        ):
            return ""
        if name in POINTWISE:
            self.num += 1
            self.is_tensor = self.is_tensor or name in OF_TENSORS
        owner = self.text_of(func.value)
        return self._call(f"{owner}.{name}", node, node.args)

    def _call(self, text: str, node: ast.Call, args: list[ast.expr]) -> str:
        given = [self.text_of(each) for each in args]
        given += [f"{each.arg}={ast.unparse(each.value)}" for each in node.keywords]
        return f"{text}({', '.join(given)})"

    def _argument(self, node: ast.expr) -> str:
        text = ast.unparse(node)
        known = isinstance(node, (ast.Name, ast.Attribute)) and text in self.arguments
        if not known:
            self.arguments.append(text)
        return f"a{self.arguments.index(text) if known else len(self.arguments) - 1}"


def _root(func: ast.expr) -> str:
    """Return the first name of a dotted one; empty: it is something else."""
    while isinstance(func, ast.Attribute):
        func = func.value
    return func.id if isinstance(func, ast.Name) else ""


def _is_plain(keyword: ast.keyword) -> bool:
    return isinstance(keyword.value, ast.Constant) and keyword.arg not in {"inplace", "out", None}
