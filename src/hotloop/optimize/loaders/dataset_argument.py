"""The argument that gives one loader its data set, and no other loader: found through functions that make several."""

from __future__ import annotations

import libcst as cst

from hotloop.model.sites import Place, Site, SiteKind, Sites
from hotloop.optimize.rewriting.constructions import keyword_place
from hotloop.source.calls import argument, code
from hotloop.source.draft import Editor
from hotloop.source.outcome import CannotEdit


def dataset_argument(source: Editor, site: Site, sites: Sites) -> tuple[Place, cst.Arg]:
    """Return the call, and which of its arguments, that gives this loader its data set.

    Where one expression makes loaders that do not feed training, too, it is an argument of the function that it stands
    in, as this loader was asked for.

    Raises:
        CannotEdit: it cannot be told, or it is the data set of other loaders, too.
    """
    place, own = keyword_place(source, site)
    given = argument(source.call(place), "dataset", 0 if own else None)
    if given is None:
        raise CannotEdit(f"{place.path}:{source.line(place)}: which argument is the data set cannot be told")
    _refuse_several(source, place)
    level = site.places.index(place)
    while makes_others(site, sites, level):
        name, position = _parameter(source, place, given)
        level += 1
        if level >= len(site.places):
            raise _shared(source, place)
        place, inner = site.places[level], place
        call = source.call(place)
        found = argument(call, name, position)
        if found is None or not _calls_what_holds(call, inner):
            raise _shared(source, inner)
        given = found
    return place, given


def makes_others(site: Site, sites: Sites, level: int) -> bool:
    """Whether the same call, asked for from the same places, makes loaders that do not feed training."""
    within = site.places[: level + 1]
    return any(
        not other.in_step and other.places[: level + 1] == within for other in sites.of(SiteKind.LOADER)
    )


def _refuse_several(source: Editor, place: Place) -> None:
    """A comprehension, or a loop over things written out, makes several loaders, which look the same from outside.

    Raises:
        CannotEdit: the call is in one.
    """
    file, node = source.file(place.path), source.call(place)
    for above in file.ancestors(node):
        if isinstance(above, (cst.FunctionDef, cst.Lambda)):
            return
        if isinstance(above, cst.BaseComp) or (
            isinstance(above, cst.For) and isinstance(above.iter, (cst.List, cst.Tuple))
        ):
            raise _shared(source, place)


def _shared(source: Editor, place: Place) -> CannotEdit:
    return CannotEdit(
        f"{place.path}:{source.line(place)} may make loaders that do not feed training, too; "
        "make the training loader by a call of its own"
    )


def _parameter(source: Editor, place: Place, given: cst.Arg) -> tuple[str, int | None]:
    """Return the name of the parameter that is handed on as the data set, and its place in a call.

    Raises:
        CannotEdit: it is no parameter of the function that makes the loader.
    """
    file = source.file(place.path)
    function = file.enclosing(source.call(place), cst.FunctionDef)
    if function is None or not isinstance(given.value, cst.Name):
        raise _shared(source, place)
    name = given.value.value
    positional = [param.name.value for param in (*function.params.posonly_params, *function.params.params)]
    named = [param.name.value for param in function.params.kwonly_params]
    assigned = any(
        target.target.deep_equals(given.value)
        for assign in file.under(function, cst.Assign)
        for target in assign.targets
    )
    if assigned or name not in [*positional, *named]:
        raise _shared(source, place)
    if name not in positional:
        return name, None
    return name, positional.index(name) - (positional[0] in {"self", "cls"})


def _calls_what_holds(call: cst.Call, inner: Place) -> bool:
    """Whether a call is that of the function in which the inner place stands, or of its class."""
    function = inner.function.split(".")
    called = code(call.func).rpartition(".")[2]
    return called == function[-1] or (function[-1] == "__init__" and function[-2:-1] == [called])
