"""`hotloop run`: the program for real, with the plan on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from hotloop.cli.options import COMMAND_SETTINGS
from hotloop.launch.command import resolve, script_of
from hotloop.launch.environment import probed
from hotloop.model.errors import HotloopError
from hotloop.model.optimization import Candidate
from hotloop.probe.process.config import ProbeConfig
from hotloop.tune.plan.compatibility import misfits
from hotloop.tune.plan.in_source import in_source, rest_of
from hotloop.tune.plan.orders import activation_orders, with_plan
from hotloop.tune.plan.plan_file import read_plan


@click.command("run", context_settings=COMMAND_SETTINGS)
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("hotloop.toml"),
    show_default=True,
    help="The plan.",
)
@click.option("--force", is_flag=True, help="Take a plan that was made elsewhere or for another program.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True, metavar="COMMAND...")
def command(plan_file: Path, force: bool, command: tuple[str, ...]) -> int:
    """Run COMMAND for real with a plan switched on.

    The program keeps its output, its files and its exit code; this process becomes the program, so nothing of hotloop
    waits beside it.
    """
    plan = read_plan(plan_file)
    argv = resolve(command)
    done = in_source(plan, Path.cwd())
    differing = misfits(plan.fit, None if done else script_of(argv))
    if differing and not force:
        raise HotloopError(
            f"the plan {plan_file} was not proven here: {'; '.join(differing)}",
            "make a new one with hotloop tune, or take it all the same with --force",
        )
    if done:
        click.echo(f"hotloop: in the source already: {', '.join(done)}", err=True)
    steps = rest_of(plan, done)
    environment = with_plan(os.environ, steps)
    sys.stdout.flush()
    os.execvpe(argv[0], argv, _with_probe(environment, steps))


def _with_probe(environment: dict[str, str], steps: tuple[Candidate, ...]) -> dict[str, str]:
    """The orders travel in the environment itself: no file of ours has to outlive this process."""
    config = ProbeConfig(folder=None, activations=tuple(activation_orders(steps)), record=False)
    return probed(environment, config.inline()) if steps else environment
