"""cpu_allocator: large buffers are kept by the allocator instead of given back and faulted in again."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.errors import HotloopError
from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.model.page_faults import LONGEST_FAULT_S, faulting
from hotloop.optimize.catalogue.system.cpu_allocator.activation import AllocatorInUse
from hotloop.optimize.catalogue.system.cpu_allocator.knob import MallocKnob
from hotloop.optimize.catalogue.system.cpu_allocator.library import find_library
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.parameters import choice, only, required
from hotloop.optimize.program.bounds import MIN_SHARE
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

ALLOCATORS = ("glibc", "jemalloc", "tcmalloc", "mimalloc")
LEAST = 1.02
"""Expected of another library where there are no page faults to save: it hands small buffers out faster."""
KEEP_BYTES = 4 << 30
"""Free memory that malloc keeps at the top of the heap; more than the buffers of a CPU training step need."""
GLIBC = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(KEEP_BYTES),
    "MALLOC_TOP_PAD_": str(64 << 20),
}


class CpuAllocator(Optimization):
    """Keep large buffers in the allocator.

    What it does: `allocator="glibc"` sets malloc's own switches (`MALLOC_MMAP_MAX_=0`,
    `MALLOC_TRIM_THRESHOLD_`, `MALLOC_TOP_PAD_`); `jemalloc`, `tcmalloc` and `mimalloc` are loaded before
    the program (`LD_PRELOAD`), where they are installed.

    Why it is faster: malloc maps each large buffer (an activation, a batch) from the system and gives it back
    when it is freed; the next step faults the same pages in again and the kernel clears them. Kept buffers
    are reused as they are.

    When it does not help: models on an accelerator, whose buffers are not malloc's; small tensors. malloc's
    switches are tried where page faults were counted that may take 1% of the step. malloc raises its own
    thresholds when it frees a larger buffer of up to 32 MiB, so an evaluation may end the faults by itself: trials
    count from behind the first one where it was observed to come within 6 s and a hundredth of the budget.
    Memory that would have been given back is kept: look at the peak.

    Effect on numerics: none.

    Example: `MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=4294967296 MALLOC_TOP_PAD_=67108864 python train.py`

    References: mallopt(3); PyTorch performance tuning guide, "Switch memory allocator".
    """

    name: ClassVar[str] = "cpu_allocator"
    family: ClassVar[str] = "system"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    touches_numbers: ClassVar[bool] = False

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the allocators that this machine has."""
        program = observation.program
        if program.device != "cpu":
            raise DoesNotApply(f"the model is on {program.device}: its buffers are not malloc's")
        taken = sorted({*GLIBC, "GLIBC_TUNABLES"} & set(program.environment))
        if "malloc" in program.environment.get("LD_PRELOAD", "") or taken:
            raise DoesNotApply(f"the program chooses its own allocator ({', '.join(taken) or 'LD_PRELOAD'})")
        if platform.system() != "Linux":
            raise DoesNotApply(f"allocators are changed on Linux only, this is {platform.system()}")
        found = [name for name in ALLOCATORS[1:] if find_library(name)]
        # Published scripts gave 1.0-1.4 with glibc's switches; the others are tried after it.
        part, longest = faulting(observation), faulting(observation, LONGEST_FAULT_S)
        gain = 1.15 if part is None else 1.0 / (1.0 - part)
        others = max(LEAST, 1.0 + 0.8 * (gain - 1.0))
        priors = {"glibc": gain} | dict.fromkeys(ALLOCATORS[1:], others)
        keeps = longest is not None and longest < MIN_SHARE
        has_switches = platform.libc_ver()[0] == "glibc"
        names = [*(["glibc"] if has_switches and not keeps else []), *found]
        if not names and keeps:
            raise DoesNotApply(
                f"page faults take less than {MIN_SHARE:.0%} of the step: its buffers are kept as it is, and no "
                "other allocator was found"
            )
        if not names:
            raise DoesNotApply("this C library has no switches, and no other allocator was found")
        return [self.candidate(params={"allocator": name}, prior=priors[name]) for name in names]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the name."""
        only(params, "allocator")
        required(params, "allocator")
        choice(params, "allocator", ALLOCATORS)

    def environment(self, params: Mapping[str, Any]) -> Mapping[str, str]:
        """Return malloc's switches, or the library to load first.

        Raises:
            HotloopError: the library is not installed (a plan from another machine).
        """
        name = params["allocator"]
        if name == "glibc":
            return dict(GLIBC)
        library = find_library(name)
        if library is None:
            hint = "install it with your system's packages, or take cpu_allocator out of the plan"
            raise HotloopError(f"the plan wants the allocator {name}, and lib{name} was not found", hint)
        return {"LD_PRELOAD": library}

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what looks whether the allocator is in use; it changes nothing."""
        return AllocatorInUse(params["allocator"])

    def knob(self, params: Mapping[str, Any]) -> Knob | None:
        """Return what sets malloc's switches; another library cannot be loaded later."""
        if params["allocator"] != "glibc":
            return None
        return MallocKnob(KEEP_BYTES, int(GLIBC["MALLOC_TOP_PAD_"]))

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Return the launch line: these variables are read before any line of the program runs."""
        from hotloop.optimize.rewriting.outcomes import launched_with

        return launched_with(self.environment(params))
