"""The functions of a file, and which of them a call runs."""

from functools import cached_property

import libcst as cst

from hotloop.lint.infer.names import Names, dotted
from hotloop.lint.name_lists import words
from hotloop.source.source_file import SourceFile


class Functions:
    """The functions of one file."""

    def __init__(self, file: SourceFile, names: Names) -> None:
        self._file = file
        self._names = names

    @cached_property
    def by_name(self) -> dict[str, list[cst.FunctionDef]]:
        """The functions of this file by name."""
        found: dict[str, list[cst.FunctionDef]] = {}
        for function in self._file.all(cst.FunctionDef):
            found.setdefault(function.name.value, []).append(function)
        return found

    def callee(self, call: cst.Call) -> cst.FunctionDef | None:
        """The function of this file that a call surely runs."""
        name = dotted(call.func)
        if name is None:
            return None
        last = name.rpartition(".")[2]
        found = self.by_name.get(last, [])
        if name == f"self.{last}":
            own = self._file.enclosing(call, cst.ClassDef)
            methods = [one for one in found if self._class_of(one) is own]
            return methods[0] if len(methods) == 1 and own is not None else None
        if len(found) != 1 or ("." in name and last in _TOO_COMMON):
            return None
        is_method = self._class_of(found[0]) is not None
        if is_method != ("." in name) or (is_method and self._names.of(call.func)):
            return None
        return found[0]

    def returned(self, function: cst.FunctionDef) -> list[cst.BaseExpression]:
        """What the function itself returns, place by place; empty where it may return nothing or yields."""
        if self._file.under(function.body, cst.Yield):
            return []
        own = [r for r in self._file.under(function.body, cst.Return) if self._holder(r) is function]
        values = [r.value for r in own if r.value is not None]
        return values if len(values) == len(own) else []

    def _class_of(self, function: cst.FunctionDef) -> cst.CSTNode | None:
        """Return the class that a function is a method of; None: it is none."""
        holder = self._file.enclosing(function, cst.ClassDef, cst.FunctionDef)
        return holder if isinstance(holder, cst.ClassDef) else None

    def _holder(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self._file.enclosing(node, cst.FunctionDef, cst.Lambda)


# Methods that too many classes have for a unique definition in this file to be surely the one that is called.
_TOO_COMMON = words(
    """
    step update forward backward zero_grad train eval close log write run get add append to
    """
)
