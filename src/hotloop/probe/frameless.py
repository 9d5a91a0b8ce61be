"""Mark the beginning and the end of calls without a frame of ours on the stack meanwhile.

Code that counts frames or looks at its callers (`warnings.warn(stacklevel=...)`, `inspect.stack`, `logging`,
`torch.jit.script`) must find what it finds without us, and so must who asks a class for its method: its identity, its
signature, its code. A wrapper function fails both. What stands here instead begins when Python looks up how a call is
made, hands out the call as an object that C calls, and ends when that object goes, which is right after the call.

For Python functions alone: a signal that comes while C code runs is handled in the next Python code, and a
KeyboardInterrupt in a finalizer would be lost. `Around` is for methods in C, which call no code of the user's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any

from hotloop.probe.sections import Section


class Pending:
    """An interrupt that came while an end was marked: it is raised at the next beginning."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def go_off(self) -> None:
        """Raise what is pending."""
        error, self.error = self.error, None
        if error is not None:
            raise error


_pending = Pending()


def call_that(leave: Callable[[], None]) -> type[functools.partial[Any]]:
    """Return a kind of partial that calls `leave` when it goes.

    Args:
        leave: never raises an exception of its own.
    """
    pending = _pending

    class Call(functools.partial[Any]):
        """One call under way."""

        def __del__(self) -> None:
            try:
                leave()
            except BaseException as error:  # a signal's: Python would print it and go on
                pending.error = error

    return Call


class _Begin:
    """Stands as `__call__` in a class: asks the object what to call when it is called."""

    def __get__(self, timed: Any, owner: type | None = None) -> Any:
        return self if timed is None else timed.begin()


class Timed:
    """Stands for a function in a module, or for an ordinary method in its class.

    Args:
        original: the function.
        marks: of its calls.
    """

    __call__ = _Begin()

    def __init__(self, original: Any, marks: Section) -> None:
        self._original = original
        self._enter = marks.enter
        self._call = call_that(marks.leave)
        functools.update_wrapper(self, original, updated=())

    def begin(self) -> Any:
        """Mark the beginning; return what is to be called."""
        if _pending.error is not None:
            _pending.go_off()
        return self._call(self._original) if self._enter() else self._original

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind as a method for instances; the class itself shows the original."""
        return self._original if instance is None else MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        """Have what the original has."""
        return getattr(self._original, name)

    def __reduce__(self) -> str:
        """Be pickled by name, as functions are."""
        return str(self.__qualname__)


class _Bound(functools.partial[Any]):
    """A special method of an instance, begun when it is called: programs keep `iterator.__next__`."""

    __call__ = _Begin()

    def begin(self) -> Any:
        return self.func(*self.args)


class TimedSlot:
    """Stands for a special method (`__next__`) in its class.

    Args:
        original: the method.
        marks: of the calls on an instance.
    """

    def __init__(self, original: Any, marks: Callable[[Any], Section]) -> None:
        self._original = original
        self._marks = marks
        self._calls: dict[int, type[functools.partial[Any]]] = {}

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind as a method for instances; the class itself shows the original."""
        return self._original if instance is None else _Bound(self._begin, instance)

    def _begin(self, instance: Any) -> Any:
        if _pending.error is not None:
            _pending.go_off()
        marks = self._marks(instance)
        if not marks.enter():
            return MethodType(self._original, instance)
        call = self._calls.get(id(marks))
        if call is None:
            call = self._calls[id(marks)] = call_that(marks.leave)
        return call(self._original, instance)


class Before:
    """Stands for a method in its class: calls something first.

    Args:
        original: the method.
        tell: told of the instance whenever its method is looked up, which is when it is called; never raises.
    """

    def __init__(self, original: Any, tell: Callable[[Any], None]) -> None:
        self._original = original
        self._tell = tell

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Be the original, for an instance told of first."""
        if instance is None:
            return self._original
        self._tell(instance)
        return MethodType(self._original, instance)


class BeforeCall:
    """Stands for a function that an object holds: calls something first.

    Args:
        original: the function.
        tell: called when it is; never raises.
    """

    __call__ = _Begin()

    def __init__(self, original: Any, tell: Callable[[], None]) -> None:
        self._original = original
        self._tell = tell
        functools.update_wrapper(self, original, updated=())

    def begin(self) -> Any:
        """Tell; return what is to be called."""
        self._tell()
        return self._original

    def __reduce__(self) -> str:
        """Be pickled by name, as functions are."""
        return str(vars(self)["__qualname__"])


class Around:
    """Stands for a method in its class: instances have the wrapped one, the class itself shows the original.

    Args:
        original: the method.
        wrapped: a function that calls it.
        only: the one class whose instances have it, subclasses not; None: all.
    """

    def __init__(self, original: Any, wrapped: Any, only: type | None = None) -> None:
        self._original = original
        self._wrapped = functools.update_wrapper(wrapped, original, updated=())
        self._only = only

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Be the wrapped method for instances; the class itself shows the original."""
        if instance is None:
            return self._original.__get__(None, owner)
        if self._only is not None and type(instance) is not self._only:
            return self._original.__get__(instance, owner)
        return MethodType(self._wrapped, instance)


def own_method(owner: type, name: str) -> Any:
    """Return what a method of a class is for its instances."""
    found = vars(owner).get(name)
    return found._wrapped if isinstance(found, Around) else getattr(owner, name)
