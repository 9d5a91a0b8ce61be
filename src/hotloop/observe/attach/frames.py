"""What a Python frame tells: whose code it is, and which phase of a step it belongs to."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hotloop.model.deep import Frame
from hotloop.model.observation import Phase

_WRITTEN = re.compile(r"(?P<function>.*) \((?P<path>.*?)(?::(?P<line>\d+))?\)$")
_INSTALLED = ("site-packages/", "dist-packages/")
_STANDARD = re.compile(r"/lib/(python3\.\d+|python311\.zip)/|^<frozen |^<string>|^<")
_INNERMOST = (
    (Phase.COMMUNICATION, "torch/distributed/distributed_c10d.py", ""),
    (Phase.OPTIMIZER, "torch/optim/", ""),
    (Phase.FORWARD, "torch/nn/modules/module.py", "_call_impl"),
    (Phase.FORWARD, "torch/_dynamo/eval_frame.py", ""),
)
"""Where several are on the stack, the innermost counts: an optimizer's closure runs the forward."""
_WHEREVER = (
    (Phase.DATA, "torch/utils/data/dataloader.py", "__next__"),
    (Phase.BACKWARD, "torch/autograd/graph.py", "_engine_run_backward"),
)
"""They count wherever they stand: a checkpoint runs the forward again within the backward."""


def read_frame(written: str) -> Frame:
    """Return a frame as py-spy writes it: `Linear.forward (/.../torch/nn/modules/linear.py:134)`."""
    found = _WRITTEN.match(written)
    if found is None:
        return Frame(path="", line=0, function=written, owner="library")
    path = found["path"]
    return Frame(path=path, line=int(found["line"] or 0), function=found["function"], owner=_owner(path))


def _owner(path: str) -> str:
    installed = next((path.rpartition(home)[2] for home in _INSTALLED if home in path), None)
    if installed is not None:
        return "torch" if installed.startswith("torch/") else "library"
    return "library" if _STANDARD.search(path) else "user"


def phase_of(stack: Sequence[Frame]) -> Phase:
    """Return the phase that a stack of the training thread, outermost frame first, is in."""
    for phase, path, function in _WHEREVER:
        if any(_is(frame, path, function) for frame in stack):
            return phase
    for frame in reversed(stack):
        for phase, path, function in _INNERMOST:
            if _is(frame, path, function) and not frame.path.endswith("lr_scheduler.py"):
                return phase
    return Phase.OTHER


def _is(frame: Frame, path: str, function: str) -> bool:
    return frame.owner == "torch" and path in frame.path and frame.function.endswith(function)
