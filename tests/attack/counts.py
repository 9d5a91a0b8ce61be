"""What the attacks did, counted, as a table: `make attack` writes it beside the other results."""

from __future__ import annotations

import json
import os
from pathlib import Path

VARIABLE = "HOTLOOP_ATTACK_COUNTS"


def count(attack: str, tried: int, held: int, note: str = "") -> None:
    """Add one row; held is how many of the tries changed, crashed or leaked nothing."""
    target = os.environ.get(VARIABLE)
    if target:
        with Path(target).open("a") as file:
            file.write(json.dumps([attack, tried, held, note]) + "\n")
