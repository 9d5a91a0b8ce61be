"""The statements around the forward: the call itself, and the loss that is computed from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from hotloop.model.sites import Place, Site, SiteKind, Sites
from hotloop.source.calls import code
from hotloop.source.draft import Editor
from hotloop.source.outcome import CannotEdit
from hotloop.source.source_file import SourceFile, below
from hotloop.source.statements import line_of, siblings


def forward_place(source: Editor, site: Site) -> Place:
    """Return the place of the user's own call of the model.

    Raises:
        CannotEdit: a library calls it.
    """
    place = site.places[0]
    source.call(place)
    return place


def forward_line(source: Editor, place: Place) -> cst.SimpleStatementLine:
    """Return the statement that calls the model.

    Raises:
        CannotEdit: it is called in the head of a compound statement.
    """
    line = line_of(source.file(place.path), source.call(place))
    if isinstance(line, cst.SimpleStatementLine):
        return line
    raise CannotEdit(f"{place.path}:{source.line(place)}: the model is called in the head of a statement")


def up_to_the_loss(source: Editor, sites: Sites, place: Place) -> Sequence[cst.BaseStatement] | None:
    """Return the statements from a forward to the last one that makes the loss of the next backward.

    None: the loss is not made in the same block, so where it is made cannot be told.
    """
    file = source.file(place.path)
    block = list(siblings(file, forward_line(source, place)))
    first = block.index(forward_line(source, place))
    ends: dict[int, cst.Call] = {}
    for at in (at for site in sites.of(SiteKind.BACKWARD) for at in site.places if _same_function(at, place)):
        call = source.call(at)
        line = line_of(file, call)
        if line in block and block.index(line) > first:
            ends[block.index(line)] = call
    if not ends:
        return None
    between = block[first : min(ends)]
    return between[: _last_that_makes(between, _names_in(ends[min(ends)])) + 1]


def loops(source: Editor, lines: Sequence[cst.BaseStatement]) -> bool:
    """Whether statements loop, or call something of the program's own that does: a function, a method, a module."""
    return any(map(_has_loop, lines)) or any(
        _has_loop(function) for name in _called(lines) for function in _functions(source, name)
    )


def _has_loop(node: cst.CSTNode) -> bool:
    return any(isinstance(each, (cst.For, cst.While, cst.CompFor)) for each in below(node))


def _called(lines: Sequence[cst.BaseStatement]) -> set[str]:
    """Return the last names of what is called: `compute_loss` of `self.compute_loss(out, y)`."""
    calls = (node for line in lines for node in below(line) if isinstance(node, cst.Call))
    return {code(call.func).rpartition(".")[2] for call in calls}


def _functions(source: Editor, name: str) -> Iterator[cst.FunctionDef]:
    """Yield the program's functions of a name, and the `forward` of classes that something of that name is made of."""
    for file in source.draft.files.values():
        yield from (each for each in file.all(cst.FunctionDef) if each.name.value == name)
        for assign in file.all(cst.Assign):
            made = assign.value
            if isinstance(made, cst.Call) and any(
                code(each.target).rpartition(".")[2] == name for each in assign.targets
            ):
                yield from _forwards(source, code(made.func).rpartition(".")[2])


def _forwards(source: Editor, name: str) -> Iterator[cst.FunctionDef]:
    for file in source.draft.files.values():
        for cls in file.all(cst.ClassDef):
            if cls.name.value == name:
                yield from (
                    each
                    for each in file.under(cls, cst.FunctionDef)
                    if each.name.value in {"forward", "__call__"}
                )


def _same_function(one: Place, other: Place) -> bool:
    return (one.path, one.function) == (other.path, other.function)


def _last_that_makes(lines: Sequence[cst.BaseStatement], names: set[str]) -> int:
    """Return the number of the last statement that gives one of the names a value; the first where none does."""
    made = [at for at, line in enumerate(lines) if _names_given(line) & names]
    return made[-1] if made else 0


def _names_in(call: cst.Call) -> set[str]:
    """Return the names that a backward is called on or with: `loss` of `scaler.scale(loss / n).backward()`."""
    return {node.value for node in below(call) if isinstance(node, cst.Name)}


def _names_given(line: cst.BaseStatement) -> set[str]:
    kinds = (cst.AssignTarget, cst.AugAssign, cst.AnnAssign)
    targets = [node.target for node in below(line) if isinstance(node, kinds)]
    return {node.value for target in targets for node in below(target) if isinstance(node, cst.Name)}


def inside_with(file: SourceFile, node: cst.CSTNode, *ends: str) -> bool:
    """Whether a node stands in a `with` of something whose name ends so: `.autocast`."""
    return any(
        isinstance(above, cst.With)
        and any(
            isinstance(item.item, cst.Call) and code(item.item.func).endswith(ends) for item in above.items
        )
        for above in file.ancestors(node)
    )
