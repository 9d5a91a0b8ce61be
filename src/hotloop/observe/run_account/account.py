"""Account for the wall time of the whole command, by part."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import isinf
from statistics import median

import msgspec

from hotloop.model.observation import Anchor, Phase, PhaseTime, RunAccount
from hotloop.observe.decode.intervals import cut
from hotloop.observe.decode.spans import Span, Stretch, Timeline
from hotloop.observe.run_account.interval_names import DIRECT, Stage, Usual, name_pieces, with_own_forwards
from hotloop.observe.steps.epochs import training_slot
from hotloop.observe.steps.evaluation import num_evaluations, scores_batches
from hotloop.observe.steps.rates import CALLS
from hotloop.observe.steps.rhythm import NAMES
from hotloop.observe.steps.step_windows import WITHIN, Window, boundaries, windows
from hotloop.probe.record.events import Kind

LONG = 5.0
"""Times the usual step: no jitter."""


def account(
    timeline: Timeline | None,
    anchor: Anchor | None,
    begin_s: float,
    end_s: float,
    on_device: Timeline | None = None,
    *,
    simulates: bool = False,
    ended_early: bool = False,
) -> RunAccount:
    """Return where the command's wall time went, seen from its leading training process.

    Args:
        timeline: that process's records; None: nothing was recorded.
        anchor: what ends a step.
        begin_s: when the command was started, on the monotonic clock.
        end_s: when it ended or was ended.
        on_device: its records on the device's clock, which then splits the steps; None: the host's does.
        simulates: the program uses a library of environments.
        ended_early: it was ended, or interrupted, before it came to its own end.
    """
    wall_s = end_s - begin_s
    if timeline is None or timeline.torch_s is None:
        return RunAccount(wall_s=wall_s, parts={"unaccounted_s": wall_s})
    ends = boundaries(timeline, anchor) if anchor else []
    ledger = _Ledger()
    ledger.add(_start(timeline, begin_s, timeline.torch_s))
    if anchor is None or not ends:
        ledger.stretch(timeline.spans, timeline.torch_s, end_s, Stage.HEAD)
        return ledger.closed(wall_s)
    spans, steps = timeline.spans, windows(timeline, anchor)
    ledger.split = on_device is not None
    split = steps if on_device is None else windows(on_device, anchor)
    acts = simulates or _plays(timeline, len(ends))
    ledger.usual = _usual(timeline, steps, _shares(split), infers=anchor.infers, acts=acts)
    ledger.stretch(spans[: ends[0] + 1], timeline.torch_s, spans[ends[0]].end_s, Stage.HEAD)
    for step, (before, end) in zip(steps, itertools.pairwise(ends), strict=True):
        ledger.step(spans[before + 1 : end + 1], step)
    _add_tail(ledger, timeline, ends[-1], end_s, ended_early=ended_early)
    return _counted(ledger.closed(wall_s), timeline, ends)


def split_like(run: RunAccount, phases: Mapping[Phase, PhaseTime]) -> RunAccount:
    """Return the account with the time of its steps split as the phases of the mean step are.

    What a rank waited for others is known of the steps alone that all ranks were measured over. What is in no phase
    stays as it is: parts of it have names of their own.
    """
    shares = {f"step_{phase.value}_s": one.share for phase, one in phases.items() if phase is not Phase.OTHER}
    total = sum(shares.values())
    if not total:
        return run
    named = {f"step_{phase.value}_s" for phase in Phase if phase is not Phase.OTHER}
    spent_s = sum(run.parts.get(name, 0.0) for name in named)
    kept = {name: seconds for name, seconds in run.parts.items() if name not in named}
    split = {name: spent_s * share / total for name, share in shares.items() if share > 0}
    return msgspec.structs.replace(run, parts={**split, **kept})


def _plays(timeline: Timeline, num_steps: int) -> bool:
    """Whether the model is called without gradients far more often than it learns, on what no loader gives.

    It then acts in an environment of the program's own: what is evaluated is a share of what is learned from.
    """
    num = Counter(span.kind for span in timeline.spans)
    return not num[Kind.DATA] and num[Kind.EVALUATE] > CALLS * num_steps


class _Ledger:
    """Time by name, and how often what came between steps was seen."""

    def __init__(self) -> None:
        self.usual = Usual()
        self.split = False
        """Regular steps are split by the usual shares, too."""
        self._parts: defaultdict[str, float] = defaultdict(float)
        self._num_evaluations = self._num_checkpoints = self._num_regular = 0

    def add(self, parts: Mapping[str, float]) -> None:
        """Add what has its names."""
        for name, spent in parts.items():
            self._parts[name] += spent

    def stretch(self, spans: Sequence[Span], begin_s: float, end_s: float, stage: Stage) -> None:
        """Add a stretch that is no regular step."""
        if end_s <= begin_s:
            return
        pieces = with_own_forwards(cut(spans, begin_s, end_s), stage, self.usual)
        self.add(name_pieces(pieces, stage, self.usual))
        if not (self.usual.infers or self.usual.acts):
            self._num_evaluations += num_evaluations(pieces)
        self._num_checkpoints += any(piece.kind is Kind.SAVE for piece in pieces)

    def step(self, spans: Sequence[Span], step: Window) -> None:
        """Add a step."""
        if step.deep:
            self.add({"deep_windows_s": step.end_s - step.begin_s})
        elif self.usual.shares and (step.lean or (self.split and step.regular)):
            self._num_regular += 1
            self.add(_by_shares(spans, step, self.usual))
            self._num_checkpoints += Kind.SAVE in step.parts
        elif not step.regular:
            self.stretch(spans, step.begin_s, step.end_s, Stage.BETWEEN)
        else:
            self._num_regular += 1
            self.add(_of_step(step))
            self._num_checkpoints += Kind.SAVE in step.parts

    def closed(self, wall_s: float) -> RunAccount:
        """Return the account, what is left of the wall time unnamed."""
        parts = {name: spent for name, spent in self._parts.items() if spent > 0}
        parts["unaccounted_s"] = wall_s - sum(parts.values())
        return RunAccount(
            wall_s=wall_s,
            parts=parts,
            num_regular_steps=self._num_regular,
            num_evaluations=self._num_evaluations,
            num_checkpoints=self._num_checkpoints,
        )


def _counted(run: RunAccount, timeline: Timeline, ends: Sequence[int]) -> RunAccount:
    """Add how often things happened in the whole run."""
    slot = training_slot(timeline)
    starts = sum(span.kind is Kind.ITERATOR and span.slot == slot for span in timeline.spans)
    compiled = [span for span in timeline.spans if span.kind is Kind.COMPILE]
    settled_s = timeline.spans[ends[min(1, len(ends) - 1)]].end_s
    again = [span for span in compiled if span.begin_s > settled_s]
    begin_s, end_s = timeline.spans[ends[0]].end_s, timeline.spans[ends[-1]].end_s
    paused = [
        one
        for one in timeline.collections
        if begin_s <= one.begin_s and one.end_s <= end_s and not _looked_at(timeline, one)
    ]
    return msgspec.structs.replace(
        run,
        num_steps=len(ends),
        num_epochs=starts or None,
        num_compilations=len(compiled),
        num_recompilations=len(again),
        recompilation_s=sum(span.exclusive_s for span in again),
        num_collections=len(paused),
        collection_s=sum(one.end_s - one.begin_s for one in paused),
        scored_with_gradients_s=sum(
            span.exclusive_s for span in timeline.spans if span.unasked and begin_s <= span.begin_s < end_s
        ),
    )


def _looked_at(timeline: Timeline, one: Stretch) -> bool:
    """Whether it came in the window of a profiler, which makes garbage of its own."""
    return any(deep.begin_s < one.end_s and one.begin_s < deep.end_s for deep in timeline.deep)


def _start(timeline: Timeline, begin_s: float, torch_s: float) -> dict[str, float]:
    """What came before torch was there; a process started by a second process of the command waited for it."""
    python_s = timeline.python_s
    if python_s is None or not begin_s <= python_s <= torch_s:
        return {"import_s": max(0.0, torch_s - begin_s)}
    started = "interpreter_s" if timeline.is_command else "launcher_s"
    return {started: python_s - begin_s, "import_s": torch_s - python_s}


def _shares(steps: Sequence[Window]) -> dict[Phase, float]:
    """Return the share of each phase in the regular steps; nothing where there are none."""
    regular = [step for step in steps if step.regular]
    total_s = sum(step.duration_s for step in regular)
    return (
        {phase: sum(step.phases[phase] for step in regular) / total_s for phase in Phase} if total_s else {}
    )


def _usual(
    timeline: Timeline, steps: Sequence[Window], shares: dict[Phase, float], *, infers: bool, acts: bool
) -> Usual:
    rests = [
        step.phases[Phase.OTHER] - sum(step.parts.get(kind, 0.0) for kind in WITHIN)
        for step in steps
        if step.regular
    ]
    scores = [step.tokens.count(NAMES[Kind.EVALUATE]) for step in steps if step.regular]
    fetches: dict[int, list[float]] = {}
    for span in timeline.spans:
        if span.kind is Kind.DATA:
            fetches.setdefault(span.slot, []).append(span.exclusive_s)
    return Usual(
        infers=infers,
        num_evaluated=round(median(scores)) if scores else 0,
        acts=acts and not scores_batches(timeline.spans),
        rest_s=max(0.0, median(rests)) if rests else 0.0,
        fetch_s={slot: median(spent) for slot, spent in fetches.items()},
        shares=shares,
        step_s=median(step.duration_s for step in steps if step.regular) if rests else 0.0,
    )


def _of_step(step: Window) -> dict[str, float]:
    """A regular step by phase; what is no phase and has a name is taken from the rest."""
    aside = {kind: step.parts[kind] for kind in WITHIN if kind in step.parts}
    rest_s = step.phases[Phase.OTHER]
    fits = min(1.0, rest_s / sum(aside.values())) if any(aside.values()) else 0.0
    parts = {WITHIN[kind]: spent * fits for kind, spent in aside.items()}
    phases = {**step.phases, Phase.OTHER: rest_s - sum(parts.values())}
    held_s = step.end_s - step.begin_s - step.duration_s
    return {
        **parts,
        **{f"step_{phase.value}_s": spent for phase, spent in phases.items()},
        "held_by_hotloop_s": held_s,
    }


def _by_shares(spans: Sequence[Span], step: Window, usual: Usual) -> dict[str, float]:
    """A step whose phases were not recorded: what has a name of its own, and the rest by the shares of those timed.

    What goes far beyond the usual step is something else, which nobody saw.
    """
    pieces = [piece for piece in cut(spans, step.begin_s, step.end_s) if piece.kind in DIRECT]
    parts: dict[str, float] = {}
    for piece in pieces:
        name = DIRECT[piece.kind]
        parts[name] = parts.get(name, 0.0) + piece.seconds
    rest_s = step.end_s - step.begin_s - sum(parts.values())
    if step.lean and rest_s > LONG * usual.step_s:
        parts["irregular_step_s"] = rest_s - usual.step_s
        rest_s = usual.step_s
    return {**parts, **{f"step_{phase.value}_s": rest_s * share for phase, share in usual.shares.items()}}


def _add_tail(ledger: _Ledger, timeline: Timeline, last: int, end_s: float, *, ended_early: bool) -> None:
    """What came after the last step, up to the interpreter's end or to where the program was held to be ended.

    A program that was ended under a profiler, before its next boundary, was not seen to leave its loop.
    """
    last_s = timeline.spans[last].end_s
    if timeline.exit_s is None and timeline.held_s is None and any(isinf(one.end_s) for one in timeline.deep):
        ledger.add({"deep_windows_s": end_s - last_s})
        return
    # Where it was held, nothing is between its last step and the boundary.
    stage = Stage.BETWEEN if timeline.held_s else Stage.CUT if ended_early else Stage.TAIL
    stop_s = max(last_s, min(timeline.held_s or timeline.exit_s or end_s, end_s))
    ledger.stretch(timeline.spans[last + 1 :], last_s, stop_s, stage)
    ledger.add({"held_by_hotloop_s" if timeline.held_s else "shutdown_s": end_s - stop_s})
