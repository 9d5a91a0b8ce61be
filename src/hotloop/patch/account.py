"""What became of each step of the plan, as lines for the user at 80 columns."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hotloop.model.outcome import Outcome
from hotloop.model.quantities import counted
from hotloop.model.ratio import Ratio
from hotloop.model.safety import Safety
from hotloop.model.tuning import Plan, Written
from hotloop.patch.prove import Proof
from hotloop.patch.rewrite_plan import Patch, StepOutcome
from hotloop.source.outcome import AlreadySo, Edited, Refused
from hotloop.tune.compare.pairs import MIN_PAIRS

WIDTH = 80
_Rows = Mapping[str, Sequence[str]]


def told(patch: Patch, plan: Plan, plan_file: str) -> Iterator[str]:
    """Return the lines: what is in the patch, what is not and why, and how to start the program.

    Args:
        patch: that was made.
        plan: that it was made from.
        plan_file: its name.
    """
    if not plan.steps:
        yield f"hotloop: {plan_file} has no steps, so there is nothing to patch"
        yield from _instead(plan)
        return
    yield from _group("in the patch:", {each.step.name: _notes(each) for each in patch.outcomes})
    yield from _group("set when the program is started:", _started(patch))
    yield from _group("in the source already:", _already(patch))
    for each in patch.outcomes:
        yield from _held_back(each)
        yield from _refused(each)
    yield from launch_line(patch.environment, plan, patch.started_as(plan.fit.command))
    if any(isinstance(each.outcome, Refused) or each.is_held_back for each in patch.outcomes):
        yield ""
        yield from textwrap.wrap(
            "What is not in the source can be switched on by two lines at the top of the program:", WIDTH
        )
        yield "  import hotloop"
        yield f'  hotloop.apply("{plan_file}")'


def to_type(plan_file: Path | None, *, unsafe: bool = False, observed: bool = False) -> Iterator[str]:
    """Return what to type next for a patch that was only shown.

    Args:
        plan_file: the plan's; None: the one that is looked for first.
        unsafe: edits that may change what was not observed are in it.
        observed: its places were looked for in a new run, and are in no file.
    """
    named = [shlex.quote(str(plan_file))] if plan_file else []
    named = [*(["--unsafe"] if unsafe else []), *(["--observe"] if observed else []), *named]
    yield ""
    yield "write it into your files, or prove it first:"
    yield from _pasted(["hotloop patch --write", *named])
    yield from _pasted(["hotloop patch --prove", *named])


def _instead(plan: Plan) -> Iterator[str]:
    """Yield what to type where nothing was proven."""
    yield ""
    yield "search longer for what is faster:"
    yield from _pasted(["hotloop tune --budget 30m", *map(shlex.quote, plan.fit.command)])
    yield "or see the edits that the source alone suggests, not measured:"
    yield from _pasted(["hotloop lint --diff", shlex.quote(plan.fit.script or ".")])


def nothing_to_do(written: Written, plan: Plan) -> Iterator[str]:
    """Return the lines for a program that a patch was applied to: what is not in it, and how to start it."""
    yield f"nothing to do, in the source already: {', '.join(written.edits)}"
    for name, reason in written.refused.items():
        yield from _wrapped(f"{name}: not written: {reason}", "", "  ")
    yield from launch_line(written.environment, plan, written.command)


def launch_line(environment: Mapping[str, str], plan: Plan, command: Sequence[str]) -> Iterator[str]:
    """Return how to start the program, where that is part of the plan.

    Args:
        environment: variables to set.
        plan: with the command as it was.
        command: as it has to be now.
    """
    if environment or command != plan.fit.command:
        words = [f"{name}={shlex.quote(value)}" for name, value in environment.items()]
        if command and command[0].endswith(".py"):  # what hotloop takes for `python train.py`
            words.append("python")
        yield ""
        yield "start the program with:"
        yield from _pasted([*words, *(shlex.quote(word) for word in command)])


def _pasted(words: Sequence[str]) -> Iterator[str]:
    """Yield a command in lines that fit the screen and that a shell takes as one."""
    line = " "
    for word in words:
        if line.strip() and len(line) + 1 + len(word) > WIDTH - 2:
            yield f"{line} \\"
            line = "   "
        line = f"{line} {word}"
    yield line


def proof_told(proof: Proof) -> Iterator[str]:
    """Return what the patched program was measured to be, beside what the plan promised."""
    measured = "not measured: too few blocks" if proof.ratio is None else _interval(proof.ratio)
    pairs = counted(proof.num_pairs, "fresh pair")
    yield ""
    yield f"patched against original  {measured}"
    yield f"                          95% interval, {pairs}, without hotloop's hooks"
    yield f"promised by the plan      {_interval(proof.promised)}"
    yield f"learning                  {'the same' if proof.parity.passed else 'NOT PROVEN THE SAME'}"
    yield from _wrapped(proof.parity.evidence, " " * 26)
    if proof.missed and proof.disturbed:
        yield "The patch falls short of the plan, but other processes disturbed most pairs:"
        yield "prove it again on a machine with nothing beside it."
    elif proof.missed and proof.responsible is not None:
        yield f"The patch falls short of the plan; the edit of {proof.responsible} is where it does."
    elif proof.missed:
        yield "The patch falls short of the plan; the steps' own intervals are too wide to say"
        yield "which edit it is."
    elif proof.ratio is None or proof.ratio.low < 1:
        yield "This does not prove that the patched program is faster: give it more time"
        yield "(--seconds) on a machine with nothing beside it."
    elif proof.num_pairs < MIN_PAIRS:
        yield f"{counted(proof.num_pairs, 'fresh pair')} measured it; a verdict needs {MIN_PAIRS} (--seconds)."
    elif proof.outcome is Outcome.PASSED:
        yield "The patch keeps what the plan promised. Write it: hotloop patch --write"


def _interval(ratio: Ratio) -> str:
    return f"{ratio.ratio:.2f}x [{ratio.low:.2f}, {ratio.high:.2f}]"


def _notes(each: StepOutcome) -> Sequence[str]:
    return each.outcome.notes if isinstance(each.outcome, Edited) and not each.is_held_back else ()


def _started(patch: Patch) -> _Rows:
    rows: dict[str, list[str]] = {}
    for each in patch.outcomes:
        if isinstance(each.outcome, Edited) and not each.is_held_back:
            rows[each.step.name] = [f"{name}={value}" for name, value in each.outcome.environment.items()]
            if each.outcome.prefix:
                rows[each.step.name].append(" ".join(each.outcome.prefix))
            if each.outcome.options and not each.outcome.notes:
                rows[each.step.name].append("options of the program's own command line")
    return rows


def _already(patch: Patch) -> _Rows:
    return {
        each.step.name: [each.outcome.where] for each in patch.outcomes if isinstance(each.outcome, AlreadySo)
    }


def _group(title: str, rows: _Rows) -> Iterator[str]:
    """Yield a table of steps and what is said of each; nothing where nothing is said."""
    told = {name: lines for name, lines in rows.items() if lines}
    if not told:
        return
    yield title
    width = max(len(name) for name in told)
    for name, lines in told.items():
        for at, line in enumerate(lines):
            yield from _wrapped(line, f"  {'' if at else name:{width}}  ", " " * (width + 4))


def _held_back(each: StepOutcome) -> Iterator[str]:
    if each.is_held_back and isinstance(each.outcome, Edited):
        unsafe = "unsafe, " if each.outcome.safety is Safety.UNSAFE else ""
        yield f"{each.step.name}: {unsafe}{each.held_back_because}"
        yield from (f"    {line}" for line in each.diff.decode(errors="replace").splitlines()[2:])


def _refused(each: StepOutcome) -> Iterator[str]:
    if isinstance(each.outcome, Refused):
        yield from _wrapped(f"{each.step.name}: not written: {each.outcome.reason}", "", "  ")
        if each.outcome.code:
            yield "  by hand:"
            yield from (f"    {line}" for line in each.outcome.code.splitlines())


def _wrapped(text: str, first: str, rest: str | None = None) -> list[str]:
    """Wrap prose; a word longer than a line, such as a path, stays whole."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
