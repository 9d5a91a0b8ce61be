"""Copies.

A class that pickles its attributes itself, as Lightning's do, keeps the hook's name: with None, as in Module.
"""

from __future__ import annotations

import copy
from typing import Any

from program import Found, first
from torch import nn


def read(model: nn.Module, inputs: Any) -> Found:
    twin, shallow = copy.deepcopy(model), copy.copy(model)
    attributes = {name: type(value).__name__ for name, value in vars(twin).items() if value is not None}
    return [attributes, list(first(shallow(inputs)).shape)], None
