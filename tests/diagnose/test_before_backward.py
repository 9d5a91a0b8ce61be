"""What runs between the model and the backward pass is told from what the model's modules compute."""

from __future__ import annotations

import msgspec
import pytest

from hotloop.diagnose.check.engine import diagnose
from hotloop.model.deep import Frame
from hotloop.model.finding import Finding, Severity
from hotloop.model.observation import Observation

from .deep_observations import with_stacks
from .observations import FINE

_MODULE = Frame("/site-packages/torch/nn/modules/module.py", 1800, "Module._call_impl", "torch")


def _found(observation: Observation) -> Finding | None:
    findings = diagnose(observation).findings
    return next((one for one in findings if one.code == "hot-line-before-backward"), None)


def _with_module(observation: Observation) -> Observation:
    """Frame 4 is that of a module's call."""
    assert observation.deep is not None
    assert observation.deep.host is not None
    frames = (*observation.deep.host.frames[:4], _MODULE)
    host = msgspec.structs.replace(observation.deep.host, frames=frames)
    return msgspec.structs.replace(observation, deep=msgspec.structs.replace(observation.deep, host=host))


def test_the_cost_is_the_lines_part_of_the_forward_phase() -> None:
    seen = with_stacks(
        FINE, ((0, 4), "train", "forward", 30), ((0, 1), "train", "forward", 30), ((0,), "train", "other", 40)
    )
    finding = _found(_with_module(seen))
    assert finding is not None
    assert (finding.path, finding.line, finding.severity) == ("train.py", 41, Severity.WARNING)
    forward, backward = 0.4 / 2, 0.55 / 2
    assert finding.cost_s == pytest.approx((forward + backward) * 0.1), (
        "the backward is divided as the forward is"
    )


def test_what_a_module_computes_is_not_blamed() -> None:
    seen = with_stacks(FINE, ((0, 1, 4), "train", "forward", 60), ((0,), "train", "other", 40))
    assert _found(_with_module(seen)) is None


def test_an_ordinary_loss_is_information() -> None:
    seen = with_stacks(
        FINE, ((0, 4), "train", "forward", 90), ((0, 1), "train", "forward", 20), ((0,), "train", "other", 40)
    )
    finding = _found(_with_module(seen))
    assert finding is not None
    assert finding.severity is Severity.INFO
