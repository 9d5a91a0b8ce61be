"""Hook point of generation: tells the forward that begins a request from those that continue its text.

A request begins with its prompt; each forward after that is given one token more: the whole text anew (it is longer
by one, or as long as the model can take), or the new token alone beside a cache. `generate` of transformers says so.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from hotloop.probe.frameless import Timed
from hotloop.probe.probe import Probe
from hotloop.probe.record.events import Kind, end
from hotloop.probe.sections import Section

LIBRARY = "transformers.generation.utils"


class Requests:
    """The requests of this process, in one thread and one after the other.

    Args:
        probe: the probe.
    """

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._samples = self._length = 0
        self._grows = False
        """The text is given as a whole at each forward."""
        self._depth = 0
        """Calls of `generate` under way; they nest (assisted decoding)."""
        self._fresh = False
        """No forward has come in this call of `generate` yet."""
        self.continues = False
        """The forward under way goes on with the request of the one before."""

    def forward(self, shape: Any, *, is_text: bool) -> None:
        """A root is called without gradients; mark the beginning of a request where it is one.

        Args:
            shape: of what it is given.
            is_text: these are tokens by number, in samples and positions.
        """
        if self._depth:
            self.continues = not self._fresh
            self._fresh = False
        elif is_text:
            self.continues = self._is_longer(*shape)
        else:
            self.continues = False
            return
        if not self.continues:
            self._probe.recorder.mark(end(Kind.REQUEST))
            self._probe.boundary.ended(Kind.REQUEST, 0)

    def _is_longer(self, samples: int, length: int) -> bool:
        last, self._length = self._length, length
        same, self._samples = samples == self._samples and last > 0, samples
        by_one = length == last + 1 and not (self.continues and last == 1)
        if same and (by_one or (self._grows and length == last)):
            self._grows = self._grows or by_one
            return True
        if same and length == 1 and not self._grows:
            return True
        self._grows = False
        return False

    def waiting(self) -> dict[str, Callable[[Any], None]]:
        """Return what is to be done when transformers has been imported."""
        return {LIBRARY: functools.partial(_patch, self)}

    def enter(self) -> bool:
        """A call of `generate` begins."""
        if not self._depth:
            self._fresh = True
        self._depth += 1
        return True

    def leave(self) -> None:
        """It has ended."""
        self._depth -= 1


def _patch(requests: Requests, module: ModuleType) -> None:
    mixin: Any = getattr(module, "GenerationMixin", None)
    original = vars(mixin).get("generate") if mixin is not None else None
    if callable(original):
        mixin.generate = Timed(original, Section(requests.enter, requests.leave))
