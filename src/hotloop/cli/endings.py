"""How a run of the user's program ended, in a sentence."""

from __future__ import annotations

from hotloop.model.observation import INTERRUPTED, Observation
from hotloop.model.quantities import counted


def how_it_ended(observation: Observation) -> str:
    """Say who ended the program, and when."""
    num = observation.run.num_steps
    after = f" after {counted(num, 'step')}" if num else ""
    if any(gap.what == INTERRUPTED for gap in observation.coverage):
        return f"you interrupted your program{after}; what was measured until then is below, and kept"
    if observation.exit_code is None:
        return f"hotloop ended your program{after}, at a step boundary: enough was measured (--full lets it finish)"
    if observation.exit_code == 0:
        return f"your program ended by itself{after}"
    return f"your program FAILED{after}: exit code {observation.exit_code}; its own output above says why"
