"""Which steps of a plan the program does by itself, because the plan was written into its source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hotloop.model.optimization import Candidate
from hotloop.model.tuning import Plan, StepEdit, Written
from hotloop.source.line_digests import line_digests
from hotloop.tune.executor import PlanSteps


@dataclass(frozen=True)
class InSource:
    """What of a plan is in the files of a program, whatever else was edited in them.

    Attributes:
        edits: name to edit of the steps that the program does by itself.
        altered: steps of whose edit most lines are there and some are not: with our hook beside it, what is left of it
            may do the same thing twice.
        whole: the patches of which every edit is there.
    """

    edits: Mapping[str, StepEdit] = field(default_factory=dict)
    altered: tuple[str, ...] = ()
    whole: tuple[Written, ...] = ()

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of those that the program does by itself."""
        return tuple(self.edits)

    def said(self) -> Iterator[str]:
        """Return what the user has to know, one line each."""
        for name in self.altered:
            yield (
                f"{name} is not switched on: part of its edit is in the source, and both would do it twice; "
                "make a new plan with hotloop tune"
            )


def in_source(plan: Plan, folder: Path, words: Sequence[str]) -> InSource:
    """Return what of a plan is in the source.

    Args:
        plan: the plan.
        folder: that the program runs in.
        words: its command line, which may give an option another value than the default that was written.
    """
    files, steps = _Files(folder), {step.name for step in plan.steps}
    edits: dict[str, StepEdit] = {}
    altered: list[str] = []
    for variant in plan.patched.variants:
        for name, edit in variant.edits.items():
            overruled = any(option.given(words) not in (None, option.value) for option in edit.options)
            if overruled or name not in steps:
                continue
            there = files.share(edit)
            if there == 1:
                edits[name] = edit
            elif there > 0.5:
                altered.append(name)
    whole = tuple(each for each in plan.patched.variants if each.edits and each.edits.keys() <= edits.keys())
    return InSource(edits, tuple(name for name in dict.fromkeys(altered) if name not in edits), whole)


def rest_of(plan: Plan, found: InSource) -> PlanSteps:
    """Return what is to be switched on from outside."""
    left_out = {*found.edits, *found.altered}
    return tuple(
        Candidate(name=step.name, params=step.params) for step in plan.steps if step.name not in left_out
    )


class _Files:
    """The lines of files, each read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lines: dict[str, Counter[str]] = {}

    def share(self, edit: StepEdit) -> float:
        """Return the share of an edit's lines that are there."""
        there = [
            self._of(path)[line] >= number
            for path, lines in edit.lines.items()
            for line, number in lines.items()
        ]
        return sum(there) / max(len(there), 1)

    def _of(self, path: str) -> Counter[str]:
        if path not in self._lines:
            file = self._folder / path
            self._lines[path] = Counter(line_digests(file.read_bytes())) if file.is_file() else Counter()
        return self._lines[path]
