"""What is called instead of the call of a module within a root."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class InnerCall:
    """A function in the place that `Module.compile()` uses; it turns into None in pickles and copies.

    Most modules leave that place out of what they give to pickle. Recurrent ones (`nn.LSTM`) do not: a program that
    saved its model could not, because the function that stands there is none of a module's.

    Args:
        run: the function.
        own: the module's own call, whose name and signature it has.
    """

    def __init__(self, run: Callable[..., Any], own: Callable[..., Any]) -> None:
        functools.update_wrapper(self, own)
        self._run = run

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self._run(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        """Become None in a pickle."""
        return (type(None), ())

    def __deepcopy__(self, memo: Any) -> None:
        """Become None in a copy."""
