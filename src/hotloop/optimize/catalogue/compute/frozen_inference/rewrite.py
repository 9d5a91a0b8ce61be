"""A model that is not trained, frozen in the user's source: inference_mode for no_grad, and norms folded beforehand."""

from __future__ import annotations

import libcst as cst

from hotloop.model.safety import Safety
from hotloop.model.sites import Place, SiteKind, Sites
from hotloop.optimize.rewriting.outcomes import not_observed
from hotloop.source.calls import code
from hotloop.source.draft import Editor
from hotloop.source.imports import global_aliases, last_import, meaning, module_name
from hotloop.source.outcome import AlreadySo, CannotEdit, Edited, Rewrite
from hotloop.source.source_file import SourceFile
from hotloop.source.statements import Line, insert_after, insert_before, line_of

FUSER = "torch.fx.experimental.optimization"


def freeze(source: Editor, sites: Sites, *, fold: bool) -> Rewrite:
    """Write it where the model was seen to be called without gradients.

    It is written only where it is asked for. What fx cannot trace (control flow that depends on values) it cannot fold,
    and says so when the program starts. A tensor made under inference_mode cannot be changed in place outside of it,
    and no source shows where all of them go; trials hand out copies.
    """
    calls = [site.places[0] for site in sites.of(SiteKind.EVALUATE) if site.places]
    calls = [place for place in dict.fromkeys(calls) if place.path in source.draft.files]
    if not calls:
        return not_observed("call of the model without gradients", "with torch.inference_mode():")
    notes = [note for place in calls for note in _inference_mode(source, place)]
    folded = [note for place in calls for note in _folded(source, place)] if fold else []
    if not notes and not folded:
        return AlreadySo("the model runs under inference_mode" + ", with its norms folded" * fold)
    return Edited((*folded, *notes), Safety.UNSAFE)


def _inference_mode(source: Editor, place: Place) -> list[str]:
    """Write it for each no_grad around a call: a `with`, or a decorator of its function."""
    notes = []
    while (found := _no_grad(source.file(place.path), source.expression(place))) is not None:
        name = module_name(source, place.path, "torch")
        found = _no_grad(source.file(place.path), source.expression(place))
        assert found is not None
        line = source.file(place.path).line(found)
        func = cst.parse_expression(f"{name}.inference_mode")
        source.change(place.path, found.func, lambda _, func=func: func)  # type: ignore[misc]
        notes.append(f"{place.path}:{line}: {name}.inference_mode()")
    return notes


def _no_grad(file: SourceFile, call: cst.CSTNode) -> cst.Call | None:
    for above in file.ancestors(call):
        given: list[cst.BaseExpression] = []
        if isinstance(above, cst.With):
            given = [each.item for each in above.items]
        elif isinstance(above, cst.FunctionDef):
            given = [each.decorator for each in above.decorators]
        for each in given:
            if isinstance(each, cst.Call) and meaning(file, each.func) in {
                "torch.no_grad",
                "torch.autograd.no_grad",
            }:
                return each
        if isinstance(above, cst.FunctionDef):
            return None
    return None


def _folded(source: Editor, place: Place) -> list[str]:
    """Fold before the outermost statement around the call in which the model is not made."""
    file = source.file(place.path)
    call = source.call(place)
    if not isinstance(call.func, cst.Name):
        raise CannotEdit(f"{place.path}:{file.line(call)}: {code(call.func)} is not a plain name")
    name = call.func.value
    scope = file.enclosing(call, cst.FunctionDef) or file.module
    if not _is_given(file, scope, name):
        raise CannotEdit(f"{place.path}:{file.line(call)}: {name} is not made in the function that calls it")
    if any(_is_folded(file, line, name) for line in file.under(scope, cst.Assign)):
        return []
    fuse = _fuser(source, place.path)
    file = source.file(place.path)
    line = _outermost(file, source.call(place), name)
    number = file.line(line)
    insert_before(source, place.path, line, f"{name} = {fuse}({name})")
    return [f"{place.path}:{number}: {name} = {fuse}({name})"]


def _fuser(source: Editor, path: str) -> str:
    """Return the name by which a file knows torch's fuser, importing it where it does not."""
    file = source.file(path)
    known = next((name for name, full in global_aliases(file).items() if full == f"{FUSER}.fuse"), None)
    if known is not None:
        return known
    if any(name.value == "fuse" for name in file.all(cst.Name)):
        raise CannotEdit(f"{path} uses the name fuse for something else")
    last = last_import(file)
    if last is None:
        raise CannotEdit(f"{path} begins without imports")
    insert_after(source, path, last, f"from {FUSER} import fuse")
    return "fuse"


def _is_given(file: SourceFile, scope: cst.CSTNode, name: str) -> bool:
    if isinstance(scope, cst.FunctionDef):
        given = [*scope.params.params, *scope.params.kwonly_params, *scope.params.posonly_params]
        if any(each.name.value == name for each in given):
            return True
    return any(
        _assigns(line, name) and (file.enclosing(line, cst.FunctionDef) or file.module) is scope
        for line in file.under(scope, cst.Assign)
    )


def _assigns(line: cst.Assign, name: str) -> bool:
    names = [cst.ensure_type(each, cst.AssignTarget).target for each in line.targets]
    flat = [part.value for each in names if isinstance(each, cst.Tuple) for part in each.elements]
    return any(isinstance(each, cst.Name) and each.value == name for each in (*names, *flat))


def _is_folded(file: SourceFile, line: cst.Assign, name: str) -> bool:
    value = line.value
    return (
        _assigns(line, name)
        and isinstance(value, cst.Call)
        and meaning(file, value.func).endswith("optimization.fuse")
    )


def _outermost(file: SourceFile, call: cst.CSTNode, name: str) -> Line:
    line = line_of(file, call)
    for above in file.ancestors(line):
        if isinstance(above, (cst.FunctionDef, cst.ClassDef)):
            break
        if isinstance(above, (cst.With, cst.For, cst.While)):
            if any(_assigns(each, name) for each in file.under(above, cst.Assign)):
                break
            line = above
        elif isinstance(above, (cst.If, cst.Try)):
            break
    return line
