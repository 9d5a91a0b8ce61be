"""The rewrite of the autocast optimizations: `with torch.autocast(...)` around the forward and the loss."""

from __future__ import annotations

from hotloop.model.sites import Place, Site, SiteKind, Sites
from hotloop.optimize.rewriting.forward import forward_line, forward_place, inside_with, loops, up_to_the_loss
from hotloop.optimize.rewriting.outcomes import not_observed, summed_up
from hotloop.source.calls import each_of, method_call
from hotloop.source.draft import Editor
from hotloop.source.imports import module_name
from hotloop.source.outcome import Rewrite
from hotloop.source.statements import wrap

_REFUSING = ("BCELoss", "binary_cross_entropy(")
"""Losses that autocast on CUDA refuses half inputs of: they stay outside, in fp32."""


def rewrite_forwards(source: Editor, sites: Sites, dtype: str) -> Rewrite:
    """Put each training forward, with its loss, under autocast.

    Where the loss is made elsewhere, or in a loop, whose every turn would cast again, the forward alone is, and what it
    returns is brought back to fp32: as it was tried.

    Raises:
        CannotEdit: a library calls the model, or it is called where no `with` can stand.
    """
    forwards = sites.of(SiteKind.FORWARD)
    if not forwards:
        code_ = f'with torch.autocast("{sites.device}", dtype=torch.{dtype}):\n    output = model(batch)'
        return not_observed("call of the model by the program's own code", code_)
    notes = [note for site in forwards for note in _around(source, sites, site, dtype)]
    return summed_up(notes, "each training forward is under autocast")


def _around(source: Editor, sites: Sites, site: Site, dtype: str) -> list[str]:
    place = forward_place(source, site)
    if inside_with(source.file(place.path), source.call(place), "autocast"):
        return []
    torch = module_name(source, place.path, "torch")
    header = f'with {torch}.autocast("{sites.device}", dtype={torch}.{dtype}):'
    lines = up_to_the_loss(source, sites, place)
    if (
        lines is None
        or (sites.device != "cpu" and _refuses_half(source))
        or (_is_plain(site) and loops(source, lines[1:]))
    ):
        _back_to_fp32(source, site, place)
        lines = [forward_line(source, place)]
    wrap(source, place.path, lines, header)
    return [f"{place.path}:{source.line(place)}: {header.removesuffix(':')}"]


def _refuses_half(source: Editor) -> bool:
    return any(word in file.module.code for file in source.draft.files.values() for word in _REFUSING)


def _is_plain(site: Site) -> bool:
    """Whether a forward returns what can be brought back to fp32: a floating tensor, or a tuple."""
    found = site.returns
    return found is not None and (found.is_tuple or (found.rank is not None and found.floating))


def _back_to_fp32(source: Editor, site: Site, place: Place) -> None:
    """Bring the output back to fp32; where it is no tensor, it holds its own loss, which autocast computes in fp32."""
    if site.returns is None or not _is_plain(site):
        return
    if site.returns.is_tuple:
        source.change(place.path, source.call(place), lambda call: each_of("tuple", call, "part.float()"))
    else:
        source.change(place.path, source.call(place), lambda call: method_call(call, "float"))
