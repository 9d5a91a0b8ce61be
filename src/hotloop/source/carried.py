"""Whether the turns of a loop need one another: what a turn reads of what an earlier one has made."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from hotloop.source.running_offsets import offsets

_SUMS = (ast.Add, ast.Sub, ast.BitOr)
"""A sum is the same, whatever the order of its terms, as long as nobody reads it in between."""
_FILLING = frozenset(
    {"append", "extend", "insert", "update", "add_", "sub_", "index_add_", "scatter_add_", "copy_", "fill_", "zero_"}
)  # fmt: skip
"""Methods that change their object without a look at what it holds."""
_TAKING = frozenset({"pop", "popleft", "popitem", "appendleft"})
_LEAVES = (ast.Break, ast.Return, ast.Yield, ast.YieldFrom)


def as_ast(loop: cst.For) -> ast.For:
    """Return a loop of a concrete tree as one of an abstract tree."""
    (found,) = ast.parse(cst.Module([loop]).code).body
    assert isinstance(found, ast.For)
    return found


def carries(loop: ast.For) -> bool:
    """Whether a turn of a loop reads what an earlier turn has made, or may be the last.

    What a turn makes may be a name, an attribute, a part of something (`h[i] = ...`), or what a method changes. Sums
    carry nothing until they are read, and running offsets (`at += n`, read as the bound of a slice) are no values.
    """
    if any(isinstance(node, _LEAVES) for part in loop.body for node in ast.walk(part)):
        return True
    counters = {name.id for name in _names(loop.target)}
    made = {place for part in loop.body for place in _made(part)} - counters - offsets(loop)
    own = {text for part in loop.body for text in _filled(part, counters)}
    return _reads_early(loop.body, made, own)


def changes_itself(function: ast.AST) -> bool:
    """Whether a method leaves something in its object (`self.h = ...`), so that a call is not like the next."""
    return any(place.startswith("self.") for place in _made(function))


def _reads_early(body: list[ast.stmt], made: set[str], known: set[str]) -> bool:
    """Whether a turn reads a place before it has made that itself.

    Args:
        body: statements of a turn, or of a block within it.
        made: the places that turns make.
        known: those, and the parts of such, that this turn has made so far; grows.
    """
    for statement in body:
        blocks = [
            block for name in ("body", "orelse", "finalbody") if (block := getattr(statement, name, []))
        ]
        blocks += [handler.body for handler in getattr(statement, "handlers", [])]
        heads: list[ast.AST] = [statement]
        if blocks:
            heads = [
                one for one in ast.iter_child_nodes(statement) if isinstance(one, ast.expr | ast.withitem)
            ]
        for head in heads:
            if any(place in made and place not in known for place in _read(head, known)):
                return True
            known |= _whole_stores(head)
        if blocks and _blocks_read_early(statement, blocks, made, known):
            return True
    return False


def _blocks_read_early(
    statement: ast.stmt, blocks: list[list[ast.stmt]], made: set[str], known: set[str]
) -> bool:
    """Whether a block of a statement does; what only one branch of an `if` makes is not known after it."""
    after: list[set[str]] = []
    for block in blocks:
        inside = set(known)
        if _reads_early(block, made, inside):
            return True
        after.append(inside)
    if isinstance(statement, ast.If):
        known |= set.intersection(*after) if len(after) > 1 else set()
    else:
        known |= set.union(*after)
    return False


def _read(node: ast.AST, known: set[str]) -> Iterator[str]:
    """Yield the places that a statement or expression reads, without parts that are known, and without sums' own."""
    bound = {
        name.id
        for each in ast.walk(node)
        if isinstance(each, ast.comprehension)
        for name in _names(each.target)
    }
    return (place for place in _loads(node, known) if place.partition(".")[0] not in bound)


def _loads(node: ast.AST, known: set[str]) -> Iterator[str]:
    skipped: ast.AST | None = None
    if isinstance(node, ast.AugAssign):
        skipped = node.target if isinstance(node.op, _SUMS) else None
        if skipped is None:
            yield from filter(None, [_place(node.target)])
    elif isinstance(node, ast.Assign) and _adds_to_itself(node):
        assert isinstance(node.value, ast.BinOp)
        same = _place(node.targets[0])
        skipped = node.value.left if _place(node.value.left) == same else node.value.right
        yield from _loads(node.value.right if skipped is node.value.left else node.value.left, known)
        yield from _loads(node.targets[0], known)
        return
    elif isinstance(node, ast.Call) and _changes(node):
        assert isinstance(node.func, ast.Attribute)
        skipped = node.func if node.func.attr in _FILLING else None
        if skipped is not None:
            yield from _indices(node.func.value, known)
    elif isinstance(node, ast.Subscript) and (isinstance(node.ctx, ast.Store) or ast.unparse(node) in known):
        yield from _indices(node, known)
        return
    elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
        place = _place(node)
        if place is not None:
            yield place
    if skipped is not None and isinstance(node, ast.AugAssign):
        yield from _indices(skipped, known)
    for child in ast.iter_child_nodes(node):
        if child is not skipped:
            yield from _loads(child, known)


def _indices(node: ast.AST, known: set[str]) -> Iterator[str]:
    """Yield what is read to find a place: `t` of `out[:, t]`; of a call's result all that the call reads."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        if isinstance(node, ast.Subscript):
            yield from _loads(node.slice, known)
        node = node.value
    if not isinstance(node, ast.Name):
        yield from _loads(node, known)


def _adds_to_itself(assign: ast.Assign) -> bool:
    """`loss = loss + part`, and not `x = x + layer(x)`, whose part reads it again."""
    value, place = assign.value, _place(assign.targets[0])
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add) or place is None:
        return False
    sides = [_place(side) for side in (value.left, value.right) if not isinstance(side, ast.Subscript)]
    return place in sides and not isinstance(assign.targets[0], ast.Subscript)


def _made(node: ast.AST) -> Iterator[str]:
    """Yield the places that a statement gives something to, wholly or in part."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and _changes(each):
            assert isinstance(each.func, ast.Attribute)
            place = _place(each.func.value)
        elif isinstance(each, ast.Name | ast.Attribute | ast.Subscript) and isinstance(each.ctx, ast.Store):
            place = _place(each)
        else:
            continue
        if place is not None:
            yield place
            root, _, rest = place.partition(".")
            if rest and root not in ("self", "cls"):
                yield root


def _whole_stores(node: ast.AST) -> set[str]:
    """Return the places and the parts that a statement makes anew; a sum is not new."""
    if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Assign) and _adds_to_itself(node)):
        return set()
    return {
        ast.unparse(each)
        for each in ast.walk(node)
        if isinstance(each, ast.Name | ast.Attribute | ast.Subscript) and isinstance(each.ctx, ast.Store)
    }


def _filled(node: ast.AST, counters: set[str]) -> Iterator[str]:
    """Yield the parts that belong to one turn alone: `out[i]`, where the loop counts `i`."""
    for each in ast.walk(node):
        if (
            isinstance(each, ast.Subscript)
            and isinstance(each.ctx, ast.Store)
            and _is_own(each.slice, counters)
        ):
            yield ast.unparse(each)


def _is_own(index: ast.AST, counters: set[str]) -> bool:
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(isinstance(part, ast.Name) and part.id in counters for part in parts)


def _changes(call: ast.Call) -> bool:
    """Whether a call changes the object whose method it is: `append`, or a name that ends with an underscore."""
    called = call.func
    if not isinstance(called, ast.Attribute):
        return False
    return called.attr in _FILLING | _TAKING or (called.attr.endswith("_") and not called.attr.endswith("__"))


def _place(node: ast.AST) -> str | None:
    """Return the name of what a name, an attribute, or a part of one lies in: `self.h` of `self.h[i]`."""
    while isinstance(node, ast.Subscript | ast.Starred):
        node = node.value
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = _place(node.value)
        return None if base is None else f"{base}.{node.attr}"
    return None


def _names(node: ast.AST) -> Iterator[ast.Name]:
    return (one for one in ast.walk(node) if isinstance(one, ast.Name))
