"""Which gradients are used: those that an operation reads before they are dropped or set to zero.

Nothing of the optimizers is asked for that: whoever uses a gradient, an optimizer, a scaler, code of the program's own,
reads its memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.weak import TensorWeakRef

from hotloop.probe.instruments.frames import Line
from hotloop.probe.instruments.module_sizes import optimizers

NOBODY, OTHER = 1 << 61, 1 << 62
"""Groups of values that gradients flow to: parameters that no optimizer holds, and what is no parameter (inputs)."""
MAX_OPTIMIZERS = 60
_SPARSE = (-1, -1)
ZEROING = frozenset({"zero_", "_foreach_zero_", "fill_", "detach_"})
"""What is done to a gradient that nobody wants."""


@dataclass
class Task:
    """One backward pass.

    Attributes:
        at: the line that calls it.
        step: in which step of the window.
        accumulates: gradients are added to the parameters, not returned.
        keeps: it makes a graph of its own (`create_graph=True`).
        reached: groups that got gradients.
        used: those of them whose gradients were read.
        dropped: those whose gradients were dropped, or set to zero, before anybody read them.
        after: earlier passes whose gradients were all there, and unread, when it began.
    """

    at: Line | None
    step: int
    accumulates: bool
    keeps: bool
    reached: int = 0
    used: int = 0
    dropped: int = 0
    after: list[int] = field(default_factory=list)


class GradientUse:
    """Follows the gradients of parameters from one backward pass to the next.

    Args:
        storage: returns the number of a tensor's memory, which no other tensor gets.
    """

    def __init__(self, storage: Callable[[Any], int]) -> None:
        self._storage = storage
        self.tasks: list[Task] = []
        self.open: list[int] = []
        """Passes under way; a pass may start a nested pass."""
        self._groups: dict[int, int] = {}
        self._tracked: dict[int, Callable[[], Any]] = {}
        """Ways to leaves; inputs go when the program lets them go, and with them their gradients."""
        self._before: list[dict[int, Any]] = []
        self._pending: dict[int, set[int]] = defaultdict(set)
        """By parameter: passes whose gradients it holds, unread."""
        self._owners: dict[Any, int] = {}
        """Memory of a gradient to its parameter."""
        self._memory: dict[int, tuple[int, StorageWeakRef]] = {}
        """By leaf: its gradient's memory, which may be kept where the leaf is gone."""

    def start(self) -> None:
        """Learn which parameters the optimizers hold."""
        for number, optimizer in enumerate(optimizers()):
            for parameter in held(optimizer):
                self._tracked[id(parameter)] = partial(_itself, parameter)
                self._groups[id(parameter)] = 1 << min(number, MAX_OPTIMIZERS)

    def group(self, leaf: Any) -> int:
        """Return the group of a tensor that gradients are accumulated to."""
        key = id(leaf)
        known = self._groups.get(key)
        if known == OTHER and self._tracked[key]() is not leaf:
            self._look_at(key)  # an earlier one, whose number this one has got
            known = None
        if known is None:
            trained = isinstance(leaf, torch.nn.Parameter)
            known = self._groups[key] = NOBODY if trained else OTHER
            self._tracked[key] = partial(_itself, leaf) if trained else TensorWeakRef(leaf)
        return known

    def begin(self, at: Line | None, step: int, *, accumulates: bool, keeps: bool) -> None:
        """A backward pass begins."""
        self._look()
        task = Task(at, step, accumulates, keeps)
        left = {one for pending in self._pending.values() for one in pending}
        task.after = sorted(one for one in left if not self.tasks[one].used)
        self.open.append(len(self.tasks))
        self.tasks.append(task)
        self._before.append({key: self._state(leaf()) for key, leaf in self._tracked.items()})

    def end(self) -> None:
        """The pass under way ends."""
        number, before = self.open.pop(), self._before.pop()
        task = self.tasks[number]
        for key, one in list(self._tracked.items()):
            leaf = one()
            now = self._state(leaf)
            if now is None or now == before.get(key):
                continue
            task.reached |= self._groups[key]
            # A sparse gradient has no memory of its own that reading could be seen of; a hook is given it.
            if now == _SPARSE or (self._groups[key] == OTHER and _is_hooked(leaf)):
                task.used |= self._groups[key]
                continue
            self._pending[key].add(number)
            self._owners[now[0]] = key
            self._memory[key] = now[0], StorageWeakRef(leaf.grad.untyped_storage())

    def read(self, storages: Iterable[int], name: str) -> None:
        """An operation has these memories among its arguments, and is not there to add to gradients."""
        for storage in storages:
            key = self._owners.get(storage)
            if key is not None and self._pending.get(key):
                if name in ZEROING:
                    self._drop(key)
                else:
                    self._use(key)

    def finish(self, last_step: int) -> None:
        """Judge what is left: gradients that were kept for more than a step, of parameters that nobody holds."""
        self._look()
        late = {id(parameter) for optimizer in optimizers() for parameter in held(optimizer)}
        for key, pending in self._pending.items():
            if self._groups[key] == NOBODY and key not in late:
                for number in pending:
                    self.tasks[number].dropped |= NOBODY if self.tasks[number].step < last_step else 0
        for key in late:
            if self._groups.get(key) == NOBODY:
                for task in self.tasks:
                    task.used |= NOBODY
        if any(not task.accumulates for task in self.tasks):
            # What `torch.autograd.grad` is asked for has to require gradients; backward passes leave theirs there, too.
            for task in self.tasks:
                task.used |= OTHER
        self._tracked.clear()

    def _look(self) -> None:
        """See which gradients are gone since the last pass."""
        for key in [key for key, pending in self._pending.items() if pending]:
            self._look_at(key)

    def _look_at(self, key: int) -> None:
        if not self._pending.get(key):
            return
        leaf = self._tracked[key]()
        now = self._state(leaf)
        number, memory = self._memory[key]
        if leaf is None and self._owners.get(number) == key and not memory.expired():
            self._use(key)  # the program keeps the gradient of what it has let go
        elif now is None and self._owners.get(number) == key:
            self._drop(key)
        elif now is None or self._owners.get(now[0]) != key:
            self._use(key)  # another tensor has been put in its place, or it has become another's gradient

    def _use(self, key: int) -> None:
        for number in self._pending.pop(key):
            self.tasks[number].used |= self._groups[key]

    def _drop(self, key: int) -> None:
        for number in self._pending.pop(key):
            self.tasks[number].dropped |= self._groups[key]

    def _state(self, leaf: Any) -> tuple[int, int] | None:
        """Return memory and version of a leaf's gradient; None: it has none, or is gone."""
        gradient = None if leaf is None else leaf.grad
        if gradient is None:
            return None
        if gradient.layout is not torch.strided:
            return _SPARSE
        return self._storage(gradient), gradient._version


def _itself(parameter: Any) -> Any:
    return parameter


def _is_hooked(leaf: Any) -> bool:
    return bool(leaf._backward_hooks or leaf._post_accumulate_grad_hooks)


def held(optimizer: Any) -> Iterable[Any]:
    """Return the parameters of an optimizer."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
