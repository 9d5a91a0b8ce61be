"""The waterfall: the plan, and beside it what was tried and refused."""

from __future__ import annotations

import msgspec

from hotloop.model.ratio import Ratio
from hotloop.model.tuning import OwnRun
from hotloop.report.document import Chart, Note
from hotloop.report.sections.plan import plan

from .rich_session import content


def _waterfall() -> Chart:
    """Of a session in which one candidate was tried twice, and one failed."""
    said = content()
    assert said.tuning is not None
    slower = next(one for one in said.tuning.trials if one.candidate.name == "thread_count")
    again = msgspec.structs.replace(slower, ratio=Ratio(0.7, 0.6, 0.8), decision="slower: 0.70 [0.60, 0.80]")
    result = msgspec.structs.replace(said.tuning, trials=(*said.tuning.trials, again))
    section = plan(msgspec.structs.replace(said, tuning=result))
    assert section is not None
    (found,) = (block for block in section.blocks if isinstance(block, Chart))
    return found


def test_each_refused_candidate_has_one_bar_and_its_reason() -> None:
    refused = {one["name"]: one for one in _waterfall().data["refused"]}
    assert list(refused) == ["compile", "thread_count", "fused_optimizer", "cpu_allocator"]
    assert (refused["thread_count"]["ratio"], refused["thread_count"]["word"]) == (0.7, "slower")
    assert refused["cpu_allocator"]["word"] == "in its trial", "it is not in the plan, so it was not accepted"


def test_one_that_failed_is_shown_without_a_ratio() -> None:
    found = _waterfall()
    failed = next(one for one in found.data["refused"] if one["name"] == "fused_optimizer")
    assert (failed["ratio"], failed["word"]) == (None, "failed (crash)")


def test_what_speaks_against_a_plan_stands_below_it() -> None:
    said = content()
    assert said.tuning is not None
    steps = tuple(msgspec.structs.replace(one, caution="it may cost time") for one in said.tuning.plan.steps)
    result = msgspec.structs.replace(
        said.tuning,
        plan=msgspec.structs.replace(said.tuning.plan, steps=steps[:1]),
        baseline=msgspec.structs.replace(
            said.tuning.baseline, own_run=OwnRun(num_steps=500, wall_s=3.0, training_s=0.4)
        ),
    )
    section = plan(msgspec.structs.replace(said, tuning=result))
    assert section is not None
    notes = [block.text for block in section.blocks if isinstance(block, Note)]
    assert notes == [
        "Your program ended after 500 steps, which took 400 ms of its 3.00 s: the gain is that of its steps.",
        "Caution: it may cost time.",
    ]
