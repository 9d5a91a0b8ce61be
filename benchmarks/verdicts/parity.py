"""Simulated loss curves: how often parity refuses a sound candidate and passes a broken one."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
from tests.stats.simulated_losses import BROKEN, Training, offset, random_training, slower

from hotloop.model.optimization import Numerics
from hotloop.stats.parity import check_parity, perturbation

Array = npt.NDArray[np.float64]
Candidate = Callable[[Training, np.random.Generator], Array]

_FP32, _BF16 = perturbation("float32"), perturbation("bfloat16")
_STEPS = (20, 60, 100, 200, 400)


def _reordered(training: Training, rng: np.random.Generator) -> Array:
    return training.run(rng, 3 * _FP32)


def _bf16(training: Training, rng: np.random.Generator) -> Array:
    return training.run(rng, _BF16, per_step=2 * _BF16)


def _plain(broken: Callable[[Training], Array]) -> Candidate:
    return lambda training, _: broken(training)


def _rows() -> Iterator[tuple[str, Numerics, Candidate]]:
    yield "sums reordered (sound)", Numerics.EXACT, _reordered
    yield "bf16 (sound)", Numerics.TOLERANCE, _bf16
    yield "bf16 (not exact)", Numerics.EXACT, _bf16
    for name, broken in BROKEN.items():
        yield f"{name} (broken)", Numerics.TOLERANCE, _plain(broken)
    yield "learns at 0.8 of the pace (broken)", Numerics.TOLERANCE, _plain(lambda t: slower(t, 0.8))
    yield "2% worse (borderline)", Numerics.TOLERANCE, _plain(lambda t: offset(t, 0.02))


def parity_table(num: int) -> Iterator[str]:
    """Share that passes, by the number of steps compared."""
    yield "## Parity"
    yield ""
    yield (
        f"Share that passes, of {num} random trainings a cell: power-law curves, 1-10% batch noise, rounding "
        "differences that grow by a tenth a step to at most 1.5%. The floor is one repeat (identical) "
        "and one run perturbed by the roundoff of the candidate's class (fp32 for exact, bf16 for tolerance)."
    )
    yield ""
    yield "| candidate | held to | " + " | ".join(f"{steps} steps" for steps in _STEPS) + " |"
    yield "|---|---|" + "---|" * len(_STEPS)
    for name, numerics, candidate in _rows():
        cells = " | ".join(f"{100 * _passing(num, steps, numerics, candidate):.1f}%" for steps in _STEPS)
        yield f"| {name} | {numerics.value} | {cells} |"
    yield ""


def _passing(num: int, steps: int, numerics: Numerics, candidate: Candidate) -> float:
    rng = np.random.default_rng(3)
    passed = 0
    for _ in range(num):
        training = random_training(rng, steps)
        losses = training.losses
        perturbed = training.run(rng, _FP32 if numerics is Numerics.EXACT else _BF16)
        seen = check_parity([losses, losses], [perturbed], candidate(training, rng), numerics=numerics)
        passed += seen.passed
    return passed / num
