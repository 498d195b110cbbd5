"""Absurd payoffs, levels that move, and how sure a smooth surface is, against dense formulas."""

import math

import numpy as np
import pytest

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.core.learners import smooth_surface as ss
from continuarm.core.learners.protocol import DRAWN, EARLY
from continuarm.core.learners.smooth import layout
from tests.dense_surface import NO_POOL, Surface, columns_of

SHAPES = [(0, 2), (1, 1), (1, 2), (4, 2)]


def _is_dense(surface: Surface) -> None:
    columns = columns_of(surface.row)
    (a, b), (r, d) = surface.normal(columns), ss.dense(surface.cfg, surface.row)
    scale = np.sqrt(np.outer(np.diag(a), np.diag(a)))
    np.testing.assert_allclose((r.T @ r - a) / scale, 0.0, atol=1e-9)
    size = math.sqrt(sum(w * z * z for (_, _, z), w in _told(surface)))
    np.testing.assert_allclose((r.T @ d - b) / np.sqrt(np.diag(a)) / size, 0.0, atol=1e-9)


def _told(surface: Surface) -> list[tuple[tuple[Array, Array, float], float]]:
    return list(zip(surface.observed, surface.weights, strict=True))


@pytest.mark.parametrize(("dx", "dy"), SHAPES)
@pytest.mark.parametrize("size", [1e3, -1e6])
def test_an_absurd_payoff_is_cut(dx: int, dy: int, size: float) -> None:
    surface = Surface(dx, dy)
    surface.play(200)
    lead = int(surface.row[layout.RUNG])
    variance = float(layout.noise_of(surface.row, lead))
    u, y = surface.rng.uniform(-1, 1, dx), surface.rng.random(dy)
    foreseen = surface.tell(u, y, size)
    assert max(surface.cuts[:-1]) == 0.0
    assert foreseen.square == pytest.approx(100.0 * variance)  # (eq. 8)
    assert math.copysign(1.0, foreseen.cut) == math.copysign(1.0, size)
    assert abs(surface.cuts[-1]) > 0.99 * abs(size) - 100.0
    _is_dense(surface)
    after = float(layout.noise_of(surface.row, int(surface.row[layout.RUNG])))
    assert variance < after < 5.0 * variance  # the noise has heard of it


def test_what_happens_often_is_not_absurd() -> None:
    """An event in ten payoffs may be as large as it likes."""
    surface = Surface(1, 1)
    for k in range(500):
        y = surface.rng.random(1)
        surface.tell(surface.rng.uniform(-1, 1, 1), y, 40.0 if k % 10 == 9 else 0.0)
    assert max(surface.cuts) == min(surface.cuts) == 0.0


@pytest.mark.parametrize(("dx", "dy"), SHAPES)
def test_a_level_that_jumps_is_forgotten_and_slopes_are_not(dx: int, dy: int) -> None:
    surface = Surface(dx, dy)
    surface.play(200, noise=0.1)
    assert min(surface.kept[100:]) > 0.5
    for _ in range(30):
        u, y = surface.rng.uniform(-1, 1, dx), surface.rng.random(dy)
        surface.tell(u, y, 5.0 + 0.1 * float(surface.rng.standard_normal()))
    assert min(surface.kept) < 0.5
    _is_dense(surface)


def test_a_level_that_jumps_costs_nothing() -> None:
    """The best decision known stays where it is, whatever happens to the level."""
    found = []
    for jump in (0.0, 20.0):
        surface = Surface(1, 1)
        rng = np.random.default_rng(5)
        for t in range(900):
            u, y = rng.uniform(-1, 1, 1), 0.5 + 0.1 * rng.uniform(-1, 1, 1)
            level = jump * (t >= 600)
            surface.tell(u, y, level - float((y[0] - 0.6) ** 2) + 0.01 * rng.standard_normal())
        found.append(surface.best(np.array([0.2]))[0])
    assert found[0] == pytest.approx(0.6, abs=0.05)
    assert found[1] == pytest.approx(found[0], abs=0.05)


@pytest.mark.parametrize(("dx", "dy"), [(1, 1), (1, 2), (4, 2), (2, 12)])
def test_peak_and_slopes_have_the_standard_errors_of_least_squares(dx: int, dy: int) -> None:
    surface = Surface(dx, dy, columns=None)

    def hill(u: Array, y: Array) -> float:
        return -float(((y - 0.5 - 0.1 * u[0]) ** 2).sum()) - 0.3 * float(y[0] * y[-1])

    surface.play(500, hill, noise=0.02)
    cfg, row, lead = surface.cfg, surface.row, surface.lead()
    u, y, seen = surface.rng.uniform(-0.5, 0.5, dx), np.full(dy, 0.45), np.empty(4 * dy)
    request = surface.request(u, np.full(ss.draws(cfg), 0.1))
    assert ss.view(cfg, row, request, surface.work, y, seen) == DRAWN
    peak, peak_error, slope, slope_error = seen.reshape(4, dy)

    a, b = surface.normal(lead)
    theta = np.linalg.solve(a, b)
    noise = float(layout.noise_of(row, int(row[layout.RUNG])))
    covariance = row[layout.WEIGHT] * noise * np.linalg.inv(a)

    def gradient(at: Array, j: int) -> Array:
        up, down = at.copy(), at.copy()
        up[j], down[j] = at[j] + 0.5, at[j] - 0.5  # exact: columns are quadratic
        return surface.phi(u, up, lead) - surface.phi(u, down, lead)

    at = [gradient(y, j) for j in range(dy)]
    np.testing.assert_allclose(slope, [g @ theta for g in at], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(slope_error, [math.sqrt(g @ covariance @ g) for g in at], rtol=1e-7)

    hessian = np.empty((dy, dy))
    for i in range(dy):
        far = np.zeros(dy)
        far[i] = 1.0
        for j in range(dy):
            hessian[i, j] = (gradient(far, j) - gradient(np.zeros(dy), j)) @ theta
    level = np.array([gradient(np.zeros(dy), j) @ theta for j in range(dy)])
    top = np.linalg.solve(-hessian, level)
    assert ((top > 0.0) & (top < 1.0)).all(), "the peak is inside the box"
    np.testing.assert_allclose(peak, top, atol=1e-6)
    moves = np.linalg.solve(-hessian, np.array([gradient(top, j) for j in range(dy)]))
    np.testing.assert_allclose(
        peak_error, np.sqrt(np.einsum("ij,jk,ik->i", moves, covariance, moves)), rtol=1e-5
    )
    explained = ss.explain(cfg, row, request, y)
    np.testing.assert_allclose(explained["curvature"], np.diag(hessian), rtol=1e-7)


def test_early_nothing_is_said_of_the_surface() -> None:
    surface = Surface(1, 1)
    surface.play(2)
    request = surface.request(np.zeros(1), np.zeros(ss.draws(surface.cfg)))
    seen = np.empty(4)
    view = ss.view(surface.cfg, surface.row, request, surface.work, np.full(1, 0.5), seen)
    assert view == EARLY
    assert NO_POOL.size == 0


def test_a_decision_is_explained_in_words() -> None:
    policy = ca.Policy(
        ca.Box([0.0], [1.0], names=["hour"]),
        ca.Box([1.0], [9.0], names=["price"]),
        partition=ca.Grid(1),
        learner=ca.SmoothSurface(),
        rng=0,
    )
    rng = np.random.default_rng(0)
    for _ in range(400):
        hour = float(rng.random())
        decision = policy.ask([hour])
        payoff = -((decision.value[0] - 4.0 - hour) ** 2) + 0.1 * rng.standard_normal()
        policy.tell(decision, payoff)
    words = str(policy.explain(policy.ask([0.5])))
    assert "Payoffs put the best price at 4." in words
    assert "One more unit of price" in words
