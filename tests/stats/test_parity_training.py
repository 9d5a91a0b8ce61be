"""Parity on a network that really trains (numpy, two layers, momentum), not on simulated curves."""

from enum import Enum

import numpy as np
import numpy.typing as npt
import pytest

from hotloop.model.optimization import Numerics
from hotloop.stats.parity import check_parity, perturbation

Array32 = npt.NDArray[np.float32]

_STEPS, _BATCH, _INPUTS, _HIDDEN, _CLASSES = 120, 32, 32, 64, 10


class Arithmetic(Enum):
    """How the products are summed and rounded."""

    PLAIN = "plain"
    REORDERED = "reordered"
    """The same products, summed in two halves."""
    BF16 = "bf16"
    """Operands rounded to bfloat16, as under autocast."""


def bf16(values: Array32) -> Array32:
    """Rounded to the nearest bfloat16."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded: Array32 = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return rounded


def product(left: Array32, right: Array32, arithmetic: Arithmetic) -> Array32:
    if arithmetic is Arithmetic.BF16:
        return bf16(bf16(left) @ bf16(right))
    if arithmetic is Arithmetic.REORDERED:
        half = left.shape[1] // 2
        return left[:, half:] @ right[half:] + left[:, :half] @ right[:half]
    return left @ right


class Network:
    """Two layers, cross entropy, momentum; the gradients written out."""

    def __init__(self, rng: np.random.Generator, arithmetic: Arithmetic) -> None:
        self.arithmetic = arithmetic
        self.first = (rng.normal(size=(_INPUTS, _HIDDEN)) / _INPUTS**0.5).astype(np.float32)
        self.second = (rng.normal(size=(_HIDDEN, _CLASSES)) / _HIDDEN**0.5).astype(np.float32)
        self.pace_first, self.pace_second = np.zeros_like(self.first), np.zeros_like(self.second)

    def perturb(self, rng: np.random.Generator, noise: float) -> None:
        """Relative normal noise on every parameter."""
        self.first *= (1 + noise * rng.normal(size=self.first.shape)).astype(np.float32)
        self.second *= (1 + noise * rng.normal(size=self.second.shape)).astype(np.float32)

    def step(self, inputs: Array32, labels: npt.NDArray[np.int64], rate: float, stale: bool) -> float:
        """One update; the loss before it. A stale network no longer updates its first layer."""
        rows = np.arange(len(labels))
        hidden = np.maximum(product(inputs, self.first, self.arithmetic), np.float32(0))
        scores = product(hidden, self.second, self.arithmetic)
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        loss = float(-np.log(chances[rows, labels] + 1e-30).mean())
        chances[rows, labels] -= 1
        errors = chances / np.float32(len(labels))
        back = product(errors, np.ascontiguousarray(self.second.T), self.arithmetic) * (hidden > 0)
        self.pace_first = np.float32(0.9) * self.pace_first + product(inputs.T, back, self.arithmetic)
        self.pace_second = np.float32(0.9) * self.pace_second + product(hidden.T, errors, self.arithmetic)
        self.first -= np.float32(0 if stale else rate) * self.pace_first
        self.second -= np.float32(rate) * self.pace_second
        return loss


def train(
    seed: int,
    arithmetic: Arithmetic = Arithmetic.PLAIN,
    *,
    rate: float = 0.1,
    noise: float = 0.0,
    stale_from: int = _STEPS,
) -> list[float]:
    """Losses of one training; from step `stale_from` on the first layer is no longer updated."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(_INPUTS, _CLASSES))
    network = Network(rng, arithmetic)
    network.perturb(np.random.default_rng(1000 + seed), noise)
    losses = []
    for step in range(_STEPS):
        inputs = rng.normal(size=(_BATCH, _INPUTS)).astype(np.float32)
        labels = (np.tanh(inputs) @ truth + 0.5 * rng.normal(size=(_BATCH, _CLASSES))).argmax(axis=1)
        losses.append(network.step(inputs, labels, rate, stale=step >= stale_from))
    return losses


SEEDS = range(8)


def passes(seed: int, candidate: list[float], numerics: Numerics) -> bool:
    """Whether the candidate passes against the original of the seed and its floor."""
    arithmetic = "float32" if numerics is Numerics.EXACT else "bfloat16"
    perturbed = train(seed, noise=perturbation(arithmetic))
    return check_parity([train(seed), train(seed)], [perturbed], candidate, numerics=numerics).passed


def test_it_learns() -> None:
    losses = train(0)
    assert np.mean(losses[-20:]) < 0.7 * np.mean(losses[:5])


def test_reordered_sums_are_exact() -> None:
    assert all(passes(seed, train(seed, Arithmetic.REORDERED), Numerics.EXACT) for seed in SEEDS)


def test_bf16_is_within_tolerance() -> None:
    assert all(passes(seed, train(seed, Arithmetic.BF16), Numerics.TOLERANCE) for seed in SEEDS)


def test_bf16_is_not_exact() -> None:
    assert not any(passes(seed, train(seed, Arithmetic.BF16), Numerics.EXACT) for seed in SEEDS)


@pytest.mark.parametrize("rate", [0.0, 0.05])
def test_a_wrong_learning_rate_fails(rate: float) -> None:
    assert not any(passes(seed, train(seed, rate=rate), Numerics.TOLERANCE) for seed in SEEDS)


def test_another_model_fails() -> None:
    assert not any(passes(seed, train(seed + 100), Numerics.TOLERANCE) for seed in SEEDS)


def test_parameters_that_are_no_longer_updated_fail() -> None:
    assert not any(passes(seed, train(seed, stale_from=20), Numerics.TOLERANCE) for seed in SEEDS)
