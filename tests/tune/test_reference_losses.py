"""The original's curves, and what is held against them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from hotloop.model.learned import GradientSketch, Learned, TrainingInvariants
from hotloop.model.optimization import Candidate, Numerics
from hotloop.stats.parity import ENOUGH_DRAWS
from hotloop.tune.verdict.first_gradients import other_gradients
from hotloop.tune.verdict.reference_losses import ReferenceLosses

BF16 = Candidate(name="bf16", numerics=Numerics.TOLERANCE)
ALLOCATOR = Candidate(name="allocator", touches_numbers=False)
LAYOUT = Candidate(name="layout")
NUM = 120


def gan(seed: int, *, chaos: float = 0.2, worse: float = 1.0) -> list[float]:
    """Two losses a step, one near 0.1 and one near 5, that part from other runs after some twenty steps."""
    rng, batches = np.random.default_rng(1000 + seed), np.random.default_rng(1).normal(size=(NUM, 2))
    steps = np.arange(NUM)
    wander = np.zeros((NUM, 2))
    for step in range(1, NUM):
        wander[step] = 0.7 * wander[step - 1] + 0.7 * rng.normal(size=2)
    grown = chaos * np.minimum(1.0, 1e-7 * 2.2**steps)[:, None] if seed else 0.0
    course = np.stack([0.1 + 0.5 * np.exp(-steps / 20), 5 - 4 * np.exp(-steps / 20)], axis=1)
    course[:, 0] *= np.where(steps > 30, worse, 1.0)
    losses = course * np.exp(0.05 * batches + grown * wander)
    return [float(value) for value in losses.reshape(-1)]


def run(losses: Sequence[float]) -> Learned:
    return Learned(losses=tuple(losses))


def references(num_perturbed: int = 4, chaos: float = 0.2) -> ReferenceLosses:
    original = tuple(gan(0))
    perturbed = tuple(tuple(gan(seed, chaos=chaos)) for seed in range(1, num_perturbed + 1))
    return ReferenceLosses(originals=(original, original), perturbed=perturbed, sites=(0, 1) * NUM)


def test_runs_that_part_like_the_originals_learn_the_same() -> None:
    passed = [references().check(run(gan(seed)), [BF16]).passed for seed in range(100, 150)]
    assert sum(passed) >= 49


def test_the_small_loss_of_two_is_seen() -> None:
    refused = [not references().check(run(gan(seed, worse=2.0)), [BF16]).passed for seed in range(100, 120)]
    assert all(refused)
    # In one curve of both losses it is lost beside the large one.
    together = ReferenceLosses(originals=references().originals, perturbed=references().perturbed)
    assert any(together.check(run(gan(seed, worse=2.0)), [BF16]).passed for seed in range(100, 120))


def test_a_perturbed_run_that_is_too_short_decides_nothing() -> None:
    short = ReferenceLosses(originals=(tuple(gan(0)),), perturbed=(tuple(gan(1)[:18]),))
    seen = short.check(run(gan(100)), [BF16])
    assert (seen.passed, seen.decided, seen.num_steps) == (False, False, 18)
    assert short.wants_perturbed()
    exact = short.check(run(gan(0)), [LAYOUT])  # held against the original alone
    assert (exact.passed, exact.num_steps) == (True, 2 * NUM)
    assert not short.check(run(gan(100, worse=2.0)), [LAYOUT]).passed


def test_a_loss_that_is_lost_after_the_perturbed_run_s_end_is_refused() -> None:
    losses = gan(100)
    losses[200] = math.nan
    for length in (18, 60):
        short = ReferenceLosses(originals=(tuple(gan(0)),), perturbed=(tuple(gan(1)[:length]),))
        seen = short.check(run(losses), [BF16])
        assert (seen.passed, seen.decided, seen.method) == (False, True, "finite")


@pytest.mark.parametrize(("step", "passed"), [(ALLOCATOR, True), (LAYOUT, True), (BF16, False)])
def test_where_the_originals_own_losses_are_nan_only_reduced_precision_needs_more(
    step: Candidate, passed: bool
) -> None:
    nothing = [math.nan] * NUM
    seen = ReferenceLosses(originals=(tuple(nothing),)).check(run(nothing), [step])
    assert (seen.passed, seen.decided, seen.num_steps) == (passed, passed, 0)
    assert seen.evidence == "the original's own losses are NaN or infinite"
    few = ReferenceLosses(originals=(tuple(nothing),)).check(run(nothing[:14]), [step])
    assert few == seen


@pytest.mark.parametrize("num", [14, NUM])
def test_a_loss_that_only_the_change_has_lost_is_refused(num: int) -> None:
    finite = tuple(gan(0)[:num])
    seen = ReferenceLosses(originals=(finite,)).check(run([*finite[:10], math.nan, *finite[11:]]), [LAYOUT])
    assert (seen.passed, seen.decided, seen.method) == (False, True, "finite")


def test_a_curve_of_nan_says_nothing_of_the_other_ones() -> None:
    """One of two losses is NaN in every step."""
    sites = (0, 1) * NUM
    lost = tuple(math.nan if at % 2 else loss for at, loss in enumerate(gan(0)))
    held = ReferenceLosses(originals=(lost,), perturbed=(), sites=sites)
    assert held.check(run(lost), [LAYOUT]).passed
    worse = [loss * 1.5 for loss in lost]
    assert not held.check(run(worse), [LAYOUT]).passed


@pytest.mark.parametrize("step", [ALLOCATOR, LAYOUT])
def test_a_change_of_no_number_passes_however_far_chaos_carries_it(step: Candidate) -> None:
    passed = [references().check(run(gan(seed)), [step]).passed for seed in range(100, 150)]
    assert sum(passed) >= (50 if step is ALLOCATOR else 49)


def test_a_change_of_no_number_whose_first_steps_differ_is_refused() -> None:
    losses = gan(100)
    losses[2] *= 1.01
    seen = references().check(run(losses), [ALLOCATOR])
    assert not seen.passed
    assert seen.decided
    assert seen.method == "first steps"


@pytest.mark.parametrize(("first", "passes"), [(1.5e-5, True), (0.0, False)])
def test_what_one_model_of_a_game_does_to_the_other_is_no_jump(first: float, passes: bool) -> None:
    """Another layout of a DCGAN: a loss that comes after an update is 1.5e-5 off, the other model's next one 2e-3."""
    rng, original = np.random.default_rng(0), np.array(gan(0))
    grown = np.array([1e-7, first, 2e-3, 6e-3, *(0.02 * rng.normal(size=len(original) - 4))])
    perturbed = [
        original * (1 + np.array([0.0, 4e-4, *(0.1 * rng.normal(size=len(original) - 2))])) for _ in range(4)
    ]
    known = ReferenceLosses(
        originals=(tuple(original),),
        perturbed=tuple(map(tuple, perturbed)),
        sites=tuple(range(2)) * (len(original) // 2),
    )
    seen = known.check(run(original * (1 + grown)), (LAYOUT,))
    assert (seen.passed, seen.decided) == (passes, True), seen.evidence
    assert passes or seen.method == "first steps"


def test_one_run_of_a_chaotic_program_does_not_decide() -> None:
    seen = [references(1, chaos=1.5).check(run(gan(seed, chaos=1.5)), [BF16]) for seed in range(100, 130)]
    undecided = [one for one in seen if not one.decided]
    assert undecided
    assert not any(one.passed for one in undecided)
    assert all("not decidable in this budget" in one.evidence for one in undecided)


def _first_steps(
    noise: float = 0.0, num: int = 16, zeros: float | None = None, first: float | None = None
) -> TrainingInvariants:
    """Gradients of the first steps, with noise relative to them; that of the very first one may be another."""
    truth, other = np.random.default_rng(5).normal(size=(2, num, 64))
    noises = np.full((num, 1), noise)
    noises[0] = noise if first is None else first
    sums = (truth + noises * other).astype(np.float32)
    sketches = [
        GradientSketch(num_forwards=at + 1, generators=0, num_values=640, sums=row.tobytes())
        for at, row in enumerate(sums)
    ]
    return TrainingInvariants(
        num_forwards=num, batches=tuple(range(1, num + 1)), gradients=tuple(sketches), zero_gradients=zeros
    )


@pytest.mark.parametrize(
    ("step", "seen", "decides"),
    [
        (LAYOUT, _first_steps(1e-3), True),
        (LAYOUT, _first_steps(0.3), False),
        (LAYOUT, _first_steps(num=3), False),
        (BF16, _first_steps(1e-3), False),
    ],
    ids=["the same", "other gradients", "too few steps", "reduced precision"],
)
def test_the_same_gradients_show_that_a_change_is_exact_where_chaos_hides_it(
    step: Candidate, seen: TrainingInvariants, decides: bool
) -> None:
    known = msgspec.structs.replace(references(1, chaos=1.5), invariants=(_first_steps(),))
    runs = [run(gan(seed, chaos=1.5)) for seed in range(100, 130)]
    undecided = [one for one in runs if not known.check(one, [step]).decided]
    assert undecided
    again = [known.check(msgspec.structs.replace(one, invariants=seen), [step]) for one in undecided]
    assert all((one.decided, one.passed) == (decides, decides) for one in again)
    assert all(("first 16 steps follow the original's" in one.evidence) == decides for one in again)


@pytest.mark.parametrize(
    ("step", "seen", "num_draws", "decides"),
    [
        (LAYOUT, _first_steps(1e-3), 1, False),
        (LAYOUT, _first_steps(1e-3), 2, False),
        (LAYOUT, _first_steps(1e-3), 3, True),
        (LAYOUT, _first_steps(0.3), 1, True),
        (LAYOUT, _first_steps(num=3), 1, True),
        (BF16, _first_steps(1e-3), 1, True),
    ],
    ids=["one run", "two runs", "three runs", "other gradients", "too few steps", "reduced precision"],
)
def test_few_runs_do_not_refuse_what_has_the_same_gradients(
    step: Candidate, seen: TrainingInvariants, num_draws: int, decides: bool
) -> None:
    """One thread of a PPO was refused for good beside one run whose rewards had wandered less far."""
    known = msgspec.structs.replace(references(num_draws), invariants=(_first_steps(),))
    runs = [run(gan(seed, worse=1.5)) for seed in range(100, 130)]
    refused = [one for one in runs if known.check(one, [BF16]).decided]
    assert len(refused) > 15
    again = [known.check(msgspec.structs.replace(one, invariants=seen), [step]) for one in refused]
    assert {(one.decided, one.passed) for one in again} == {(decides, False)}


@pytest.mark.parametrize(
    ("seen", "others", "num_draws", "decides"),
    [
        (_first_steps(0.3, zeros=0.5, first=0.05), 1.0, 4, True),
        (_first_steps(0.3, zeros=0.5), 1.0, 4, False),
        (_first_steps(0.3, zeros=0.5, first=0.05), 1.0, 2, False),
        (_first_steps(0.3, zeros=0.5, num=9, first=0.05), 1.0, 4, False),
        (_first_steps(0.3, zeros=0.54, first=0.05), 1.0, 4, False),
        (_first_steps(0.3, first=0.05), 1.0, 4, False),
        (_first_steps(0.8, zeros=0.5, first=0.05), 2.0, 4, False),
        (_first_steps(0.3, zeros=0.5, first=0.05), 0.35, 4, False),
    ],
    ids=[
        "follows",
        "another first step",
        "few runs",
        "few steps",
        "underflow",
        "not looked at",
        "parts",
        "nothing would part",
    ],
)
def test_reduced_precision_that_keeps_to_the_course_passes_where_chaos_hides_it(
    seen: TrainingInvariants, others: float, num_draws: int, decides: bool
) -> None:
    """Draws of other random numbers part from a GAN's course at once, bf16 does not within its first steps."""
    parted = (_first_steps(others, zeros=0.5),) * num_draws
    known = msgspec.structs.replace(
        references(num_draws, chaos=3.0), invariants=(_first_steps(zeros=0.5),), perturbed_invariants=parted
    )
    runs = [run(gan(seed, chaos=3.0)) for seed in range(100, 130)]
    undecided = [one for one in runs if not known.check(one, [BF16]).decided]
    assert undecided
    again = [known.check(msgspec.structs.replace(one, invariants=seen), [BF16]) for one in undecided]
    assert {(one.decided, one.passed) for one in again} == {(decides, decides)}


def test_what_noise_in_the_weights_turns_reduced_precision_may_turn_too() -> None:
    """A deep net with batch normalization: bf16 turns its first gradients as noise of 2^-9 does, which comes later."""
    original, in_half = _first_steps(num=2), _first_steps(0.75, num=2)
    assert other_gradients([original, original], in_half) is not None
    noise = _first_steps(0.5, num=2, first=0.0)
    assert other_gradients([original, original], in_half, [noise]) is None
    wrong = _first_steps(3.0, num=2)
    assert other_gradients([original, original], wrong, [noise]) is not None


RESNET = (
    7.052, 7.061, 7.781, 8.035, 8.152, 9.502, 9.783, 9.379, 10.057, 9.499,
    9.945, 9.072, 8.055, 7.964, 8.532, 8.410, 8.356, 7.939, 7.912, 8.027,
)  # fmt: skip
"""A published ResNet-18 on random images, 1.1 s a step: 20 steps of a session of ten minutes."""
RESNET_WITH_NOISE = (
    (
        7.052, 7.061, 7.772, 8.042, 8.192, 9.482, 9.742, 9.438, 10.075, 9.570,
        10.158, 9.361, 8.258, 8.231, 8.740, 8.596, 8.495, 8.002, 7.950, 8.069,
    ),
    (
        7.052, 7.062, 7.780, 8.027, 8.166, 9.490, 9.773, 9.439, 10.076, 9.516,
        9.928, 9.131, 8.026, 7.963, 8.498, 8.396, 8.351, 7.936, 7.903, 8.026,
    ),
    (
        7.052, 7.062, 7.775, 8.066, 8.168, 9.490, 9.791, 9.383, 10.091, 9.621,
        10.350, 9.609, 8.576, 8.681, 9.311, 9.018, 8.812, 8.173, 8.047, 8.153,
    ),
)  # fmt: skip
RESNET_IN_BF16 = (
    7.053, 7.086, 7.757, 8.045, 8.156, 9.475, 9.813, 9.407, 10.149, 9.722,
    10.433, 9.875, 8.881, 9.147, 9.970, 9.630, 9.222, 8.450, 8.237, 8.300,
)  # fmt: skip
"""2.1 times as fast. Its gradients of the first step are 0.07 (1 - cosine) from the original's."""


@pytest.mark.parametrize(
    ("noise", "times", "num_draws", "word"),
    [
        (0.2, 1.0, 3, "passed"),
        (0.2, 1.0, 2, "not decided"),
        (0.8, 1.0, 3, "not decided"),
        (0.2, 3.0, 3, "refused"),
        (0.8, 0.5, 3, "passed"),
    ],
    ids=["like them", "few runs", "other gradients", "three times as far", "near, other gradients"],
)
def test_few_losses_decide_beside_the_gradients_of_the_first_step(
    noise: float, times: float, num_draws: int, word: str
) -> None:
    """What other gradients refuse by themselves is tested elsewhere; here one step is all there is of them."""
    original, bf16 = np.array(RESNET), np.array(RESNET_IN_BF16)
    known = ReferenceLosses(
        originals=(RESNET,) * 3,
        perturbed=RESNET_WITH_NOISE[:num_draws],
        invariants=(_first_steps(num=1),),
    )
    seen = msgspec.structs.replace(_first_steps(noise, num=1), num_random=int(noise > 0.5))
    one = Learned(losses=tuple(original + times * (bf16 - original)), invariants=seen)
    found = known.check(one, [BF16])
    assert word == ("passed" if found.passed else "refused" if found.decided else "not decided")


def test_more_perturbed_runs_are_wanted_only_where_runs_part() -> None:
    assert references(1).wants_perturbed()
    assert not references(1, chaos=1e-5).wants_perturbed()
    assert references(1, chaos=1e-5).wants_perturbed(unsettled=True), "one may keep close by luck"
    assert not references(ENOUGH_DRAWS).wants_perturbed()


def test_without_losses_only_what_changes_no_number_needs_no_proof() -> None:
    nothing = ReferenceLosses(originals=())
    assert nothing.check(run(()), [ALLOCATOR]).passed
    assert nothing.check(run(()), [LAYOUT]).passed
    seen = nothing.check(run(()), [LAYOUT, BF16])
    assert not seen.passed
    assert not seen.decided


def test_not_a_number_is_refused() -> None:
    losses = gan(3)
    losses[200] = math.nan
    seen = references().check(run(losses), [BF16])
    assert not seen.passed
    assert seen.decided


class TestAugmentation:
    """Loader workers draw other random numbers than the training process does: all losses differ, from the first."""

    WORKERS = Candidate(name="loader_workers", numerics=Numerics.TOLERANCE, touches_numbers=False)

    @staticmethod
    def _drawn(seed: int, worse: float = 1.0) -> tuple[float, ...]:
        steps = np.arange(NUM)
        own = 0.1 * np.random.default_rng(seed).normal(size=NUM)
        batches = 0.1 * np.random.default_rng(1).normal(size=NUM)
        course = (0.5 + 1.5 * np.exp(-steps / 40)) * np.where(steps > 60, worse, 1.0)
        return tuple(float(value) for value in course * np.exp(batches + own))

    def _references(self) -> ReferenceLosses:
        original = self._drawn(0)
        return ReferenceLosses(
            originals=(original, original), perturbed=tuple(self._drawn(seed) for seed in (1, 2, 3))
        )

    def test_other_draws_of_the_same_data_learn_the_same(self) -> None:
        passed = [
            self._references().check(run(self._drawn(seed)), [self.WORKERS]).passed
            for seed in range(100, 150)
        ]
        assert sum(passed) >= 49

    def test_what_learns_worse_with_other_draws_is_refused(self) -> None:
        seen = [
            self._references().check(run(self._drawn(seed, worse=1.5)), [self.WORKERS])
            for seed in range(100, 120)
        ]
        assert not any(one.passed for one in seen)

    def test_an_exact_step_beside_workers_is_not_held_to_the_draws_of_the_training_process(self) -> None:
        assert self._references().check(run(self._drawn(100)), [self.WORKERS, LAYOUT]).passed
        assert not self._references().check(run(self._drawn(100)), [LAYOUT]).passed


def _racing(seed: int) -> tuple[float, ...]:
    """A recommender whose samples three processes race for: equal runs part by 0.2% from the second step on."""
    noise = 0.0015 * np.random.default_rng(seed).normal(size=75)
    noise[0] = 0.0
    return tuple(float(value) for value in (1.39 - 0.004 * np.arange(75)) * (1 + noise))


def test_what_cannot_touch_a_number_may_part_from_what_it_is_beside_as_equal_runs_part() -> None:
    known = ReferenceLosses(originals=tuple(_racing(seed) for seed in range(3)), perturbed=(_racing(9),))
    seen = [known.beside(run(_racing(20))).check(run(_racing(seed)), (ALLOCATOR,)) for seed in range(30, 50)]
    assert all(one.passed for one in seen)
    off = tuple(value * (1.05 if at else 1.0) for at, value in enumerate(_racing(30)))
    assert not known.beside(run(_racing(20))).check(run(off), (ALLOCATOR,)).passed
