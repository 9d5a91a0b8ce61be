"""What `check_parity` says of recorded curves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from benchmarks.parity.breakers import BREAKERS
from benchmarks.parity.harmless import HARMLESS
from benchmarks.parity.programs import ALL
from benchmarks.parity.record import Row
from hotloop.model.optimization import Candidate, Numerics
from hotloop.model.tuning import ParityEvidence
from hotloop.tune.verdict.reference_losses import ReferenceLosses

BUDGETS = (1, 2, 4, 8)
"""Perturbed runs of the original."""


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One change to one program."""

    program: str
    kind: str
    change: str
    evidence: ParityEvidence

    @property
    def word(self) -> str:
        """The answer."""
        if self.evidence.passed:
            return "passed"
        return "refused" if self.evidence.decided else "not decided"


def judged(rows: Sequence[Row], num_perturbed: int) -> Iterator[Judged]:
    """Judge every change with so many perturbed runs."""
    for program in dict.fromkeys(row.program for row in rows):
        mine = [row for row in rows if row.program == program]
        originals = [row.curves for row in mine if row.kind == "original"]
        perturbed = [row.curves for row in mine if row.kind == "perturbed"][:num_perturbed]
        if not originals or not perturbed:
            continue
        references = ReferenceLosses(
            originals=tuple(run.losses for run in originals),
            perturbed=tuple(run.losses for run in perturbed),
            invariants=tuple(run.invariants for run in originals if run.invariants),
            perturbed_invariants=tuple(run.invariants for run in perturbed if run.invariants),
            sites=originals[0].sites,
        )
        for row in mine:
            judge = _harmless if row.kind == "harmless" else _broken
            if row.kind == "harmless" and _broke_off(row, originals[0].losses):
                continue
            if row.kind in {"harmless", "broken"} and not _without_effect(row, originals[0].losses):
                evidence = judge(references, row)
                yield Judged(program=program, kind=row.kind, change=row.change, evidence=evidence)


def _broke_off(row: Row, original: Sequence[float]) -> bool:
    """The program failed under the change, as its trial would: nothing is there to be compared."""
    return len(row.curves.losses) < len(original)


def _without_effect(row: Row, original: Sequence[float]) -> bool:
    """A break of what the program does not have (no dropout, no mask) leaves every loss as it was."""
    same = row.curves.losses == tuple(original)
    return (row.kind == "broken" and same) or row.change not in {*HARMLESS, *BREAKERS}


def _harmless(references: ReferenceLosses, row: Row) -> ParityEvidence:
    change = HARMLESS[row.change]
    step = Candidate(name=row.change, numerics=change.numerics, touches_numbers=change.touches_numbers)
    return references.check(row.curves.learned, [step])


def _broken(references: ReferenceLosses, row: Row) -> ParityEvidence:
    """Judge as reduced precision, which is held least strictly; a program that broke off has failed as a trial."""
    seen = references.check(row.curves.learned, [Candidate(name=row.change, numerics=Numerics.TOLERANCE)])
    if _broke_off(row, references.originals[0]):
        return msgspec.structs.replace(seen, passed=False, decided=True, method="the program failed")
    return seen


def page(rows: Sequence[Row]) -> Iterator[str]:
    """The results as Markdown."""
    yield (
        "Real programs of `tests/programs`, 100 to 160 steps, every run in a child of one process, one thread. Cells: "
        "changes that passed / were refused / not decided, by the number of perturbed runs that the floor is made of. "
        "Changes without any effect on a program's losses are left out of the broken ones."
    )
    missing = [program.name for program in ALL if program.name not in {row.program for row in rows}]
    if missing:
        yield f"\nIncomplete: not run are {', '.join(missing)}; cells of 0 / 0 / 0 were not run either."
    results = {num: list(judged(rows, num)) for num in BUDGETS}
    for kind in ("harmless", "broken"):
        yield from (
            "",
            f"## {kind}",
            "",
            "| program | " + " | ".join(f"{num} runs" for num in BUDGETS) + " |",
        )
        yield "|---|" + "---|" * len(BUDGETS)
        for program in dict.fromkeys(row.program for row in rows):
            cells = (
                _counts([j for j in results[num] if (j.program, j.kind) == (program, kind)])
                for num in BUDGETS
            )
            yield f"| {program} | " + " | ".join(cells) + " |"
    failed = [
        f"{row.program}, {row.change}"
        for row in rows
        if row.kind == "harmless" and _broke_off(row, _original(rows, row.program))
    ]
    if failed:
        yield from ("", f"Left out, because the program itself failed under the change: {'; '.join(failed)}.")
    yield from ("", f"## Wrong with {BUDGETS[-1]} runs", "")
    for one in results[BUDGETS[-1]]:
        if (one.word == "passed") != (one.kind == "harmless"):
            seen = one.evidence
            if one.kind == "harmless" or one.word == "passed":
                yield f"- {one.program}, {one.kind}, {one.change}: {one.word}; {seen.evidence}"


def _original(rows: Sequence[Row], program: str) -> Sequence[float]:
    return next(row.curves.losses for row in rows if (row.program, row.kind) == (program, "original"))


def _counts(found: Sequence[Judged]) -> str:
    words = [one.word for one in found]
    return " / ".join(str(words.count(word)) for word in ("passed", "refused", "not decided"))
