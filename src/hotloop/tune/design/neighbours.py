"""Whether others use the machine: screening waits passively at barriers then."""

from __future__ import annotations

import os
import time

from hotloop.machine.environment.contention import ForeignLoad, others_share
from hotloop.model.observation import Observation
from hotloop.stats import quietness

LOOK_S = 0.5


def was_busy(observation: Observation) -> bool:
    """Whether others used the machine while the program was observed."""
    return quietness.is_busy((observation.foreign_share or 0.0) + (observation.steal_share or 0.0))


def is_busy(seconds: float = LOOK_S) -> bool:
    """Whether others use the machine now, while nothing of ours runs; True where it cannot be seen."""
    load = ForeignLoad()
    before = load.snapshot((os.getpid(),))
    time.sleep(seconds)
    share = others_share(before, load.snapshot((os.getpid(),)))
    return share is None or quietness.is_busy(share)
