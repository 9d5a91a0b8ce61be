"""From what the launcher orders to what acts."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.description import made_from


def made_to_order(order: Mapping[str, Any]) -> Activation | None:
    """Return what acts for an optimization in this process; None: nothing does.

    Args:
        order: with a description of what acts (`make`), or with the module and class that make it of `params`: what the
            launcher drives alone, and plug-ins whose own objects act.
    """
    activation = made_from(order["make"]) if "make" in order else _asked(order)
    if activation is not None:
        activation.name = order["name"]
        activation.fixed = order.get("knob") is False
    return activation


def _asked(order: Mapping[str, Any]) -> Activation | None:
    optimization = getattr(importlib.import_module(order["module"]), order["cls"])()
    make = optimization.knob if order.get("knob") else optimization.activation
    made: Activation | None = make(order["params"])
    return made
