"""Follow the weights of a product back to the scores, through the statements of one block."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from hotloop.patterns.attention import einsum
from hotloop.patterns.attention.steps import (
    Products,
    Step,
    called,
    keys_of,
    product_of,
)
from hotloop.patterns.refusal import NotFusable, NotThis

_LAST = ("-1", "3")
_IN_PLACE = frozenset({"masked_fill_", "mul_", "div_", "add_"})
_TURNS = frozenset(
    {
        "view",
        "reshape",
        "flatten",
        "unflatten",
        "squeeze",
        "unsqueeze",
        "transpose",
        "permute",
        "expand",
        "rearrange",
    }
)
"""Move the scores about; any other function of them computes something that the kernels do not have."""


class Chain:
    """The way from the second product's weights to the first product.

    Args:
        block: the statements around the second product.
        at: the place of the statement that holds it.
        step: takes the operations on the way.
    """

    def __init__(self, block: Sequence[ast.stmt], at: int, step: Step) -> None:
        self._block = block
        self._at = at
        self._step = step
        self._names: set[str] = set()
        self.gone: list[ast.stmt] = []
        self.softmax: ast.expr | None = None
        """Where the weights come from."""
        self._refused = ""
        """Why it is left as it is, should there be a product at the end."""

    def scores(self, weights: ast.expr) -> Products | None:
        """Return the product that makes the scores; None: the weights come from no softmax, or it from no product.

        Raises:
            NotThis: an operation on the way that fused kernels do not have.
        """
        softmax = self._softmax(weights)
        if softmax is None:
            return None
        node = self._resolved(softmax)
        while True:
            product = product_of(node)
            if product is not None:
                if self._refused:
                    raise NotThis(self._refused)
                return product
            inner = self._step.on_scores(node)
            if inner is None:
                if _has_product(node) or self._was_product(node):
                    reason = f"its scores go through {_short(node)}"
                    raise NotThis(reason) if _only_turns(node) else NotFusable(reason)
                return None
            node = self._resolved(inner)

    def _was_product(self, node: ast.expr) -> bool:
        """Whether a name in what could not be followed was given a product before."""
        return any(
            value is not None and _has_product(value)
            for statement in self._block[: self._at]
            for name in _loaded(node)
            for value in [_value(statement, name)]
        )

    def _softmax(self, weights: ast.expr) -> ast.expr | None:
        """Return what the softmax is taken of."""
        node = self._resolved(weights)
        while isinstance(node, ast.Call):
            given = self._is_softmax(node)
            if given is not None:
                return given
            inner = self._step.after_softmax(node)
            if inner is None:
                self._refused = f"its weights go through {_short(node)}"
                inner = _given(node)
            if inner is None:
                return None
            node = self._resolved(inner)
        return None

    def _is_softmax(self, node: ast.Call) -> ast.expr | None:
        name, owner = called(node)
        dims = [ast.unparse(word.value) for word in node.keywords if word.arg == "dim"]
        if name == "softmax" and (isinstance(node.func, ast.Name) or owner is None or _is_tensor(owner)):
            given, rest = (node.args[0], node.args[1:]) if owner is None else (owner, node.args)
            dims = dims or [ast.unparse(arg) for arg in rest[:1]]
        else:
            made = node.func if isinstance(node.func, ast.Call) else self._step.made(node.func)
            if not (isinstance(made, ast.Call) and called(made)[0] == "Softmax" and node.args):
                return None
            given = node.args[0]
            dims = [ast.unparse(arg) for arg in [*made.args, *(word.value for word in made.keywords)]]
        self.softmax = node
        over = dims[0] if dims else "unnamed"
        if over not in _LAST:
            self._refused = f"its softmax is taken over dimension {over}"
        return given

    def _resolved(self, node: ast.expr) -> ast.expr:
        """Return what a name was last given, taking the statement away; other expressions as they are."""
        while isinstance(node, ast.Name):
            value = self._definition(node.id)
            if value is None:
                return node
            node = value
        return node

    def _definition(self, name: str) -> ast.expr | None:
        for at in range(self._at - 1, -1, -1):
            statement = self._block[at]
            if not _stores(statement, name):
                continue
            value = _value(statement, name)
            if value is not None:
                self._at = at
                self._take(statement, name)
                return value
            if self._conditional(statement, name):
                self._take(statement, name)
                continue
            return None
        return None

    def _take(self, statement: ast.stmt, name: str) -> None:
        self.gone.append(statement)
        self._names.add(name)

    def _conditional(self, statement: ast.stmt, name: str) -> bool:
        """Take `if mask is not None: scores = scores.masked_fill(mask, ...)`."""
        if not isinstance(statement, ast.If) or statement.orelse or len(statement.body) != 1:
            return False
        value = _value(statement.body[0], name)
        if value is None:
            return False
        with self._step.only_if(ast.unparse(statement.test)):
            inner = self._step.on_scores(value)
            if inner is None and isinstance(value, ast.Call):
                inner = self._step.after_softmax(value)
        return isinstance(inner, ast.Name) and inner.id == name

    def used_elsewhere(self, function: ast.AST, statement: ast.stmt, product: ast.expr) -> str:
        """Return what of the way so far something else needs, as a clause; empty: nothing."""
        first = self._first(statement)
        inside = {id(node) for each in [*self.gone, product] for node in ast.walk(each)}
        given_anew = {name for name in self._names if _stores(statement, name)}
        for node in ast.walk(function):
            if not isinstance(node, ast.Name) or node.id not in self._names or id(node) in inside:
                continue
            if isinstance(node.ctx, ast.Load) and node.lineno >= first and node.id not in given_anew:
                return f"its {node.id} is used in line {node.lineno} too"
        return ""

    def _first(self, statement: ast.stmt) -> int:
        return min((each.lineno for each in self.gone), default=statement.lineno)

    def check(self, function: ast.AST, statement: ast.stmt, product: ast.expr, arguments: str) -> None:
        """Refuse where something else needs what goes, or changes what the call takes.

        Raises:
            NotThis: with what it is.
        """
        used = self.used_elsewhere(function, statement, product)
        if used:
            raise NotFusable(used)
        first = self._first(statement)
        needed = {node.id for node in ast.walk(ast.parse(f"f({arguments})")) if isinstance(node, ast.Name)}
        if needed & (self._names - _loaded(product)):
            raise NotThis(f"{', '.join(sorted(needed & self._names))} stands in what its masks are made with")
        between = [
            each for each in self._block if first <= each.lineno < statement.lineno and each not in self.gone
        ]
        changed = {name for each in between for name in needed if _stores(each, name)}
        if changed:
            raise NotThis(f"{', '.join(sorted(changed))} changes between its two products")


def operands(product: Products) -> tuple[str, str]:
    """Return query and key of the product that makes scores."""
    if product.labels is None:
        return ast.unparse(product.weights), keys_of(product.right)
    given, out = product.labels
    wanted = einsum.scores(given, out)
    texts = [ast.unparse(product.weights), ast.unparse(product.right)]
    query, key = (
        einsum.turned(text, now, order) for text, now, order in zip(texts, given, wanted, strict=True)
    )
    return query, key


def _given(call: ast.Call) -> ast.expr | None:
    """Return what a call computes something of: the object of a method, else its first argument."""
    _, owner = called(call)
    if owner is not None and not ast.unparse(owner).startswith("self"):
        return owner
    return call.args[0] if call.args else None


def _has_product(node: ast.expr) -> bool:
    return any(product_of(each) for each in ast.walk(node) if isinstance(each, ast.expr))


def _value(statement: ast.stmt, name: str) -> ast.expr | None:
    """Return what one statement gives a name; None: it is no plain assignment to it."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return statement.value if isinstance(target, ast.Name) and target.id == name else None
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        old = ast.copy_location(ast.Name(statement.target.id, ast.Load()), statement.target)
        return ast.copy_location(ast.BinOp(old, statement.op, statement.value), statement)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return statement.value if _changes_in_place(statement.value, name) else None
    return None


def _changes_in_place(call: ast.Call, name: str) -> bool:
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr in _IN_PLACE
        and isinstance(function.value, ast.Name)
        and function.value.id == name
    )


def _stores(statement: ast.AST, name: str) -> bool:
    """Whether something in a statement gives a name another value."""
    return any(
        (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, (ast.Store, ast.Del)))
        or (isinstance(node, ast.Call) and _changes_in_place(node, name))
        for node in ast.walk(statement)
    )


def _loaded(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _is_tensor(owner: ast.expr) -> bool:
    return not (isinstance(owner, ast.Name) and owner.id == "self")


def _only_turns(node: ast.expr) -> bool:
    return not isinstance(node, ast.Call) or called(node)[0] in _TURNS


def _short(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        return f"{ast.unparse(node.func)}()"
    text = ast.unparse(node)
    return text if len(text) < 40 else f"{text[:37]}..."
