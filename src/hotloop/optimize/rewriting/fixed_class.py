"""Does a call construct the same class in each run? `getattr(optim, args.optimizer)(...)` may give another one."""

from __future__ import annotations

import libcst as cst

from hotloop.model.sites import Place, Site
from hotloop.source.calls import code
from hotloop.source.draft import Editor
from hotloop.source.imports import aliases, meaning
from hotloop.source.outcome import CannotEdit
from hotloop.source.source_file import SourceFile

_FIXED = (cst.SimpleString, cst.Integer)


def require_fixed_class(source: Editor, place: Place, call: cst.Call, site: Site) -> None:
    """Raise where the class may be another in the next run, which may not know the keyword.

    Raises:
        CannotEdit: what is called is computed, or given by somebody else.
    """
    file = source.file(place.path)
    if meaning(file, call.func).split(".")[-1] == site.callee.split(".")[-1] or _is_fixed(file, call.func):
        return
    raise CannotEdit(
        f"{place.path}:{source.line(place)}: {code(call.func)} may make another {site.kind.value} in another run"
    )


def _is_fixed(file: SourceFile, func: cst.BaseExpression) -> bool:
    """Whether an expression gives the same class, or the same function, in each run."""
    if isinstance(func, cst.Subscript):
        indices = [each.slice.value for each in func.slice if isinstance(each.slice, cst.Index)]
        return len(indices) == len(func.slice) and all(isinstance(each, _FIXED) for each in indices)
    if isinstance(func, cst.Call):
        given = [arg.value for arg in func.args[:2]]
        name = meaning(file, func.func).split(".")[-1]
        if name == "getattr":
            return len(given) == 2 and isinstance(given[1], _FIXED)
        return name == "partial" and bool(given) and _is_fixed(file, given[0])
    return isinstance(func, (cst.Name, cst.Attribute)) and _is_fixed_name(file, func)


def _is_fixed_name(file: SourceFile, name: cst.Name | cst.Attribute) -> bool:
    last = name.value if isinstance(name, cst.Name) else name.attr.value
    if last == "__init__":
        return True
    if _is_parameter(file, name):
        return False
    assigned = [
        each
        for each in file.all(cst.Assign)
        if any(code(target.target).rpartition(".")[2] == last for target in each.targets)
    ]
    if assigned:
        return len(assigned) == 1 and len(assigned[0].targets) == 1 and _is_fixed(file, assigned[0].value)
    made = {each.name.value for each in file.all(cst.ClassDef)}
    made |= {each.name.value for each in file.all(cst.FunctionDef)}
    return last in made or code(name).partition(".")[0] in aliases(file)


def _is_parameter(file: SourceFile, name: cst.Name | cst.Attribute) -> bool:
    """Whether a name, or what an attribute is of, is a parameter of a function around it; `self` is none."""
    root = code(name).partition(".")[0]
    functions = [each for each in file.ancestors(name) if isinstance(each, (cst.FunctionDef, cst.Lambda))]
    return root != "self" and any(
        each.name.value == root for function in functions for each in file.under(function.params, cst.Param)
    )
