"""What a piece of code reads or writes, by name: `running`, `self.losses`, and what goes to the output."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

OUTPUT = "<output>"
_LOGGERS = frozenset({"logging", "logger", "log", "LOGGER", "_logger", "LOG", "sys.stdout", "sys.stderr"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def path_of(node: ast.AST) -> str:
    """Return the dotted name of an expression, an index left out; empty: it has none."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Subscript):
        return path_of(node.value)
    if isinstance(node, ast.Attribute):
        owner = path_of(node.value) if not isinstance(node.value, ast.Subscript) else ""
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def writes_output(call: ast.Call) -> bool:
    """Whether a call prints or logs for people."""
    if isinstance(call.func, ast.Name):
        return call.func.id == "print"
    owner = path_of(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    return owner in _LOGGERS or owner.endswith(".logger") or path_of(call.func) == "tqdm.write"


def overlaps(path: str, other: str) -> bool:
    """Whether one of two names is the other, or a part of it."""
    return path == other or path.startswith(f"{other}.") or other.startswith(f"{path}.")


def mentions(node: ast.AST) -> set[str]:
    """Return every dotted name in a piece of code, and the output if it writes there."""
    found: set[str] = set()
    todo = [node]
    while todo:
        here = todo.pop()
        if isinstance(here, ast.Call) and writes_output(here):
            found.add(OUTPUT)
        path = path_of(here) if isinstance(here, (ast.Name, ast.Attribute)) else ""
        if path:
            found.add(path)
        else:
            todo.extend(ast.iter_child_nodes(here))
    return found


def stored(node: ast.AST) -> set[str]:
    """Return the plain names that a piece of code assigns."""
    return {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, (ast.Store, ast.Del))
    }


@dataclass
class Reach:
    """What calls of a file's own functions may touch.

    Attributes:
        names: of the module, as far as functions do not bind them.
        attributes: of any object.
        writes: whether something is printed or logged.
    """

    names: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    writes: bool = False

    def touches(self, path: str) -> bool:
        """Whether one of the functions may read or write this."""
        if path == OUTPUT:
            return self.writes
        root, _, attribute = path.partition(".")
        return attribute.split(".")[0] in self.attributes if attribute else root in self.names


class LocalFunctions:
    """The functions of a file.

    Args:
        tree: of the file.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._plain: dict[str, list[ast.AST]] = {}
        self._methods: dict[str, list[ast.AST]] = {}
        for owner in ast.walk(tree):
            for child in ast.iter_child_nodes(owner):
                if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    into = self._methods if isinstance(owner, ast.ClassDef) else self._plain
                    into.setdefault(child.name, []).append(child)

    def reach(self, parts: Iterable[ast.AST], but: Iterable[ast.AST]) -> Reach:
        """Return what the functions that some code calls by name may touch, those that they call included."""
        reach, seen = Reach(), {id(each) for each in but}
        todo = list(parts)
        while todo:
            for function in self._called(todo.pop()):
                if id(function) in seen:
                    continue
                seen.add(id(function))
                todo.append(function)
                bound = _bound(function)
                for path in mentions(function):
                    root, *rest = path.split(".")
                    reach.attributes.update(rest)
                    reach.writes |= path == OUTPUT
                    if root not in bound:
                        reach.names.add(root)
        return reach

    def _called(self, node: ast.AST) -> Iterator[ast.AST]:
        for call in ast.walk(node):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                yield from self._plain.get(call.func.id, ())
            elif isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                yield from self._methods.get(call.func.attr, ())

    def free_names(self) -> set[str]:
        """Return the names that some function of the file reads from outside of itself."""
        functions = [
            each for group in (self._plain, self._methods) for same in group.values() for each in same
        ]
        found: set[str] = set()
        for function in functions:
            bound = _bound(function)
            found |= {path.split(".")[0] for path in mentions(function)} - bound
        return found - {OUTPUT}


def _bound(function: ast.AST) -> set[str]:
    shared = {
        name
        for each in ast.walk(function)
        if isinstance(each, (ast.Global, ast.Nonlocal))
        for name in each.names
    }
    arguments = {each.arg for each in ast.walk(function) if isinstance(each, ast.arg)}
    return (stored(function) | arguments) - shared


def read_by_inner_functions(scope: ast.AST) -> set[str]:
    """Return the names that functions written inside a function mention."""
    inner = [each for each in ast.walk(scope) if isinstance(each, _FUNCTIONS) and each is not scope]
    return {path.split(".")[0] for each in inner for path in mentions(each)} - {OUTPUT}
