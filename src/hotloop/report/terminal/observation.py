"""An Observation on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from hotloop.model.observation import Observation
from hotloop.report.sections.observed import observed
from hotloop.report.terminal import walk
from hotloop.report.terminal.layout import next_steps


def render(observation: Observation, *, verbose: bool = False) -> RenderableType:
    """Return the observation, ready to print.

    Args:
        observation: what to show.
        verbose: with every table.
    """
    return walk.render(observed(observation), verbose=verbose)


def render_next(
    observation: Observation, *, stored: bool = True, options: Sequence[str] = ()
) -> RenderableType:
    """Return what to type next; without a command, `diagnose` reads the session that was stored.

    Args:
        observation: what was shown.
        stored: it can be read again.
        options: that the program needs in every run of it.
    """
    if observation.out_of_memory is not None:
        return next_steps([("show this again", ["hotloop", "report"])])
    if observation.exit_code not in (None, 0):
        return next_steps([("your program failed: run it alone and fix it first", list(observation.command))])
    return next_steps(
        [
            (
                "causes and fixes",
                ["hotloop", "diagnose", *(() if stored else (*options, *observation.command))],
            ),
            ("try fixes and prove them", ["hotloop", "tune", *options, *observation.command]),
        ]
    )
