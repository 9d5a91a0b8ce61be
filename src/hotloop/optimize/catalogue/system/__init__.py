"""Optimizations of the process and its machine; `FAMILY` lists them in the order in which they are shown."""

from hotloop.optimize.optimization import Optimization

FAMILY: tuple[type[Optimization], ...] = ()
