"""What became of each step of the plan, as lines for the user."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from hotloop.model.ratio import Ratio
from hotloop.model.tuning import Plan
from hotloop.patch.prove import Proof
from hotloop.patch.rewrite_plan import Patch, StepOutcome
from hotloop.source.outcome import AlreadySo, Edited, Refused


def told(patch: Patch, plan: Plan, plan_file: str) -> Iterator[str]:
    """Return the lines: what is in the patch, what is not and why, and how to start the program.

    Args:
        patch: that was made.
        plan: that it was made from.
        plan_file: its name.
    """
    if not plan.steps:
        yield "hotloop: the plan is empty, so there is nothing to patch"
        return
    for each in patch.outcomes:
        yield from _of(each)
    yield from launch_line(patch.environment, plan, patch.started_as(plan.fit.command))
    if any(isinstance(each.outcome, Refused) for each in patch.outcomes):
        yield "what could not be written can be switched on by two lines at the top of the program:"
        yield "  import hotloop"
        yield f'  hotloop.apply("{plan_file}")'


def launch_line(
    environment: Mapping[str, str], plan: Plan, command: Sequence[str] | None = None
) -> Iterator[str]:
    """Return how to start the program, where that is part of the plan.

    Args:
        environment: variables to set.
        plan: with the command as it was.
        command: as it has to be now; None: as it was.
    """
    command = plan.fit.command if command is None else command
    if environment or command != plan.fit.command:
        words = [f"{name}={shlex.quote(value)}" for name, value in environment.items()]
        yield "start the program with:"
        yield f"  {' '.join([*words, *(shlex.quote(word) for word in command)])}"


def proof_told(proof: Proof) -> Iterator[str]:
    """Return what the patched program was measured to be, beside what the plan promised."""
    measured = "not measured: too few blocks" if proof.ratio is None else _interval(proof.ratio)
    yield f"patched against original: {measured}, in {proof.num_pairs} fresh pairs without a hook of ours"
    yield f"the plan promised: {_interval(proof.promised)}"
    yield f"parity: {'passed' if proof.parity.passed else 'FAILED'}: {proof.parity.evidence}"
    if proof.missed:
        yield f"the patch falls short of the plan; the edit of {proof.responsible} is where it does"


def _interval(ratio: Ratio) -> str:
    return f"{ratio.ratio:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"


def _of(each: StepOutcome) -> Iterator[str]:
    name, outcome = each.step.name, each.outcome
    if isinstance(outcome, AlreadySo):
        yield f"{name}: nothing to do, {outcome.where}"
    elif isinstance(outcome, Refused):
        yield f"{name}: not written: {outcome.reason}"
        if outcome.code:
            yield "  by hand:"
            yield from (f"    {line}" for line in outcome.code.splitlines())
    elif isinstance(outcome, Edited):
        held = f" ({outcome.safety.name.lower()}: written only with --unsafe)" if each.is_held_back else ""
        for note in outcome.notes:
            yield f"{name}: {note}{held}"
        yield from (f"    {line}" for line in each.diff.decode(errors="replace").splitlines())
        if outcome.environment:
            yield f"{name}: set when the program is started"
        elif outcome.options and not outcome.notes:
            yield f"{name}: options of the program's own command line"
