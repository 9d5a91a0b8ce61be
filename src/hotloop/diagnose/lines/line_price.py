"""The price of lines: their samples, the backward of what they put into the graph, and what of it only repeats."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.diagnose.lines.hot_line import is_under, sampled_share, samples_of
from hotloop.diagnose.price.cost import MATERIAL, MIDWAY, Cost, measured_step, phase_share, with_backward
from hotloop.model.deep import Sample
from hotloop.model.line_work import LineWork
from hotloop.model.observation import Observation, Phase
from hotloop.model.ratio import Ratio


@dataclass(frozen=True)
class LinePrice:
    """What some lines cost, and what of it one call in place of many would save."""

    cost: Cost
    """With the backward of what they put into the graph."""
    own: Cost
    """Without."""
    saved: float | None
    """Fraction of the cost: what repeated calls cost whatever they compute, and half of what Python and libraries do
    once; None: the work of the lines was not followed."""

    @property
    def worth_naming(self) -> bool:
        """Whether one call in place of many saves anything of note, as far as that is known."""
        return self.saved is not None and self.cost.share * self.saved >= MATERIAL

    @property
    def gain(self) -> Ratio:
        """The gain where one call does it all; between nothing and everything where that is not known."""
        return self.cost.gain(expected=MIDWAY if self.saved is None else self.saved)


def line_price(observation: Observation, path: str, lines: range) -> LinePrice:
    """Return the price of some lines of a file, with all that they call.

    Raises:
        Abstain: there are no samples, or too few.
    """
    host, own = samples_of(observation, "train")
    step_s = measured_step(observation).whole_s
    under = [sample for sample in own if is_under(host, sample, path, lines)]
    forward = [sample for sample in under if sample.phase == Phase.FORWARD.value]
    inside, whole = (
        sampled_share(_spent(part) / _spent(own), sum(sample.num for sample in own), step_s)
        for part in (forward, under)
    )
    work = _work(observation, path, lines)
    if work is None:
        more = with_backward(observation, inside) if forward else inside
        return LinePrice(_plus(whole, more, inside), whole, None)
    backward = phase_share(observation, Phase.BACKWARD)
    inside_backward = sum(s.spent_s for s in under if s.phase == Phase.BACKWARD.value) / _spent(own)
    more_share = max(0.0, backward * min(1.0, sum(one.backward_share for one in work)) - inside_backward)
    cost = Cost(
        min(1.0, whole.share + more_share),
        min(1.0, whole.low + more_share),
        min(1.0, whole.high + more_share),
        step_s,
    )
    return LinePrice(cost, whole, _saved(work, whole.share, more_share, backward))


def _work(observation: Observation, path: str, lines: range) -> list[LineWork] | None:
    """Return the work of the lines that ran; None: it was not followed, or none of them ran meanwhile."""
    step_work = observation.deep.line_work if observation.deep else None
    if step_work is None or step_work.backward_s is None:
        return None
    return [one for one in step_work.lines if one.path == path and one.line in lines] or None


def _saved(work: list[LineWork], own: float, backward: float, whole_backward: float) -> float:
    """Return the fraction of the cost that one call in place of many would save."""
    forward_s = sum(one.forward_s for one in work)
    again = sum(one.forward_repeated_s + MIDWAY * one.forward_host_s for one in work)
    saved = own * min(1.0, again / forward_s) if forward_s else 0.0
    saved += min(backward, whole_backward * sum(one.backward_repeated_share for one in work))
    return min(1.0, saved / (own + backward)) if own + backward else 0.0


def repeats(observation: Observation, path: str, line: int) -> float | None:
    """Return the fraction of a line's own time that one call in place of many would save; None: it is not known."""
    step_work = observation.deep.line_work if observation.deep else None
    work = step_work.at(path, line) if step_work else None
    return _again(work) if work is not None else None


def _again(work: LineWork) -> float:
    again_s = work.forward_repeated_s + MIDWAY * work.forward_host_s
    return min(1.0, again_s / work.forward_s) if work.forward_s else 0.0


def _plus(whole: Cost, more: Cost, inside: Cost) -> Cost:
    share, low, high = (
        min(1.0, getattr(whole, end) + getattr(more, end) - getattr(inside, end))
        for end in ("share", "low", "high")
    )
    return Cost(share, low, high, whole.step_s)


def _spent(samples: list[Sample]) -> float:
    return sum(sample.spent_s for sample in samples)
