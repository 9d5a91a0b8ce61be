"""What can be said of learning where the batch has another size."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.model.optimization import Candidate
from hotloop.model.tuning import ParityEvidence

METHOD = "not comparable"


def other_batch_size(plan: Sequence[Candidate]) -> ParityEvidence:
    """Return the evidence for a plan with another batch size: it has other losses, whatever else is on.

    The batch size is the user's to allow. A step that may change numbers cannot be proven beside it.
    """
    beside = [step.name for step in plan if step.samples == 1 and step.touches_numbers]
    evidence = (
        f"beside another batch size it cannot be told whether {', '.join(beside)} learns the same: prove that first, "
        "without the batch size"
        if beside
        else "another batch size is another optimization problem, whose losses are not comparable: validate it, with a "
        "learning rate and a schedule of your choice"
    )
    return ParityEvidence(
        passed=not beside,
        decided=True,
        statistic=None,
        limit=None,
        num_steps=0,
        method=METHOD,
        evidence=evidence,
    )
