"""What the statements of a file give names and attributes to."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from hotloop.source.source_file import SourceFile, below

_FUNCTIONS = (cst.FunctionDef, cst.Lambda)
_COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)
_GIVES = (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For, cst.CompFor)


def targets(file: SourceFile) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Return what stands on the left of each assignment, and what stands on its right."""
    for assign in file.all(cst.Assign):
        for target in assign.targets:
            yield target.target, assign.value
    for annotated in file.all(cst.AnnAssign):
        if annotated.value is not None:
            yield annotated.target, annotated.value
    for walrus in file.all(cst.NamedExpr):
        yield walrus.target, walrus.value
    for added in file.all(cst.AugAssign):
        yield added.target, added.value


def names_given(target: cst.BaseExpression) -> set[str]:
    """Return the names that a target gives: of `a, (b, self.c)` they are `a`, `b` and `c`."""
    if isinstance(target, cst.Name):
        return {target.value}
    if isinstance(target, cst.Attribute):
        return {target.attr.value}
    if isinstance(target, (cst.Tuple, cst.List)):
        return {name for element in target.elements for name in names_given(element.value)}
    return set()


def is_local(file: SourceFile, name: cst.Name) -> bool:
    """Whether a function around a name gives it a meaning of its own: a parameter, a variable, a loop's."""
    scopes = [above for above in file.ancestors(name) if isinstance(above, (*_FUNCTIONS, *_COMPREHENSIONS))]
    return any(name.value in parameters_in(scope) | rebound_in(scope) for scope in scopes)


def is_global(file: SourceFile, target: cst.BaseExpression, name: str) -> bool:
    """Whether a target gives a name of the module: outside of functions and classes, or where `global` says so."""
    if name not in _plain(target):
        return False
    inner = file.enclosing(target, cst.FunctionDef, cst.ClassDef)
    return inner is None or any(
        each.name.value == name for line in file.under(inner, cst.Global) for each in line.names
    )


def parameters_in(scope: cst.CSTNode) -> set[str]:
    """Return the parameters of a function, and of those in it."""
    return {node.name.value for node in below(scope) if isinstance(node, cst.Param)}


def rebound_in(scope: cst.CSTNode) -> set[str]:
    """Return the names that are given anywhere in a function by assignments, loops and `as`."""
    given: set[str] = set()
    for node in below(scope):
        if isinstance(node, _GIVES):
            given |= _plain(node.target)
        elif isinstance(node, cst.AsName):
            given |= _plain(node.name)
    return given


def _plain(target: cst.BaseExpression) -> set[str]:
    return set() if isinstance(target, cst.Attribute) else names_given(target)
