"""The result of tuning as text, at 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from hotloop.model.tuning import RESUME_BUDGET, Plan, PlanStep, TuneResult
from hotloop.report.sections.tuned import tuned
from hotloop.report.terminal import walk
from hotloop.report.terminal.layout import next_steps


def render(result: TuneResult, *, verbose: bool = False) -> RenderableType:
    """Return the result, ready to print.

    Args:
        result: what was found.
        verbose: give every reason and figure, too.
    """
    return walk.render(tuned(result), verbose=verbose)


def render_next(result: TuneResult, plan: str | None, options: Sequence[str] = ()) -> RenderableType:
    """Return what to type next.

    Args:
        result: what was found.
        plan: the plan's file; None: the one that is looked for first.
        options: that the program needs in every run of it.
    """
    option = ["--plan", plan] if plan else []
    if not result.plan.steps:
        longer = ["--budget", RESUME_BUDGET] if result.likely else []
        resume = ["hotloop", "tune", "--resume", *longer, *option, *options, *result.command]
        likely_one = [("run the likely, unproven plan", ["hotloop", "run", "--likely", *result.command])]
        return next_steps(
            [
                ("continue this session", resume),
                *(likely_one if result.likely else []),
                ("see the bottleneck", ["hotloop", "diagnose", *options, *result.command]),
            ]
        )
    return next_steps(
        [
            ("run with the plan", ["hotloop", "run", *option, *result.command]),
            ("the plan as a diff of your source", ["hotloop", "patch", *([plan] if plan else [])]),
        ]
    )


def what_is_on(plan: Plan) -> str:
    """Return a plan in one line: what is on, and what that was measured to bring."""
    if not plan.steps:
        return "the plan is empty: nothing is on"
    names = ", ".join(_step_name(step) for step in plan.steps)
    return f"on: {names}" + (f" ({plan.speedup.ratio:.2f}x when it was proven)" if plan.speedup else "")


def _step_name(step: PlanStep) -> str:
    params = " ".join(f"{key}={value}" for key, value in sorted(step.params.items()))
    return f"{step.name} ({params})" if params else step.name
