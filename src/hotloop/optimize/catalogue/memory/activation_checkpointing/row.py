"""activation_checkpointing: blocks of the model are computed again in the backward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.memory.activation_checkpointing.activation import CheckpointedBlocks
from hotloop.optimize.optimization import Optimization
from hotloop.optimize.parameters import only
from hotloop.optimize.program.bounds import share
from hotloop.optimize.program.recomputable import require_recomputable
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite


class ActivationCheckpointing(Optimization):
    """Compute blocks of the model again in the backward instead of keeping their activations.

    What it does: the repeated blocks of the model (entries of a `ModuleList` or `Sequential`; else its largest parts)
    run under `torch.utils.checkpoint` with `use_reentrant=False`. `blocks` is `all`, a list of paths, or a share: 0.5
    recomputes the blocks that save most bytes per millisecond of forward, one after the other, until they save half of
    what all of them would. Bytes and milliseconds of each block are measured in the second step; in the first ones all
    are recomputed, so that no step reaches the old peak.

    Why it is faster: it is not; it is smaller. Of each block a copy of its input stays in memory until the backward,
    nothing else. A batch that did not fit may fit, and a larger batch may use the device better.

    When it does not help: models whose peak is parameters and optimizer state; a peak outside the blocks (logits of a
    large vocabulary). Blocks are left alone that would do something twice: those that assign to attributes, print,
    have hooks, draw from generators that are not torch's, or are given what is no tensor and may change, such as the
    cache of a decoder (`use_cache=False` leaves it out). Where inputs of a block are changed in place, by itself or by
    the program behind it, the first step is computed from copies and the block is left alone after it. Running
    statistics of batch norm are updated once: the recomputation works on copies. It works under DDP, autocast and
    gradient scaling. Not together with compiled code, which decides by itself what it recomputes
    (`torch._functorch.config.activation_memory_budget`), nor with FSDP, whose own wrappers do it.

    Effect on numerics: none: the same operations on the same numbers. Dropout draws the same mask again.

    Example: `x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)`

    References: Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost; torch.utils.checkpoint documentation.
    """

    name: ClassVar[str] = "activation_checkpointing"
    family: ClassVar[str] = "memory"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    saves_memory: ClassVar[bool] = True
    conflicts: ClassVar[frozenset[str]] = frozenset({"compile", "compiled_chains", "cuda_graphs"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return all blocks, by the path of their container where they are equal, and the cheapest ones."""
        require_recomputable(observation)
        roots = observation.program.roots
        named = list(roots[0].blocks) if len(roots) == 1 and not _has_statistics(observation) else []
        forward = share(observation, Phase.FORWARD)
        return [
            self.candidate(
                params={"blocks": wanted},
                prior=1.0 / (1.0 + part * (EXPECTED if forward is None else forward)),
            )
            for wanted, part in ((named or "all", 1.0), *((part, part) for part in PARTS))
        ]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check which blocks are meant."""
        only(params, "blocks")
        wanted = params.get("blocks", "all")
        named = isinstance(wanted, (list, tuple)) and wanted and all(map(_is_path, wanted))
        is_share = isinstance(wanted, float) and 0 < wanted < 1
        if wanted != "all" and not named and not is_share:
            raise ValueError(
                f"blocks is {wanted!r}; allowed: all, a share between 0 and 1, a list of paths: ['transformer.h']"
            )

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what recomputes the blocks."""
        wanted = params.get("blocks", "all")
        return CheckpointedBlocks(list(wanted) if isinstance(wanted, (list, tuple)) else wanted)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Put the blocks of the named containers under checkpoint, behind the statement that names the model."""
        from hotloop.optimize.catalogue.memory.activation_checkpointing.rewrite import rewrite_blocks

        return rewrite_blocks(source, sites, params.get("blocks", "all"))


PARTS = (0.75, 0.5, 0.25)
"""Shares of what all blocks save that are tried beside all of them."""
EXPECTED = 0.3
"""Share of the forward where it was not measured: 1 / 1.3 is 0.77 of the speed. A backward costs about two forwards."""


def _is_path(value: Any) -> bool:
    return isinstance(value, str) and all(part.isidentifier() or part.isdigit() for part in value.split("."))


def _has_statistics(observation: Observation) -> bool:
    """Whether a plain checkpoint, as a patch writes it, would update running statistics twice."""
    return any("BatchNorm" in name for root in observation.program.roots for name in root.layer_counts)
