"""The patched program against the original, in turns, both without any activation: speed and parity."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hotloop.launch.command import resolve
from hotloop.model.optimization import Candidate
from hotloop.model.outcome import Outcome
from hotloop.model.ratio import Ratio
from hotloop.model.safety import Safety
from hotloop.model.tuning import ParityEvidence, Plan, PlanStep, StepEdit
from hotloop.observe.run.stopping import StopRule
from hotloop.optimize.registry import get
from hotloop.patch.patched_tree import patched_tree
from hotloop.patch.rewrite_plan import Patch, rewrite_plan
from hotloop.source.outcome import Edited
from hotloop.stats.verdict import MIN_MARGIN
from hotloop.tune.compare.pairs import MIN_PAIRS, PairRecord, pairs, perturbed
from hotloop.tune.compare.program import OBSERVED_S, Program, inside, program
from hotloop.tune.verdict.reference_losses import ReferenceLosses
from hotloop.tune.verdict.reference_outputs import ReferenceOutputs


@dataclass(frozen=True)
class Proof:
    """What the patched program was measured to be.

    Attributes:
        ratio: speed of the patched program over the original's; None: too few blocks.
        promised: what the plan says of the steps that are written.
        parity: whether it learns the same.
        missed: the plan's promise is not kept: the whole interval is below that of the promise.
        responsible: the step whose edit brings less than the plan says; None: the steps' own intervals are too wide to
            tell, or nothing is missed.
        num_pairs: of fresh processes.
        disturbed: others disturbed most of them, so that what is missed may be theirs.
    """

    ratio: Ratio | None
    promised: Ratio
    parity: ParityEvidence
    missed: bool
    responsible: str | None
    num_pairs: int
    disturbed: bool = False

    @property
    def outcome(self) -> Outcome:
        """Whether the patch was measured to be what the plan promised: faster than the original, and not by less."""
        if self.parity.measured and not self.parity.passed:
            return Outcome.FAILED
        if self.missed and not self.disturbed:
            return Outcome.FAILED
        faster = self.ratio is not None and self.ratio.low >= 1 and self.num_pairs >= MIN_PAIRS
        return Outcome.PASSED if faster and self.parity.passed and not self.missed else Outcome.NOT_JUDGED


class Prover:
    """Measures patches of one program.

    Args:
        words: the program's command.
        folder: where it runs.
        limit_s: for each comparison; the first one has what observing leaves of it.
        progress: told of what goes on.
        warn: told what of the user's files it could change.
    """

    def __init__(
        self,
        words: tuple[str, ...],
        folder: Path,
        limit_s: float,
        progress: Callable[[str], None],
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self._folder = folder
        self._progress = progress
        began = time.monotonic()
        self._original = program("original", words, folder, StopRule(seconds=OBSERVED_S), progress, warn)
        self._limit_s = max(0.0, limit_s - (time.monotonic() - began))

    def prove(
        self,
        plan: Plan,
        contents: Mapping[str, bytes],
        allowed: Safety,
        known: Mapping[str, StepEdit] | None = None,
    ) -> Proof:
        """Compare, and look for the step that falls short, if the whole does."""

        def part(steps: Sequence[PlanStep]) -> Patch:
            return rewrite_plan(steps, plan.sites, contents, allowed, known=known)

        def part_falls_short(steps: Sequence[PlanStep]) -> bool:
            self._progress(
                f"the patch falls short; looking at its first {len(steps)} of {len(plan.steps)} steps"
            )
            patch = part(steps)
            return falls_short(self._compare(patch)[1], promise(patch))

        whole = part(plan.steps)
        records, ratio = self._compare(whole)
        promised = promise(whole, plan.speedup)
        missed = falls_short(ratio, promised)
        return Proof(
            ratio=ratio,
            promised=promised,
            parity=self._parity(whole, records),
            missed=missed,
            responsible=responsible(plan.steps, part_falls_short, ratio, promise(whole)) if missed else None,
            num_pairs=len(records),
            disturbed=2 * sum(record.foreign_share is not None for record in records) > len(records),
        )

    def _compare(self, patch: Patch) -> tuple[list[PairRecord], Ratio | None]:
        with patched_tree(self._folder, patch.after) as tree:
            words = patch.started_as(self._original.words)
            with inside(tree):
                argv = tuple(resolve(words))
            after = Program(
                name="patched",
                words=words,
                argv=argv,
                folder=tree,
                observation=self._original.observation,
                environment=patch.environment,
            )
            records, found = pairs(
                (self._original, after), MIN_MARGIN, self._limit_s, self._progress, losses=True
            )
        return records, None if found.ratio is None else _per_sample(found.ratio, patch)

    def _parity(self, patch: Patch, records: Sequence[PairRecord]) -> ParityEvidence:
        original, patched = records[0].learned
        self._progress("checking how much the loss varies by itself")
        noisy = perturbed(self._original, len(original.losses))
        references = ReferenceLosses(
            originals=tuple(record.learned[0].losses for record in records),
            perturbed=(noisy.losses,) if noisy.losses else (),
            invariants=tuple(each.invariants for record in records if (each := record.learned[0]).invariants),
            perturbed_invariants=(noisy.invariants,) if noisy.invariants else (),
            outputs=ReferenceOutputs(
                originals=tuple(record.learned[0].outputs for record in records if record.learned[0].outputs),
                perturbed=(noisy.outputs,) if noisy.outputs else (),
            ),
        )
        on = [
            Candidate(
                name=step.name,
                params=step.params,
                numerics=step.numerics,
                samples=get(step.name).samples(step.params),
            )
            for step in _written(patch)
        ]
        return references.check(patched, on)


def responsible(
    steps: Sequence[PlanStep],
    part_falls_short: Callable[[Sequence[PlanStep]], bool],
    ratio: Ratio | None,
    of_the_parts: Ratio,
) -> str | None:
    """Return the last step of the shortest beginning of a plan that falls short, by halving.

    A beginning is judged by the product of its steps' own factors. The whole may miss its confirmed figure, which is
    far narrower, and not that product: then no beginning would be found short, and which step it is cannot be told.

    Args:
        steps: of the plan.
        part_falls_short: measures a beginning of it.
        ratio: of the whole, as measured.
        of_the_parts: the product of all steps' own factors.
    """
    if not falls_short(ratio, of_the_parts):
        return None
    holds, short = 0, len(steps)
    while short - holds > 1:
        middle = (holds + short) // 2
        if part_falls_short(steps[:middle]):
            short = middle
        else:
            holds = middle
    return steps[short - 1].name


def promise(patch: Patch, confirmed: Ratio | None = None) -> Ratio:
    """Return what the plan says of the steps that are in the patch.

    That is the product of their own factors, whose interval is wide; where all of the plan is in the patch, it is what
    was confirmed for the whole.
    """
    written = _written(patch)
    if confirmed is not None and len(written) == len(patch.outcomes):
        return confirmed
    return Ratio(
        math.prod(step.ratio for step in written),
        math.prod(step.low for step in written),
        math.prod(step.high for step in written),
    )


def _written(patch: Patch) -> list[PlanStep]:
    return [
        each.step for each in patch.outcomes if isinstance(each.outcome, Edited) and not each.is_held_back
    ]


def _per_sample(ratio: Ratio, patch: Patch) -> Ratio:
    """Return a ratio of step times as one of the times for as many samples: a step may have more of them."""
    more = math.prod(get(step.name).samples(step.params) for step in _written(patch))
    return Ratio(more * ratio.ratio, more * ratio.low, more * ratio.high)


def falls_short(ratio: Ratio | None, promised: Ratio) -> bool:
    """Whether all of the interval is below all of the promised one."""
    return ratio is not None and ratio.high < promised.low
