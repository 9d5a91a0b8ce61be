"""The result of tuning in short: the first screen of `tune`, and its comment on a pull request."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from hotloop.model.quantities import counted, duration, listed, percent, rate
from hotloop.model.tuning import Baseline, Contention, TuneResult
from hotloop.report.content.goal_words import goal_sentence
from hotloop.report.content.prediction_error import prediction_error
from hotloop.report.content.short_run import short_run
from hotloop.report.content.tree_memory import memory_in_short, memory_told
from hotloop.report.document import Block, Document, Facts, More, Section
from hotloop.report.sections.goal import in_short
from hotloop.report.sections.plan import not_in_plan, waterfall
from hotloop.stats.empty_plan import why_empty
from hotloop.stats.quietness import MANY_DISTURBED

MAX_CAUTIONS = 2
"""On the first screen; the page has all."""
MAX_LIKELY = 2
MAX_ROWS = 14
"""Of steps, parameters and facts on a first screen of 30 lines: beyond, parameters are left to the report."""
MAX_NAMED = 3


def tuned(result: TuneResult) -> Document:
    """Return the result, the plan, whether it learns the same, and how it was measured."""
    has_plan = bool(result.plan.steps) and result.plan.speedup is not None
    warnings = tuple(_busy(result.contention))
    facts = (
        *(_proof(result) if has_plan else ()),
        *_likely(result),
        *_measured(result),
        *not_in_plan(result),
    )
    rows = _num_rows(facts) + 3 * len(warnings)
    rows += sum(1 + len(step.params) for step in result.plan.steps)
    groups: tuple[tuple[Block, ...], ...] = (
        (Facts(tuple(_start(result))),),
        (waterfall(result, parameters=rows <= MAX_ROWS),) if has_plan else (),
        tuple(in_short(result)),
        facts,
    )
    return Document(
        title="",
        subtitle="",
        warnings=warnings,
        verdict=_verdict(result),
        good=has_plan,
        tiles=(),
        sections=tuple(Section(anchor="", title="", blocks=blocks) for blocks in groups if blocks),
        footer="",
    )


def _num_rows(blocks: Sequence[Block]) -> int:
    """Return the rows of facts in short."""
    return sum(
        len(one.rows) if isinstance(one, Facts) else _num_rows(one.instead) if isinstance(one, More) else 0
        for one in blocks
    )


def _verdict(result: TuneResult) -> str:
    sentence = goal_sentence(result)
    if sentence is not None:
        return sentence
    ratio = result.plan.speedup
    if not result.plan.steps or ratio is None:
        return f"No change was proven faster: {why_empty(result)}."
    said = f"{ratio.ratio:.2f}x as fast [{ratio.low:.2f}, {ratio.high:.2f}]"
    return f"{said}, proven in fresh processes, with {counted(len(result.plan.steps), 'change')}."


def _busy(load: Contention) -> Iterator[str]:
    """A machine that others used is said first: it is why little could be proven."""
    disturbed = load.num_disturbed
    if disturbed <= MANY_DISTURBED * load.num_blocks:
        return
    used = f" used up to {load.max_foreign_share:.0%} of the CPU and" if load.max_foreign_share else ""
    yield (
        f"Other processes{used} disturbed {disturbed:,} of {counted(load.num_blocks, 'measurement')}, so less could be "
        "tried. Stop them and tune again."
    )


def _start(result: TuneResult) -> Iterator[tuple[str, str]]:
    base = result.baseline
    yield "baseline", _baseline(base)
    short = short_run(base) if result.plan.steps and not result.aim.counts_memory else None
    if short:
        yield "run", short


def _baseline(base: Baseline) -> str:
    """Return the mean step first, for that is what a run is made of; the median alone where no mean is known."""
    per_s = f"{rate(base.samples_per_s)} samples/s" if base.samples_per_s is not None else ""
    interval = f"[{duration(base.low_s)}, {duration(base.high_s)}]"
    if base.mean_s is None:
        median = f"{duration(base.step_s)} median step {interval}"
        return "; ".join(filter(None, (median, per_s and f"{per_s} on average")))
    mean, median = f"{duration(base.mean_s)} mean step", f"{duration(base.step_s)} median {interval}"
    return "; ".join(filter(None, (mean, per_s, median)))


def _proof(result: TuneResult) -> Iterator[Block]:
    yield Facts(tuple(_learning(result)))
    parity = result.plan.parity
    if parity is not None and parity.statistic is not None:
        yield More((Facts((("", parity.evidence),)),))
    yield from _memory(result)
    rows = (*_estimated(result), *_cautions(result), *_one_off(result))
    if rows:
        yield Facts(rows)


def _learning(result: TuneResult) -> Iterator[tuple[str, str]]:
    parity = result.plan.parity
    if parity is None:
        return
    key, unit = ("outputs", "forwards") if parity.compared == "outputs" else ("learning", "steps")
    if parity.passed and parity.statistic is not None:
        yield key, f"the same over {parity.num_steps} {unit}"
    else:
        yield key, f"not measured: {parity.evidence}"


def _memory(result: TuneResult) -> Iterator[Block]:
    short = memory_in_short(result) if not result.aim.counts_memory else None  # the table has it
    if short is not None:
        told = tuple(("memory" * (not at), said) for at, said in enumerate(memory_told(result)))
        yield More((Facts(told),), instead=(Facts((("memory", short),)),))


def _estimated(result: TuneResult) -> Iterator[tuple[str, str]]:
    names = [step.name for step in result.plan.steps if not step.proven]
    if not names:
        return
    what = listed(names) if len(names) <= MAX_NAMED else f"{len(names)} of the steps"
    yield "estimated", f"the factor of {what}; the plan as a whole is proven"


def _cautions(result: TuneResult) -> Iterator[tuple[str, str]]:
    found = list(dict.fromkeys(step.caution for step in result.plan.steps if step.caution))
    key = "caution"
    for one in found[:MAX_CAUTIONS]:
        yield key, one
        key = ""
    if len(found) > MAX_CAUTIONS:
        yield "", f"{len(found) - MAX_CAUTIONS} more in the report"


def _one_off(result: TuneResult) -> Iterator[tuple[str, str]]:
    found = [
        f"{step.name} after {step.break_even_steps:,} steps"
        for step in result.plan.steps
        if step.break_even_steps is not None
    ]
    rest = [f"{len(found) - MAX_NAMED} more"] if len(found) > MAX_NAMED else []
    if found:
        yield "start-up", f"paid for: {', '.join(found[:MAX_NAMED] + rest)}"


def _likely(result: TuneResult) -> Iterator[Block]:
    rows = [
        (
            "likely" * (not at),
            f"{one.ratio:.2f}x [{one.low:.2f}, {one.high:.2f}], not proven, with "
            f"{', '.join(step.name for step in one.steps)}: {one.reason}",
        )
        for at, one in enumerate(result.likely[:MAX_LIKELY])
    ]
    if rows:
        yield Facts(tuple(rows))


def _measured(result: TuneResult) -> Iterator[Block]:
    least = smallest_difference(result)
    floor = f"; smallest measurable difference {percent(least)}" if least is not None else ""
    blocks, trials = result.contention.num_blocks, len(result.trials)
    what = counted(trials, "trial") if trials or not blocks else counted(blocks, "block")
    how, _, interval = result.confirmation.partition("; ")
    proof = f"; proof by {how}" if result.plan.steps else ""
    rows = [("measured", f"{what} in {duration(result.wall_s)}{floor}{proof}")]
    if result.interrupted:
        rows.append(("", "interrupted: continue with --resume"))
    yield Facts(tuple(rows))
    said = (interval, prediction_error(result.trials), _contention(result.contention))
    more = [("", one) for one in said if one]
    more += [("", gap) for gap in result.coverage]
    if more:
        yield More((Facts(tuple(more)),))


def smallest_difference(result: TuneResult) -> float | None:
    """Return what could be told from chance: the floor, and no less than the narrowest interval reached.

    None: not measured, or others disturbed most blocks.

    Beside a busy machine intervals are wider than the floor, which is of the original against itself.
    """
    if result.floor is None or 2 * result.contention.num_disturbed > result.contention.num_blocks:
        return None
    told = [result.plan.speedup, *(trial.ratio for trial in result.trials)]
    reached = [math.sqrt(one.high / one.low) - 1 for one in told if one is not None and one.low > 0]
    return max(result.floor, min(reached, default=0.0))


def _contention(load: Contention) -> str:
    if not load.num_void and not load.num_noisy:
        return ""
    most = f" (up to {load.max_foreign_share:.0%} of the CPU)" if load.max_foreign_share is not None else ""
    kept = (
        f"; {counted(load.num_noisy, 'disturbed block')} kept, which widens the interval"
        if load.num_noisy
        else ""
    )
    return f"other processes were busy{most}: {load.num_void:,} of {counted(load.num_blocks, 'block')} repeated{kept}"
