"""What a plan notes of its patches, so that a program is known again however one of them was applied."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hotloop.model.safety import Safety
from hotloop.model.tuning import Patched, Plan, StepEdit, Written
from hotloop.patch.program_files import digest_of, editable, outdated
from hotloop.patch.rewrite_plan import Patch, StepOutcome, rewrite_plan
from hotloop.source.outcome import Edited, Refused


def with_patch_known(plan: Plan, folder: Path) -> Plan:
    """Return the plan with what `hotloop patch` will make of the files, with `--unsafe` and without."""
    if not plan.steps or not plan.sites.sources or outdated(plan.sites, folder):
        return plan
    contents = editable(plan.sites, folder, plan.fit.command)
    patches = (
        rewrite_plan(plan.steps, plan.sites, contents, allowed) for allowed in (Safety.SAFE, Safety.UNSAFE)
    )
    return _with_variants(plan, *(written(patch, plan) for patch in patches))


def with_written(plan: Plan, patch: Patch) -> Plan:
    """Return the plan with what is now in the source, and where its places are there.

    What it was proven on stays in it: whoever takes the patch back, or has another copy, has that program.
    """
    sources = {path: digest_of(content) for path, content in patch.after.items()}
    sites = msgspec.structs.replace(patch.sites, sources={**patch.sites.sources, **sources})
    now = written(patch, plan)
    further = rewrite_plan(plan.steps, sites, patch.after, Safety.UNSAFE, known=now.edits)
    plan = _with_variants(plan, now, written(further, plan))
    return msgspec.structs.replace(plan, patched=msgspec.structs.replace(plan.patched, sites=sites))


def written(patch: Patch, plan: Plan) -> Written:
    """Return what a patch makes of the program."""
    return Written(
        edits={each.step.name: edit for each in patch.outcomes if (edit := _edit(patch, each)) is not None},
        refused={each.step.name: _why(each) for each in patch.outcomes if _why(each)},
        environment=patch.environment,
        command=patch.started_as(plan.fit.command),
    )


def _with_variants(plan: Plan, safe: Written, unsafe: Written) -> Plan:
    both = (safe,) if safe.edits == unsafe.edits else (safe, unsafe)
    patched = Patched(variants=tuple(each for each in both if each.edits), sites=plan.patched.sites)
    return msgspec.structs.replace(plan, patched=patched)


def _edit(patch: Patch, each: StepOutcome) -> StepEdit | None:
    """Return by what a step is known that needs nothing of ours any more; None: it is not in the source.

    What the source is said to do already was proven to bring something all the same: it stays switched on.
    """
    lines = patch.lines.get(each.step.name)
    outcome = each.outcome
    if not lines or isinstance(outcome, Refused) or each.is_held_back:
        return None
    if isinstance(outcome, Edited) and outcome.environment:
        return None
    return StepEdit(lines=lines, options=outcome.options)


def _why(each: StepOutcome) -> str:
    """Return why a step is not in the patch; empty: it is."""
    if each.is_held_back:
        return each.held_back_because
    return each.outcome.reason if isinstance(each.outcome, Refused) else ""
