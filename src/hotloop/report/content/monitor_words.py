"""What a monitor is called, and its values with their unit."""

from __future__ import annotations

import re
from collections.abc import Callable

from hotloop.model.quantities import byte_size, percent, scaled, significant

_UNITS: dict[str, Callable[[float], str]] = {
    "_ratio": percent,
    "_bytes_per_s": lambda value: f"{byte_size(value)}/s",
    "_bytes": byte_size,
    "_w": lambda value: f"{significant(value)} W",
    "_c": lambda value: f"{significant(value)} °C",
    "_hz": lambda value: f"{scaled(value)}Hz",
}
"""Ends of names, and how values with them are written."""
_WORDS = {
    "cpu foreign": "cpu used by others",
    "cpu steal": "cpu stolen",
    "cpu iowait": "cpu waiting for disks",
}


def monitor_name(name: str) -> str:
    """Return what people call it: of `cpu_utilization_ratio{core="0"}` it is `cpu utilization, core 0`."""
    bare, _, labels = name.partition("{")
    words = bare.removesuffix(_unit(bare)).replace("_", " ")
    which = [f"{key} {value}" for key, value in re.findall(r'(\w+)="([^"]*)"', labels)]
    return ", ".join([_WORDS.get(words, words), *which])


def monitor_amount(name: str, value: float) -> str:
    """Return a value with the unit that the monitor's name ends in."""
    return _UNITS.get(_unit(name.partition("{")[0]), significant)(value)


def _unit(bare: str) -> str:
    return next((end for end in _UNITS if bare.endswith(end)), "")
