"""What is not in a plan, as text: what is likely and could not be proven, and what was refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from hotloop.model.optimization import NOT_ASKED, Refusal
from hotloop.model.quantities import counted
from hotloop.model.tuning import LikelyPlan
from hotloop.report.terminal.layout import facts

NAME_WIDTH = 26
DOES_NOT_APPLY = "does not apply"
"""How the reason of a refusal begins that no trial could change."""
MANY = 3
"""So many optimizations with the same reason are one line."""


def likely(plans: Sequence[LikelyPlan]) -> Iterator[RenderableType]:
    """Yield what was promising when the time was over, kept apart from what is proven."""
    if not plans:
        return
    yield Text("likely, but not proven (not in the plan)", style="bold yellow")
    for plan in plans:
        names = ", ".join(step.name for step in plan.steps)
        interval = f"{plan.ratio:.2f}x [{plan.low:.2f}, {plan.high:.2f}]"
        yield facts(
            [("", f"{interval} with {names}: {plan.reason}"), ("", f"go on: {plan.resume}")], key_width=1
        )
    yield Text("")


def refused(every: tuple[Refusal, ...], *, verbose: bool) -> Iterator[RenderableType]:
    """Variants of one optimization stand together, and what many have in common is said once.

    Of what the user asked for by name every reason is shown, and nothing of the rest.
    """
    asked = tuple(one for one in every if one.reason != NOT_ASKED)
    verbose = verbose or len(asked) < len(every)
    kept = [one for one in asked if verbose or not one.reason.startswith(DOES_NOT_APPLY)]
    hidden = len(asked) - len(kept)
    if not asked:
        return
    common = [reason for reason, num in Counter(one.reason for one in kept).items() if num >= MANY]
    yield Text("not in the plan", style="bold")
    rows = list(_variants([one for one in kept if one.reason not in common]))
    if rows:
        width = min(NAME_WIDTH, max(len(key) for key, _ in rows) + 1)
        yield facts(rows, key_width=width, style="dim")
    for reason in common:
        names = ", ".join(one.name for one in kept if one.reason == reason)
        yield facts([("", f"{reason}: {names}")], key_width=1, style="dim")
    if hidden:
        do = "does" if hidden == 1 else "do"
        said = f"{counted(hidden, 'optimization')} {do} not apply to this program or machine (--verbose says why)"
        yield facts([("", said)], key_width=1, style="dim")
    yield Text("")


def _variants(refused: Sequence[Refusal]) -> Iterator[tuple[str, str]]:
    groups: dict[str, list[str]] = {}
    for refusal in refused:
        name, _, params = refusal.name.partition("(")
        variant = f"{params.removesuffix(')')}: " if params else ""
        groups.setdefault(name, []).append(variant + refusal.reason)
    for name, reasons in groups.items():
        for at, reason in enumerate(reasons):
            yield f"  {name}" if not at else "", reason
