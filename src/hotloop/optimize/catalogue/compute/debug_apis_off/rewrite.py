"""The rewrite of debug_apis_off: anomaly detection is not switched on any more."""

from __future__ import annotations

import libcst as cst

from hotloop.model.sites import Place, SiteKind, Sites
from hotloop.optimize.rewriting.outcomes import not_observed, summed_up
from hotloop.source.calls import with_argument
from hotloop.source.draft import Editor
from hotloop.source.imports import meaning, module_name
from hotloop.source.outcome import CannotEdit, Rewrite

_SWITCHES = ("set_detect_anomaly", "set_anomaly_enabled")
"""Take whether it is to be on."""


def rewrite_debug(source: Editor, sites: Sites) -> Rewrite:
    """Switch it off at each place that was seen to switch it on.

    Raises:
        CannotEdit: a library switches it on.
    """
    debugs = sites.of(SiteKind.DEBUG)
    if not debugs:
        return not_observed(
            "call that switches anomaly detection on", "torch.autograd.set_detect_anomaly(False)"
        )
    return summed_up([_off(source, site.places[0]) for site in debugs], "anomaly detection is off")


def _off(source: Editor, place: Place) -> str:
    call = source.call(place)
    name = meaning(source.file(place.path), call.func).split(".")[-1]
    if name in _SWITCHES:
        parameter = "mode" if name == "set_detect_anomaly" else "enabled"
        source.change(place.path, call, lambda call: with_argument(call, parameter, "False", 0))
    elif name == "detect_anomaly":
        torch = module_name(source, place.path, "torch")
        off = cst.parse_expression(f"{torch}.autograd.set_detect_anomaly(False)")
        source.change(place.path, source.call(place), lambda _: off)
    else:
        raise CannotEdit(f"{place.path}:{source.line(place)}: {name}() switches anomaly detection on")
    return f"{place.path}:{source.line(place)}: anomaly detection is off"
