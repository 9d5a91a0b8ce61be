"""What the probe is told: it reads its orders from a JSON file."""

from __future__ import annotations

import json

from hotloop.probe.windows.knob_blocks import Shape
from hotloop.whatif.orders import least_s, shape, whatif_config

from ..tune.simulated import observation


def test_the_shape_survives_the_way_into_the_process() -> None:
    sent = json.loads(json.dumps(whatif_config(observation())))
    received = Shape(**sent)
    assert (received.num_steps, received.rounds) == (
        shape(observation()).num_steps,
        shape(observation()).rounds,
    )
    assert tuple(received.patterns) == ()


def test_a_further_run_needs_its_start_and_a_block_on_and_two_off() -> None:
    assert least_s(3.0, 0.01) < least_s(10.0, 0.01) < 13.0
    assert least_s(3.0, 5.0) > 3.0 + 3 * 2 * 5.0, "slow steps: two in a block"
