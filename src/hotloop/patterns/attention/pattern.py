"""Find attention that is written out in a source: two products with a softmax between them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hotloop.patterns.attention.chain import Chain, operands
from hotloop.patterns.attention.names import Function, hidden_by, of_class, of_function, of_module
from hotloop.patterns.attention.steps import Products, Step, leading, product_of
from hotloop.patterns.attention.terms import Terms
from hotloop.patterns.refusal import NotFusable, NotThis
from hotloop.patterns.torch_modules import parsed


@dataclass(frozen=True)
class Attention:
    """One place where attention is written out.

    Attributes:
        function: qualified name of the function it stands in.
        line: of the second product.
        product: the expression that becomes the call.
        statement: the statement that holds it.
        softmax: between the two products.
        gone: statements that are needed no more.
        arguments: of the call: `q, k, v, is_causal=True, scale=1.0`.
        turn: what is appended to the call: `.permute(0, 2, 1, 3)`.
        refused: why it is left as it is; empty: it can be replaced.
        fusable: another way of writing the rest could make it replaceable.
        unsure: why only a run can show that the call takes its arguments; empty: the source shows it.
    """

    function: str
    line: int
    product: ast.expr
    statement: ast.stmt
    softmax: ast.expr
    gone: tuple[ast.stmt, ...] = ()
    arguments: str = ""
    turn: str = ""
    refused: str = ""
    fusable: bool = True
    unsure: str = ""


def attentions(source: str) -> list[Attention]:
    """Return what is found in a source, in its order; nothing where it is not Python."""
    try:
        tree = parsed(source)
    except SyntaxError:
        return []
    return [found for scope in _scopes(tree, "", of_module(tree), {}) for found in _in_function(*scope)]


def _scopes(
    tree: ast.AST, prefix: str, names: Mapping[str, ast.expr], classes: dict[str, dict[str, ast.expr]]
) -> Iterator[tuple[Function, str, Mapping[str, ast.expr]]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            own = dict(names)
            for base in node.bases:
                own |= classes.get(ast.unparse(base), {})
            own |= of_class(node)
            classes[node.name] = own
            yield from _scopes(node, f"{prefix}{node.name}.", own, classes)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node, f"{prefix}{node.name}", names
            yield from _scopes(node, f"{prefix}{node.name}.<locals>.", names, classes)
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            yield from _scopes(node, prefix, names, classes)


def _in_function(function: Function, name: str, names: Mapping[str, ast.expr]) -> Iterator[Attention]:
    hidden = hidden_by(function)
    known = {each: value for each, value in names.items() if each not in hidden} | of_function(function)
    for block in _blocks(function):
        for at, statement in enumerate(block):
            if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr, ast.AugAssign)):
                continue
            for product in _products(statement):
                found = _found(function, name, known, product, block, at)
                if found is not None:
                    yield found
                    break


def _found(
    function: Function,
    name: str,
    names: Mapping[str, ast.expr],
    product: Products,
    block: list[ast.stmt],
    at: int,
) -> Attention | None:
    steps = Step(names)
    chain = Chain(block, at, steps)
    line, node, statement = product.node.lineno, product.node, block[at]
    try:
        scores = chain.scores(product.weights)
        if scores is None:
            return None
        query, key = operands(scores)
        value, turn = product.value()
        arguments = ", ".join([query, key, value, *_keywords(steps.terms, leading(query))])
        chain.check(function, statement, node, arguments)
    except NotThis as reason:
        if chain.softmax is None:
            return None
        needed = chain.used_elsewhere(function, statement, node)
        fusable = not isinstance(reason, NotFusable) and not needed
        return Attention(name, line, node, statement, chain.softmax, refused=str(reason), fusable=fusable)
    gone = tuple(sorted(chain.gone, key=lambda each: each.lineno))
    assert chain.softmax is not None  # the scores were reached through it
    return Attention(name, line, node, statement, chain.softmax, gone, arguments, turn, unsure=steps.unsure)


def _keywords(terms: Terms, query: str) -> list[str]:
    given = []
    mask = terms.mask(query)
    if terms.causal and len(terms.keep) + len(terms.added) == 1 and not terms.only_if:
        given.append("is_causal=True")
    elif mask:
        given.append(f"attn_mask={mask}")
    if terms.dropout:
        given.append(f"dropout_p={terms.dropout}")
    return [*given, f"scale={terms.scale()}"]


def _blocks(function: Function) -> Iterator[list[ast.stmt]]:
    """Return the lists of statements of a function, without those of functions in it."""
    todo: list[ast.AST] = [function]
    while todo:
        node = todo.pop()
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block
                todo += [
                    each
                    for each in block
                    if not isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
                ]
        todo += getattr(node, "handlers", [])


def _products(statement: ast.stmt) -> Iterator[Products]:
    for node in ast.walk(statement):
        if isinstance(node, ast.expr):
            found = product_of(node)
            if found is not None:
                yield found
