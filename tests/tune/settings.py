"""What the arms of a session share, in tests that start no process."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from hotloop.launch.isolation.decide import Isolation
from hotloop.model.observation import Anchor
from hotloop.tune.trials.setting import Setting

ON_CPU = Setting(
    argv=(),
    environment={},
    isolation=cast("Isolation", None),
    anchor=Anchor("optimizer", 0, 1),
    num_ranks=1,
    step_s=0.01,
    startup_s=1.0,
    peak_bytes=None,
)


def setting(**changes: Any) -> Setting:
    """Return the setting of a program with steps of 10 ms on the CPU, with these changes."""
    return msgspec.structs.replace(ON_CPU, **changes)
