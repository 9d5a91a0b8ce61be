"""How a run of the user's program ended, in a sentence."""

from __future__ import annotations

from hotloop.model.observation import INTERRUPTED, MORE_STEPS, Observation
from hotloop.model.quantities import counted

_FINISHES = " (hotloop observe --full lets it finish, and keeps what it writes)"
_KEEPS = " (hotloop observe --full keeps what it writes)"


def how_it_ended(observation: Observation, *, kept: bool = False) -> str:
    """Say who ended the program, and when.

    Args:
        observation: of it.
        kept: what it wrote is kept (`observe --full`).
    """
    num = observation.run.num_steps
    after = f" after {counted(num, 'step')}" if num else ""
    if any(gap.what == INTERRUPTED for gap in observation.coverage):
        return f"you interrupted your program{after}; measurements until then are below and stored"
    too_short = next((gap.why for gap in observation.coverage if gap.what == MORE_STEPS), None)
    if observation.exit_code is None and too_short is not None:
        return f"hotloop ended your program{after}: {too_short}{_FINISHES}"
    if observation.exit_code is None:
        return f"hotloop ended your program{after}, at a step boundary: enough was measured{_FINISHES}"
    if observation.exit_code == 0:
        return f"your program ran to completion{after}{'' if kept else _KEEPS}"
    return f"your program FAILED{after}: exit code {observation.exit_code}; its output is above"
