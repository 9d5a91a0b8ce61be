"""The rewrite of channels_last and channels_last_3d."""

from __future__ import annotations

import libcst as cst

from hotloop.model.sites import Site, SiteKind, Sites
from hotloop.optimize.rewriting.forward import forward_place
from hotloop.optimize.rewriting.model import NamedModel, add_line, named_model
from hotloop.optimize.rewriting.outcomes import not_observed, summed_up
from hotloop.source.calls import argument, code, keyword, method_call, with_argument
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
        CannotEdit: a model has no name of its own, a library calls it, or it has a `to` of its own.
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
    if site.returns is not None and _is_map(site.returns, dimensions) and notes:
        # Code behind the model may call `view`, which wants what it had before.
        source.change(place.path, source.call(place), lambda call: method_call(call, "contiguous"))
    return notes


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
