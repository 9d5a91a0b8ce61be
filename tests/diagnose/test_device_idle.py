"""What host time costs on a device is what the device idles, and no more."""

from __future__ import annotations

import msgspec
import pytest

from hotloop.diagnose.check.engine import diagnose
from hotloop.model.finding import Finding
from hotloop.model.observation import Observation
from hotloop.model.operators import Operators

from .deep_observations import site, with_sites
from .observations import STEP_S, with_program


def _on_device(busy: float | None, share: float) -> Observation:
    """A program whose device works for this share of the step; one line waits for a value for another share."""
    seen = with_sites(site(30, share, device="cuda"), observation=with_program(device="cuda"))
    assert seen.deep is not None
    operators = Operators(
        num_steps=10, window_s=1.0, num=100.0, self_s=0.01, operators=(),
        device_s=None if busy is None else busy * STEP_S,
    )  # fmt: skip
    return msgspec.structs.replace(seen, deep=msgspec.structs.replace(seen.deep, operators=operators))


def _waits(observation: Observation) -> list[Finding]:
    return [finding for finding in diagnose(observation).findings if finding.code == "sync-in-step"]


def test_a_wait_on_a_device_that_is_never_idle_is_no_finding() -> None:
    """`.item()` takes 95% of the host's step, and taking it away gains nothing: the next call waits instead."""
    assert _waits(_on_device(busy=0.995, share=0.95)) == []


@pytest.mark.parametrize(("idle", "share"), [(0.3, 0.95), (0.3, 0.1)])
def test_a_wait_costs_no_more_than_the_device_idles(idle: float, share: float) -> None:
    (finding,) = _waits(_on_device(busy=1 - idle, share=share))
    assert finding.cost_s == pytest.approx(min(idle, share) * STEP_S)
    assert finding.gain is not None
    assert finding.gain.high <= 1 / (1 - idle) + 1e-9
    assert "the device idles for 30% of the step" in finding.evidence


def test_work_at_the_same_time_is_not_counted_twice() -> None:
    """Operators took 1.4 steps of two devices or streams, and the busiest device worked for 0.7 of one."""
    seen = _on_device(busy=1.4, share=0.95)
    assert seen.deep is not None
    assert seen.deep.operators is not None
    operators = msgspec.structs.replace(seen.deep.operators, busy_s=0.7 * STEP_S)
    (finding,) = _waits(
        msgspec.structs.replace(seen, deep=msgspec.structs.replace(seen.deep, operators=operators))
    )
    assert "the device idles for 30% of the step" in finding.evidence


def test_where_idling_was_not_measured_no_gain_is_promised() -> None:
    (finding,) = _waits(_on_device(busy=None, share=0.4))
    assert finding.gain is None
