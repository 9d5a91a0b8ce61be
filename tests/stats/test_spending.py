"""Boundaries of the looks against the published ones."""

import numpy as np
import pytest

from hotloop.stats.spending import boundaries, look_levels


def test_five_looks_agree_with_the_published_pocock_type_boundaries() -> None:
    # Lan & DeMets spending with the Pocock-type function, alpha 0.05 two-sided, five equal looks
    # (as in Jennison & Turnbull 2000, chapter 7, and in every group-sequential program).
    assert boundaries((0.2, 0.4, 0.6, 0.8, 1.0), 0.05) == pytest.approx(
        [2.438, 2.427, 2.410, 2.397, 2.386], abs=2e-3
    )


def test_a_single_look_is_the_plain_test() -> None:
    assert boundaries((1.0,), 0.05) == pytest.approx([1.960], abs=1e-3)


def test_all_looks_together_err_as_much_as_allowed() -> None:
    looks = np.arange(3, 9)
    edges = np.array(boundaries(tuple(looks / 8), 0.05))
    paths = np.random.default_rng(0).normal(size=(40_000, 8)).cumsum(axis=1)[:, 2:] / np.sqrt(looks)
    assert (np.abs(paths) > edges).any(axis=1).mean() == pytest.approx(0.05, abs=0.004)


def test_levels_are_stricter_than_one_look_and_looser_than_a_union_bound() -> None:
    levels = look_levels(tuple(look / 8 for look in range(3, 9)), 0.05)
    assert all(level < 0.05 for level in levels)
    assert all(level > 0.05 / 6 for level in levels)
