"""Samples and tokens per second, from the batches that were loaded and what went into the model."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from hotloop.observe.decode.spans import Size, Timeline
from hotloop.observe.steps.step_windows import Window
from hotloop.probe.record.events import Kind

CALLS = 3
"""Of a model for a backward: a batch in two views, or a discriminator, makes two of them."""


def rates(
    timeline: Timeline,
    steady: Sequence[Window],
    loaders: Sequence[dict[str, Any]],
    *,
    generates: bool = False,
) -> tuple[float | None, float | None]:
    """Return samples and tokens per second over the steady steps; None where no batch was seen.

    With a loader a step's samples are its batches times their size. Without one they are what the root module was
    given: the smallest root's where there are several (a discriminator sees each batch twice), and once a step where
    an optimizer calls a closure again and again; what a model is given to act on is no sample. Where text is generated,
    a step's samples are its prompts, and its tokens those that came of them: one of each prompt for each forward.
    """
    wall = sum(window.duration_s for window in steady)
    if not wall:
        return None, None
    step_of = _finder(steady)
    given = _given(timeline, step_of)
    if generates:
        prompts, generated = _generated(given, step_of)
        return prompts / wall or None, generated / wall or None
    samples = _loaded(timeline, step_of, loaders, given)
    if samples is None and not _is_rollout(timeline, step_of):
        samples = _least(given, lambda size: size.samples)
    tokens = _least(given, lambda size: size.tokens)
    return (samples or 0) / wall or None, (tokens or 0) / wall or None


def loader_slots(timeline: Timeline, steady: Sequence[Window]) -> frozenset[int]:
    """Return the loaders that gave batches in the steady steps."""
    step_of = _finder(steady)
    slots = {
        span.slot for span in timeline.spans if span.kind is Kind.DATA and step_of(span.end_s) is not None
    }
    return frozenset(slots)


def _finder(steady: Sequence[Window]) -> Callable[[float], int | None]:
    starts = [window.begin_s for window in steady]

    def step_of(time_s: float) -> int | None:
        at = bisect_right(starts, time_s) - 1
        return at if at >= 0 and time_s <= steady[at].end_s else None

    return step_of


def _given(timeline: Timeline, step_of: Callable[[float], int | None]) -> list[Size]:
    """Return the batches of the training forwards in the steady steps (of all forwards, where nothing trains)."""
    inside: list[tuple[int, Size]] = []
    for size in timeline.sizes:
        step = step_of(size.begin_s)
        if step is not None:
            inside.append((step, size))
    if any(size.kind is Kind.FORWARD for _, size in inside):
        inside = [(step, size) for step, size in inside if size.kind is Kind.FORWARD]
    once: dict[tuple[int, int], Size] = {}
    for step, size in inside:
        if size.depth:
            once.setdefault((step, size.slot), size)
    return [size for _, size in inside if not size.depth] + list(once.values())


def _generated(given: Sequence[Size], step_of: Callable[[float], int | None]) -> tuple[int, int]:
    """Return how many prompts were answered, and the tokens that came of them.

    The model that is called most in a request makes the tokens, one for each prompt at a time: an encoder is called
    once, and several beams of a prompt end as one text.
    """
    prompts: dict[int | None, int] = {}
    calls: dict[int | None, Counter[int]] = {}
    for size in given:
        step = step_of(size.begin_s)
        prompts.setdefault(step, size.samples)
        calls.setdefault(step, Counter())[size.slot] += 1
    return sum(prompts.values()), sum(prompts[step] * max(calls[step].values()) for step in prompts)


def _loaded(
    timeline: Timeline,
    step_of: Callable[[float], int | None],
    loaders: Sequence[dict[str, Any]],
    given: Sequence[Size],
) -> float | None:
    """Return the samples that loaders gave in the steady steps; a loader of unknown batch size gives what goes in."""
    loads = Counter(
        span.slot for span in timeline.spans if span.kind is Kind.DATA and step_of(span.end_s) is not None
    )
    batch = median(size.samples for size in given) if given else None
    total = 0.0
    for slot, num in loads.items():
        known = loaders[slot]["batch_size"] if slot < len(loaders) else None
        each = known if known is not None else batch
        if each is None:
            return None
        total += num * each
    return total or None


def _is_rollout(timeline: Timeline, step_of: Callable[[float], int | None]) -> bool:
    """Whether the model is called far more often than something is learned: to act, on whatever a simulator gives."""
    num = Counter(span.kind for span in timeline.spans if step_of(span.end_s) is not None)
    return num[Kind.FORWARD] + num[Kind.EVALUATE] > CALLS * num[Kind.BACKWARD] > 0


def _least(given: Sequence[Size], value: Callable[[Size], int]) -> float | None:
    sums: Counter[int] = Counter()
    for size in given:
        sums[size.slot] += value(size)
    return min((total for total in sums.values() if total), default=None)
