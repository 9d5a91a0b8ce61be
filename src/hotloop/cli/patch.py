"""`hotloop patch`: the plan as a change of the user's own source."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec

from hotloop.cli.files import write_text
from hotloop.cli.options import NewScreen, TimeSpan, output_options
from hotloop.cli.plan_place import Place
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.outcome import Outcome
from hotloop.model.safety import Safety
from hotloop.model.secrets import REDACTED
from hotloop.model.tuning import Plan, StepEdit
from hotloop.observe.run.observe_command import Interrupted, LiveRun, observe
from hotloop.observe.run.stopping import StopRule
from hotloop.patch.account import nothing_to_do, proof_told, to_type, told
from hotloop.patch.account_in_plan import with_written
from hotloop.patch.program_files import editable, outdated, sites_now
from hotloop.patch.prove import Prover
from hotloop.patch.rewrite_plan import Patch, rewrite_plan
from hotloop.patch.write import write_patch
from hotloop.report.terminal.screen import Screen
from hotloop.tune.compare.program import inside
from hotloop.tune.plan.in_source import in_source
from hotloop.tune.plan.plan_file import read_plan, to_toml

OBSERVED_STEPS = 10
"""Places are looked for in the first eight steps; evaluation comes when it comes."""
DEFAULT = Path("hotloop.toml")


@click.command(
    "patch",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: hotloop patch --write hotloop.toml",
)
@click.option("--write", is_flag=True, help="Change the files.")
@click.option("--check", is_flag=True, help="Exit with 1 if there is something to patch.")
@click.option("--unsafe", is_flag=True, help="Also apply edits whose effect was not observed.")
@click.option(
    "--prove",
    is_flag=True,
    help="Run the original and the patched program in turns; exit with 1 if the plan's promise is not kept, with 5 if "
    "that could not be judged.",
)
@click.option(
    "--observe", "look", is_flag=True, help="Run the command again to locate edits in changed files."
)
@click.option("--seconds", type=TimeSpan(), default="5m", show_default=True, help="Time budget for --prove.")
@click.option("--force", is_flag=True, help="With --write: also edit files with uncommitted changes.")
@output_options
@click.argument(
    "plan_file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=DEFAULT,
    metavar="[PLAN]",
)
def command(
    *,
    write: bool,
    check: bool,
    unsafe: bool,
    prove: bool,
    look: bool,
    seconds: float,
    force: bool,
    new_screen: NewScreen,
    plan_file: Path,
) -> int:
    """Print a plan as a diff of your own source, which `git apply` takes.

    The diff goes to standard output; what was done, what could not be, and how to start the program go to standard
    error.
    """
    screen = new_screen()
    plan = read_plan(plan_file)
    place = Place.of(plan, plan_file)
    asked = Asked(
        write=write, check=check, unsafe=unsafe, prove=prove, look=look, seconds=seconds, force=force
    )
    with inside(place.folder):  # that the plan's paths and command are relative to
        return _patched(plan, place, asked, screen)


@dataclass(frozen=True)
class Asked:
    """The options of one call."""

    write: bool
    check: bool
    unsafe: bool
    prove: bool
    look: bool
    seconds: float
    force: bool


def _patched(plan: Plan, place: Place, asked: Asked, screen: Screen) -> int:
    plan_file = place.plan_file
    found = in_source(plan, Path.cwd(), ())
    everything = plan.patched.variants[-1:] if asked.unsafe else plan.patched.variants
    written = [each for each in everything if each in found.whole]
    if written:
        for line in nothing_to_do(written[-1], plan):
            screen.note(line)
        if asked.prove:
            raise HotloopError(
                "nothing can be proven: the patch is in the source, and a proof runs the original beside it",
                f"hotloop compare --baseline REV {shlex.join(plan.fit.command)}, with the revision before the patch",
            )
        return ExitCode.DONE
    proven, plan = plan, _current(plan, place, screen, may_run=asked.look or asked.prove)
    allowed = Safety.UNSAFE if asked.unsafe else Safety.SAFE
    contents = editable(plan.sites, Path.cwd(), plan.fit.command)
    patch = rewrite_plan(plan.steps, plan.sites, contents, allowed, known=found.edits)
    if not asked.write:
        sys.stdout.buffer.write(patch.diff_named(place.from_here))
        sys.stdout.buffer.flush()
    for line in told(patch, plan, str(plan_file)):
        screen.note(line)
    if place.is_elsewhere and (patch.changed or patch.is_launched(plan.fit.command)):
        screen.note(f"all of it in the program's folder: cd {shlex.quote(str(place.folder))}")
    if patch.changed and not asked.write:
        for line in to_type(
            plan_file if plan_file != DEFAULT else None, unsafe=asked.unsafe, observed=asked.look
        ):
            screen.note(line)
    proof = (
        _proven(plan, patch, allowed, found.edits, asked.seconds, screen) if asked.prove else Outcome.PASSED
    )
    if proof is not Outcome.PASSED:
        return proof.exit_code
    if asked.write:
        _write(patch, plan, proven, place, screen, force=asked.force)
    return ExitCode.GATE if asked.check and patch.changed else ExitCode.DONE


def _current(plan: Plan, place: Place, screen: Screen, *, may_run: bool) -> Plan:
    """Return the plan with places that are those of the files as they are now, from a new run where they are not.

    Args:
        plan: that was read.
        place: of the plan.
        screen: told of the run.
        may_run: whether the user asked for a run: a plan file may be somebody else's, and so may be its command.
    """
    if not plan.steps:
        return plan
    plan = msgspec.structs.replace(plan, sites=sites_now(plan, Path.cwd()))
    stale = outdated(plan.sites, Path.cwd())
    if plan.sites.sources and not stale:
        return plan
    why = (
        f"{', '.join(stale)} changed since the plan was made"
        if stale
        else "the plan does not say where to edit"
    )
    words = _can_run(plan, why)
    if not may_run:
        again = shlex.join(
            ["hotloop", "patch", "--observe", *([str(place.plan_file)] if place.plan_file != DEFAULT else [])]
        )
        raise HotloopError(
            f"{why}, so the places to edit are not known",
            f"{again} runs the plan's command to find them: {words}",
        )
    screen.note(f"hotloop: {why}; observing {words}")
    live = LiveRun(
        words=plan.fit.command, rule=StopRule(steps=OBSERVED_STEPS), log=Path("/dev/null"), warn=screen.alert
    )
    try:
        observation = observe(live, screen.progress)
    except Interrupted:
        raise KeyboardInterrupt from None
    finally:
        screen.done()
    return msgspec.structs.replace(plan, sites=observation.sites)


def _can_run(plan: Plan, why: str) -> str:
    """Return the plan's command as it is typed.

    Raises:
        HotloopError: with why it has to be run, and that it cannot be.
    """
    words = shlex.join(plan.fit.command)
    if REDACTED in words:
        raise HotloopError(
            f"{why}, and the command cannot be run again: it held a secret, which is not stored",
            "make a new plan: hotloop tune with the command",
        )
    return words


def _proven(
    plan: Plan, patch: Patch, allowed: Safety, known: Mapping[str, StepEdit], seconds: float, screen: Screen
) -> Outcome:
    """Say what the patched program was measured to be; return whether that is what the plan promised."""
    if not patch.changed and not patch.is_launched(plan.fit.command):
        screen.note("hotloop: nothing can be proven: no step of the plan is written")
        return Outcome.NOT_JUDGED if plan.steps else Outcome.PASSED
    _can_run(plan, "a proof runs the original and the patched program")
    try:
        prover = Prover(plan.fit.command, Path.cwd(), seconds, screen.progress, screen.alert)
        proof = prover.prove(plan, patch.before, allowed, known)
    finally:
        screen.done()
    for line in proof_told(proof):
        screen.note(line)
    return proof.outcome


def _write(patch: Patch, plan: Plan, proven: Plan, place: Place, screen: Screen, *, force: bool) -> None:
    """Write the files, and note in the plan how they are known again; what it was proven on stays in it."""
    if not patch.changed:
        return
    for line in write_patch(patch, Path.cwd(), force=force):
        screen.note(f"hotloop: {line}")
    original = proven.sites if plan.sites == proven.patched.sites else plan.sites
    write_text(place.absolute, to_toml(msgspec.structs.replace(with_written(plan, patch), sites=original)))
    screen.note(
        f"hotloop: {place.plan_file} notes what is in the source now: run --plan switches on only the rest"
    )
