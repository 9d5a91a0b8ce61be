"""Does a copy go to the same device whenever it runs? One that also brings results to the host has to be waited for."""

from __future__ import annotations

import libcst as cst

from hotloop.source.draft import Editor
from hotloop.source.passed import given_to
from hotloop.source.source_file import SourceFile
from hotloop.source.targets import is_local, names_given, targets

HOPS = 4
"""`main` hands its device to `train`, that to a function that moves."""


def is_fixed(source: Editor, path: str, device: cst.BaseExpression, hops: int = HOPS) -> bool:
    """Whether an expression names one device: a parameter that a single call gives, a name that is given once.

    Args:
        source: the user's files.
        path: of the expression's file.
        device: the expression.
        hops: parameters, and names for other names, that are followed.
    """
    file = source.file(path)
    return all(
        _is_given_once(source, file, name, hops)
        for name in file.under(device, cst.Name)
        if name.value not in {"self", "cls"} and _is_read(file, name)
    )


def _is_read(file: SourceFile, name: cst.Name) -> bool:
    """Whether it stands for a value; `device` of `model.device` and of `f(device=0)` does not."""
    parent = file.parent(name)
    return not (
        (isinstance(parent, cst.Attribute) and parent.attr is name)
        or (isinstance(parent, cst.Arg) and parent.keyword is name)
    )


def _is_given_once(source: Editor, file: SourceFile, name: cst.Name, hops: int) -> bool:
    if _is_of_loop(file, name):
        return False
    if not is_local(file, name):
        return True
    function = file.enclosing(name, cst.FunctionDef)
    if not hops or function is None:
        return False
    given = given_to(source, file.path, name)
    if given is not None:
        return is_fixed(source, *given, hops - 1)
    if any(param.name.value == name.value for param in file.under(function.params, cst.Param)):
        return False
    values = [
        value
        for target, value in targets(file)
        if name.value in names_given(target) and file.inside(target, function)
    ]
    return len(values) == 1 and is_fixed(source, file.path, values[0], hops - 1)


def _is_of_loop(file: SourceFile, name: cst.Name) -> bool:
    for above in file.ancestors(name):
        loop = above if isinstance(above, cst.For) else getattr(above, "for_in", None)
        while loop is not None:
            if name.value in names_given(loop.target):
                return True
            loop = getattr(loop, "inner_for_in", None)
    return False
