"""Loops of the program's source that one call takes the place of, once it was seen to compute the same."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from hotloop.optimize.comparison.unseen import ends_a_recomputation, is_kept, unseen
from hotloop.optimize.evidence import evidence
from hotloop.patterns.refusal import NotThis
from hotloop.probe.activation.knob import Knob

PROOFS = 2
"""Times that a loop runs as it is and is compared, before the one call takes its place."""


class ReplacedLoops(Knob):
    """Makes the turns of loops in one call.

    Args:
        at_once: from the third run of a loop on; else when it is switched.
    """

    settle_steps = 1
    loops: ClassVar[str]
    """That it is for, as words: `loop over rows whose turns are independent`."""

    def __init__(self, *, at_once: bool) -> None:
        self._is_on = at_once
        self._places: list[str] = []
        self._unread: list[str] = []
        self._proofs: dict[Any, int] = {}
        self._settled: set[Any] = set()
        """What was proven before the forward that is under way."""
        self._left: dict[int, str] = {}
        self._differences: list[float] = []
        self._num_loops: dict[int, int] = {}

    def on_forward_inputs(
        self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Any]:
        """Let what is proven by now go on in checkpointed blocks, too."""
        self._settled |= {key for key, num in self._proofs.items() if num >= PROOFS}
        return args, kwargs

    def switch(self, on: bool) -> None:
        """Make them in one call, or one by one."""
        self._is_on = on

    def effect(self) -> tuple[bool, str]:
        """Return whether loops were made in one call, and how near it came."""
        left = [*(f"{self._places[site]}: {reason}" for site, reason in self._left.items()), *self._unread]
        acted = {site: num for site, num in self._num_loops.items() if site not in self._left}
        if not acted:
            return False, evidence("", left, f"no {self.loops} ran")
        done = ", ".join(
            f"{self._places[site]} {num}x{self._how(site)}" for site, num in sorted(acted.items())
        )
        within = max(self._differences, default=0.0)
        return True, evidence(f"in one call: {done}, within {within:.1e} of the loop's own results", left)

    def _how(self, site: int) -> str:
        """Return what is said of a loop's one call."""
        return ""

    def _put(
        self, path: str, loops: Sequence[Any], left: Mapping[int, str], put: Callable[[Any, int], None]
    ) -> bool:
        """Put the one call at each loop of a file, and keep why others are left."""
        short = os.path.basename(path)
        self._unread += [f"{short}:{line}: {reason}" for line, reason in left.items()]
        for loop in loops:
            put(loop, len(self._places))
            self._places.append(f"{short}:{loop.node.lineno}")
        return bool(loops)

    def _instead(self, site: int, make: Callable[[], Any]) -> Any:
        """Return what `make` gives in a loop's place; None: the loop is to run."""
        import torch

        if torch.compiler.is_compiling() or torch.jit.is_tracing() or site in self._left:
            return None
        try:
            made = make()
        except NotThis as reason:
            self._left[site] = str(reason)
        except (
            Exception
        ) as error:  # whatever torch or the program's own code raises: the loop then runs as it is
            if ends_a_recomputation(error):
                raise
            self._left[site] = f"{type(error).__name__}: {str(error).strip()[:200]}"
        else:
            if made is not None:
                self._num_loops[site] = self._num_loops.get(site, 0) + 1
            return made
        return None

    def _is_proven(self, key: Any, prove: Callable[[], None]) -> bool:
        """Whether the one call is to take the loop's place now; before that it is compared with the loop."""
        if self._proofs.get(key, 0) < PROOFS:
            with unseen():
                prove()
            self._proofs[key] = self._proofs.get(key, 0) + 1
            return False
        return self._is_on and (key in self._settled or not is_kept())
