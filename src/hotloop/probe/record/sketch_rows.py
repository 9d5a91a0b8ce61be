"""The layout of the rows in which the outputs of two runs are compared (see `outputs`)."""

from __future__ import annotations

GIVEN, MADE = 4, 8
"""Sums in the sketch of what a forward was given, and of what it gave."""
SLOT, CONTINUES, NUM_GIVEN, EPSILON = range(4)
"""The root; whether it continues a text; how many values it was given; the roundoff of its output's type."""
FROM_GIVEN = 4
FROM_MADE = FROM_GIVEN + GIVEN + 1
"""Each sketch ends with the number of values that are not finite, which it leaves out."""
LARGEST = FROM_MADE + MADE + 1
"""Tells which classes, or tokens, are the most likely ones."""
WIDTH = LARGEST + 1
