"""Where exceptions pass that nobody may see later: torch's own handlers, and the ends that Python keeps no error of.

Each look asks for the exception that is being handled (`sys.exc_info`), in a place at which torch or Python handles
every one: so no frame is added to the program's calls, and nothing is done where none is handled.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol

from hotloop.probe.frameless import Around, Before, BeforeCall
from hotloop.probe.probe import Probe

_PHASES = {"Optimizer.step#": "optimizer", "enumerate(DataLoader)": "loading"}
"""By the names under which torch records its own calls."""


class Looks(Protocol):
    """What is told."""

    def passes(self, phase: str | None = None) -> None:
        """Called where an exception may be handled that the program may catch later."""

    def after_backward(self) -> None:
        """Called when a backward pass has ended, well or not."""

    def made(self, error: BaseException) -> None:
        """Called when torch makes an exception of a device's allocator."""

    def ends(self) -> None:
        """Called where an exception may be handled with which the program, or a thread of it, ends."""


def install(probe: Probe, looks: Looks) -> None:
    """Look wherever torch or Python handles what passes."""
    for point in (_backward, _recorded_calls, _device_errors):
        with probe.survive("memory failure"):
            point(looks)
    sys.exit = BeforeCall(sys.exit, looks.ends)
    threading.excepthook = BeforeCall(threading.excepthook, looks.ends)


def _backward(looks: Looks) -> None:
    """Stand in the `finally` around the engine, in which torch removes the hooks with which it logs."""
    from torch.autograd import graph

    module: Any = graph
    module.log, module._register_logging_hooks_on_whole_graph = _made_to_log(
        module.log, module._register_logging_hooks_on_whole_graph, looks.after_backward
    )


def _made_to_log(
    log: logging.Logger, register: Callable[[Any], Callable[[], None]], look: Callable[[], None]
) -> tuple[Any, Callable[[Any], Callable[[], None]]]:
    class Log:
        """The logger, which seems to be asked for all."""

        def getEffectiveLevel(self) -> int:  # noqa: N802 - its name
            return logging.DEBUG

        def __getattr__(self, name: str) -> Any:
            return getattr(log, name)

    def registered(outputs: Any) -> Callable[[], None]:
        if log.getEffectiveLevel() > logging.DEBUG:
            return look
        remove = register(outputs)

        def removed() -> None:
            look()
            remove()

        return removed

    return Log(), registered


def _recorded_calls(looks: Looks) -> None:
    """Look at the end of what torch records: steps of optimizers, batches of loaders, forwards of DDP."""
    from torch.autograd.profiler import record_function

    cls: Any = record_function
    original = cls.__exit__

    def leave(self: Any, kind: Any, error: Any, trace: Any) -> Any:
        if error is not None:
            name = str(self.name)
            looks.passes(next((phase for start, phase in _PHASES.items() if name.startswith(start)), None))
        return original(self, kind, error, trace)

    cls.__exit__ = Around(original, leave)


def _device_errors(looks: Looks) -> None:
    """Look at each error of a device's allocator: wherever it is raised, its class is torch's own."""
    import torch

    cls: Any = torch.OutOfMemoryError
    cls.__init__ = Before(cls.__init__, looks.made)
