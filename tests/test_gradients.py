"""Gradients that are told late."""

import pytest

import continuarm as ca

UNIT, NONE = ca.Box.unit(1), ca.Box.unit(0)


def test_a_late_gradient_takes_a_smaller_step() -> None:
    """a/(n + 4τ), τ the steps since the decision was asked for."""
    policy = ca.RobbinsMonro(NONE, UNIT, bins=1, step=0.1)
    first, second, third = (policy.ask() for _ in range(3))
    expected = 0.5
    for k, decision in enumerate((second, third, first)):
        policy.tell(decision, 0.0, gradient=[1.0])
        expected += 0.1 / (1 + k + 4 * k)
        assert policy.recommend()[0] == pytest.approx(expected, rel=1e-14)
    fresh = policy.ask()
    policy.tell(fresh, 0.0, gradient=[1.0])
    assert policy.recommend()[0] == pytest.approx(expected + 0.1 / 4, rel=1e-14)
