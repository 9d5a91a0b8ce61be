"""Attention is written out as two products and a softmax.

## What it does
Finds `softmax(q @ k.transpose(...))` whose result is multiplied with a third matrix, in one function: with
`@`, `torch.matmul`, `bmm` or `einsum`, also with scaling, masking and dropout in between. Files that already
use `scaled_dot_product_attention`, and functions that return the weights, are left out.

## Why it is slow
The matrix of all pairs goes to memory and back four times, and is kept for the backward pass; a fused kernel
never writes it. Memory grows with the length instead of its square.

## When it is fine
The weights themselves are needed, or an unusual term is added to the scores (FlexAttention takes many of
those).

## Example
```python
att = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(d), dim=-1)
y = att @ v
```
Use instead:
```python
y = F.scaled_dot_product_attention(q, k, v)
```

## References
- PyTorch, scaled_dot_product_attention:
  https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
- Dao et al., [FlashAttention](https://arxiv.org/abs/2205.14135), 2022
"""

from collections.abc import Iterator

import libcst as cst

from hotloop.lint.infer.names import dotted
from hotloop.lint.infer.program import Program
from hotloop.lint.read.syntax import method, receiver
from hotloop.lint.rule import Hit, Rule, Visit
from hotloop.model.finding import Severity

_PRODUCTS = frozenset({"torch.matmul", "torch.bmm", "torch.einsum", "torch.baddbmm"})
_SOFTMAX = frozenset({"torch.softmax", "torch.nn.functional.softmax"})
_TURNS = frozenset({"transpose", "permute", "t", "swapaxes", "mT", "T"})


def check(program: Program, function: cst.FunctionDef) -> Iterator[Hit]:
    """Find the two products with a softmax between them."""
    if "scaled_dot_product_attention" in program.file.text:
        return
    flow = _Flow(program)
    statements: list[cst.Assign | cst.Return] = [
        *program.file.under(function, cst.Assign),
        *program.file.under(function, cst.Return),
    ]
    for statement in sorted(statements, key=program.file.number):
        product = flow.follow(statement)
        if product is not None:
            if not _returned(program, function, flow.weights):
                yield Hit(product, "softmax(q @ k) @ v, written out")
            return


class _Flow:
    """Which names of a function hold scores (a product), and which hold weights (their softmax)."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._scores: set[str] = set()
        self.weights: dict[str, cst.CSTNode] = {}

    def follow(self, statement: cst.Assign | cst.Return) -> cst.CSTNode | None:
        """Take one statement in, and give the softmax whose result it multiplies."""
        if statement.value is None:
            return None
        product = _product_with(self._program, statement.value, self.weights)
        if product is None and isinstance(statement, cst.Assign):
            self._bind(dotted(statement.targets[0].target) or "", statement.value)
        return product

    def _bind(self, name: str, value: cst.BaseExpression) -> None:
        used = {node.value for node in self._program.file.under(value, cst.Name)}
        softmax = _softmax_of_scores(self._program, value, self._scores)
        if softmax is not None:
            self.weights[name] = softmax
            self._scores.discard(name)
        elif used & set(self.weights):
            self.weights[name] = next(self.weights[one] for one in sorted(used) if one in self.weights)
        elif _score_product(self._program, value) or used & self._scores:
            self._scores.add(name)


def _products(program: Program, node: cst.CSTNode) -> list[list[cst.BaseExpression]]:
    """The factors of each matrix product in the expression."""
    found: list[list[cst.BaseExpression]] = []
    for operation in program.file.under(node, cst.BinaryOperation):
        if isinstance(operation.operator, cst.MatrixMultiply):
            found.append([operation.left, operation.right])
    for call in program.file.under(node, cst.Call):
        owner = receiver(call)
        if program.names.call(call) in _PRODUCTS:
            found.append([arg.value for arg in call.args])
        elif method(call) in {"matmul", "bmm"} and owner is not None and not program.names.call(call):
            found.append([owner, *(arg.value for arg in call.args)])
    return found


def _score_product(program: Program, node: cst.CSTNode) -> bool:
    """A product of something with something turned round, or an einsum."""
    return any(
        isinstance(factors[0], cst.SimpleString) or any(_is_turned(program, factor) for factor in factors)
        for factors in _products(program, node)
        if factors
    )


def _is_turned(program: Program, factor: cst.BaseExpression) -> bool:
    calls = {
        method(call) or program.names.call(call).rpartition(".")[2]
        for call in program.file.under(factor, cst.Call)
    }
    attributes = {a.attr.value for a in program.file.under(factor, cst.Attribute)}
    if calls & _TURNS or attributes & {"mT", "T"}:
        return True
    name = dotted(factor) or ""
    return name in {"k_t", "kt", "key_t", "kT"}


def _softmax_of_scores(program: Program, node: cst.CSTNode, scores: set[str]) -> cst.Call | None:
    for call in program.file.under(node, cst.Call):
        if not _is_softmax(program, call):
            continue
        given: list[cst.CSTNode] = [arg.value for arg in call.args]
        owner = receiver(call)
        if owner is not None and not program.names.call(call):
            given.append(owner)
        names = {n.value for part in given for n in program.file.under(part, cst.Name)}
        if names & scores or any(_score_product(program, part) for part in given):
            return call
    return None


def _is_softmax(program: Program, call: cst.Call) -> bool:
    full = program.names.call(call)
    if full:
        return full in _SOFTMAX
    return method(call) == "softmax" or (
        isinstance(call.func, cst.Call) and program.names.call(call.func) == "torch.nn.Softmax"
    )


def _product_with(program: Program, node: cst.CSTNode, weights: dict[str, cst.CSTNode]) -> cst.CSTNode | None:
    for factors in _products(program, node):
        for factor in factors:
            if isinstance(factor, cst.Name) and factor.value in weights:
                return weights[factor.value]
            inner = _softmax_of_scores(program, factor, set()) if not isinstance(factor, cst.Name) else None
            if inner is not None:
                return inner
    return None


def _returned(program: Program, function: cst.FunctionDef, weights: dict[str, cst.CSTNode]) -> bool:
    """Whether the weights themselves leave the function, so that a fused kernel cannot give them."""
    for statement in program.file.under(function, cst.Return):
        value = statement.value
        parts = [e.value for e in value.elements] if isinstance(value, cst.Tuple) else [value]
        if any(isinstance(part, cst.Name) and part.value in weights for part in parts):
            return True
    kept = [
        t.target
        for t in program.file.under(function, cst.AssignTarget)
        if isinstance(t.target, cst.Attribute)
    ]
    values = [a.value for a in program.file.under(function, cst.Assign) if a.targets[0].target in kept]
    return any(n.value in weights for v in values for n in program.file.under(v, cst.Name))


rule = Rule(
    code="handwritten-attention",
    title="Attention is written out by hand",
    severity=Severity.WARNING,
    advice="Use torch.nn.functional.scaled_dot_product_attention.",
    optimization="flash_attention",
    page=__doc__,
    words=("softmax", "Softmax"),
    visits=(Visit(cst.FunctionDef, check),),
)
