"""allocator_settings: the CUDA allocator with segments that grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.memory.allocator_settings.activation import ExpandableSegments
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

VARIABLE = "PYTORCH_CUDA_ALLOC_CONF"
NAMES = (VARIABLE, "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
SETTING = {VARIABLE: "expandable_segments:True"}


class AllocatorSettings(Optimization):
    """Let the segments of the CUDA allocator grow.

    What it does: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`: one segment of address space for each stream and
    kind of block, to which pages are added as they are needed, instead of a segment for each large request.

    Why it is faster: it is not; less is reserved. Where shapes change from step to step, freed segments of one size
    serve no other, and reserved memory runs ahead of what is in use until allocations fail or the cache is flushed
    (a retry, with a synchronization).

    When it does not help: fixed shapes, where little is lost to fragmentation. It is NVIDIA's on Linux; sharing CUDA
    tensors between processes needs a recent driver and torch. A program that sets the allocator itself is left alone.
    On a CPU see cpu_allocator. It works beside compile, DDP and autocast.

    Effect on numerics: none.

    Example: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py`

    References: torch documentation, "CUDA semantics: memory management".
    """

    name: ClassVar[str] = "allocator_settings"
    family: ClassVar[str] = "memory"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    touches_numbers: ClassVar[bool] = False
    saves_memory: ClassVar[bool] = True

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate, on NVIDIA's devices."""
        program = observation.program
        if program.device != "cuda" or program.hip_version:
            raise DoesNotApply("expandable segments are CUDA's; on a CPU see cpu_allocator")
        taken = sorted(set(NAMES) & set(program.environment))
        if taken:
            raise DoesNotApply(f"the program chooses its own settings ({', '.join(taken)})")
        return [self.candidate()]

    def environment(self, params: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the allocator's setting."""
        return dict(SETTING)

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what looks at the segments."""
        return ExpandableSegments()

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Return the launch line: the allocator reads its setting once."""
        from hotloop.optimize.rewriting.outcomes import launched_with

        return launched_with(SETTING)
