"""Lines of a program that make a tensor on the host and move it, or move one that does not change."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

FACTORIES = frozenset({"zeros", "ones", "empty", "full", "arange", "linspace", "eye"})
"""Those that draw no random numbers: a device would draw others."""
_SETUP = frozenset({"__init__", "setup", "setUp", "reset_parameters"})


@dataclass(frozen=True)
class Move:
    """One `.to(...)` or `.cuda(...)`.

    Attributes:
        call: the whole expression.
        made: the factory's call whose result is moved; None: something that is there already is moved.
    """

    call: ast.Call
    made: ast.Call | None


def moves_of(tree: ast.Module) -> list[Move]:
    """Return the moves of a file that its steps need not make."""
    return list(_Finder(tree).found())


class _Finder:
    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._torch = {
            alias.asname or alias.name
            for each in ast.walk(tree)
            if isinstance(each, ast.Import)
            for alias in each.names
            if alias.name == "torch"
        }

    def found(self) -> Iterator[Move]:
        yield from self._in(self._tree, None, None)

    def _in(self, node: ast.AST, function: ast.AST | None, loop: ast.AST | None) -> Iterator[Move]:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name in _SETUP:
                return
            function, loop = node, None
        elif isinstance(node, (ast.For, ast.While)):
            loop = node
        if isinstance(node, ast.Call) and (function is not None or loop is not None):
            move = self._move(node, function, loop)
            if move is not None:
                yield move
        for child in ast.iter_child_nodes(node):
            yield from self._in(child, function, loop)

    def _move(self, call: ast.Call, function: ast.AST | None, loop: ast.AST | None) -> Move | None:
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in {"to", "cuda"}:
            return None
        owner = call.func.value
        if isinstance(owner, ast.Call):
            return Move(call, owner) if self._is_factory(owner) else None
        path = _path(owner)
        stays = path and not _is_changed(path, function, loop) and _names_device(call)
        return Move(call, None) if stays and not _result_changes(call, function or self._tree) else None

    def _is_factory(self, call: ast.Call) -> bool:
        func = call.func
        return (
            isinstance(func, ast.Attribute)
            and isinstance(func.value, ast.Name)
            and func.value.id in self._torch
            and func.attr in FACTORIES
            and not any(isinstance(each, ast.Starred) for each in call.args)
            and not {each.arg for each in call.keywords}
            & {None, "device", "out", "requires_grad", "pin_memory"}
        )


def _path(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    owner = _path(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{owner}.{node.attr}" if owner and isinstance(node, ast.Attribute) else ""


def _names_device(call: ast.Call) -> bool:
    """Whether the call may name a device: `.to(torch.float16)` does not."""
    given = [*call.args, *(each.value for each in call.keywords if each.arg == "device")]
    return isinstance(call.func, ast.Attribute) and (call.func.attr == "cuda" or bool(given))


def _is_changed(path: str, function: ast.AST | None, loop: ast.AST | None) -> bool:
    """Whether what is moved may be another thing each time: the loop assigns it, or the function is given it."""
    root = path.partition(".")[0]
    for within in (loop, function):
        if within is None:
            continue
        if any(_path(each) == path for each in ast.walk(within) if _is_stored(each)):
            return True
        stored = {each.id for each in ast.walk(within) if isinstance(each, ast.Name) and _is_stored(each)}
        if root in stored and within is loop:
            return True
    if loop is not None or function is None:
        return False
    bound = {each.arg for each in ast.walk(function) if isinstance(each, ast.arg)}
    bound |= {each.id for each in ast.walk(function) if isinstance(each, ast.Name) and _is_stored(each)}
    return root in bound and not (root == "self" and "." in path)


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, (ast.Store, ast.Del))


def _result_changes(call: ast.Call, within: ast.AST) -> bool:
    """Whether the moved tensor is changed in place, as far as its name shows."""
    names = {
        target.id
        for each in ast.walk(within)
        if isinstance(each, ast.Assign) and each.value is call
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    for each in ast.walk(within):
        if isinstance(each, ast.Attribute) and each.attr.endswith("_") and not each.attr.endswith("__"):
            changed = each.value
        elif isinstance(each, ast.AugAssign):
            changed = each.target
        elif (isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store)) or (
            isinstance(each, ast.keyword) and each.arg == "out"
        ):
            changed = each.value
        else:
            continue
        if changed is call or _path(changed) in names:
            return True
    return False
