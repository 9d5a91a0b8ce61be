"""What the probe is told: it reads its orders from a JSON file."""

from __future__ import annotations

import json

from hotloop.probe.windows.knob_blocks import Shape
from hotloop.whatif.orders import shape, whatif_config

from ..tune.simulated import observation


def test_the_shape_survives_the_way_into_the_process() -> None:
    sent = json.loads(json.dumps(whatif_config(observation())))
    received = Shape(**sent)
    assert (received.num_steps, received.rounds) == (
        shape(observation()).num_steps,
        shape(observation()).rounds,
    )
    assert tuple(received.patterns) == ()
