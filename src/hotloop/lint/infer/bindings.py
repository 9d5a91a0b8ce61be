"""Which statement gives a name its value, scope by scope."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from hotloop.lint.infer.names import dotted
from hotloop.source.source_file import SourceFile


@dataclass(frozen=True)
class Binding:
    """One place that gives a name its value."""

    number: int
    value: cst.BaseExpression | None
    """None: the value is not an expression (a parameter, an import, an exception)."""
    element: bool
    """The name is an element of the value: unpacking, a loop's target."""
    statement: cst.CSTNode


class Bindings:
    """The bindings of one file."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file

    def of(self, scope: int, name: str) -> list[Binding]:
        """The bindings of a name in a scope, in reading order."""
        return self._all.get((scope, name), [])

    @cached_property
    def _all(self) -> dict[tuple[int, str], list[Binding]]:
        """Bindings by scope and name, in reading order."""
        found: dict[tuple[int, str], list[Binding]] = defaultdict(list)
        for assign in self._file.all(cst.Assign):
            for target in assign.targets:
                self._bind(found, target.target, assign.value, assign)
        for annotated in self._file.all(cst.AnnAssign):
            if annotated.value is not None:
                self._bind(found, annotated.target, annotated.value, annotated)
        for augmented in self._file.all(cst.AugAssign):
            self._bind(found, augmented.target, augmented.value, augmented)
        for named in self._file.all(cst.NamedExpr):
            self._bind(found, named.target, named.value, named)
        for loop in self._file.all(cst.For):
            self._bind(found, loop.target, loop.iter, loop, element=True)
        for item in self._file.all(cst.WithItem):
            if item.asname is not None:
                self._bind(found, item.asname.name, None, item)
        for bindings in found.values():
            bindings.sort(key=lambda binding: binding.number)
        return found

    def _bind(
        self,
        found: dict[tuple[int, str], list[Binding]],
        target: cst.CSTNode,
        value: cst.BaseExpression | None,
        statement: cst.CSTNode,
        element: bool = False,
    ) -> None:
        if isinstance(target, (cst.Tuple, cst.List)):
            pairs = self._unpacked(target, value)
            for part, given in pairs:
                self._bind(found, part, given or value, statement, element=element or given is None)
            return
        name = dotted(target)
        if name is None:
            return
        scope = self.class_scope(target) if name.startswith("self.") else self.scope(target)
        number = self._file.number(statement)
        if not isinstance(statement, cst.For):
            number = self._file.last_number(statement)  # a value is read before the name is bound
        found[(scope, name)].append(Binding(number, value, element, statement))

    @staticmethod
    def _unpacked(
        target: cst.Tuple | cst.List, value: cst.BaseExpression | None
    ) -> list[tuple[cst.BaseExpression, cst.BaseExpression | None]]:
        parts = [element.value for element in target.elements]
        if isinstance(value, (cst.Tuple, cst.List)) and len(value.elements) == len(parts):
            return [(part, given.value) for part, given in zip(parts, value.elements, strict=True)]
        return [(part, None) for part in parts]

    def scope(self, node: cst.CSTNode) -> int:
        """The function or class in which the node stands; 0 for the module."""
        outer = self._file.enclosing(node, cst.FunctionDef, cst.Lambda, cst.ClassDef)
        return id(outer) if outer is not None else 0

    def class_scope(self, node: cst.CSTNode) -> int:
        """The class in which the node stands; 0 where there is none."""
        outer = self._file.enclosing(node, cst.ClassDef)
        return id(outer) if outer is not None else 0
