"""activation_memory_budget: compiled code keeps a part of its activations and computes the rest again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.memory.activation_memory_budget.activation import (
    CompiledWithinBudget,
    MemoryBudget,
)
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.parameters import boolean, only, required
from hotloop.optimize.program.bounds import share
from hotloop.optimize.program.compilable import compile_s, require_compilable
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

BUDGETS = (0.7, 0.5, 0.3, 0.1)
"""Swept, each of them measured: neither peak nor time has to follow the budget from one to the next."""
EXPECTED_FORWARD = 0.3
"""Share of the forward where it was not measured."""
SETTING = "torch._functorch.config"


class ActivationMemoryBudget(Optimization):
    """Let compiled code keep a part of its activations, and compute the rest again in the backward.

    What it does: sets `torch._functorch.config.activation_memory_budget` before anything is compiled: 1 keeps what
    the compiler would keep by itself, 0 recomputes as under a checkpoint around the whole graph, and between them the
    partitioner looks for the operations that are cheapest to compute again. A program that compiles its model keeps
    its own call; the model of another is compiled, too (`compile=true`).

    Why it is faster: it is not; it is smaller than compiled code without it. Beside recomputed blocks it may be faster,
    because single cheap operations are chosen, not whole blocks.

    When it does not help: the budget is one of each compiled graph, and the estimate behind it is of the partitioner's
    own model of the graph: the peak does not follow it evenly, nor always downwards. So a few values are each
    measured. Compilation takes seconds to minutes, as for `compile`. Not together with recomputed blocks or
    micro-batches, which compiled code does not see.

    Effect on numerics: fused operations round once, as with `compile`; checked like reduced precision.

    Example: `torch._functorch.config.activation_memory_budget = 0.5` before `model.compile()`

    References: PyTorch blog, "Current and New Activation Checkpointing Techniques in PyTorch", 2025;
    torch/_functorch/config.py.
    """

    name: ClassVar[str] = "activation_memory_budget"
    family: ClassVar[str] = "memory"
    numerics: ClassVar[Numerics] = Numerics.TOLERANCE
    saves_memory: ClassVar[bool] = True
    conflicts: ClassVar[frozenset[str]] = frozenset(
        {
            "activation_checkpointing",
            "compile",
            "compiled_chains",
            "conv_bias_off",
            "created_on_device",
            "cuda_graphs",
        }
    )

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the budgets that are swept."""
        program = observation.program
        own = any(root.compiled for root in program.roots)
        if not any(root.training and root.grad_mode in {"", "grad"} for root in program.roots):
            raise DoesNotApply("the program trains nothing: no activations are kept")
        if not own:
            require_compilable(observation)
        forward = share(observation, Phase.FORWARD)
        part = EXPECTED_FORWARD if forward is None else forward
        return [
            self.candidate(
                params={"budget": budget} if own else {"budget": budget, "compile": True},
                prior=1.0 / (1.0 + part * (1 - budget)),
                one_off_s=compile_s(observation),
            )
            for budget in BUDGETS
        ]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the budget."""
        only(params, "budget", "compile")
        required(params, "budget")
        boolean(params, "compile")
        budget = params["budget"]
        if isinstance(budget, bool) or not isinstance(budget, int | float) or not 0 <= budget < 1:
            raise ValueError(f"budget is {budget!r}; allowed: from 0 to less than 1")

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what sets the budget."""
        budget = float(params["budget"])
        return CompiledWithinBudget(budget) if params.get("compile") else MemoryBudget(budget)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Set the budget at the top of the main file; compile the model in place where the plan did."""
        from hotloop.model.sites import SiteKind
        from hotloop.optimize.rewriting.model import add_line, model_to_compile
        from hotloop.optimize.rewriting.outcomes import not_observed, summed_up
        from hotloop.optimize.rewriting.settings import main_file, set_flag
        from hotloop.source.imports import module_name

        models = sites.of(SiteKind.MODEL)
        notes: list[str] = []
        if params.get("compile"):
            if not models:
                return not_observed("construction of the model", "model.compile()")
            for site in models:
                model = model_to_compile(source, site)
                notes += add_line(source, model, f"{model.name}.compile()")
        module_name(source, main_file(source, sites.sites), SETTING)
        flag = f"{SETTING}.activation_memory_budget"
        notes += set_flag(source, sites.sites, flag, str(params["budget"]))
        return summed_up(notes, "the budget is set already")
