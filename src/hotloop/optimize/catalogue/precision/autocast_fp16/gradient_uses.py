"""Where a program clips or reads its gradients: from there on they must not be scaled any more."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from hotloop.model.sites import Place, SiteKind, Sites
from hotloop.source.draft import Editor
from hotloop.source.outcome import CannotEdit
from hotloop.source.source_file import SourceFile
from hotloop.source.statements import Line, line_of, siblings

_CLIPPING = frozenset({"clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "get_total_norm"})


def first_use_of_gradients(source: Editor, sites: Sites, step: Place) -> Line | None:
    """Return the first statement beside the step that clips or reads gradients; None: there is none.

    Raises:
        CannotEdit: gradients are used where the step is not near, so how often they would be unscaled cannot be told.
    """
    file = source.file(step.path)
    line = line_of(file, source.call(step))
    block = list(siblings(file, line))
    observed = [_beside(source, site.places, step.path, block) for site in sites.of(SiteKind.CLIP)]
    found = [block.index(each) for each in observed if each is not None]
    for path, node in _uses(source):
        use = _holding(file, node, block) if path == step.path else None
        if use is None:
            # What a helper does was seen from the statement that calls it.
            if _is_within_observed(source, sites, path, node):
                continue
            where = f"{path}:{source.file(path).line(node)}"
            raise CannotEdit(f"{where} uses gradients, which would be scaled there")
        found.append(block.index(use))
    before = [at for at in found if at < block.index(line)]
    first = block[min(before)] if before else None
    assert first is None or isinstance(first, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    return first


def _beside(
    source: Editor, places: tuple[Place, ...], path: str, block: list[cst.BaseStatement]
) -> cst.BaseStatement | None:
    """Return the statement of the block that an observed clipping was called from.

    Raises:
        CannotEdit: it was called from none.
    """
    file = source.file(path)
    held = (_holding(file, source.call(place), block) for place in places if place.path == path)
    found = next((line for line in held if line is not None), None)
    if found is None:
        raise CannotEdit(f"{places[0].path}:{source.line(places[0])} clips gradients away from the step")
    return found


def _holding(file: SourceFile, node: cst.CSTNode, block: list[cst.BaseStatement]) -> cst.BaseStatement | None:
    above = [node, *file.ancestors(node)]
    return next((line for line in block if any(line is each for each in above)), None)


def _uses(source: Editor) -> Iterator[tuple[str, cst.CSTNode]]:
    for path, file in source.draft.files.items():
        for attribute in file.all(cst.Attribute):
            name = attribute.attr.value
            if name in _CLIPPING or (name == "grad" and not _is_cleared(file, attribute)):
                yield path, attribute
        for call in file.all(cst.Call):
            if isinstance(call.func, cst.Name) and call.func.value in _CLIPPING:
                yield path, call


def _is_cleared(file: SourceFile, attribute: cst.Attribute) -> bool:
    """Whether it is `p.grad = None`, `p.grad.zero_()` or torch's own `autograd.grad`."""
    parent = file.parent(attribute)
    if isinstance(parent, cst.AssignTarget):
        return True
    if isinstance(parent, cst.Attribute):
        return parent.attr.value in {"zero_", "requires_grad_"}
    return isinstance(attribute.value, cst.Attribute) and attribute.value.attr.value == "autograd"


def _is_within_observed(source: Editor, sites: Sites, path: str, node: cst.CSTNode) -> bool:
    file = source.file(path)
    inner = {id(each) for each in (node, *file.ancestors(node))}
    return any(
        id(source.call(site.places[0])) in inner
        for site in sites.of(SiteKind.CLIP)
        if site.places[0].path == path
    )
