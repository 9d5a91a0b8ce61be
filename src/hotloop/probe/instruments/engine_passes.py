"""The passes of the autograd engine: something is told when one begins, and when it has ended."""

from __future__ import annotations

from collections.abc import Callable

from hotloop.probe.frameless import Timed
from hotloop.probe.sections import Section

_ENGINE = "_engine_run_backward"


def watch_engine(enter: Callable[[], bool], leave: Callable[[], None]) -> Callable[[], None]:
    """Mark the passes of the engine, within the marks of the hook point; return what takes the marks away.

    Args:
        enter: called before a pass; returns whether its end is wanted, too.
        leave: called after it.
    """
    from torch import autograd
    from torch.autograd import graph

    own = [(module, getattr(module, _ENGINE)) for module in (graph, autograd)]
    timed = Timed(own[0][1], Section(enter, leave))
    for module, _ in own:
        setattr(module, _ENGINE, timed)

    def put_back() -> None:
        for module, original in own:
            if getattr(module, _ENGINE) is timed:
                setattr(module, _ENGINE, original)

    return put_back
