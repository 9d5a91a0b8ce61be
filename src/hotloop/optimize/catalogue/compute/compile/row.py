"""compile: the model through torch.compile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.compute.compile.blocks import CompiledBlocks
from hotloop.optimize.compilation.compiled_forward import CompiledForward
from hotloop.optimize.knobs.within_forward import Gated
from hotloop.optimize.optimization import Optimization
from hotloop.optimize.parameters import boolean, choice, only
from hotloop.optimize.program.bounds import expected, share
from hotloop.optimize.program.compilable import compile_s, require_compilable
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

COMPILING_STEPS = 4
"""Forward and backward compile in the first step, shapes that differ in the next ones; CUDA graphs warm up in three."""
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")

MIN_BLOCKS = 3
"""Equal blocks from which compiling one of them saves time: the two of a small GPT took 26 s, the whole 30 s. They were
1.04 to 1.19 times as fast in three sessions, the whole 1.32 in the one of these in which it was tried."""
_RECURRENT = frozenset({"RNN", "LSTM", "GRU"})
RECURRENT = 1.05
"""Of a model with recurrent layers: their kernels are a library's, with or without Inductor. An LSTM of 8 ms a step was
0.95 times as fast compiled, and 0.96 with `dynamic`, which took 100 s of 600 before anything else was tried."""
ON_A_GPU = {"default": 1.4, "reduce-overhead": 1.38, "max-autotune": 1.34, "max-autotune-no-cudagraphs": 1.32}
"""Expected of forward and backward."""
BLOCKS_LESS, BLOCKS_LESS_ON_A_GPU = 0.05, 0.2
"""Factor that compiling each block is expected to bring less than the whole: each has a call, guards and kernels of its
own. With the host as the limit of that GPT its blocks were 0.94 [0.85, 1.04], the whole 1.18 and 1.28 by hand."""


class Compile(Optimization):
    """Compile the model with torch.compile.

    What it does: the root module's call is compiled in place, as `Module.compile()` does, so that class,
    `state_dict` keys, `children()` and pickling stay as they are. Parameters: `mode` (default;
    reduce-overhead and the max-autotune modes use CUDA graphs and search for kernels), `dynamic` (one
    kernel for varying shapes) and `blocks` (the path of a container of equal blocks, which are compiled instead
    of the whole: all of them share the code of the first; tried from three blocks on).

    Why it is faster: chains of operations become one kernel that passes over memory once, and Python's part
    of the forward and backward goes away.

    When it does not help: models that are one large matrix product or convolution after the other; graph
    breaks; shapes that change at every step (recompilation). It is paid for once, by seconds to minutes of
    compilation: the report gives the number of steps after which it has paid. Compiling blocks costs a part of
    that and loses what could be fused across them. Programs that differentiate
    twice (`create_graph=True`) cannot use it.

    Effect on numerics: sums in another order, fused operations rounded once; checked like reduced precision.

    Example: `model.compile(mode="default")`

    References: Ansel et al., PyTorch 2, ASPLOS 2024; torch.compile documentation.
    """

    name: ClassVar[str] = "compile"
    family: ClassVar[str] = "compute"
    numerics: ClassVar[Numerics] = Numerics.TOLERANCE
    conflicts: ClassVar[frozenset[str]] = frozenset(
        {"compiled_chains", "conv_bias_off", "created_on_device", "cuda_graphs"}
    )
    interacts: ClassVar[frozenset[str]] = frozenset({"autocast_bf16", "autocast_fp16"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the modes that differ on this device, the cheapest to compile first."""
        require_compilable(observation)
        # Published scripts on CPUs gave 0.8-1.9 by hand: 1.3 is the middle. On GPUs it is more (Ansel et al. 2024:
        # 1.4 over 180 models on an A100). The other modes cost more to compile.
        part = share(observation, Phase.FORWARD, Phase.BACKWARD)
        recurrent = _RECURRENT & {name for root in observation.program.roots for name in root.layer_counts}
        on_gpu = observation.program.device == "cuda"
        modes = ON_A_GPU if on_gpu else {"default": 1.3}
        whole_s = compile_s(observation)
        blocks_less = BLOCKS_LESS_ON_A_GPU if on_gpu else BLOCKS_LESS
        wanted: list[tuple[dict[str, Any], float, float]] = [
            ({"mode": mode}, factor, whole_s) for mode, factor in modes.items()
        ]
        if any(root.shapes_vary for root in observation.program.roots):
            wanted.append(({"mode": "default", "dynamic": True}, modes["default"] - 0.02, whole_s))
        for path, num in _blocks(observation).items():
            wanted.append(
                (
                    {"mode": "default", "blocks": path},
                    modes["default"] - blocks_less,
                    whole_s * (1 / num + 0.2),
                )
            )
        if recurrent:
            wanted = [(params, min(factor, RECURRENT), one_off_s) for params, factor, one_off_s in wanted]
        return [
            self.candidate(params, prior=expected(part, factor), one_off_s=one_off_s)
            for params, factor, one_off_s in wanted
        ]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the mode."""
        only(params, "mode", "dynamic", "blocks")
        choice(params, "mode", MODES)
        boolean(params, "dynamic")
        path = params.get("blocks", "h")
        if not isinstance(path, str) or not all(
            part.isidentifier() or part.isdigit() for part in path.split(".")
        ):
            raise ValueError(f"blocks is {path!r}; allowed: the path of a container: transformer.h")

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what compiles."""
        mode, dynamic = params.get("mode", "default"), params.get("dynamic")
        if "blocks" in params:
            return CompiledBlocks(mode, dynamic, params["blocks"])
        return CompiledForward(mode, dynamic)

    def times_kernels(self, params: Mapping[str, Any]) -> bool:
        """Return whether the mode searches for kernels."""
        return str(params.get("mode", "default")).startswith("max-autotune")

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return the gate between the compiled call and the program's own."""
        if "blocks" in params:
            mode, dynamic = params.get("mode", "default"), params.get("dynamic")
            return CompiledBlocks(mode, dynamic, params["blocks"], settle_steps=COMPILING_STEPS)
        return Gated(self.activation(params), settle_steps=COMPILING_STEPS, lasting=True)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Compile the model in place, behind the statement that names it; shorter than a wrapper, and keys stay."""
        from hotloop.model.sites import SiteKind
        from hotloop.optimize.rewriting.model import add_line, add_loop, model_to_compile
        from hotloop.optimize.rewriting.outcomes import not_observed, summed_up

        arguments = _arguments(params)
        models = sites.of(SiteKind.MODEL)
        if not models:
            return not_observed("construction of the model", f"model.compile({arguments})")
        notes: list[str] = []
        for site in models:
            model = model_to_compile(source, site)
            if "blocks" in params:
                place = _written(params["blocks"])
                notes += add_loop(source, model, f"{model.name}{place}", f"block.compile({arguments})")
            else:
                notes += add_line(source, model, f"{model.name}.compile({arguments})")
        return summed_up(notes, "the model is compiled behind its construction")


def _blocks(observation: Observation) -> Mapping[str, int]:
    """Return the container with the most blocks, where there is one root: its path is from there."""
    roots = observation.program.roots
    found = roots[0].blocks if len(roots) == 1 else {}
    blocks = {path: num for path, num in found.items() if num >= MIN_BLOCKS}
    return dict(sorted(blocks.items(), key=lambda item: -item[1])[:1])


def _written(path: str) -> str:
    """`body.0.layers` as it is written behind the model's name."""
    return "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in path.split("."))


def _arguments(params: Mapping[str, Any]) -> str:
    """Return the parameters as they are written in a call; torch's own defaults are left out."""
    given = {name: value for name, value in params.items() if value != "default" and name != "blocks"}
    texts = (
        f'{name}="{value}"' if isinstance(value, str) else f"{name}={value}" for name, value in given.items()
    )
    return ", ".join(texts)
