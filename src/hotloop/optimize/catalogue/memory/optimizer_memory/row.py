"""optimizer_memory: the optimizer with fewer temporaries, or with state in 8 bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.memory.optimizer_memory.activation import EIGHT_BIT, EightBitState, OneByOne
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.parameters import choice, only, required
from hotloop.optimize.program.bounds import expected, share
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

ONE_BY_ONE, EIGHT_BITS = "one_by_one", "8bit"
SLOWER = {ONE_BY_ONE: 0.6, EIGHT_BITS: 0.5}
"""Of the optimizer's step; AdamW one by one took 36.8 ms on two cores where foreach took 22.4 (fused_optimizer)."""
SAVED_BYTES = {ONE_BY_ONE: 4, EIGHT_BITS: 6}
"""Of each parameter in float32: one list of temporaries; two moments of four bytes that become one byte each."""


class OptimizerMemory(Optimization):
    """Let the optimizer need less memory.

    What it does: `kind="one_by_one"` makes torch's optimizers with `foreach=False`; `kind="8bit"` puts torchao's
    `AdamW8bit` and `Adam8bit` in the place of torch's.

    Why it is faster: it is not; it is smaller. `foreach`, torch's default on CUDA, holds lists of temporaries as large
    as all parameters during the step. Two moments in float32 are eight bytes of a parameter; in 8 bits with a scale for
    each block of 256 they are a little more than two.

    When it does not help: a peak in the backward, where the step's temporaries are not there; a fused optimizer, which
    has none; SGD, which has little state. State of 8 bits needs torchao beside the program, and checkpoints of one
    optimizer cannot be loaded into the other. It works under DDP and autocast.

    Effect on numerics: none one by one. Moments in 8 bits are another optimizer: tried only where you allow semantic
    changes.

    Example: `torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=False)`

    References: Dettmers et al. 2022, 8-bit Optimizers via Block-wise Quantization; torch.optim documentation.
    """

    name: ClassVar[str] = "optimizer_memory"
    family: ClassVar[str] = "memory"
    numerics: ClassVar[Numerics] = Numerics.SEMANTIC
    saves_memory: ClassVar[bool] = True
    conflicts: ClassVar[frozenset[str]] = frozenset({"fused_optimizer"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return what the optimizers and the installed libraries allow."""
        program = observation.program
        if not program.optimizers:
            raise DoesNotApply("the program has no optimizer object")
        lists = [
            one
            for one in program.optimizers
            if not one.fused and (one.foreach or (one.foreach is None and program.device == "cuda"))
        ]
        adam = [one for one in program.optimizers if one.cls in EIGHT_BIT]
        found = {ONE_BY_ONE: lists} if lists else {}
        if adam and "torchao" in program.libraries and program.distributed != "fsdp":
            found[EIGHT_BITS] = adam
        if not found:
            raise DoesNotApply(
                "the optimizer holds no lists of temporaries (foreach), and state in 8 bits needs Adam or AdamW and "
                "torchao installed beside the program"
            )
        part = share(observation, Phase.OPTIMIZER)
        return [
            self.candidate(
                params={"kind": kind},
                numerics=Numerics.EXACT if kind == ONE_BY_ONE else self.numerics,
                prior=expected(part, SLOWER[kind]),
                saved_bytes=SAVED_BYTES[kind] * max(one.num_parameters for one in optimizers),
            )
            for kind, optimizers in found.items()
        ]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the kind."""
        only(params, "kind")
        required(params, "kind")
        choice(params, "kind", (ONE_BY_ONE, EIGHT_BITS))

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what changes the optimizers."""
        return OneByOne() if params["kind"] == ONE_BY_ONE else EightBitState()

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Give each optimizer of torch `foreach=False`; another class is written by hand."""
        from hotloop.model.sites import SiteKind
        from hotloop.optimize.rewriting.constructions import set_keywords
        from hotloop.optimize.rewriting.outcomes import changed, not_observed
        from hotloop.source.keywords import Changes
        from hotloop.source.outcome import Refused

        if params["kind"] == EIGHT_BITS:
            return Refused(
                "state in 8 bits is another class of torchao's, with its own checkpoints",
                "optimizer = torchao.optim.AdamW8bit(model.parameters(), lr=...)",
            )
        optimizers = [site for site in sites.of(SiteKind.OPTIMIZER) if site.callee.startswith("torch.optim.")]
        if not optimizers:
            return not_observed("optimizer of torch", "optimizer = torch.optim.AdamW(..., foreach=False)")
        changes = Changes()
        for site in optimizers:
            changes += set_keywords(source, site, {"foreach": "False"})
        return changed(changes, "each optimizer has foreach=False")
