"""What runs between the model and the backward pass is told from what the model's modules compute."""

from __future__ import annotations

import msgspec
import pytest

from hotloop.diagnose.check.engine import diagnose
from hotloop.model.deep import Frame
from hotloop.model.finding import Finding, Severity
from hotloop.model.observation import Observation

from .deep_observations import with_stacks, with_work
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


_LOSS = with_stacks(
    FINE,
    ((0, 4), "train", "forward", 20),
    ((0, 1), "train", "forward", 20),
    ((0,), "train", "backward", 55),
    ((0,), "train", "other", 5),
)


def test_a_line_whose_work_was_not_followed_may_be_the_loss_itself() -> None:
    assert _found(_with_module(_LOSS)) is None


def test_a_line_costs_the_backward_of_what_it_computes() -> None:
    seen = with_work(
        _with_module(_LOSS), forward_repeated_s=0.02, backward_share=0.9, backward_repeated_share=0.9
    )
    finding = _found(seen)
    assert finding is not None
    assert finding.cost_s == pytest.approx((0.2 + 0.9 * 0.55) * 0.1)
    assert finding.gain is not None
    assert finding.gain.ratio == pytest.approx(1 / (1 - 0.2 - 0.9 * 0.55)), "all of it repeats"


def test_one_large_operation_is_not_named_however_long_it_takes() -> None:
    seen = with_work(
        _with_module(_LOSS),
        operators=1.0,
        forward_repeated_s=0.0,
        backward_share=0.5,
        backward_repeated_share=0.0,
    )
    assert _found(seen) is None


def test_what_a_module_computes_is_not_blamed() -> None:
    seen = with_stacks(FINE, ((0, 1, 4), "train", "forward", 60), ((0,), "train", "other", 40))
    assert _found(_with_module(seen)) is None


def test_an_ordinary_loss_is_information() -> None:
    seen = with_stacks(
        FINE, ((0, 4), "train", "forward", 90), ((0, 1), "train", "forward", 12), ((0,), "train", "other", 40)
    )
    work = {"forward_repeated_s": 0.02, "backward_share": 0.9, "backward_repeated_share": 0.9}
    finding = _found(with_work(_with_module(seen), **work))
    assert finding is not None
    assert finding.severity is Severity.INFO
