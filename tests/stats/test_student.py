"""Student's t against the printed tables (two-sided 95% and 99%)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.stats.student import student_cdf, student_quantile


@pytest.mark.parametrize(
    ("df", "t_975", "t_995"),
    [(1, 12.706, 63.657), (2, 4.303, 9.925), (5, 2.571, 4.032), (10, 2.228, 3.169), (30, 2.042, 2.750)],
)
def test_quantiles_agree_with_the_tables(df: float, t_975: float, t_995: float) -> None:
    assert student_quantile(0.975, df) == pytest.approx(t_975, abs=6e-4)
    assert student_quantile(0.995, df) == pytest.approx(t_995, abs=6e-4)


def test_many_degrees_of_freedom_are_normal() -> None:
    assert student_quantile(0.975, 1e7) == pytest.approx(1.959964, abs=1e-5)
    assert student_quantile(0.975, 9e5) == pytest.approx(1.959964, abs=1e-5)


@given(st.floats(0.0005, 0.9995), st.floats(0.5, 500))
def test_quantile_inverts_the_distribution(probability: float, df: float) -> None:
    assert student_cdf(student_quantile(probability, df), df) == pytest.approx(probability, abs=1e-9)


@given(st.floats(0.51, 0.999), st.floats(1, 100))
def test_fewer_degrees_of_freedom_are_wider(probability: float, df: float) -> None:
    assert student_quantile(probability, df) > student_quantile(probability, df + 1)


@pytest.mark.parametrize(("probability", "df"), [(0.0, 3), (1.0, 3), (0.9, 0)])
def test_impossible_questions_are_refused(probability: float, df: float) -> None:
    with pytest.raises(ValueError, match="no t quantile"):
        student_quantile(probability, df)
