"""A step most of which is one line that decomposes a matrix."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hotloop.model.deep import Frame
from hotloop.model.observation import Observation
from hotloop.model.operators import Operator, Operators

from .deep_observations import with_stacks
from .observations import FINE

PROGRAM = str(Path(__file__).with_name("decomposing_program.py"))


def decomposing(operator: str) -> Observation:
    """Return a step that is 80% under `penalty`, with an operator that takes 0.7 of it."""
    seen = with_stacks(
        FINE,
        ((0, 1), "train", "forward", 80),
        ((0, 2), "train", "forward", 10),
        ((0,), "train", "backward", 10),
    )
    assert seen.deep is not None
    assert seen.deep.host is not None
    frames = (
        Frame(PROGRAM, 16, "loss"),
        Frame(PROGRAM, 10, "penalty"),
        Frame("/site-packages/torch/_tensor.py", 800, "Tensor.norm", "torch"),
    )
    host = msgspec.structs.replace(seen.deep.host, frames=frames)
    ran = tuple(
        Operator(
            name=name, shapes=(), count=1, self_s=0.1 * share, device_s=None, share=share, allocated_bytes=0
        )
        for name, share in ((operator, 0.7), ("aten::addmm", 0.3))
    )
    operators = Operators(num_steps=3, window_s=0.3, num=2, self_s=0.1, device_s=None, operators=ran)
    deep = msgspec.structs.replace(seen.deep, host=host, operators=operators)
    return msgspec.structs.replace(seen, deep=deep)
