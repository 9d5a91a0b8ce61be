"""huge_pages: large CPU tensors in pages of 2 MiB."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.model.page_faults import faulting
from hotloop.optimize.catalogue.system.huge_pages.activation import PagesInUse
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")
LEAST = 1.02
"""Expected gain of fewer address translations, without page faults to save."""
VARIABLE = "THP_MEM_ALLOC_ENABLE"
"""Read by torch once, at the first large allocation: it then advises the kernel for each tensor of 2 MiB and more."""


class HugePages(Optimization):
    """Keep large CPU tensors in pages of 2 MiB.

    What it does: `THP_MEM_ALLOC_ENABLE=1` lets torch ask the kernel for huge pages for every CPU tensor that is large
    enough.

    Why it is faster: a large buffer that malloc has mapped anew is faulted in by one page of 2 MiB instead of 512 of
    4 KiB, and the processor has fewer translations to look up.

    When it does not help: models on an accelerator; small tensors; a kernel that gives huge pages to everybody already
    (`always`) or to nobody (`never`). Memory is given in larger pieces: look at the peak.

    Effect on numerics: none.

    Example: `THP_MEM_ALLOC_ENABLE=1 python train.py`

    References: Linux kernel, "Transparent Hugepage Support"; PyTorch, c10/core/impl/alloc_cpu.cpp.
    """

    name: ClassVar[str] = "huge_pages"
    family: ClassVar[str] = "system"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    touches_numbers: ClassVar[bool] = False
    interacts: ClassVar[frozenset[str]] = frozenset({"cpu_allocator"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate where the kernel waits to be asked."""
        program = observation.program
        if program.device != "cpu":
            raise DoesNotApply(f"the model is on {program.device}: its buffers are not in the host's pages")
        if platform.system() != "Linux":
            raise DoesNotApply(f"huge pages are asked for on Linux only, this is {platform.system()}")
        if VARIABLE in program.environment:
            raise DoesNotApply(f"the program sets {VARIABLE} itself")
        chosen = _chosen()
        if chosen != "madvise":
            raise DoesNotApply(
                f"the kernel's setting is {chosen or 'not readable'}: only with madvise it waits to be asked"
            )
        gain = max(LEAST, 1.0 / (1.0 - (faulting(observation) or 0.0)))
        return [self.candidate(prior=gain)]

    def environment(self, params: Mapping[str, Any]) -> Mapping[str, str]:
        """Return what torch reads."""
        return {VARIABLE: "1"}

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what looks at the pages of this process; it changes nothing."""
        return PagesInUse()

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Return the launch line: the variable is read before the program could set it."""
        from hotloop.optimize.rewriting.outcomes import launched_with

        return launched_with(self.environment(params))


def _chosen() -> str:
    """Return the word in brackets: `always [madvise] never`."""
    try:
        words = SETTING.read_text().split()
    except OSError:
        return ""
    return next((word.strip("[]") for word in words if word.startswith("[")), "")
