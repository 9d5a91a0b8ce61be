"""What all processes of a session share."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hotloop.launch.isolation.decide import Isolation
from hotloop.model.observation import Anchor, DeviceMemory


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What all arms of a session share.

    Attributes:
        argv: the resolved command.
        environment: the user's.
        isolation: what arms are kept from.
        anchor: what ends a step.
        num_ranks: training processes of the command.
        step_s: of the original program, for patience.
        startup_s: from start to the first step.
        peak_bytes: of one process of an arm, on the host; None: not measured.
        devices: what one arm takes of each accelerator; empty: it runs on the CPU.
        one_at_a_time: arms cannot be alive at once (see `tune.design.preflight`).
        program_seeds: that the program gave itself when it was observed.
        stdin: a copy of what the command was given on standard input; None: nothing.
        typical_s: the median step of the original program.
        hold_s: how long a pattern of knobs is held.
        elapsed_s: a step of it with all that lies between steps; None: few holds have any of that.
        period_steps: after how many steps something long comes again; 1: in no rhythm.
        grace_s: after the end of the time, until a set that has said nothing yet is given up.
        counts_memory: each arm's memory is measured before it is timed.
        fit_bytes: what a plan may hold of a device: trials run under that limit; None: it has none.
        quiet_wait_s: that a set waits for other processes to leave the machine; 0: it does not.
    """

    argv: tuple[str, ...]
    environment: dict[str, str]
    isolation: Isolation
    anchor: Anchor
    num_ranks: int
    step_s: float
    startup_s: float
    peak_bytes: int | None
    devices: tuple[DeviceMemory, ...] = ()
    one_at_a_time: bool = False
    program_seeds: tuple[int, ...] = ()
    stdin: Path | None = None
    typical_s: float = 0.1
    hold_s: float = 0.3
    elapsed_s: float | None = None
    period_steps: int = 1
    grace_s: float = 30.0
    counts_memory: bool = False
    fit_bytes: int | None = None
    quiet_wait_s: float = 0.0
