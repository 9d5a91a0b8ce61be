"""debug_apis_off: the calls stay, their cost goes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch.autograd import detect_anomaly, gradcheck, profiler, set_detect_anomaly
from torch.autograd.profiler import profile

from hotloop.optimize.catalogue.compute.debug_apis_off.activation import DebugCalls
from hotloop.optimize.catalogue.compute.debug_apis_off.row import DebugApisOff
from hotloop.optimize.optimization import DoesNotApply

from .harness import observation


def activated() -> DebugCalls:
    activation = DebugApisOff().activation({})
    assert isinstance(activation, DebugCalls)
    activation.on_torch()
    return activation


def test_names_imported_earlier_do_nothing() -> None:
    activation = activated()
    with detect_anomaly() as entered, set_detect_anomaly(True):
        assert entered is None
        assert not torch.is_anomaly_enabled()
    set_detect_anomaly(True)
    assert not torch.is_anomaly_enabled()
    assert activation.effect() == (True, "kept off: anomaly detection (3 calls)")


def test_what_was_on_before_is_switched_off() -> None:
    torch.autograd.set_detect_anomaly(True)
    activation = activated()
    assert not torch.is_anomaly_enabled()
    assert activation.effect()[0]


def test_the_classes_stay_what_they_were() -> None:
    activated()
    assert isinstance(detect_anomaly(), torch.autograd.anomaly_mode.detect_anomaly)
    assert isinstance(set_detect_anomaly(False), torch.autograd.anomaly_mode.set_detect_anomaly)


def test_a_nan_in_backward_no_longer_raises() -> None:
    activated()
    x = torch.zeros(1, requires_grad=True)
    with detect_anomaly():
        (x.sqrt() * 0).backward()
    assert x.grad is not None
    assert x.grad.isnan().all()


def test_an_empty_profile_can_be_read(tmp_path: Path) -> None:
    activation = activated()
    with profile() as prof:
        torch.ones(2).sum()
    assert isinstance(prof, profile)
    assert len(prof.function_events) == 0
    assert len(prof.key_averages()) == 0
    assert isinstance(prof.table(), str)
    assert str(prof) is not None
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    assert json.loads((tmp_path / "trace.json").read_text()) == {"traceEvents": []}
    assert activation.effect() == (True, "kept off: profile (1 call)")


def test_a_disabled_profile_is_not_counted() -> None:
    activation = activated()
    with profile(enabled=False) as prof:
        assert prof is None
    assert not activation.effect()[0]


def test_the_user_s_torch_profiler_still_records() -> None:
    activated()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        torch.ones(2).sum()
    assert len(prof.key_averages()) > 0


def test_nvtx_ranges_are_not_emitted() -> None:
    activation = activated()
    with profiler.emit_nvtx():
        torch.ones(2).sum()
    assert "emit_nvtx (1 call)" in activation.effect()[1]


def test_gradcheck_obtained_earlier_answers_at_once() -> None:
    activation = activated()

    def never(x: torch.Tensor) -> torch.Tensor:
        raise AssertionError("the function was evaluated")

    assert gradcheck(never, (torch.ones(1, dtype=torch.float64, requires_grad=True),), eps=1e-3)
    assert activation.effect() == (True, "kept off: gradcheck (1 call)")


def test_nothing_called_is_no_effect() -> None:
    assert activated().effect() == (False, "no debugging call was made")


def test_it_applies_where_anomaly_detection_was_seen() -> None:
    (candidate,) = DebugApisOff().candidates(observation(anomaly_mode=True))
    assert candidate.label == "debug_apis_off"
    with pytest.raises(DoesNotApply, match="no debugging API was seen on"):
        DebugApisOff().candidates(observation())
