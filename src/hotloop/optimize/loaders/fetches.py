"""Stand between the training loop and its loaders: hand out other batches than those that would come."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

_LOADER, _EPOCH, _SKIPPED = "_hotloop_loader", "_hotloop_epoch", "_hotloop_skipped"
_SLOT, _SHARED = "_hotloop_slot", "_hotloop_fetches"
USUAL = 0.5
"""A loader that is fetched from in at least this share of the steps feeds them; evaluation comes more rarely."""


class Fetches:
    """The iterators of the program's loaders, whose `__next__` can be replaced for a while.

    A batch that is handed out instead counts as one of the epoch, so epochs end where they would have.

    Attributes:
        instead: returns the next batch for an iterator; None: it comes from the loader itself.
    """

    def __init__(self) -> None:
        self.instead: Callable[[Any], Any] | None = None
        self.fetch: Callable[[Any], Any] = _not_installed
        """The loader's own `__next__`."""
        self.last: dict[int, tuple[Any, Any]] = {}
        """By loader: itself and the last batch that came from it."""
        self._fetched: set[int] = set()
        self._steps_with: Counter[int] = Counter()
        self._num_steps = 0

    @staticmethod
    def of_process() -> Fetches:
        """Return those of this process, in place from now on.

        First called before the recorder patches the same class, so that it times what is handed out.
        """
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        cls: Any = _BaseDataLoaderIter
        known = cls.__dict__.get(_SHARED)
        if known is None:
            known = cls._hotloop_fetches = Fetches()
            known._install(cls)
        return known  # type: ignore[no-any-return]

    def _install(self, cls: Any) -> None:
        self._note_loaders(cls)
        self.fetch = original = cls.__next__

        @functools.wraps(original)
        def following(iterator: Any) -> Any:
            return self._next(iterator, original)

        cls.__next__ = following

    def _note_loaders(self, cls: Any) -> None:
        init, reset = cls.__init__, cls._reset

        @functools.wraps(init)
        def noting(iterator: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
            iterator.__dict__[_LOADER] = loader
            iterator.__dict__.setdefault(_EPOCH, object())
            init(iterator, loader, *args, **kwargs)

        @functools.wraps(reset)
        def anew(iterator: Any, *args: Any, **kwargs: Any) -> None:
            iterator.__dict__[_EPOCH], iterator.__dict__[_SKIPPED] = object(), 0
            reset(iterator, *args, **kwargs)

        cls.__init__, cls._reset = noting, anew

    def _next(self, iterator: Any, original: Callable[[Any], Any]) -> Any:
        loader = iterator.__dict__.get(_LOADER)
        if loader is None:
            return original(iterator)
        key = key_of(loader)
        skipped = iterator.__dict__.get(_SKIPPED, 0)
        if skipped and _is_over(iterator, skipped):
            raise StopIteration
        if self.instead is not None and key in self.last and self.feeds_steps(key):
            if _is_over(iterator, skipped):
                raise StopIteration
            batch = self.instead(iterator)
            iterator.__dict__[_SKIPPED] = skipped + 1
            return batch
        batch = original(iterator)
        self._fetched.add(key)
        self.last[key] = (loader, batch)
        return batch

    def watch(self, steps: int) -> None:
        """Count which loaders the step that ends now was fed from; whoever shares this may say so."""
        if steps == self._num_steps:
            return
        self._num_steps = steps
        self._steps_with.update(self._fetched)
        self._fetched.clear()

    def feeds_steps(self, key: int) -> bool:
        """Whether most steps fetch from this loader."""
        return self._steps_with[key] >= USUAL * max(1, self._num_steps)

    def step_loader(self) -> Any:
        """Return the loader that feeds most steps; None: no DataLoader feeds them."""
        usual = [key for key in self.last if self.feeds_steps(key)]
        return self.last[max(usual, key=lambda key: self._steps_with[key])][0] if usual else None


def key_of(loader: Any) -> int:
    """Return what names a loader; one made anew every epoch, like the one before, has its name."""
    slot = loader.__dict__.get(_SLOT)
    return slot if isinstance(slot, int) else id(loader)


def epoch_of(iterator: Any) -> object:
    """Return what changes when an iterator begins a new epoch."""
    return iterator.__dict__.get(_EPOCH)


def loader_of(iterator: Any) -> Any:
    """Return the loader that an iterator belongs to."""
    return iterator.__dict__[_LOADER]


def _is_over(iterator: Any, skipped: int) -> bool:
    try:
        return bool(iterator._num_yielded + skipped >= len(iterator._index_sampler))
    except (TypeError, AttributeError, NotImplementedError):  # it has no length: a stream
        return False


def _not_installed(_: Any) -> Any:
    raise RuntimeError("the loaders are not watched")
