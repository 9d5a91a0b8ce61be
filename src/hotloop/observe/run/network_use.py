"""Whether a program needs more network than a measured run has: a loopback of its own."""

from __future__ import annotations

import time
from collections.abc import Callable

from hotloop.launch.isolation.attempted import attempts
from hotloop.launch.isolation.network import reaches_out
from hotloop.launch.isolation.values import Isolation
from hotloop.launch.process import Run
from hotloop.model.quantities import counted

NETWORK = "HOTLOOP_NETWORK"
"""Set to anything, this is `--network`, also for commands that have no such option."""
PATIENCE_S = 10.0
"""A program that still tries other machines after so long, and has taken no step, will not go on without them."""
_ENDED_BY_HAND = (None, 0, 130, 143)


class NeedsNetwork(Exception):  # noqa: N818 - carries what was seen
    """The program failed, or waited, over connections to other machines, for which there is no route."""

    def __init__(self, num: int) -> None:
        super().__init__(
            f"your program tried to reach other machines ({num} times) and does not work without; running it again "
            "with this machine's network, services on localhost included (--network does so at once)"
        )


class NetworkUse:
    """What a run does with the network.

    Args:
        run: the run.
        isolation: what it is kept from.
        asked_for: the user lets it use this machine's network.
        clock: seconds.
    """

    def __init__(
        self, run: Run, isolation: Isolation, *, asked_for: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._run = run
        self._own = isolation.network
        self._clock = clock
        self._first_s: float | None = None
        self._seen = 0
        self._without: int | None = None
        self.reaches_out: bool | None = True if asked_for else False if self._own else None
        """Whether trials have to share this machine's network; None: not seen yet."""

    def look(self) -> None:
        """See whether it is connected beyond this machine, where it can be."""
        if not self._own and not self.reaches_out:
            self.reaches_out = reaches_out(self._run.tree())

    def waits(self) -> bool:
        """Whether it has tried other machines for a while and still does; asked of a program without a step."""
        if not self._own:
            return False
        seen, before = attempts(self._run.pid, self._run.scratch).outside, self._seen
        self._seen = seen
        if seen and self._first_s is None:
            self._first_s = self._clock()
        return self._first_s is not None and seen > before and self._clock() - self._first_s > PATIENCE_S

    def trains(self) -> None:
        """Say that steps are taken: what was tried before is done without."""
        if self._own and self._without is None:
            self._without = attempts(self._run.pid, self._run.scratch).outside

    def check(self, code: int | None, *, waited: bool) -> None:
        """Demand that the run, ended, did not fail because it had no network.

        Raises:
            NeedsNetwork: it did, as far as can be seen.
        """
        tried = attempts(self._run.pid, self._run.scratch).outside - (self._without or 0) if self._own else 0
        if tried and (waited or code not in _ENDED_BY_HAND):
            raise NeedsNetwork(tried)

    def hint(self) -> str | None:
        """Return what to type where a service of this machine did not answer; None: all did."""
        refused = attempts(self._run.pid, self._run.scratch).refused if self._own else 0
        if not refused:
            return None
        return (
            f"{counted(refused, 'connection')} to this machine refused: a measured run has a network of its own, "
            f"without the services on localhost. If the program needs one: --network, or {NETWORK}=1"
        )
