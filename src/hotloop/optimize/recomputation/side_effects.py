"""Why a module cannot be computed twice: it changes more than its output, or draws numbers that are not torch's."""

from __future__ import annotations

import ast
import inspect
import random
import textwrap
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

_MUTATING = frozenset(
    {
        "add", "append", "appendleft", "clear", "extend", "insert", "pop", "popleft", "register_buffer", "remove",
        "setdefault", "update",
    }
)  # fmt: skip
"""Methods of the builtin containers, and of modules, that change them."""
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_SPEAKING = frozenset({"print", "input", "open"})


def side_effect(module: Any) -> str:
    """Return what else happens when a module is called, as a clause; empty: it only computes, as far as it can be read.

    Args:
        module: with all of its parts.
    """
    for part in module.modules():
        reason = _of_part(part) or _of_code(type(part))
        if reason:
            return f"{type(part).__name__} {reason}"
    return ""


def _of_part(part: Any) -> str:
    from torch import Generator
    from torch.nn import RNNBase, SyncBatchNorm

    if any(getattr(part, name, None) for name in _HOOKS):
        return "has hooks"
    if "forward" in vars(part):
        return "has a forward of its own instance"
    if isinstance(part, SyncBatchNorm):
        return "exchanges its statistics with other ranks"
    if isinstance(part, RNNBase) and part.dropout:
        return "drops between its layers inside a library, whose random state is not restored"
    if type(part).__name__ == "_SpectralNorm":
        return "iterates on its estimate in every forward"
    drawn = (Generator, random.Random)
    if any(isinstance(value, drawn) or _is_numpy_generator(value) for value in vars(part).values()):
        return "draws from a generator of its own"
    return ""


def _is_numpy_generator(value: Any) -> bool:
    return type(value).__module__.startswith("numpy.random")


def _of_code(cls: type) -> str:
    """Look at the forward of a class and at what it calls of the same package."""
    pending: list[Any] = [_plain(getattr(cls, "forward", None))]
    seen: set[Any] = set()
    while pending:
        function = pending.pop()
        if not isinstance(function, FunctionType) or function in seen or _is_torch_s(function):
            continue
        seen.add(function)
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        except (OSError, TypeError, SyntaxError):
            return f"has a {function.__name__} whose source cannot be read"
        code = _Code(function, tree)
        if reason := code.reason():
            return reason
        pending += code.called(cls)
    return ""


def _plain(function: Any) -> Any:
    return inspect.unwrap(function) if callable(function) else None


def _is_torch_s(function: Any) -> bool:
    return str(function.__module__).partition(".")[0] == "torch"


class _Code:
    """The code of one function.

    Args:
        function: with its globals.
        tree: of its source.
    """

    def __init__(self, function: FunctionType, tree: ast.AST) -> None:
        self._function = function
        self._globals = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
        self._nodes = list(ast.walk(tree))
        arguments = [
            each.arg for each in self._nodes if isinstance(each, ast.arg)
        ]  # of functions within it, too
        stored = {
            each.id for each in self._nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        }
        self._locals = {*arguments, *stored} - {"self"}
        self._aliases = {name for each in self._nodes for name in self._names_of_kept(each)}
        """Names that stand for what outlives the call: `seen = self.seen`."""

    def reason(self) -> str:
        """Return what it does beside computing; empty: nothing that can be read in it."""
        return next(filter(None, map(self._of_node, self._nodes)), "")

    def called(self, cls: type) -> Iterator[Any]:
        """Yield functions that it calls, of its class and of its own package."""
        package = self._function.__module__.partition(".")[0]
        for each in self._nodes:
            if isinstance(each, ast.Attribute) and _root(each) == "self" and isinstance(each.value, ast.Name):
                yield _plain(getattr(cls, each.attr, None))
            elif isinstance(each, ast.Name) and each.id not in self._locals:
                value = _plain(self._globals.get(each.id))
                if isinstance(value, FunctionType) and value.__module__.partition(".")[0] == package:
                    yield value

    def _of_node(self, node: ast.AST) -> str:
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            return f"assigns to {', '.join(node.names)}"
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            return f"assigns to {ast.unparse(node)}" if self._is_kept(node) else ""
        if isinstance(node, ast.Call):
            return self._of_call(node)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return "draws random numbers that are not torch's" if self._draws(node) else ""
        return ""

    def _of_call(self, call: ast.Call) -> str:
        name = ast.unparse(call.func)
        last = name.rpartition(".")[2]
        if isinstance(call.func, ast.Name) and last in _SPEAKING and last not in self._locals:
            return f"calls {last}()"
        if any(word.arg == "generator" for word in call.keywords):
            return "draws from a generator of its own"
        if last == "checkpoint":
            return "recomputes by itself"
        if last in {"backward", "manual_seed"} or name.endswith("autograd.grad"):
            return f"calls {last}()"
        if isinstance(call.func, ast.Attribute) and last in _MUTATING and _root(call.func) in self._aliases:
            return f"calls {name}()"
        changes = last in _MUTATING or (last.endswith("_") and not last.endswith("__"))
        if changes and isinstance(call.func, ast.Attribute) and self._is_kept(call.func.value):
            return f"calls {name}()"
        return ""

    def _is_kept(self, node: ast.AST) -> bool:
        """Whether something outlives the call: an attribute of the module, a global that is no module."""
        root = _root(node)
        if root is None or root in self._locals:
            return False
        return root == "self" or not isinstance(self._globals.get(root), ModuleType)

    def _names_of_kept(self, node: ast.AST) -> Iterator[str]:
        """Yield the name that a statement gives to something that outlives the call."""
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            targets, value = node.targets if isinstance(node, ast.Assign) else [node.target], node.value
        elif isinstance(node, (ast.For, ast.comprehension)):
            targets, value = [node.target], node.iter
        else:
            return
        if value is not None and any(map(self._is_kept, _chosen(value))):
            yield from (each.id for each in targets if isinstance(each, ast.Name))

    def _draws(self, node: ast.Name | ast.Attribute) -> bool:
        value = self._value(node)
        if value is None or value is random or isinstance(value, random.Random):
            return value is not None
        owner = getattr(value, "__self__", None)
        if isinstance(owner, random.Random):
            return True
        name = value.__name__ if isinstance(value, ModuleType) else type(owner).__module__
        return name.startswith("numpy.random")

    def _value(self, node: ast.AST) -> Any:
        """Return what a dotted name of the globals stands for; None: it is none."""
        if isinstance(node, ast.Name):
            return None if node.id in self._locals else self._globals.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self._value(node.value)
            return getattr(owner, node.attr, None) if isinstance(owner, ModuleType) else None
        return None


def _chosen(value: ast.AST) -> list[Any]:
    """Return the expressions one of which a value is: both of `a if condition else b`, and of `a or b`."""
    if isinstance(value, ast.IfExp):
        return [value.body, value.orelse]
    return value.values if isinstance(value, ast.BoolOp) else [value]


def _root(node: ast.AST) -> str | None:
    """Return the name at the beginning of `a.b[c].d`; None: it begins with something else."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
