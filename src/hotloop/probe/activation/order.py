"""From what the launcher orders to what acts."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from hotloop.probe.activation.activation import Activation


def made_to_order(order: Mapping[str, Any]) -> Activation | None:
    """Import an optimization and return what acts for it in this process; None: nothing does."""
    optimization = getattr(importlib.import_module(order["module"]), order["cls"])()
    make = optimization.knob if order.get("knob") else optimization.activation
    activation: Activation | None = make(order["params"])
    if activation is not None:
        activation.name = order["name"]
        activation.fixed = order.get("knob") is False
    return activation
