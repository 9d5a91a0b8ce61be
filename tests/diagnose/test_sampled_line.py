"""What is measured as a part of the run is given the line that it is called from, where stacks were sampled."""

from __future__ import annotations

import msgspec
import pytest

from hotloop.diagnose.check.engine import diagnose
from hotloop.model.deep import Frame
from hotloop.model.observation import Observation

from .deep_observations import with_stacks
from .observations import FINE, with_parts

_LOOP, _FORWARD = Frame("train.py", 41, "step"), Frame("train.py", 12, "Net.forward")
_SAVE = Frame("/lib/torch/serialization.py", 900, "save", "torch")
_CALL = Frame("/lib/torch/nn/modules/module.py", 1800, "Module._call_impl", "torch")


def _with(observation: Observation, *stack: Frame, phase: str) -> Observation:
    seen = with_stacks(observation, (tuple(range(len(stack))), "train", phase, 30))
    assert seen.deep is not None
    assert seen.deep.host is not None
    host = msgspec.structs.replace(seen.deep.host, frames=stack)
    return msgspec.structs.replace(seen, deep=msgspec.structs.replace(seen.deep, host=host))


def _line(observation: Observation, code: str) -> tuple[str | None, int | None]:
    finding = next(one for one in diagnose(observation).findings if one.code == code)
    return finding.path, finding.line


def test_a_checkpoint_is_given_the_line_that_saves() -> None:
    saving = _with(with_parts(checkpoint_s=3.0), _LOOP, _SAVE, phase="other")
    assert _line(saving, "frequent-checkpoints") == ("train.py", 41)


def test_an_evaluation_is_given_the_line_that_calls_the_model() -> None:
    evaluating = _with(with_parts(evaluation_s=6.0), _LOOP, _CALL, _FORWARD, phase="evaluation")
    assert _line(evaluating, "frequent-evaluation") == ("train.py", 41)


@pytest.mark.parametrize("observation", [FINE, _with(FINE, _LOOP, phase="forward")])
def test_without_samples_of_it_there_is_no_line(observation: Observation) -> None:
    changed = msgspec.structs.replace(with_parts(observation, checkpoint_s=3.0), deep=observation.deep)
    assert _line(changed, "frequent-checkpoints") == (None, None)
