"""The folder that a plan's paths and command are relative to, from wherever a command is typed.

A plan says where its program ran as seen from its own folder, so that both may be moved together.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from hotloop.model.tuning import Plan


def with_folder(plan: Plan, plan_file: Path, folder: Path) -> Plan:
    """Return the plan as it is written to a file.

    Args:
        plan: whose program runs in the folder.
        plan_file: that it is written to.
        folder: the program's.
    """
    place = os.path.relpath(folder.resolve(), plan_file.resolve().parent)
    return msgspec.structs.replace(plan, fit=msgspec.structs.replace(plan.fit, folder=place))


def folder_of_plan(plan: Plan, plan_file: Path) -> Path:
    """Return the folder that the plan's program runs in; the current one where the plan does not say, or was moved."""
    here = Path.cwd()
    if not plan.fit.folder:
        return here
    folder = (plan_file.resolve().parent / plan.fit.folder).resolve()
    named = [*plan.sites.sources, *([plan.fit.script] if plan.fit.script else [])]
    known = [path for path in named if not Path(path).is_absolute()]
    is_there = folder.is_dir() and (not known or any((folder / path).is_file() for path in known))
    return folder if is_there else here
