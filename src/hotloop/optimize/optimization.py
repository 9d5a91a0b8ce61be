"""What every file of the catalogue provides.

One optimization is one file: a class derived from `Optimization`, whose docstring is its manual page, and,
where it acts inside the user's process, a class derived from `hotloop.probe.activation.activation.Activation`.
It decides in hotloop's own process, which may have no torch: torch is imported only inside functions. What acts is in a
module of its own, which imports nothing but the standard library, torch and such modules: it is made in the user's
process, where hotloop's own libraries are not installed.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.parameters import only
from hotloop.probe.activation.description import NotDescribable, described

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.probe.activation.activation import Activation
    from hotloop.probe.activation.knob import Knob
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite


class DoesNotApply(Exception):  # noqa: N818 - an answer, not an error
    """Raised by `candidates` with the reason why there is nothing to try here."""


class Optimization(ABC):
    """One row of the catalogue."""

    name: ClassVar[str]
    family: ClassVar[str]
    numerics: ClassVar[Numerics]
    touches_numbers: ClassVar[bool] = True
    """False where what is computed cannot change, only where and when: its first steps are compared, not its curve."""
    edits_source: ClassVar[bool] = False
    """Whether its activation acts on the source of the program as it is read: it is then made before torch is."""
    saves_memory: ClassVar[bool] = False
    """Whether it is tried where memory is the goal, or a limit has to be met; of the family `memory` only there."""
    conflicts: ClassVar[frozenset[str]] = frozenset()
    """Names of optimizations that cannot be on together with this one; one of the two says it."""
    moot_on_cpu: ClassVar[frozenset[str]] = frozenset()
    """Names of optimizations beside which this one brings nothing on a CPU: there they are not tried together."""
    proven_alone: ClassVar[bool] = False
    """Whether it is tried only by name: losses beside it cannot be compared, so nothing else can be proven with it."""
    stands_in_for: ClassVar[frozenset[str]] = frozenset()
    """Names of optimizations in whose place this one is tried where they do not learn the same."""
    heeds_neighbours: ClassVar[bool] = False
    """Whether what it brings is what other processes take: measured beside them it says nothing of a quiet machine."""
    interacts: ClassVar[frozenset[str]] = frozenset()
    """Names of optimizations beside which this one was seen to bring much more, or much less."""

    @abstractmethod
    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return what to try on this program, most promising first.

        Raises:
            DoesNotApply: with the reason, as a clause: "the program has no DataLoader".
        """

    def candidate(
        self,
        params: Mapping[str, Any] | None = None,
        *,
        prior: float = 1.0,
        numerics: Numerics | None = None,
        touches_numbers: bool | None = None,
        max_gain: float | None = None,
        one_off_s: float | None = None,
        saved_bytes: int | None = None,
        samples: float = 1.0,
        caution: str = "",
    ) -> Candidate:
        """Return this row with parameters, ready to be tried; None: as the row says (see `Candidate`)."""
        return Candidate(
            name=self.name,
            params=dict(params or {}),
            numerics=self.numerics if numerics is None else numerics,
            touches_numbers=self.touches_numbers if touches_numbers is None else touches_numbers,
            max_gain=max_gain,
            prior=prior,
            one_off_s=one_off_s,
            saves_memory=self.saves_memory,
            saved_bytes=saved_bytes,
            samples=samples,
            caution=caution,
        )

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the parameters of a plan; a row that does not say otherwise has none.

        Raises:
            ValueError: what is out of range, with the value and what is allowed.
        """
        only(params)

    def environment(self, params: Mapping[str, Any]) -> Mapping[str, str]:
        """Return environment variables of the user's processes; `LD_PRELOAD` is prepended to theirs."""
        return {}

    def activation(self, params: Mapping[str, Any]) -> Activation | None:
        """Return what acts inside the user's process; None: the environment is all."""
        return None

    def samples(self, params: Mapping[str, Any]) -> float:
        """Return the samples of a step over those of the program's own step."""
        return 1.0

    def times_kernels(self, params: Mapping[str, Any]) -> bool:
        """Return whether kernels are chosen by timing them: an arm then warms up with nothing beside it."""
        return False

    def knob(self, params: Mapping[str, Any]) -> Knob | None:
        """Return the same change as one that can be switched in a running program, for predictions; None: it cannot."""
        return None

    def order(self, params: Mapping[str, Any], *, name: str = "", knob: bool = False) -> dict[str, Any]:
        """Return what the probe is told, so that this is on in a process, or can be switched there.

        What acts is described by the call that makes it, because this class needs libraries that the user's process
        may not have. Where that cannot be (a plug-in hands on methods of its own), the class is named.
        """
        told = {"name": name or self.name, "knob": knob, "edits_source": self.edits_source}
        try:
            return {**told, "make": described(self.knob(params) if knob else self.activation(params))}
        except NotDescribable:
            cls = type(self)
            return {**told, "module": cls.__module__, "cls": cls.__name__, "params": params}

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Write the same change into the user's source, in its own style, and return what came of it.

        It is applied once for each step of a plan, to a source that may hold the edits of the steps before it. It goes
        by the observed places alone: `sites` says which calls to look at, `source.call(place)` is such a call as it
        stands now. Where it returns `Refused`, `AlreadySo` or raises, its edits are undone. LibCST is imported inside
        it, where it is needed: most commands edit nothing.

        Args:
            source: the user's files.
            sites: where the observed run called what.
            params: of the plan's step.

        Raises:
            CannotEdit: with the reason; the same as returning `Refused`.
        """
        from hotloop.source.outcome import Refused

        return Refused(f"{self.name} comes without a rewrite")

    def rewrite_beside(self, source: Editor, sites: Sites) -> Sequence[str]:
        """Write what the change needs beside its rewrite or a framework's own switch; return a note for each edit.

        Args:
            source: the user's files.
            sites: where the observed run called what.

        Raises:
            CannotEdit: with the reason: the rest alone would do something else.
        """
        return ()

    @classmethod
    def shortens_every_step(cls) -> bool:
        """Return whether its gain is in each step alike: it computes otherwise.

        What is fetched or printed now and then makes single steps shorter, and so does what others on the machine do
        not hold up.
        """
        return cls.family in {"compute", "precision"} and cls.touches_numbers

    @classmethod
    def manual(cls) -> str:
        """Return the manual page."""
        return inspect.cleandoc(cls.__doc__ or "")
