"""The rewrite of pinned_memory: loaders that pin, and copies that nobody waits for."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from hotloop.model.sites import Place, SiteKind, Sites
from hotloop.optimize.catalogue.input.pinned_memory.fixed_device import is_fixed
from hotloop.optimize.loaders.loader_rewrite import rewrite_loaders
from hotloop.source.calls import argument, code, with_argument
from hotloop.source.draft import Editor
from hotloop.source.outcome import AlreadySo, Edited, Refused, Rewrite

_POSITION = {"to": None, "cuda": 1}
"""Of `non_blocking` among the positional arguments; in `to` it stands at several places, and is then left alone."""


def rewrite_copies(source: Editor, sites: Sites) -> Rewrite:
    """Pin the batches of the training loaders, and copy them without waiting.

    Raises:
        CannotEdit: a loader is not made by the user's own code.
    """
    pinned = rewrite_loaders(source, sites, {"pin_memory": "True"})
    if isinstance(pinned, Refused):
        return pinned
    places = {site.places[0]: None for site in sites.of(SiteKind.TRANSFER)}
    left: list[str] = []
    notes = tuple(note for place in places for note in _without_waiting(source, place, left))
    if isinstance(pinned, Edited) or notes:
        done = pinned if isinstance(pinned, Edited) else Edited()
        return replace(done, notes=(*done.notes, *notes, *left))
    return AlreadySo("batches are pinned and copied without waiting")


def _without_waiting(source: Editor, place: Place, left: list[str]) -> list[str]:
    if place.path not in source.draft.files:
        return []  # a library copies; it knows its own keywords
    call = source.expression(place)
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return []
    name = call.func.attr.value
    if name not in _POSITION or argument(call, "non_blocking", _POSITION[name]) is not None:
        return []
    if name == "to" and len([arg for arg in call.args if arg.keyword is None]) > 1:
        return []
    if name == "to" and not _to_one_device(source, place, call):
        left.append(
            f"{place.path}:{source.line(place)} goes on waiting: it may copy to the host in another call"
        )
        return []
    source.change(place.path, call, lambda call: with_argument(call, "non_blocking", "True"))
    return [f"{place.path}:{source.line(place)}: non_blocking=True"]


def _to_one_device(source: Editor, place: Place, call: cst.Call) -> bool:
    """Whether it copies to one device: the same call may bring results to the host, which would be read too early."""
    device = argument(call, "device", 0) or argument(call, "other")
    if device is None or _is_host(code(device.value)):
        return False
    return is_fixed(source, place.path, device.value)


def _is_host(device: str) -> bool:
    return "cpu" in device and "cuda" not in device
