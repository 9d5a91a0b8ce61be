"""The programs, and the plans that they run with."""

from __future__ import annotations

from typing import Any, NamedTuple

Steps = dict[str, dict[str, Any]]
BATCH_NORM, GROUP_NORM, NO_DROPOUT = {"NORM": "batch"}, {"NORM": "group"}, {"DROPOUT": "0"}
BUDGETS = (0.7, 0.5, 0.3, 0.1)
SHARES = (0.75, 0.5, 0.25)


class Case(NamedTuple):
    """A program with a plan.

    Attributes:
        program: its file.
        setting: of its environment.
        steps: of the plan; empty: the program as it is.
    """

    program: str
    setting: dict[str, str]
    steps: Steps

    @property
    def base(self) -> str:
        """The program as it is."""
        return " ".join([self.program, *self.setting.values()])

    @property
    def key(self) -> str:
        """The case, in what is kept of it."""
        return f"{self.base}|{self.label}"

    @property
    def label(self) -> str:
        """The plan."""
        named = [
            " ".join([name, *(str(value) for value in params.values())])
            for name, params in self.steps.items()
        ]
        return " + ".join(named) or "as it is"


def curve(program: str, setting: dict[str, str], every_block: Any) -> list[Case]:
    """Return the program as it is, with blocks recomputed, and compiled under budgets."""
    plans: list[Steps] = [{}, {"activation_checkpointing": {"blocks": every_block}}]
    plans += [{"activation_checkpointing": {"blocks": share}} for share in SHARES]
    plans.append({"compile": {}})
    plans += [{"activation_memory_budget": {"budget": budget, "compile": True}} for budget in BUDGETS]
    return [Case(program, setting, plan) for plan in plans]


CASES = [
    *curve("gpt", {}, ["blocks"]),
    Case("gpt", {}, {"chunked_cross_entropy": {}}),
    Case("gpt", {}, {"activation_checkpointing": {"blocks": ["blocks"]}, "chunked_cross_entropy": {}}),
    Case("gpt", NO_DROPOUT, {}),
    Case("gpt", NO_DROPOUT, {"gradient_accumulation": {"micro_batches": 4}}),
    *curve("unet", BATCH_NORM, "all"),
    Case("unet", GROUP_NORM, {}),
    Case("unet", GROUP_NORM, {"gradient_accumulation": {"micro_batches": 4}}),
]
