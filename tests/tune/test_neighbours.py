"""Whether others used the machine while the program was observed."""

from __future__ import annotations

import msgspec
import pytest

from hotloop.tune.design.neighbours import was_busy
from tests.tune.simulated import observation


@pytest.mark.parametrize(
    ("foreign", "steal", "busy"),
    [(None, None, False), (0.02, 0.0, False), (0.3, 0.0, True), (0.06, 0.06, True), (0.0, 0.2, True)],
)
def test_other_processes_and_other_machines_of_the_hypervisor_are_others(
    foreign: float | None, steal: float | None, busy: bool
) -> None:
    seen = msgspec.structs.replace(observation(), foreign_share=foreign, steal_share=steal)
    assert was_busy(seen) == busy
