"""What earlier sessions measured orders what is tried when nothing else is known; it is never more than an order.

For each optimization and kind of device: by which factor it brought more, or less, than its row of the catalogue
expected. Hotloop ships the outcomes of its benchmarks; the sessions of this machine are added to them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import resources
from pathlib import Path

import msgspec

from hotloop.machine.card.cache import cache_folder
from hotloop.machine.host.identity import fingerprint, identity
from hotloop.model.optimization import Candidate
from hotloop.model.tuning import Trial

SHIPPED = "outcomes.json"
DOUBT = 3.0
"""Trials that the catalogue's own expectation counts as."""
KEPT = 30.0
"""Trials of one optimization beyond which older ones fade: programs and versions change."""
FURTHEST = math.log(4.0)
"""What a trial may say in either direction: one absurd figure must not order all later sessions."""


class Outcome(msgspec.Struct, frozen=True):
    """Trials of one optimization on one kind of device.

    Attributes:
        num: how many.
        mean_log: mean of log(measured gain / expected gain).
    """

    num: float
    mean_log: float

    def and_one(self, log_ratio: float) -> Outcome:
        """Return these and one trial more."""
        held = min(self.num, KEPT - 1)
        log_ratio = max(-FURTHEST, min(FURTHEST, log_ratio))
        return Outcome(held + 1, (held * self.mean_log + log_ratio) / (held + 1))


Outcomes = dict[str, Outcome]
"""By `name on device`."""


def factor(outcomes: Mapping[str, Outcome], candidate: Candidate, device: str) -> float:
    """Return what to multiply a candidate's expected gain with, for the order only."""
    known = outcomes.get(_key(candidate, device))
    return 1.0 if known is None else math.exp(known.mean_log * known.num / (known.num + DOUBT))


def with_trials(outcomes: Outcomes, trials: Iterable[Trial], device: str) -> Outcomes:
    """Return the outcomes with those of some trials: what failed or was not measured says nothing of gains."""
    known = dict(outcomes)
    for trial in trials:
        if trial.ratio is not None and trial.ratio.ratio > 0:
            key = _key(trial.candidate, device)
            log_ratio = math.log(trial.ratio.ratio / trial.candidate.prior)
            known[key] = known.get(key, Outcome(0, 0.0)).and_one(log_ratio)
    return known


def kept_outcomes(cache: Path | None = None) -> Outcomes:
    """Return the outcomes of this machine's sessions, on top of the shipped ones.

    Args:
        cache: where they are kept, `cache_folder()` unless told.
    """
    return _read(_path(cache)) or shipped_outcomes()


def keep_outcomes(trials: Iterable[Trial], device: str, cache: Path | None = None) -> None:
    """Add the trials of a session; a folder that cannot be written only means that they are forgotten."""
    path = _path(cache)
    known = with_trials(kept_outcomes(cache), trials, device)
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(encode(known))
        os.replace(partial, path)
    except OSError:
        with suppress(OSError):
            partial.unlink()


def shipped_outcomes() -> Outcomes:
    """Return what hotloop's own benchmarks measured."""
    return msgspec.json.decode(resources.files(__package__).joinpath(SHIPPED).read_bytes(), type=Outcomes)


def encode(outcomes: Outcomes) -> bytes:
    """Return the file's text."""
    return msgspec.json.format(msgspec.json.encode(outcomes, order="sorted")) + b"\n"


def _read(path: Path) -> Outcomes | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Outcomes)
    except (OSError, msgspec.DecodeError):
        return None


def _path(cache: Path | None) -> Path:
    return (cache or cache_folder()) / f"outcomes-{fingerprint(identity())}.json"


def _key(candidate: Candidate, device: str) -> str:
    return f"{candidate.name} on {device}"
