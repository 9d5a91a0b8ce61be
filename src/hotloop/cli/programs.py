"""How `compare` and `check` look at the machine and run the user's programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import click

from hotloop.cli.preflight import before_run
from hotloop.launch.command import resolve
from hotloop.model.comparison import Comparison
from hotloop.model.gate import GateRun
from hotloop.tune.compare.compare import compare_programs
from hotloop.tune.compare.gate import observed_run
from hotloop.tune.compare.program import Program, program


class Programs(NamedTuple):
    """Ways to run a program."""

    resolve: Callable[[Sequence[str]], Sequence[str]] = resolve
    look: Callable[..., object] = before_run
    observe: Callable[..., Program] = program
    duet: Callable[..., Comparison] = compare_programs
    gate_run: Callable[..., GateRun] = observed_run


def programs() -> Programs:
    """Return the ways that the command line was called with."""
    caller = click.get_current_context().find_root().obj
    return caller.programs if caller is not None and caller.programs is not None else Programs()
