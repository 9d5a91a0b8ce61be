"""A decomposition of a matrix in the step is named by its line."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hotloop.diagnose.check.engine import diagnose
from hotloop.model.deep import Frame
from hotloop.model.finding import Finding
from hotloop.model.observation import Observation
from hotloop.model.operators import Operator, Operators

from .deep_observations import with_stacks
from .observations import FINE

PROGRAM = """
import torch
def penalty(model):
    return torch.linalg.svdvals(model.weight)[0]
def train(model, x):
    return model(x).norm() + penalty(model)
"""


def observed(folder: Path, operator: str) -> Observation:
    """Return a step that is 80% under `penalty`, beside an operator that takes 0.7 of it."""
    script = folder / "train.py"
    script.write_text(PROGRAM)
    seen = with_stacks(
        FINE,
        ((0, 1), "train", "forward", 80),
        ((0, 2), "train", "forward", 10),
        ((0,), "train", "backward", 10),
    )
    assert seen.deep is not None
    assert seen.deep.host is not None
    frames = (
        Frame(str(script), 6, "train"),
        Frame(str(script), 4, "penalty"),
        Frame("/site-packages/torch/_tensor.py", 800, "Tensor.norm", "torch"),
    )
    host = msgspec.structs.replace(seen.deep.host, frames=frames)
    ran = [
        Operator(
            name=name, shapes=(), count=1, self_s=0.1 * share, device_s=None, share=share, allocated_bytes=0
        )
        for name, share in ((operator, 0.7), ("aten::addmm", 0.3))
    ]
    operators = Operators(num_steps=3, window_s=0.3, num=2, self_s=0.1, device_s=None, operators=tuple(ran))
    deep = msgspec.structs.replace(seen.deep, host=host, operators=operators)
    return msgspec.structs.replace(seen, deep=deep)


def _found(observation: Observation) -> Finding | None:
    findings = diagnose(observation).findings
    return next((one for one in findings if one.code == "decomposition-in-step"), None)


def test_the_line_that_decomposes_is_named_and_priced(tmp_path: Path) -> None:
    finding = _found(observed(tmp_path, "aten::_linalg_svd"))
    assert finding is not None
    assert (finding.path, finding.line) == (str(tmp_path / "train.py"), 4)
    assert finding.gain is not None
    assert finding.cost_s is not None
    assert 0.08 <= finding.cost_s <= 0.1, "with the backward of what it computes"
    assert finding.gain.ratio > 3.0


@pytest.mark.parametrize("operator", ["aten::linalg_vector_norm", "aten::mm"])
def test_what_decomposes_nothing_is_not(tmp_path: Path, operator: str) -> None:
    assert _found(observed(tmp_path, operator)) is None
