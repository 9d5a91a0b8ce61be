"""The rewrite of channels_last and channels_last_3d."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from hotloop.model.sites import Place, Site, SiteKind, Sites
from hotloop.optimize.rewriting.forward import forward_place
from hotloop.optimize.rewriting.model import NamedModel, add_line, named_model
from hotloop.optimize.rewriting.outcomes import not_observed, summed_up
from hotloop.source.calls import argument, code, each_of, keyword, method_call, with_argument
from hotloop.source.draft import Editor
from hotloop.source.imports import module_name
from hotloop.source.outcome import CannotEdit, Rewrite


def rewrite_memory_format(source: Editor, sites: Sites, dimensions: int) -> Rewrite:
    """Lay out each model behind its construction, and its feature maps where it is called.

    Args:
        source: the user's files.
        sites: of the observed run.
        dimensions: of the convolutions.

    Raises:
        CannotEdit: a model has no name of its own, a library calls it, it has a `to` of its own, or it returns what
            cannot be made contiguous in the call.
    """
    form = "channels_last" if dimensions == 2 else "channels_last_3d"
    models, forwards = sites.of(SiteKind.MODEL), sites.of(SiteKind.FORWARD)
    forwards = tuple(site for site in forwards if any(_is_map(value, dimensions) for value in site.arguments))
    if not models or not forwards:
        by_hand = (
            f"model = model.to(memory_format=torch.{form})\nbatch = batch.to(memory_format=torch.{form})"
        )
        return not_observed("construction of the model and call with feature maps", by_hand)
    slots = {site.slot for site in forwards}
    for site in models:
        if site.slot in slots and "to" in site.overrides:
            name = site.callee.rpartition(".")[2]
            raise CannotEdit(f"{name} has a method `to` of its own, which may take no memory format")
    notes = [
        note
        for site in models
        if site.slot in slots
        for note in _model(source, named_model(source, site), form)
    ]
    notes += [note for site in forwards for note in _inputs(source, site, form, dimensions)]
    if notes:
        _outputs(source, sites, slots, dimensions)
    return summed_up(notes, f"model and inputs are {form}")


def _is_map(value: object, dimensions: int) -> bool:
    rank, floating = getattr(value, "rank", None), getattr(value, "floating", False)
    return rank == dimensions + 2 and floating


def _model(source: Editor, model: NamedModel, form: str) -> list[str]:
    path = model.place.path
    written = f"{module_name(source, path, 'torch')}.{form}"
    if written in code(model.made):
        return []
    if _is_move(model.made):
        changed = f"{path}:{source.line(model.place)}: .to(..., memory_format={written})"
        source.change(path, model.made, lambda made: _with_format(made, written))
        return [changed]
    return add_line(source, model, f"{model.name} = {model.name}.to(memory_format={written})")


def _inputs(source: Editor, site: Site, form: str, dimensions: int) -> list[str]:
    place = forward_place(source, site)
    written = f"{module_name(source, place.path, 'torch')}.{form}"
    notes = []
    for number, seen in enumerate(site.arguments):
        call = source.call(place)
        given = argument(call, seen.name or "", None if seen.name else number)
        if given is None or not _is_map(seen, dimensions) or written in code(given):
            continue
        source.change(place.path, given.value, lambda value: _laid_out(value, written))
        notes.append(f"{place.path}:{source.line(place)}: the input is {form}")
    return notes


def _outputs(source: Editor, sites: Sites, slots: set[int], dimensions: int) -> None:
    """Make contiguous what the models return: code behind them may call `view`, which wants what it had before.

    That is so without gradients, too: weights that are laid out lay out what comes of them.
    """
    calls: dict[Place, set[Callable[[cst.Call], cst.Call]]] = {}
    for site in sites.of(SiteKind.FORWARD, SiteKind.EVALUATE):
        if site.slot in slots:
            calls.setdefault(forward_place(source, site), set()).add(_contiguous(source, site, dimensions))
    for place, changes in calls.items():
        if len(changes) > 1:
            raise CannotEdit(f"{place.path}:{source.line(place)}: the model returns now this, now that")
        source.change(place.path, source.call(place), changes.pop())


def _contiguous(source: Editor, site: Site, dimensions: int) -> Callable[[cst.Call], cst.Call]:
    """Return what makes the output of one call contiguous."""
    place, returns = site.places[0], site.returns
    where = f"{place.path}:{source.line(place)}"
    given = source.call(place).args
    if len(given) != len(site.arguments) and not any(arg.star for arg in given):
        raise CannotEdit(f"{where}: a library calls the model")
    if returns is not None and returns.is_tuple:
        return _tuple
    if returns is None or returns.rank is None:
        raise CannotEdit(
            f"{where}: what the model returns cannot be made contiguous: it is no tensor, nor a tuple"
        )
    return _tensor if returns.rank == dimensions + 2 else _as_it_is


def _as_it_is(call: cst.Call) -> cst.Call:
    return call


def _tensor(call: cst.Call) -> cst.Call:
    return method_call(call, "contiguous")


def _tuple(call: cst.Call) -> cst.Call:
    return each_of("tuple", call, "part.contiguous()")


def _laid_out(value: cst.BaseExpression, written: str) -> cst.BaseExpression:
    if _is_move(value):
        return _with_format(value, written)
    return method_call(value, "to", keyword("memory_format", written))


def _is_move(value: cst.BaseExpression) -> bool:
    """Whether an expression ends in `.to(device)`, which takes the format too."""
    return (
        isinstance(value, cst.Call)
        and isinstance(value.func, cst.Attribute)
        and value.func.attr.value == "to"
        and not any(arg.star for arg in value.args)
    )


def _with_format(value: cst.BaseExpression, written: str) -> cst.BaseExpression:
    assert isinstance(value, cst.Call)
    return with_argument(value, "memory_format", written)
