"""What the program gives a parameter of one of its functions, where one call alone gives it."""

from __future__ import annotations

import libcst as cst

from hotloop.source.calls import argument
from hotloop.source.draft import Editor
from hotloop.source.source_file import SourceFile
from hotloop.source.targets import rebound_in, targets

Written = tuple[str, cst.BaseExpression]
"""An expression and the path of its file."""


def given_to(source: Editor, path: str, name: cst.Name) -> Written | None:
    """Return the argument, or the default, that a name inside a function stands for; None: it cannot be told."""
    file = source.file(path)
    function = file.enclosing(name, cst.FunctionDef, cst.Lambda)
    if not isinstance(function, cst.FunctionDef) or function.decorators or name.value in rebound_in(function):
        return None
    positions = [*function.params.posonly_params, *function.params.params]
    parameters = {each.name.value: each for each in (*positions, *function.params.kwonly_params)}
    parameter = parameters.get(name.value)
    call = _only_call(source, file, function)
    if parameter is None or call is None or any(arg.star for arg in call[1].args):
        return None
    bound = 1 if file.enclosing(function, cst.ClassDef) is not None else 0  # `self` is not in the call
    position = positions.index(parameter) - bound if parameter in positions else None
    given = argument(call[1], name.value, position)
    if given is not None:
        return call[0], given.value
    return (path, parameter.default) if parameter.default is not None else None


def kept_by_self(file: SourceFile, value: cst.Attribute) -> cst.Name | None:
    """Return the name that `self.key` was set to, where the class sets it once; None: it does otherwise."""
    own = file.enclosing(value, cst.ClassDef)
    if own is None or not isinstance(value.value, cst.Name) or value.value.value != "self":
        return None
    set_to = [
        right
        for target, right in targets(file)
        if isinstance(target, cst.Attribute) and target.deep_equals(value) and file.inside(target, own)
    ]
    return set_to[0] if len(set_to) == 1 and isinstance(set_to[0], cst.Name) else None


def _only_call(source: Editor, file: SourceFile, function: cst.FunctionDef) -> tuple[str, cst.Call] | None:
    """Return the one call of a function, or of the class whose `__init__` it is; None: it is not used so."""
    own = file.enclosing(function, cst.ClassDef)
    if own is not None and function.name.value != "__init__":
        return None
    name = own.name.value if own is not None else function.name.value
    found: list[tuple[str, cst.Call]] = []
    for path, each in source.draft.files.items():
        for use in each.all(cst.Name):
            parent = each.parent(use)
            if use.value != name or isinstance(parent, cst.ImportAlias) or parent is (own or function):
                continue
            whole = parent if isinstance(parent, cst.Attribute) and parent.attr is use else use
            call = each.parent(whole)
            if not isinstance(call, cst.Call) or call.func is not whole:
                return None
            found.append((path, call))
    return found[0] if len(found) == 1 else None
