"""Long rows of integers as the instruments pack them."""

from __future__ import annotations

from base64 import b64decode

import numpy as np


def unpacked(text: str) -> list[int]:
    """Return the numbers; addresses have no sign, and are below its bit."""
    return [int(each) for each in np.frombuffer(b64decode(text), "<i8").tolist()]
