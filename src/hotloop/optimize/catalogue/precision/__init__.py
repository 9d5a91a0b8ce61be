"""Optimizations that compute with fewer bits; `FAMILY` lists them in the order in which they are shown."""

from hotloop.optimize.catalogue.precision.autocast_bf16 import AutocastBf16
from hotloop.optimize.optimization import Optimization

FAMILY: tuple[type[Optimization], ...] = (AutocastBf16,)
