"""Does a candidate still learn the same?"""

import warnings
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from hotloop.model.optimization import Numerics
from hotloop.stats.parity import MIN_STEPS, check_parity, parts, perturbation

from .simulated_losses import BROKEN, Training, random_training

Array = npt.NDArray[np.float64]
Kind = Callable[[Training], Array]

FP32, BF16 = perturbation("float32"), perturbation("bfloat16")
EXACT, TOLERANCE = Numerics.EXACT, Numerics.TOLERANCE


def trainings(num: int, steps: int = 100) -> list[tuple[Training, np.random.Generator]]:
    rngs = [np.random.default_rng(seed) for seed in range(num)]
    return [(random_training(rng, steps), rng) for rng in rngs]


@pytest.mark.parametrize("steps", [20, 100, 400])
def test_reordered_sums_pass_as_exact(steps: int) -> None:
    passed = [
        check_parity([t.losses, t.losses], [t.run(rng, FP32)], t.run(rng, 3 * FP32), numerics=EXACT).passed
        for t, rng in trainings(60, steps)
    ]
    assert sum(passed) >= 57


@pytest.mark.parametrize("steps", [20, 100, 400])
def test_a_noisy_but_equal_bf16_curve_passes_as_tolerance(steps: int) -> None:
    passed = [
        check_parity(
            [t.losses, t.losses], [t.run(rng, BF16)], t.run(rng, BF16, per_step=2 * BF16), numerics=TOLERANCE
        ).passed
        for t, rng in trainings(60, steps)
    ]
    assert sum(passed) >= 56


def test_bf16_does_not_pass_as_exact() -> None:
    for t, rng in trainings(20):
        candidate = t.run(rng, BF16, per_step=2 * BF16)
        assert not check_parity([t.losses, t.losses], [t.run(rng, FP32)], candidate, numerics=EXACT).passed


@pytest.mark.parametrize("numerics", [EXACT, TOLERANCE])
@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("steps", [20, 100])
def test_a_broken_candidate_fails(broken: Kind, numerics: Numerics, steps: int) -> None:
    passed = [
        check_parity([t.losses, t.losses], [t.run(rng, BF16)], broken(t), numerics=numerics).passed
        for t, rng in trainings(40, steps)
    ]
    assert sum(passed) <= 1


def falling(num: int = 100, start: float = 2.0) -> Array:
    """A plain learning curve with batch noise."""
    noise = np.random.default_rng(0).normal(0, 0.05, num)
    return start * (0.3 + 0.7 / (1 + np.arange(num) / 15)) + noise


def test_the_same_curve_passes_without_any_floor() -> None:
    seen = check_parity([falling()], [], falling(), numerics=EXACT)
    assert seen.passed
    assert seen.statistic == 0
    assert seen.num_steps == 100
    assert "no floor was measured" in seen.evidence


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_loss_that_is_not_finite_fails(value: float) -> None:
    candidate = falling()
    candidate[70] = value
    seen = check_parity([falling(), falling()], [], candidate, numerics=TOLERANCE)
    assert not seen.passed
    assert "step 70" in seen.evidence


def test_steps_where_the_original_is_not_finite_do_not_count() -> None:
    reference = falling()
    reference[:2] = np.inf
    seen = check_parity([reference], [], reference, numerics=TOLERANCE)
    assert seen.passed
    assert seen.num_steps == 98


@pytest.mark.parametrize("num", [0, 1, MIN_STEPS - 1])
def test_too_few_steps_do_not_pass(num: int) -> None:
    seen = check_parity([falling()], [], falling()[:num], numerics=TOLERANCE)
    assert not seen.passed
    assert not seen.decided
    assert f"{MIN_STEPS} are needed" in seen.evidence
    assert seen.statistic is None


@pytest.mark.parametrize("level", [0.0, -5000.0, 1000.0])
def test_an_offset_does_not_hide_that_nothing_is_learned(level: float) -> None:
    # A fall of 1.4 is 0.14% of a loss around 1000: the share of what was learned tells.
    reference = level + falling()
    candidate = reference[0] + (falling() - falling()[0]) * 0.02
    seen = check_parity([reference, reference], [], candidate, numerics=TOLERANCE)
    assert not seen.passed


def test_a_loss_near_zero_is_judged_by_what_it_fell_from() -> None:
    steps = np.arange(100)
    reference = 2.3 * np.exp(-steps / 8) + 1e-4
    candidate = 2.3 * np.exp(-steps / 8) + 1.5e-4
    assert check_parity([reference, reference], [], candidate, numerics=TOLERANCE).passed
    stuck = np.maximum(reference, 0.05)
    assert not check_parity([reference, reference], [], stuck, numerics=TOLERANCE).passed


def test_negative_losses_are_losses() -> None:
    reference = -5000 - 100 * (1 - np.exp(-np.arange(100) / 20))
    assert check_parity([reference], [], reference * (1 + 1e-7), numerics=EXACT).passed
    assert not check_parity([reference], [], reference + 20, numerics=EXACT).passed


def swinging(rng: np.random.Generator, num: int = 200) -> Array:
    """An adversarial loss: swings around a level, on a path that rounding decides."""
    series = np.zeros(num)
    for index in range(1, num):
        series[index] = 0.8 * series[index - 1] + rng.normal(0, 0.15)
    return 1.0 + series


def test_adversarial_losses_pass_when_they_swing_alike() -> None:
    passed = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        runs = [swinging(rng) for _ in range(6)]
        seen = check_parity([runs[0], runs[0]], runs[1:5], runs[5], numerics=TOLERANCE)
        passed.append(seen.passed)
    assert sum(passed) >= 56


def test_an_adversarial_collapse_fails() -> None:
    passed = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        reference, perturbed, candidate = (swinging(rng) for _ in range(3))
        candidate[60:] = 8.0 + rng.normal(0, 0.1, 140)
        passed.append(check_parity([reference, reference], [perturbed], candidate, numerics=TOLERANCE).passed)
    assert sum(passed) <= 1


def test_the_floor_comes_from_runs_that_are_whole() -> None:
    broken = falling()
    broken[50] = np.nan
    seen = check_parity([falling(), falling()[:30]], [broken], falling() * 1.05, numerics=TOLERANCE)
    assert not seen.passed
    assert "no floor was measured" in seen.evidence


def test_units_do_not_matter() -> None:
    t, rng = trainings(1)[0]
    perturbed, candidate = t.run(rng, BF16), t.run(rng, BF16)
    plain = check_parity([t.losses], [perturbed], candidate, numerics=TOLERANCE)
    scaled = check_parity([t.losses * 1e6], [perturbed * 1e6], candidate * 1e6, numerics=TOLERANCE)
    assert plain.statistic is not None
    assert scaled.statistic == pytest.approx(plain.statistic)
    assert scaled.limit == pytest.approx(plain.limit)


def test_roundoff_of_known_arithmetics() -> None:
    assert perturbation("float32") == np.finfo(np.float32).eps / 4
    assert perturbation("bfloat16") == 2**-9
    with pytest.raises(KeyError):
        perturbation("int8")


def test_losses_near_the_end_of_floats_warn_of_nothing() -> None:
    sound, huge = [1.0 + 0.01 * step for step in range(40)], [1e308, -1e308] * 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        diverged = check_parity([sound], [sound], huge, numerics=Numerics.EXACT)
        unknown = check_parity([huge], [huge[::-1]], [one / 2 for one in huge], numerics=Numerics.EXACT)
        assert not parts(huge, [huge[::-1]])
    assert (diverged.passed, diverged.decided) == (False, True)
    assert (unknown.passed, unknown.decided) == (False, False)


def apart(seed: int) -> tuple[list[Array], list[Array]]:
    """A loss whose level rounding decides, as a game of two players has: the original twice, and perturbed runs."""
    rng = np.random.default_rng(seed)
    original = swinging(rng, 60)
    return [original, original], [swinging(rng, 60) + rng.normal(0, 3) for _ in range(3)]


@pytest.mark.parametrize("numerics", [EXACT, TOLERANCE])
def test_what_keeps_to_the_original_where_rounding_leaves_it_passes(numerics: Numerics) -> None:
    for seed in range(20):
        originals, perturbed = apart(seed)
        seen = check_parity(originals, perturbed, originals[0], numerics=numerics)
        assert (seen.passed, seen.decided) == (True, True)


def test_what_leaves_the_original_is_not_passed_for_a_mean_that_agrees() -> None:
    undecided = 0
    for seed in range(20):
        originals, perturbed = apart(seed)
        candidate = originals[0] + np.resize([1.0, -1.0], 60)  # no lasting deviation at all
        seen = check_parity(originals, perturbed, candidate, numerics=TOLERANCE)
        assert seen.decided or not seen.passed
        undecided += not seen.decided
    assert undecided > 10


def amplified(rounding: float, seed: int, growth: float = 30.0, steps: int = 60) -> Array:
    """What a game makes of rounding: it grows from step to step until it is as large as the losses' own swings."""
    rng = np.random.default_rng(seed)
    size = np.minimum(0.5, rounding * growth ** np.arange(steps))
    return size * rng.normal(0, 1, steps)


def game() -> tuple[Array, list[Array]]:
    original = swinging(np.random.default_rng(0), 60) + 4
    return original, [original + amplified(1e-3, 10 + seed) for seed in range(4)]


def test_reordered_sums_pass_as_exact_where_training_amplifies_fast() -> None:
    original, perturbed = game()
    passed = [
        check_parity([original] * 2, perturbed, original + amplified(1e-6, seed), numerics=EXACT).passed
        for seed in range(20)
    ]
    assert sum(passed) >= 18


def test_a_run_with_rounding_noise_that_crosses_the_original_is_as_far_away_as_it_was() -> None:
    original, (perturbed, *_) = game()
    crossing = perturbed.copy()
    crossing[3] = original[3]
    candidate = original.copy()
    candidate[1:4] += np.array([1e-6, 1e-4, 2e-2]) * original[1:4]
    candidate[4:] = perturbed[4:]
    assert check_parity([original] * 2, [crossing], candidate, numerics=EXACT).passed


@pytest.mark.parametrize("begins", [0, 1, 2, 3])
@pytest.mark.parametrize("rounding", [0.0, 1e-7])
def test_what_comes_at_once_is_no_rounding_however_fast_training_amplifies(
    begins: int, rounding: float
) -> None:
    original, perturbed = game()
    for seed in range(20):
        other = np.where(np.arange(60) < begins, 0.0, swinging(np.random.default_rng(100 + seed), 60) - 0.5)
        candidate = original + amplified(rounding, seed) + other
        assert not check_parity([original] * 2, perturbed, candidate, numerics=EXACT).passed


def test_bf16_does_not_pass_as_exact_where_training_amplifies_fast() -> None:
    original, perturbed = game()
    for seed in range(20):
        candidate = original + amplified(4e-3 * original[0], 50 + seed)
        assert not check_parity([original] * 2, perturbed, candidate, numerics=EXACT).passed
