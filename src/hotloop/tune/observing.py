"""The observation that a tuning session begins with: short, of a program that works."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hotloop.launch.deadline import Deadline
from hotloop.launch.isolation.decide import Exceptions
from hotloop.launch.isolation.scratch import new_scratch, remove
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.observation import Observation
from hotloop.model.quantities import counted
from hotloop.observe.run.observe_command import Interrupted, LiveRun, observe
from hotloop.observe.run.stopping import StopRule


class UntunableError(HotloopError):
    """The program failed while it was observed.

    Args:
        why: what to tell.
        observation: what was seen of it; None: nothing.
    """

    def __init__(self, why: HotloopError, observation: Observation | None) -> None:
        super().__init__(why.message, why.hint, why.code)
        self.observation = observation


OBSERVE_SHARE = 0.5
"""Of the budget: a program whose first steps take longer cannot be tuned in it."""
OBSERVE_S, OBSERVE_STEPS = (3.0, 8.0), 5
"""Measured after the warm-up, within these seconds a thirtieth of the budget; and no fewer steps."""
_NO_INPUT = (
    "it reads from standard input, which trials do not have: hotloop tune ... < answers.txt gives it a file"
)


def observe_for_trials(
    words: tuple[str, ...],
    exceptions: Exceptions,
    budget_s: float,
    say: Callable[[str], None],
    note: Callable[[str], None],
    look: Callable[[LiveRun, Callable[[str], None]], Observation] = observe,
) -> Observation:
    """Observe a program for no longer than its trials need.

    Args:
        words: the command.
        exceptions: what of the user's files the program may change.
        budget_s: of the whole session.
        say: told of what goes on.
        note: told of what is to stay on the screen.
        look: runs and observes it.

    Raises:
        HotloopError: it cannot be run or observed, or failed.
        KeyboardInterrupt: too little was seen by then.
    """
    scratch = new_scratch("observe-log")
    seconds = min(OBSERVE_S[1], max(OBSERVE_S[0], budget_s / 30))
    warnings: list[str] = []
    try:
        live = LiveRun(
            words=words,
            rule=StopRule(seconds=seconds, few=OBSERVE_STEPS),
            log=scratch / "log",
            deadline=Deadline(budget_s, "--budget").earlier(OBSERVE_SHARE * budget_s),
            exceptions=exceptions,
            warn=warnings.append,
            note=lambda text: note(f"hotloop: {text}"),
        )
        seen = look(live, lambda text: say(f"observing your program: {text.removeprefix('measuring: ')}"))
        return _works(seen, warnings)
    except Interrupted:
        raise KeyboardInterrupt from None  # too little was seen to go on with
    except HotloopError as error:
        log = scratch / "log"
        end = "\n".join(log.read_text(errors="replace").splitlines()[-12:]) if log.exists() else ""
        message = f"{error.message}; the end of its output:\n{end}" if end else error.message
        told = HotloopError(message, _NO_INPUT if "EOFError" in end else error.hint, error.code)
        raise UntunableError(told, getattr(error, "observation", None)) from error
    finally:
        remove(scratch)


def _works(seen: Observation, warnings: Sequence[str]) -> Observation:
    """Return what was seen of a program that works: one that fails cannot be compared with itself.

    Args:
        seen: the observation.
        warnings: whose failure it was, where that was tried.

    Raises:
        HotloopError: it failed.
    """
    if seen.exit_code in (None, 0):
        return seen
    num = seen.run.num_steps
    after = f" after {counted(num, 'step')}" if num else ""
    failed = HotloopError(
        f"your program failed{after} (exit code {seen.exit_code}), so there is nothing to tune",
        " ".join(text.removeprefix("hotloop: ") for text in warnings) or "correct it first",
        ExitCode.PROGRAM_FAILED,
    )
    raise UntunableError(failed, seen)
