"""Loaders that make their batches in the training process: without workers, and without what needs workers."""

from __future__ import annotations

import libcst as cst

from hotloop.model.sites import Place, Site
from hotloop.optimize.rewriting.constructions import keyword_place, remove_keyword, set_keywords
from hotloop.source.calls import argument, code, overrides, with_argument
from hotloop.source.draft import Editor
from hotloop.source.imports import meaning
from hotloop.source.keywords import Changes
from hotloop.source.outcome import CannotEdit

POSITION = 5
"""Of num_workers among DataLoader's parameters."""
_NEUTRAL = {
    "prefetch_factor": "None",
    "persistent_workers": "False",
    "timeout": "0",
    "multiprocessing_context": "None",
}
"""What DataLoader refuses, or asserts on, without workers; these values it takes with and without."""
_POSITIONS = {"timeout": 9, "multiprocessing_context": 11}


def without_workers(source: Editor, site: Site) -> Changes:
    """Give a loader no workers, and nothing that needs workers.

    Raises:
        CannotEdit: the user's code does not construct it, its class may ask for workers by itself, or another loader
            that needs workers takes their number from the same option.
    """
    place, own = keyword_place(source, site)
    _refuse_asking_class(source, site, place)
    changes = set_keywords(source, site, {"num_workers": "0"}, {"num_workers": POSITION})
    if not changes.notes:
        return changes
    number = _number(source.call(place), own)
    if number is not None:
        _refuse_others(source, place)
    dropped = tuple(name for name in _NEUTRAL if _drop(source, site, place, own, name, number))
    if not dropped:
        return changes
    line = f"{place.path}:{source.line(place)}"
    return changes + Changes((f"{line}: without workers there is no {', no '.join(dropped)}",))


def names_workers(call: cst.Call, position: int | None) -> bool:
    """Whether a call gives, or may give, a number of workers."""
    return any(arg.star == "**" for arg in call.args) or argument(call, "num_workers", position) is not None


def _number(call: cst.Call, own: bool) -> str | None:
    """Return the expression that gives the number of workers; None: 0 is written in the call."""
    given = argument(call, "num_workers", POSITION if own else None)
    written = code(given.value) if given is not None else overrides(call, "num_workers")
    return None if written == "0" else written or "**"


def _drop(source: Editor, site: Site, place: Place, own: bool, name: str, number: str | None) -> bool:
    """Take out what needs workers, or override it where it may be hidden; return whether the call has changed."""
    call, position = source.call(place), _POSITIONS.get(name) if own else None
    given = argument(call, name, position)
    if given is None:
        if not _may_hide(source, site, place, call, name) or overrides(call, name) == _NEUTRAL[name]:
            return False
    elif code(given.value) == _NEUTRAL[name] or _goes_by(given.value, number):
        return False
    elif given.keyword is not None and not _is_elsewhere(source, site, place, call):
        remove_keyword(source, site, name)
        return True
    source.change(place.path, call, lambda call: with_argument(call, name, _NEUTRAL[name], position))
    return True


def _may_hide(source: Editor, site: Site, place: Place, call: cst.Call, name: str) -> bool:
    """Whether a keyword may be given where the call does not show it: in `**settings`, or in a `partial`."""
    hidden = (
        overrides(call, name) is not None or not _is_written_out(arg.value)
        for arg in call.args
        if arg.star == "**"
    )
    return any(hidden) or _is_elsewhere(source, site, place, call)


def _is_written_out(settings: cst.BaseExpression) -> bool:
    return isinstance(settings, cst.Dict) and all(
        isinstance(element, cst.DictElement) and isinstance(element.key, cst.SimpleString)
        for element in settings.elements
    )


def _is_elsewhere(source: Editor, site: Site, place: Place, call: cst.Call) -> bool:
    """Whether the call names something other than the class, which may give arguments of its own."""
    name = meaning(source.file(place.path), call.func).rpartition(".")[2]
    return name != site.callee.rpartition(".")[2] and not code(call.func).endswith("__init__")


def _goes_by(value: cst.BaseExpression, number: str | None) -> bool:
    """Whether a value is a condition on the number of workers: `args.workers > 0`."""
    if number is None or not isinstance(value, (cst.Comparison, cst.IfExp, cst.Call)):
        return False
    if isinstance(value, cst.Call):
        return code(value) == f"bool({number})"
    return number in code(value.test if isinstance(value, cst.IfExp) else value)


def _refuse_asking_class(source: Editor, site: Site, place: Place) -> None:
    """A class of the program's own may give what needs workers by itself.

    Raises:
        CannotEdit: its `__init__` names such a keyword.
    """
    for inner in site.places[: site.places.index(place)]:
        file = source.file(inner.path)
        function = file.enclosing(source.call(inner), cst.FunctionDef)
        around = function or file.module
        words = [*file.under(around, cst.Name), *file.under(around, cst.SimpleString)]
        named = {code(word).strip("'\"") for word in words} & set(_NEUTRAL)
        if named:
            raise CannotEdit(
                f"{inner.path}:{source.line(inner)}: the loader's class gives {min(named)}, which needs workers"
            )


def _refuse_others(source: Editor, place: Place) -> None:
    """Where an option gives the number, other loaders may take it from there.

    Raises:
        CannotEdit: one of them may need workers.
    """
    own = source.call(place)
    for path, file in source.draft.files.items():
        for call in file.all(cst.Call):
            if call is not own and _may_need_workers(call):
                raise CannotEdit(
                    f"{path}:{file.line(call)} may need workers, and their number may be the same option; "
                    f"set num_workers=0 in {place.path}:{source.line(place)} itself"
                )


def _may_need_workers(call: cst.Call) -> bool:
    is_loader = code(call.func).endswith("DataLoader")
    if is_loader and any(arg.star for arg in call.args):
        return True
    given = argument(call, "num_workers", POSITION if is_loader else None)
    if given is None or isinstance(given.value, cst.Integer):
        return False
    needing = (argument(call, name, _POSITIONS.get(name) if is_loader else None) for name in _NEUTRAL)
    return any(
        arg is not None
        and code(arg.value) not in _NEUTRAL.values()
        and not _goes_by(arg.value, code(given.value))
        for arg in needing
    )
