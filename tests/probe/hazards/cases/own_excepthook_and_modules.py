"""Neither sys.excepthook nor the names of top-level modules are taken."""

from __future__ import annotations

import sys
from typing import Any


def case() -> Any:
    names = sorted(
        name for name in sys.modules if name.split(".")[0] in {"config", "probe", "recorder", "events"}
    )
    return [sys.excepthook is sys.__excepthook__, names]
