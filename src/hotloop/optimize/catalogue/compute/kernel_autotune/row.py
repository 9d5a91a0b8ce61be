"""kernel_autotune: convolution kernels chosen by measuring them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.compute.kernel_autotune.activation import (
    KernelBenchmark,
    benchmark_is_on,
    set_benchmark,
)
from hotloop.optimize.knobs.flag import FlagKnob
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.parameters import boolean, choice, only
from hotloop.optimize.program.bounds import expected, share
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

FIND_MODES = ("NORMAL", "FAST", "HYBRID", "DYNAMIC_HYBRID")


class KernelAutotune(Optimization):
    """Choose convolution kernels by measuring them.

    What it does: `torch.backends.cudnn.benchmark = True`. On ROCm also `miopen_find_mode`
    (`MIOPEN_FIND_MODE`) and `tunable_op` (`PYTORCH_TUNABLEOP_ENABLED`, which measures matrix product
    kernels).

    Why it is faster: the library times its algorithms for each new shape and keeps the fastest, instead of
    guessing.

    When it does not help: on the CPU, which has no such choice; where input sizes vary, every new size is
    measured again. It is not deterministic, so a program that asks for deterministic algorithms is left
    alone.

    Effect on numerics: another algorithm sums in another order.

    Example: `torch.backends.cudnn.benchmark = True`

    References: PyTorch performance tuning guide; MIOpen documentation, "Using the find APIs and immediate
    mode".
    """

    name: ClassVar[str] = "kernel_autotune"
    family: ClassVar[str] = "compute"
    numerics: ClassVar[Numerics] = Numerics.EXACT

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the candidate for this vendor's library."""
        program = observation.program
        if program.device != "cuda":
            raise DoesNotApply(f"the model is on {program.device}: only cuDNN and MIOpen measure kernels")
        if program.deterministic:
            raise DoesNotApply("the program asks for deterministic algorithms")
        if program.cudnn_benchmark:
            raise DoesNotApply("torch.backends.cudnn.benchmark is on already")
        layers = {name for root in program.roots for name in root.layer_counts}
        if not any(name.startswith("Conv") for name in layers):
            raise DoesNotApply("the model has no convolution")
        on_rocm = program.hip_version is not None
        params = {"miopen_find_mode": "NORMAL", "tunable_op": True} if on_rocm else {}
        # Published advice promises 10-30% of convolution time.
        prior = expected(share(observation, Phase.FORWARD, Phase.BACKWARD), 1.2)
        return [self.candidate(params, prior=prior)]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the words that MIOpen knows."""
        only(params, "miopen_find_mode", "tunable_op")
        choice(params, "miopen_find_mode", FIND_MODES)
        boolean(params, "tunable_op")

    def environment(self, params: Mapping[str, Any]) -> Mapping[str, str]:
        """Return what MIOpen and TunableOp read."""
        variables: dict[str, str] = {}
        if "miopen_find_mode" in params:
            variables["MIOPEN_FIND_MODE"] = params["miopen_find_mode"]
        if params.get("tunable_op"):
            variables["PYTORCH_TUNABLEOP_ENABLED"] = "1"
        return variables

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what sets the flag."""
        return KernelBenchmark(tunes_products=bool(params.get("tunable_op")))

    def times_kernels(self, params: Mapping[str, Any]) -> bool:
        """Return that it does."""
        return True

    def knob(self, params: Mapping[str, Any]) -> Knob | None:
        """Return cuDNN's flag; what MIOpen reads from the environment cannot change later."""
        return None if params else FlagKnob(benchmark_is_on, set_benchmark, True)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Set the flag behind the imports of the program's main file; MIOpen's variables go to the launch line."""
        from hotloop.optimize.rewriting.settings import set_flag
        from hotloop.source.outcome import AlreadySo, Edited

        notes = set_flag(source, sites.sites, "torch.backends.cudnn.benchmark", "True")
        variables = self.environment(params)
        if not notes and not variables:
            return AlreadySo("torch.backends.cudnn.benchmark is set")
        return Edited(tuple(notes), environment=variables)
