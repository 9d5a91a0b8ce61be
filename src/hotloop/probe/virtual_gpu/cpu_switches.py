"""Libraries that are told to train on the CPU train on the virtual GPU: what is asked is what the device would need."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any

_BY_ENVIRONMENT = "ACCELERATE_USE_CPU"
"""What `accelerate launch --cpu` sets."""


def ignore_cpu_switches(when_imported: Callable[[str, Callable[[], None]], None]) -> None:
    """Have accelerate and the Hugging Face Trainer choose the device whatever they are told.

    They keep a device of their own beside the model's and compare the two, so that moving the model is not enough.

    Args:
        when_imported: calls a function after the first import of a module.
    """
    when_imported("accelerate.state", _free_accelerate)
    when_imported("transformers.training_args", _free_trainer)


def _free_accelerate() -> None:
    os.environ.pop(_BY_ENVIRONMENT, None)
    state: Any = sys.modules["accelerate.state"]
    for cls in (state.PartialState, state.AcceleratorState):
        cls.__init__ = _without_cpu(cls.__init__)


def _without_cpu(original: Any) -> Any:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def init(*args: Any, **kwargs: Any) -> None:
        given = signature.bind(*args, **kwargs)
        given.arguments["cpu"] = False
        original(*given.args, **given.kwargs)

    return init


def _free_trainer() -> None:
    arguments: Any = sys.modules["transformers.training_args"].TrainingArguments
    original = arguments.__post_init__

    @functools.wraps(original)
    def post_init(self: Any) -> None:
        self.use_cpu = False
        original(self)

    arguments.__post_init__ = post_init
