"""The hook that sits in a root module.

It sits in the place that `Module.compile()` uses: torch drops it when a module is pickled or copied, and `state_dict`,
`children()` and the signature of `forward` stay as they are. Where a class pickles its attributes by itself, the hook
turns into None on the way.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any, Protocol

PLACE = "_compiled_call_impl"


class Recorded(Protocol):
    """The root, as its hook knows it."""

    is_traced: Callable[[], bool]

    def begin(self, plain: Any, args: Any, kwargs: Any) -> Any:
        """Mark the beginning of a call; return what is to be called."""

    def failed(self) -> None:
        """Keep the exception that is being handled."""


def hook_of(module: Any) -> Hook | None:
    """Return the hook that a module carries."""
    hook = module.__dict__.get(PLACE)
    return hook if isinstance(hook, Hook) else None


class _Called:
    """Stands as `__call__` in the class of hooks: asks the hook what to call, and is gone when that is called."""

    def __get__(self, hook: Any, owner: type | None = None) -> Any:
        return self if hook is None else hook.begin()


class Hook:
    """What is called instead of a root module's call; no frame of it is on the stack during the forward.

    It holds its module weakly: a cycle would keep the module's memory until the garbage collector runs.

    Args:
        root: the root that it records.
        module: the module it sits in.
        compiled: the call that `Module.compile()` had put there; None: the module's plain call.
    """

    __call__ = _Called()

    def __init__(self, root: Recorded, module: Any, compiled: Any) -> None:
        self.compiled = compiled
        self._root = root
        self._module = weakref.ref(module)
        self._is_traced = root.is_traced
        self._caller = type(module)._wrapped_call_impl.__code__

    def begin(self) -> Any:
        """Mark the beginning; return what is to be called: recorded and changed as the activations ask.

        Who calls, and with what, stands in the variables of torch's own `Module.__call__`: a module that came by this
        hook with its attributes, as the replicas of DataParallel do, is called as it is.
        """
        frame = sys._getframe(2)
        given = frame.f_locals if frame.f_code is self._caller else {}
        own: Any = self._module()
        module: Any = given.get("self", own)
        plain = module._call_impl if self.compiled is None else self.compiled
        try:
            if module is own and given and not self._is_traced():
                return self._root.begin(plain, given["args"], given["kwargs"])
        except Exception:  # the probe fails open
            self._root.failed()
        return plain

    def leave(self, module: Any) -> None:
        """Leave a module as it was."""
        if self.compiled is None:
            del module.__dict__[PLACE]
        else:
            module.__dict__[PLACE] = self.compiled

    def __reduce__(self) -> tuple[Any, ...]:
        """Become None in a pickle."""
        return (type(None), ())

    def __deepcopy__(self, memo: Any) -> None:
        """Become None in a copy."""
