"""Optimizations of what is computed and how; `FAMILY` lists them in the order in which they are shown."""

from hotloop.optimize.catalogue.compute.debug_apis_off import DebugApisOff
from hotloop.optimize.optimization import Optimization

FAMILY: tuple[type[Optimization], ...] = (DebugApisOff,)
