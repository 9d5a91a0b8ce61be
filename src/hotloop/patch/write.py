"""Write a patch into the user's files, and note in the plan what is written."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import msgspec

from hotloop.model.errors import HotloopError
from hotloop.model.tuning import Patched, Plan
from hotloop.patch.program_files import digest_of, editable, outdated
from hotloop.patch.rewrite_plan import Patch, rewrite_plan
from hotloop.source.files import back_up, is_committed, write_atomically
from hotloop.source.outcome import AlreadySo, Edited


def write_patch(patch: Patch, folder: Path, *, force: bool) -> list[str]:
    """Write the changed files; return what was done, one line each.

    A file that git holds as it is needs no backup. One with changes of its own is refused: its edits and ours could not
    be told apart afterwards.

    Raises:
        HotloopError: a file has uncommitted changes, and nothing was written.
    """
    committed = {path: is_committed(folder / path) for path in patch.changed}
    dirty = [path for path, clean in committed.items() if clean is False]
    if dirty and not force:
        raise HotloopError(
            f"{', '.join(dirty)} has changes that are not committed, and an edit would mix with them",
            "commit them first, or write all the same with --force, which keeps a backup",
        )
    said = []
    for path in patch.changed:
        file = folder / path
        kept = "" if committed[path] else f" (before: {back_up(file).name})"
        write_atomically(file, patch.after[path])
        said.append(f"{path} is written{kept}")
    return said


def with_written(plan: Plan, patch: Patch) -> Plan:
    """Return the plan with what is now in the source, and where its places are there."""
    sources = {path: digest_of(content) for path, content in patch.after.items()}
    sites = msgspec.structs.replace(patch.sites, sources={**patch.sites.sources, **sources})
    fit = plan.fit
    if fit.script in sources:
        fit = msgspec.structs.replace(fit, script_sha256=sources[fit.script])
    return msgspec.structs.replace(plan, sites=sites, fit=fit, patched=patched(patch))


def patched(patch: Patch) -> Patched:
    """Return what the patch makes of the files, and the steps that then need nothing of ours any more."""
    steps = tuple(
        each.step.name for each in patch.outcomes if not each.is_held_back and _is_in_source(each.outcome)
    )
    changed = {path: digest_of(patch.after[path]) for path in patch.changed}
    return Patched(sources=changed, steps=steps) if changed else Patched()


def with_patch_known(plan: Plan, folder: Path) -> Plan:
    """Return the plan with what `hotloop patch` will make of the files, so that a program patched by hand is known."""
    if not plan.steps or not plan.sites.sources or outdated(plan.sites, folder):
        return plan
    try:
        patch = rewrite_plan(plan.steps, plan.sites, editable(plan.sites, folder, plan.fit.command))
    except cst.ParserSyntaxError:  # of a newer Python than LibCST reads
        return plan
    return msgspec.structs.replace(plan, patched=patched(patch))


def _is_in_source(outcome: object) -> bool:
    if isinstance(outcome, AlreadySo):
        return True
    return isinstance(outcome, Edited) and bool(outcome.notes) and not outcome.environment
