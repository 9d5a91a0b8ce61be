"""`hotloop tune`: trials, proof, plan."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from hotloop.cli.files import check_writable, write_json, write_text
from hotloop.cli.options import (
    COMMAND_SETTINGS,
    Names,
    NewScreen,
    Number,
    ResultFile,
    Size,
    TimeSpan,
    command_argument,
    isolation_options,
    output_options,
)
from hotloop.cli.preflight import before_run
from hotloop.cli.report import keep_page
from hotloop.cli.stored import show_out_of_memory
from hotloop.launch.isolation.decide import Exceptions
from hotloop.launch.signals import ended_like_ctrl_c
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.goal import MAX_SLOWDOWN, Aim, Goal
from hotloop.model.optimization import Numerics
from hotloop.model.origin import Origin
from hotloop.model.tuning import Plan, TuneResult
from hotloop.observe.run.origin import origin
from hotloop.patch.account_in_plan import with_patch_known
from hotloop.report.terminal.screen import Screen
from hotloop.report.terminal.tuning import render, render_next, what_is_on
from hotloop.review.stored import store_observation
from hotloop.store.session import check_storable
from hotloop.tune.design.candidates import Wishes
from hotloop.tune.observing import UntunableError
from hotloop.tune.pipeline import TuneOrder, tune
from hotloop.tune.plan.plan_file import is_plan, read_plan, to_toml
from hotloop.tune.plan.plan_folder import with_folder

_PLAN = Path("hotloop.toml")


@click.command(
    "tune", context_settings=COMMAND_SETTINGS, epilog="Example: hotloop tune --budget 5m python train.py"
)
@click.option("--budget", type=TimeSpan(), default="10m", show_default=True, help="Time budget.")
@click.option(
    "--allow",
    type=click.Choice([Numerics.TOLERANCE.value, Numerics.SEMANTIC.value]),
    default=Numerics.TOLERANCE.value,
    show_default=True,
    help="Largest numerical change: reduced precision that passes the parity check, or different training.",
)
@click.option(
    "--goal",
    type=click.Choice([one.value for one in Goal]),
    default=Goal.SPEED.value,
    show_default=True,
    help="What the plan is for: a shorter step, a smaller peak, or a cheaper epoch.",
)
@click.option(
    "--fit", type=Size(), help="Memory limit, such as 24GB: find the fastest plan whose peak stays within it."
)
@click.option(
    "--max-slowdown",
    type=Number(min=0),
    default=100 * MAX_SLOWDOWN,
    show_default=True,
    metavar="PCT",
    help="With --goal memory: allowed increase of the step time, in percent.",
)
@click.option("--price-per-hour", type=Number(min=0), help="Price of this machine per hour.")
@click.option("--power-price", type=Number(min=0), help="Price of power per kWh.")
@click.option("--only", type=Names(), default=(), help="Try only these.")
@click.option("--skip", type=Names(), default=(), help="Do not try these.")
@click.option("--resume", is_flag=True, help="Continue the newest session of this command.")
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=_PLAN,
    show_default=True,
    help="Plan file to write.",
)
@click.option("--json", "json_file", type=ResultFile(), help="Write the result.")
@click.option("--verbose", is_flag=True, help="Show every progress line and every reason.")
@isolation_options
@output_options
@command_argument
def command(
    *,
    budget: float,
    allow: str,
    goal: str,
    fit: int | None,
    max_slowdown: float,
    price_per_hour: float | None,
    power_price: float | None,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    resume: bool,
    plan_file: Path,
    json_file: Path | None,
    verbose: bool,
    exceptions: Exceptions,
    new_screen: NewScreen,
    command: tuple[str, ...],
) -> int:
    """Try what would make a PyTorch program faster, smaller or cheaper, and prove it.

    Runs COMMAND, unmodified, again and again beside itself with one optimization more on; keeps what is faster by more
    than this machine's noise and learns the same; confirms the whole in fresh processes and writes a plan.
    """
    _check_target(plan_file)
    screen = new_screen(verbose=verbose, budget_s=budget)
    aim = Aim(
        goal=Goal(goal),
        fit_bytes=fit,
        max_slowdown=max_slowdown / 100,
        price_per_hour=price_per_hour,
        power_price=power_price,
    )
    _check_aim(aim)
    wishes = Wishes(allow=Numerics(allow), only=only, skip=skip, aim=aim)
    wishes.check()
    checks = before_run(screen, command)
    order = TuneOrder(
        words=command,
        budget_s=budget,
        wishes=wishes,
        resume=resume,
        exceptions=exceptions,
        checks=checks,
    )
    try:
        with ended_like_ctrl_c():
            result, session = tune(
                order, screen.progress, screen.note, lambda line: screen.detail([line]), screen.alert
            )
    except UntunableError as failed:
        _keep_failure(screen, failed, origin("tune", command, checks))
        raise
    finally:
        screen.done()
    _keep(screen, result, plan_file, json_file, exceptions, verbose=verbose)
    keep_page(screen, session)
    return _exit_code(result)


def _exit_code(result: TuneResult) -> ExitCode:
    """Return 130 after an interruption; with a limit of memory whether it was met: 5 where no peak was measured."""
    if result.interrupted:
        return ExitCode.INTERRUPTED
    if result.aim.fit_bytes is None:
        return ExitCode.DONE
    fits = result.goal.fits if result.goal is not None else None
    return ExitCode.UNDECIDED if fits is None else ExitCode.DONE if fits else ExitCode.GATE


def _check_aim(aim: Aim) -> None:
    """Demand goals that go together, and a price where cost is the goal."""
    if aim.goal is Goal.MEMORY and aim.fit_bytes is not None:
        raise HotloopError(
            "--goal memory looks for the smallest peak, and --fit for the fastest plan within a limit",
            "give one of them",
            ExitCode.USAGE,
        )
    if aim.goal is Goal.COST and aim.price_per_hour is None and aim.power_price is None:
        raise HotloopError(
            "--goal cost needs a price to reckon with",
            "add --price-per-hour PRICE, --power-price PRICE (of a kWh), or both",
            ExitCode.USAGE,
        )


def _keep_failure(screen: Screen, failed: UntunableError, of: Origin) -> None:
    """Store and show how the program ran out of memory, where it did."""
    seen = failed.observation
    if seen is None or seen.out_of_memory is None:
        return
    with contextlib.suppress(HotloopError):  # what the user is told is why there is nothing to tune
        store_observation(seen, of)
    show_out_of_memory(screen, seen)


def _check_target(plan_file: Path) -> None:
    """Before ten minutes of trials, not after them."""
    check_storable(Path.cwd())
    if plan_file.exists() and not is_plan(plan_file):
        raise HotloopError(
            f"{plan_file} exists and is not a hotloop plan, so it will not be overwritten",
            "name another file: --plan FILE",
        )
    check_writable(plan_file)


def _keep(
    screen: Screen,
    result: TuneResult,
    plan_file: Path,
    json_file: Path | None,
    exceptions: Exceptions,
    *,
    verbose: bool,
) -> None:
    """Write first and show then: a result is not lost over a terminal that is gone or full."""
    if json_file is not None:
        write_json(json_file, result)
    kept = "" if result.plan.steps else _proven_before(plan_file)
    if not kept and (result.plan.steps or not result.interrupted):
        _set_aside(screen, plan_file)
        plan = with_folder(with_patch_known(result.plan, Path.cwd()), plan_file, Path.cwd())
        write_text(plan_file, to_toml(plan))
    screen.show(render(result, verbose=verbose))
    screen.note(f"hotloop: {_where_the_plan_is(result, plan_file, kept)}")
    named = None if plan_file == _PLAN else str(plan_file)
    screen.show(render_next(result, named, exceptions.options()))


def _where_the_plan_is(result: TuneResult, plan_file: Path, kept: str) -> str:
    """Say for which script the plan in a file is: those of a folder share one unless --plan names others."""
    of = _for_script(result.plan)
    if kept:
        return f"{plan_file} keeps the plan that was proven before ({kept})"
    if result.plan.steps:
        return f"the plan{of} is in {plan_file}"
    if result.interrupted:
        return f"interrupted before anything was proven{of}, so no plan was written"
    what = "to reach the goal" if result.aim.counts_memory else "faster"
    return f"nothing was proven {what}{of}; {plan_file} holds a plan without steps"


def _for_script(plan: Plan) -> str:
    return f" for {plan.fit.script}" if plan.fit.script else ""


def _proven_before(plan_file: Path) -> str:
    """Return what is on in a plan that a session without a result must not replace; empty: there is none."""
    if not plan_file.exists():
        return ""
    try:
        plan = read_plan(plan_file)
    except HotloopError:  # of another version: it is set aside
        return ""
    return f"{what_is_on(plan)}{_for_script(plan)}" if plan.steps else ""


def _set_aside(screen: Screen, plan_file: Path) -> None:
    """The plan before stays beside the new one, unless something else has that name."""
    of = _for_script(read_plan(plan_file)) if _proven_before(plan_file) else ""
    previous = plan_file.with_suffix(".previous.toml")
    if plan_file.exists() and (is_plan(previous) or not previous.exists()):
        plan_file.replace(previous)
        screen.note(f"hotloop: the plan before{of} is kept as {previous}")
