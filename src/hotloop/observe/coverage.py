"""What a run did not tell, and why: notes beside what was measured, or the clearest error where nothing was."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from hotloop.launch.command import lacks_torch, script_of, why_unseen
from hotloop.launch.deadline import Deadline
from hotloop.launch.isolation.decide import Isolation, could_not_enter
from hotloop.launch.process import Run
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.observation import INTERRUPTED, MORE_STEPS, STEP, Coverage, Observation
from hotloop.model.out_of_memory import OutOfMemory
from hotloop.model.quantities import byte_size
from hotloop.observe.decode.spans import Timeline


def with_gaps(
    observation: Observation,
    isolation: Isolation,
    *,
    lost: bool,
    interrupted: bool = False,
    too_short: str | None = None,
) -> Observation:
    """Return the observation with what the machine, the user, or the time budget kept from it."""
    gaps = []
    if too_short is not None:
        gaps.append(Coverage(MORE_STEPS, too_short))
    if isolation.missing is not None:
        gaps.append(Coverage("isolation", isolation.missing))
    if lost:
        gaps.append(Coverage("records", "the scratch folder is full; later steps were not recorded"))
    if interrupted:
        gaps.append(Coverage(INTERRUPTED, "you interrupted the run before enough was measured"))
    return msgspec.structs.replace(observation, coverage=(*observation.coverage, *gaps))


class NoStepError(HotloopError):
    """No step was measured; the observation holds what was seen, and why there is no step.

    Args:
        why: what to tell.
        observation: what was seen.
    """

    def __init__(self, why: HotloopError, observation: Observation) -> None:
        super().__init__(why.message, why.hint, why.code)
        gap = Coverage(STEP, f"{why.message} ({why.hint})")
        self.observation = msgspec.structs.replace(observation, coverage=(gap, *observation.coverage))


def no_step(
    observation: Observation,
    run: Run,
    folder: Path,
    known: Mapping[int, Timeline],
    argv: Sequence[str],
    *,
    late: Deadline | None,
    lost: bool,
    blame: str | None = None,
) -> NoStepError:
    """Return the clearest error for a run in which no step was measured.

    Args:
        observation: what was seen.
        run: the run, ended.
        folder: its records.
        known: what is known of its processes.
        argv: the command.
        late: the deadline at which it was ended; None: it was not.
        lost: records could not be written.
        blame: whose failure it was, where the program failed and that was tried.
    """
    why = _why(observation, run, folder, known, argv, late=late, lost=lost, blame=blame)
    return NoStepError(why, observation)


def _why(
    observation: Observation,
    run: Run,
    folder: Path,
    known: Mapping[int, Timeline],
    argv: Sequence[str],
    *,
    late: Deadline | None,
    lost: bool,
    blame: str | None,
) -> HotloopError:
    code = observation.exit_code
    if could_not_enter(code, run.scratch):
        reason = (run.scratch / "isolation-error").read_text()
        return HotloopError(
            f"the run could not be isolated: {reason}", "please report this", ExitCode.MACHINE
        )
    if lost:
        return HotloopError(
            f"no space is left in {run.scratch.parent}, so nothing could be recorded",
            "free some space, or name another folder: export HOTLOOP_SCRATCH=/some/folder",
            ExitCode.MACHINE,
        )
    if late is not None and not any(folder.glob("torch-*")):
        return HotloopError(
            "the time was over before your program had even imported torch, so nothing could be measured",
            late.hint,
        )
    if not any(folder.glob("python-*")):
        return _no_python(observation.command[0], argv, code)
    has_torch = any(folder.glob("torch-*"))
    if observation.out_of_memory is not None:
        return _no_memory(observation.out_of_memory, code)
    if code not in (None, 0):
        return (
            _failed(code, observation.command, script_of(argv), blame)
            if has_torch or not lacks_torch(argv)
            else _no_torch(argv)
        )
    if not has_torch:
        return HotloopError(
            "the program never imported torch, so there is no training step to measure",
            "check that the command runs the training program itself, in an environment that has torch",
        )
    return _too_few(known, late=late)


def _no_memory(found: OutOfMemory, code: int | None) -> HotloopError:
    at = f" at {found.at.path}:{found.at.line}" if found.at is not None else ""
    asked = f", which asked for {byte_size(found.asked_bytes)}" if found.asked_bytes is not None else ""
    return HotloopError(
        f"your program ran out of memory before it had taken two steps (exit code {code}){at}{asked}",
        "the account of what held it is above, and in the session: hotloop report",
        ExitCode.PROGRAM_FAILED,
    )


def _failed(code: int | None, words: Sequence[str], script: Path | None, blame: str | None) -> HotloopError:
    shown = shlex.join(words)
    wrong = syntax_error(script) if script is not None else None
    if wrong is not None:
        return HotloopError(
            f"your program cannot be read as Python: {wrong}", "correct that line", ExitCode.PROGRAM_FAILED
        )
    return HotloopError(
        f"your program failed before it had taken two steps (exit code {code}); its own output says why",
        blame or f"if it works without hotloop, please report that; try: {shown}",
        ExitCode.PROGRAM_FAILED,
    )


def syntax_error(script: Path) -> str | None:
    """Return the place of a script's syntax error and what is wrong there; None: it has none, or cannot be read."""
    try:
        ast.parse(script.read_bytes(), str(script))
    except SyntaxError as error:
        return f"{script}:{error.lineno}: {error.msg}" if error.lineno else f"{script}: {error.msg}"
    except (OSError, ValueError, RecursionError, MemoryError):
        return None
    return None


def _no_torch(argv: Sequence[str]) -> HotloopError:
    return HotloopError(
        f"the Python that runs your program has no torch: {argv[0]}",
        "install torch there, or activate the environment that your program needs",
        ExitCode.MACHINE,
    )


def _no_python(word: str, argv: Sequence[str], code: int | None) -> HotloopError:
    reason = why_unseen(argv)
    if reason is not None:
        return HotloopError(
            f"nothing of the program could be seen: {reason} (exit code {code})",
            "leave that option out while you observe",
        )
    return HotloopError(
        f"{word!r} started no Python, so there is no training to measure (exit code {code})",
        "put hotloop in front of a command that runs a PyTorch program, such as python train.py",
    )


def _too_few(known: Mapping[int, Timeline], *, late: Deadline | None) -> HotloopError:
    if late is not None:
        return HotloopError(
            f"the time was over before your program had taken two steps after the first one, its start included "
            f"({late.seconds:g} s), so nothing could be measured",
            late.hint,
        )
    if any(timeline.spans for timeline in known.values()):
        what = "took too few steps: the first one is set-up, at least two more are needed"
    else:
        what = "took no step: no optimizer step, backward or forward pass was seen"
    return HotloopError(
        f"the program {what}",
        "let it run longer (more steps, more epochs), or check that it trains",
        ExitCode.PROGRAM_FAILED,
    )
