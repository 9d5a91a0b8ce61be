"""The line under which most of a part of the host's time is spent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import sqrt

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.price.cost import Cost
from hotloop.model.deep import Frame, HostSamples, Sample
from hotloop.model.observation import Observation, Phase

MOST = 0.5
"""A line has to hold half of the part's time: one of several that share it would not explain it."""
BELONGS = 0.65
"""And this much of the line's own time has to be in the part: the call of `main()` holds every part."""
MIN_SAMPLES = 20
"""With fewer, the 95% interval of a half reaches from a quarter to three quarters."""
NORMAL_95 = 1.96
_CALLERS = ("torch/optim/", "torch/autograd/")


@dataclass(frozen=True)
class HotLine:
    """A line, and its part of the time."""

    path: str
    line: int
    function: str
    share: float
    """Of the part's time, what the line calls included."""
    low: float
    """Lower end of the 95% interval, from the number of samples."""
    high: float

    def part_of(self, whole: Cost) -> Cost:
        """Return what the line costs, where the part's time costs so much."""
        return Cost(whole.share * self.share, whole.low * self.low, whole.high * self.high, whole.step_s)


def samples_of(observation: Observation, process: str) -> tuple[HostSamples, list[Sample]]:
    """Return the samples of one kind of process.

    Raises:
        Abstain: there are none, or too few.
    """
    host = observation.deep.host if observation.deep else None
    if host is None:
        raise Abstain("samples of the host's stacks (a run without --no-deep and --full)")
    own = [sample for sample in host.samples if sample.process == process]
    if sum(sample.num for sample in own) < MIN_SAMPLES:
        raise Abstain(f"{MIN_SAMPLES} samples of the host's stacks")
    return host, own


def hot_line(host: HostSamples, part: Iterable[Sample], whole: Iterable[Sample]) -> HotLine | None:
    """Return the innermost line of the user's that holds most of a part's time; None: it is spread.

    Args:
        host: for its frames.
        part: the samples of the part.
        whole: all samples of that kind of process.
    """
    inside = list(part)
    in_part, depth = _by_line(host, inside)
    in_whole, _ = _by_line(host, whole)
    total = sum(sample.spent_s for sample in inside)
    held = [
        line for line, spent in in_part.items() if spent >= MOST * total and spent >= BELONGS * in_whole[line]
    ]
    if not held or not total:
        return None
    path, line, function = best = max(held, key=lambda one: (depth[one], in_part[one]))
    share = min(1.0, in_part[best] / total)
    reach = NORMAL_95 * sqrt(share * (1.0 - share) / sum(sample.num for sample in inside))
    return HotLine(path, line, function, share, max(0.0, share - reach), min(1.0, share + reach))


def sampled_share(share: float, num: int, step_s: float) -> Cost:
    """Return a share of the samples as a cost, with the 95% interval that so many samples give it."""
    reach = NORMAL_95 * sqrt(share * (1.0 - share) / num)
    return Cost(share, max(0.0, share - reach), min(1.0, share + reach), step_s)


def sampled_part(
    observation: Observation, wanted: Callable[[HostSamples, Sample], bool], phase: Phase | None = None
) -> float:
    """Return the share of the training thread's samples, of one phase or of all, that are wanted; 0: there are none."""
    host = observation.deep.host if observation.deep else None
    samples = host.samples if host else ()
    own = [one for one in samples if one.process == "train" and (phase is None or one.phase == phase.value)]
    if host is None or not own:
        return 0.0
    return sum(one.spent_s for one in own if wanted(host, one)) / sum(one.spent_s for one in own)


def is_under(host: HostSamples, sample: Sample, path: str, lines: range) -> bool:
    """Whether a sample's stack goes through lines of a file."""
    frames = (host.frames[number] for number in sample.stack)
    return any(frame.path == path and frame.line in lines for frame in frames)


def calls_a_module(frame: Frame) -> bool:
    """Whether a frame is `torch.nn.Module._call_impl`: it stands below whatever a module computes."""
    return frame.function.endswith("_call_impl")


def in_hook(host: HostSamples, sample: Sample) -> bool:
    """Whether an optimizer or the backward pass has called code of the user's, which the sample is in.

    A model's own code is called by a module: samples of a forward may be taken for the backward's, a moment later.
    """
    frames = [host.frames[number] for number in sample.stack]
    last = max((at for at, frame in enumerate(frames) if frame.owner == "user"), default=0)
    caller = next((frame.path for frame in reversed(frames[:last]) if frame.owner == "torch"), "")
    return any(part in caller for part in _CALLERS)


Place = tuple[str, int, str]


def _by_line(host: HostSamples, samples: Iterable[Sample]) -> tuple[dict[Place, float], dict[Place, int]]:
    """Return the time under each line of the user's, and how deep it was seen."""
    spent: dict[Place, float] = defaultdict(float)
    depth: dict[Place, int] = {}
    for sample in samples:
        lines: dict[Place, int] = {}
        for level, number in enumerate(sample.stack):
            frame = host.frames[number]
            if frame.owner == "user":
                lines[frame.path, frame.line, frame.function] = level
        for line, level in lines.items():
            spent[line] += sample.spent_s
            depth[line] = max(level, depth.get(line, 0))
    return spent, depth
