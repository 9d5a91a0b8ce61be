"""Screening with one pair."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.stats.screen import MAX_BLOCKS, Screen, promising

from .simulated import Noise, simulated_pair


def screen(rng: np.random.Generator, ratio: float) -> tuple[Screen, int]:
    """One simulated candidate, block by block: the answer and the blocks it took."""
    noise = Noise(0.015, 0.02, 0.3)
    blocks = simulated_pair(rng, noise, math.log(ratio), num=MAX_BLOCKS)
    for num in range(1, MAX_BLOCKS + 1):
        answer = promising(blocks[:num])
        if answer is not Screen.MORE:
            return answer, num
    raise AssertionError("still undecided at the last block")


@pytest.mark.parametrize("num", [0, 1, 3])
def test_too_few_blocks_ask_for_more(num: int) -> None:
    assert promising([0.5] * num) is Screen.MORE


def test_a_hopeless_candidate_ends_after_two_blocks() -> None:
    assert promising([-0.5, -0.4]) is Screen.DROP


def test_a_clear_gain_is_kept_after_four_blocks() -> None:
    assert promising([0.4, 0.41, 0.39, 0.4]) is Screen.KEEP


def test_a_clear_loss_is_dropped_after_four_blocks() -> None:
    assert promising([-0.1, -0.11, -0.09, -0.1]) is Screen.DROP


def test_blocks_that_are_not_finite_do_not_count() -> None:
    assert promising([math.nan, 0.4, math.inf, 0.41, 0.39]) is Screen.MORE


@given(st.lists(st.floats(-3, 3), min_size=MAX_BLOCKS, max_size=30))
def test_the_last_block_always_decides(blocks: list[float]) -> None:
    assert promising(blocks) is not Screen.MORE


@pytest.mark.parametrize(("ratio", "at_least"), [(1.5, 60), (1.1, 58), (1.05, 50)])
def test_gains_are_kept(ratio: float, at_least: int) -> None:
    rng = np.random.default_rng(5)
    assert sum(screen(rng, ratio)[0] is Screen.KEEP for _ in range(60)) >= at_least


@pytest.mark.parametrize(("ratio", "at_least", "blocks"), [(0.7, 60, 2.5), (0.93, 57, 6.0)])
def test_losses_are_dropped_early(ratio: float, at_least: int, blocks: float) -> None:
    rng = np.random.default_rng(6)
    answers = [screen(rng, ratio) for _ in range(60)]
    assert sum(answer is Screen.DROP for answer, _ in answers) >= at_least
    assert np.mean([num for _, num in answers]) <= blocks
