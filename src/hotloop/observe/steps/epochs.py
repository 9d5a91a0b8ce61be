"""How many steps lie between two starts of the training loader."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import Counter
from statistics import median

from hotloop.model.observation import Anchor
from hotloop.observe.decode.spans import Timeline
from hotloop.observe.steps.step_windows import boundaries
from hotloop.probe.record.events import Kind


def epoch_steps(timeline: Timeline, anchor: Anchor) -> int | None:
    """Return the steps of a typical whole epoch; None where the training loader was not started twice."""
    ends = [timeline.spans[index].end_s for index in boundaries(timeline, anchor)]
    slot = training_slot(timeline)
    starts = [span.begin_s for span in timeline.spans if span.kind is Kind.ITERATOR and span.slot == slot]
    counts = [bisect_right(ends, start) for start in starts]
    lengths = [after - before for before, after in itertools.pairwise(counts) if after > before]
    return round(median(lengths)) if lengths else None


def training_slot(timeline: Timeline) -> int | None:
    """The loader that gave most of the batches on which a forward with gradients followed."""
    slots: Counter[int] = Counter()
    last: int | None = None
    for span in timeline.spans:
        if span.kind is Kind.DATA:
            last = span.slot
        elif span.kind is Kind.BACKWARD and last is not None:
            slots[last] += 1
    return slots.most_common(1)[0][0] if slots else None
