"""Where a program sets up its framework: the call whose keywords are the framework's own knobs.

The classes themselves stay as they are: command lines are made of their signatures (LightningCLI refuses a class whose
`__init__` is no plain function). What is watched is a part that each of them makes of itself while it is set up.
"""

from __future__ import annotations

import functools
import sys
from types import FrameType, ModuleType
from typing import Any

from hotloop.probe.frameless import Before
from hotloop.probe.probe import Probe
from hotloop.probe.record.sites import walk
from hotloop.probe.run_events.imports import Waiting

PARTS = {
    "accelerate.state": ("AcceleratorState.__init__", "accelerate.accelerator.Accelerator"),
    "lightning.fabric.connector": ("_Connector.__init__", "lightning.fabric.fabric.Fabric"),
    "lightning.pytorch.trainer.connectors.data_connector": (
        "_DataConnector.__init__",
        "lightning.pytorch.trainer.trainer.Trainer",
    ),
    "lightning_fabric.connector": ("_Connector.__init__", "lightning_fabric.fabric.Fabric"),
    "pytorch_lightning.trainer.connectors.data_connector": (
        "_DataConnector.__init__",
        "pytorch_lightning.trainer.trainer.Trainer",
    ),
    # Heirs of a dataclass have an `__init__` of their own, which does not call the one above.
    "transformers.training_args": (
        "TrainingArguments.__post_init__",
        "transformers.training_args.TrainingArguments",
    ),
}
"""Module to the method in it that is called while an object is set up, and the class of that object."""
_INITIALIZER = "__init__"


def waiting(probe: Probe) -> Waiting:
    """Return what is to be done when each library has been imported; nothing where nobody wants to know."""
    if not probe.sites.wanted:
        return {}
    return {name: functools.partial(_watch, probe, *part) for name, part in PARTS.items()}


def _watch(probe: Probe, path: str, callee: str, module: ModuleType) -> None:
    name, _, method = path.partition(".")
    cls: Any = getattr(module, name, None)
    original = vars(cls).get(method) if cls is not None else None
    if original is None:  # of another version of the library
        return

    def called(_: Any) -> None:
        if probe.sites.open("trainer") and not probe.asleep:
            with probe.survive("sites.trainer"):
                _note(probe, callee, sys._getframe(2))

    watched = Before(original, called)
    setattr(cls, method, watched)

    def restore() -> None:
        if vars(cls).get(method) is watched:
            setattr(cls, method, original)

    probe.sites.on_close.append(restore)


def _note(probe: Probe, callee: str, frame: FrameType) -> None:
    """Keep where an object is set up, if that is what the frame does."""
    names = frame.f_code.co_varnames
    made = frame.f_locals.get(names[0]) if names and frame.f_code.co_name == _INITIALIZER else None
    if any(f"{cls.__module__}.{cls.__qualname__}" == callee for cls in type(made).__mro__):
        probe.sites.keep("trainer", callee, walk(frame, made))
