"""A plan file, the folder of its program, and the folder that a command was typed in."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from hotloop.model.tuning import Plan
from hotloop.tune.plan.plan_folder import folder_of_plan


@dataclass(frozen=True)
class Place:
    """Where a plan is, where its program runs, and where the command was typed.

    Attributes:
        plan_file: as it was typed.
        absolute: the same file from anywhere.
        folder: that the program runs in.
        typed_in: the current folder.
    """

    plan_file: Path
    absolute: Path
    folder: Path
    typed_in: Path

    @classmethod
    def of(cls, plan: Plan, plan_file: Path) -> Place:
        """Return where a plan's things are."""
        return cls(plan_file, plan_file.absolute(), folder_of_plan(plan, plan_file), Path.cwd())

    @property
    def is_elsewhere(self) -> bool:
        """Whether the program runs in another folder than the one that the command was typed in."""
        return self.folder.resolve() != self.typed_in.resolve()

    def from_here(self, path: str) -> str:
        """Return a file's name for those who are where the command was typed.

        `git apply` takes no names above the current folder: a file there keeps its own.
        """
        name = os.path.relpath((self.folder / path).resolve(), self.typed_in.resolve())
        return path if name.startswith(os.pardir) or not self.is_elsewhere else name
